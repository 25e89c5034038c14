"""Real lock servers on this machine for tests, each in processes of its own that end with their parent.

ZooKeeper and the Hive metastore come in PySpark's own jars, so that nothing is fetched.  DynamoDB Local comes from
Maven Central (51 MB), and is kept in the user's cache.

`python tools/lock_servers.py zookeeper` prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from interop.bundles import cache_folder

LONGEST_S = 300  # for a server to start
_ATTEMPTS = 3  # another process may take the port that was free a moment ago
_PAUSE_S = 0.05
_ANSWER_S = 10.0  # for what a server says of itself
_DUMP_S = 2.0  # a JVM has listed its threads by then


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

    def kill(self) -> None:
        """End the server as `kill -9` does."""
        self._do("kill")

    def start(self, *, empty: bool = False) -> None:
        """Start it again on its port after `kill`.

        Args:
            empty: without what it kept on its disk; one in memory has nothing anyway.
        """
        self._do("start empty" if empty else "start")

    def freeze(self) -> None:
        """Stop it where it is: it takes connections, and answers nothing."""
        self._do("freeze")

    def thaw(self) -> None:
        self._do("thaw")

    def tell(self, path: Path) -> None:
        """Write to a file what the server has said, and what each of its threads is at."""
        self._do(f"tell {path}")

    def _do(self, what: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline().strip()
        if said != "done":
            raise RuntimeError(f"{what} failed: {said or 'it says nothing'}")

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


_DYNAMODB = "2.6.1"
_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>locks</artifactId>
<version>1</version><packaging>pom</packaging><dependencies><dependency><groupId>com.amazonaws</groupId>
<artifactId>DynamoDBLocal</artifactId><version>{}</version></dependency></dependencies></project>
"""


def _dynamodb_jars() -> Path:
    """The folder of DynamoDB Local and what it depends on, fetched by Maven where it is not there."""
    folder = cache_folder() / f"dynamodb-local-{_DYNAMODB}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("DynamoDB Local is fetched by Maven, which is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".get-") as scratch:
        Path(scratch, "pom.xml").write_text(_POM.format(_DYNAMODB))
        command = [
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=lib",
        ]
        done = subprocess.run(
            [maven, *command], cwd=scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        if done.returncode:
            sys.exit(f"Maven cannot get DynamoDB Local: {done.stdout.decode(errors='replace')[:300]}")
        with suppress(OSError):  # another process was first
            Path(scratch, "lib").rename(folder)
    return folder


def _dynamodb(folder: Path, port: int) -> list[str]:
    main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
    arguments = ["-inMemory", "-port", str(port), "-disableTelemetry"]
    return ["-Xmx192m", "-XX:+UseSerialGC", "-cp", f"{_dynamodb_jars()}/*", main, *arguments]


_METASTORE = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:hms;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.txn.timeout": "3s",  # a lock that is not heard of for as long is free
    # Looked for as often, by a service that is the compactor's.
    "hive.compactor.initiator.on": "true",
    "hive.timedout.txn.reaper.start": "1s",
    "hive.timedout.txn.reaper.interval": "1s",
    "hive.in.test": "true",  # makes the tables of locks
    "hive.async.log.enabled": "false",
    "datanucleus.connectionPoolingType": "none",
}
_LOG4J = """appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def _metastore(folder: Path, port: int, **more: str) -> list[str]:
    conf = folder / "conf"
    conf.mkdir()
    entries = {**_METASTORE, "hive.metastore.warehouse.dir": f"{folder}/warehouse", **more}
    properties = "".join(
        f"<property><name>{k}</name><value>{v}</value></property>" for k, v in entries.items()
    )
    (conf / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    (conf / "log4j2.properties").write_text(_LOG4J)
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               f"-Dlog4j2.configurationFile={conf}/log4j2.properties", f"-Dderby.stream.error.file={folder}/derby.log",
               f"-Djava.io.tmpdir={folder}", "-Dhive.metastore.thrift.bind.host=127.0.0.1"]  # fmt: skip
    main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    return [*options, "-cp", f"{conf}:{_jars()}", main, "-p", str(port)]


def _metastore_on_disk(folder: Path, port: int) -> list[str]:
    url = f"jdbc:derby:;databaseName={folder}/data;create=true"
    return _metastore(folder, port, **{"javax.jdo.option.ConnectionURL": url})


SERVERS: dict[str, Callable[[Path, int], list[str]]] = {
    "zookeeper": _zookeeper,
    "dynamodb": _dynamodb,
    "metastore": _metastore,
    "metastore-on-disk": _metastore_on_disk,
}


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _serves(process: subprocess.Popen[bytes], kind: str, port: int) -> bool:
    """Whether the server answers before it ends, or its time does."""
    deadline = time.monotonic() + LONGEST_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            if kind != "zookeeper":
                return True
            # It takes connections before it serves, and closes them.
            connection.settimeout(_ANSWER_S)
            connection.sendall(b"srvr")
            if b"Mode:" in b"".join(iter(lambda: connection.recv(4096), b"")):
                return True
        time.sleep(_PAUSE_S)
    return False


def _started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _told(
    what: str, server: subprocess.Popen[bytes], command: list[str], folder: Path, port: int
) -> tuple[subprocess.Popen[bytes], str]:
    """The server after what the parent asked for, and an answer."""
    if what in ("freeze", "thaw"):
        server.send_signal(signal.SIGSTOP if what == "freeze" else signal.SIGCONT)
        return server, "done"
    if what.startswith("tell "):
        server.send_signal(signal.SIGQUIT)
        time.sleep(_DUMP_S)
        shutil.copyfile(folder / "server.log", what.removeprefix("tell "))
        return server, "done"
    server.kill()
    server.wait()
    if what == "kill":
        return server, "done"
    if what == "start empty":
        shutil.rmtree(folder / "data", ignore_errors=True)
    server = _started(command, folder)
    return server, "done" if _serves(server, sys.argv[1], port) else "it does not start again"


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
            server = _started([java, *command], folder)
            try:
                if _serves(server, sys.argv[1], port):
                    print(port, flush=True)
                    for line in sys.stdin:
                        server, said = _told(line.strip(), server, [java, *command], folder, port)
                        print(said, flush=True)
                    return
            finally:
                server.kill()
                server.wait()
            last = (folder / "server.log").read_text(errors="replace").strip().splitlines()[-1:]
        print(*last or ["no output"], flush=True)


if __name__ == "__main__":
    main()
