"""A TCP connection that tests can cut: passes everything on to a port of this machine until it is told not to."""

from __future__ import annotations

import contextlib
import socket
import threading


class CutWire:
    """Listens on a port of its own.

    Attributes:
        passed: connections passed on so far.
    """

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._cut = False
        self.passed = 0
        self._cut_after: int | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and every new one at once."""
        with self._lock:
            self._cut = True
            for s in self._open:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
                s.close()
            self._open.clear()

    def cut_on(self, text: bytes) -> None:
        """Cut once a request holds this text, before it is passed on."""
        self._text = text

    _text = b""

    def mend(self) -> None:
        with self._lock:
            self._cut, self._text = False, b""

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._cut:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._target), timeout=60)
                except OSError:  # the client sees it as a connection that ended, and the next one is served
                    near.close()
                    continue
                far.settimeout(None)
                self._open += [near, far]
                self.passed += 1
            threading.Thread(target=self._pass, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, request: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if request and self._text and self._text in data:
                    self.cut()
                    return
                target.sendall(data)
        except OSError:
            pass  # cut, or closed by the other side
        finally:
            for s in (source, target):
                with contextlib.suppress(OSError):
                    s.close()
