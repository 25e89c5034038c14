"""A TCP connection that tests can cut or hold up: it passes everything on to a port of this machine until then."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable


class CutWire:
    """Listens on a port of its own.

    Attributes:
        passed: connections passed on so far.
        lost: answers that were not passed on, as `lose_answer` asked for.
    """

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._cut = False
        self._flows = threading.Event()
        self._flows.set()
        self._striking: re.Pattern[bytes] | None = None
        self._losing: re.Pattern[bytes] | None = None
        self._then: Callable[[], object] = self.cut
        self.passed = self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    # --- faults ----------------------------------------------------------------------------------------

    def cut(self, *, reset: bool = False) -> None:
        """End all connections, and every new one at once.

        Args:
            reset: as a firewall does that has forgotten them, and not as a server that closes them.
        """
        with self._lock:
            self._cut = True
            for s in self._open:
                if reset:
                    with contextlib.suppress(OSError):
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    with contextlib.suppress(OSError):
                        s.shutdown(socket.SHUT_RDWR)
                s.close()
            self._open.clear()
        self._flows.set()

    def stall(self) -> None:
        """Take what comes, new connections too, and pass nothing on: as packets that are dropped."""
        self._flows.clear()

    def cut_on(self, text: bytes) -> None:
        """Cut once a request holds this text, before it is passed on."""
        self._then, self._striking = self.cut, re.compile(re.escape(text))

    def lose_answer(self, pattern: bytes, then: Callable[[], object] | None = None) -> None:
        """Pass the next request with this pattern on, and end its connection instead of answering.

        Args:
            then: what follows, as another fault.
        """
        self._then, self._losing = then or (lambda: None), re.compile(pattern)

    def mend(self) -> None:
        with self._lock:
            self._cut, self._striking, self._losing = False, None, None
        self._flows.set()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    # --- passing ---------------------------------------------------------------------------------------

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
            losing = threading.Event()
            threading.Thread(target=self._pass, args=(near, far, True, losing), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, False, losing), daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, request: bool, losing: threading.Event
    ) -> None:
        try:
            while data := source.recv(1 << 16):
                if request and self._striking is not None and self._striking.search(data):
                    self._striking = None
                    self._then()
                if request and self._losing is not None and self._losing.search(data):
                    self._losing = None
                    losing.set()
                # HTTP's "go on, send the rest" is no answer yet.
                if not request and losing.is_set() and not data.startswith(b"HTTP/1.1 100 "):
                    self.lost += 1
                    self._then()
                    return
                self._flows.wait()
                target.sendall(data)
        except OSError:
            pass  # cut, or closed by the other side
        finally:
            for s in (source, target):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)  # closing alone tells nobody while the other thread reads it
                s.close()
