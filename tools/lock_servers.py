"""Real lock servers on this machine for tests, each in processes of its own that end with their parent.

ZooKeeper comes in PySpark's own jars, so that nothing is fetched.

`python tools/lock_servers.py zookeeper` prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

LONGEST_S = 120  # for a server to start
_ATTEMPTS = 3  # another process may take the port that was free a moment ago
_PAUSE_S = 0.05


class LockServer:
    """A server as its tests see it.

    Attributes:
        port: on 127.0.0.1.
    """

    def __init__(self, kind: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _ATTEMPTS * LONGEST_S)
        line = self._process.stdout.readline().strip() if ready else ""
        if not line.isdigit():
            self.stop()
            raise RuntimeError(f"{kind} did not start: {line or 'it says nothing'}")
        self.port = int(line)

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # it keeps nothing that could be lost
            self._process.kill()
            self._process.wait(timeout=30)


def _jars() -> str:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the server's jars are PySpark's, which is not installed")
    return str(Path(next(iter(spec.submodule_search_locations))) / "jars" / "*")


def _zookeeper(folder: Path, port: int) -> list[str]:
    (folder / "zoo.cfg").write_text(
        f"tickTime=500\ndataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n"
    )
    options = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [
        *options,
        "-cp",
        _jars(),
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        str(folder / "zoo.cfg"),
    ]


SERVERS: dict[str, Callable[[Path, int], list[str]]] = {"zookeeper": _zookeeper}


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _accepts(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the server takes a connection before it ends, or its time does."""
    deadline = time.monotonic() + LONGEST_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def main() -> None:
    """Serve until the parent closes the other end of standard input, or dies."""
    java = shutil.which("java")
    if java is None:
        print("java is not installed", flush=True)
        return
    with tempfile.TemporaryDirectory(prefix="lock-server-") as scratch:
        for attempt in range(_ATTEMPTS):
            folder, port = Path(scratch) / str(attempt), _free_port()
            folder.mkdir()
            command = SERVERS[sys.argv[1]](folder, port)
            with (folder / "server.log").open("wb") as log:
                server = subprocess.Popen(
                    [java, *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )  # fmt: skip
            try:
                if _accepts(server, port):
                    print(port, flush=True)
                    sys.stdin.read()
                    return
            finally:
                server.kill()
                server.wait()
            last = (folder / "server.log").read_text(errors="replace").strip().splitlines()[-1:]
        print(*last or ["no output"], flush=True)


if __name__ == "__main__":
    main()
