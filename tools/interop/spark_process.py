"""`format("hudi")` in a process of its own, as an object: `read`, `write`, `sql`.

The process holds PySpark and one implementation of the format, so that two never share a JVM and the caller
needs none.  One process serves many calls.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

# One task each: small tables, many steps.  The timeline server needs a port and a thread pool for nothing.
QUIET_OPTIONS = {
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
}


LONGEST_S = 900  # for one answer; what takes longer hangs


class SparkProcessError(RuntimeError):
    """The implementation refused or failed, or its process died; the message is its own."""


class SparkProcess:
    """A running Spark with one implementation of `format("hudi")`.  A context manager, or call `close`.

    Args:
        name: for messages.
        jar: the bundle's path, or `spark_worker.OURS`.
    """

    def __init__(self, name: str, jar: str) -> None:
        self.name = name
        self._scratch = Path(tempfile.mkdtemp(prefix=f"{name.replace(' ', '-').lower()}-"))
        self._names = itertools.count()
        self._log = (self._scratch / "log.txt").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("spark_worker.py")), jar, str(self._scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            cwd=self._scratch,
            env=_environment(),
            start_new_session=True,  # it is ended with its JVM
        )
        try:
            self._ask("ping")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process and process group, which its JVM is in."""
        return self._process.pid

    def close(self) -> None:
        """End the process and remove its files; more than once is fine."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.close()  # the process ends at the end of its input
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(60)
            self._end()
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def read(self, path: str | os.PathLike[str], *, where: str = "", **options: str) -> pa.Table:
        """All columns of a table, of all rows or those of a condition; dotted options go in as
        `**{"as.of.instant": ...}`."""
        out = self._scratch / f"read-{next(self._names)}"
        self._ask("read", path=str(path), options=options, where=where, out=str(out))
        return _load(out)

    def write(
        self,
        path: str | os.PathLike[str],
        rows: pa.Table,
        options: Mapping[str, str],
        mode: str = "append",
    ) -> None:
        """One write operation; `options` stand over the few that keep a small run quick."""
        given = self._scratch / f"rows-{next(self._names)}.parquet"
        pq.write_table(rows, given, coerce_timestamps="us")
        try:
            self._ask(
                "write", path=str(path), rows=str(given), options={**QUIET_OPTIONS, **options}, mode=mode
            )
        finally:
            given.unlink()

    def stream(self, path: str | os.PathLike[str], checkpoint: Path, out: Path, **options: str) -> pa.Table:
        """All rows that a stream of a table gave so far, and gives now on from its checkpoint; `out` keeps them."""
        self._ask("stream", path=str(path), options=options, checkpoint=str(checkpoint), out=str(out))
        parts = [pq.ParquetFile(p).read() for p in sorted(out.glob("*.parquet"))]
        return pa.concat_tables(parts) if parts else pa.table({})

    def schema(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """The schema that a DataFrame of a table has, in Spark's JSON, with nullability."""
        return dict(self._ask("schema", path=str(path)))

    def archive(self, path: str | os.PathLike[str], options: Mapping[str, str]) -> None:
        """Archive what is due in a table, without a write."""
        self._ask("archive", path=str(path), options=dict(options))

    def look_up(
        self, path: str | os.PathLike[str], keys: Sequence[str], columns: Sequence[str]
    ) -> dict[str, Any]:
        """What Apache Hudi's reader of the metadata table says, and what it finds in storage."""
        return dict(self._ask("look_up", path=str(path), keys=list(keys), columns=list(columns)))

    def schedule_index(
        self, path: str | os.PathLike[str], partitions: Sequence[str], options: Mapping[str, str]
    ) -> str:
        """Plan metadata partitions; gives the plan's instant, "" for none."""
        given = {"path": str(path), "partitions": list(partitions), "options": dict(options)}
        return str(self._ask("schedule_index", **given))

    def run_index(self, path: str | os.PathLike[str], instant: str, options: Mapping[str, str]) -> bool:
        """Execute a plan of metadata partitions; gives whether it was completed."""
        return bool(self._ask("run_index", path=str(path), instant=instant, options=dict(options)))

    def set_hadoop(self, name: str, value: str | None) -> None:
        """Set a property of Hadoop's configuration for what follows; None takes it away."""
        self._ask("set_hadoop", name=name, value=value)

    def sql(self, text: str) -> pa.Table:
        """The rows of a Spark SQL statement, with Apache Hudi's extensions."""
        out = self._scratch / f"sql-{next(self._names)}"
        self._ask("sql", text=text, out=str(out))
        return _load(out)

    def _end(self) -> None:
        """End the process and its JVM, whatever they do."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)

    def _ask(self, command: str, **arguments: object) -> Any:
        # The process has a working directory of its own.
        for name in {"path", "checkpoint", "out"} & set(arguments):
            if not re.match(r"\w+:", str(arguments[name])):
                arguments[name] = str(Path(str(arguments[name])).absolute())
        # Also where the caller is in another thread than a test's own, which no time limit of pytest ends.
        hung = threading.Event()

        def end() -> None:
            hung.set()
            self._end()

        watch = threading.Timer(LONGEST_S, end)
        watch.daemon = True
        watch.start()
        try:
            return self._answer(command, arguments)
        except SparkProcessError as e:
            if hung.is_set():
                e.add_note(f"it gave no answer to {command} in {LONGEST_S} s, and was ended")
            raise
        except BaseException:
            # A test whose time is over: the answer that is still to come would be taken for that of the next question.
            self._end()
            raise
        finally:
            watch.cancel()

    def _answer(self, command: str, arguments: Mapping[str, object]) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise SparkProcessError(self._how_it_died()) from None
        line = process.stdout.readline()
        if not line:
            raise SparkProcessError(self._how_it_died())
        answer = json.loads(line)
        if not answer["ok"]:
            raise SparkProcessError(f"{self.name}, {command}: {answer['error']}")
        return answer["result"]

    def _how_it_died(self) -> str:
        try:
            code = str(self._process.wait(60))
        except subprocess.TimeoutExpired:
            code = "none: it closed its output and runs on"
        self._log.flush()
        tail = (self._scratch / "log.txt").read_text(errors="replace")[-2000:]
        return f"the process of {self.name} ended with code {code}: {tail}"


def _environment() -> dict[str, str]:
    out = dict(os.environ)
    for name in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        out.pop(name, None)  # another Spark's
    return {**out, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def _load(folder: Path) -> pa.Table:
    """The rows of a folder that Spark wrote, which is removed; none where there is no folder."""
    if not folder.is_dir():
        return pa.table({})
    parts: Sequence[Path] = sorted(folder.glob("*.parquet"))
    try:
        return pa.concat_tables([pq.ParquetFile(p).read() for p in parts])
    finally:
        shutil.rmtree(folder)
