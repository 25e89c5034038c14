"""What Python workers leave at the end of a task: no memory, and nothing that the next one would read again."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
import zipimport

import pyarrow as pa
import pytest

from hudi_spark.runtime.python_workers import forget_archives, in_workers


def _archives() -> list[str]:
    return [p for p, f in sys.path_importer_cache.items() if isinstance(f, zipimport.zipimporter)]


def test_archives_of_spark_are_forgotten_and_found_again(tmp_path, monkeypatch):
    for name, module in (("pyspark.zip", "of_spark"), ("mine.zip", "of_mine")):
        with zipfile.ZipFile(tmp_path / name, "w") as z:
            z.writestr(f"{module}/__init__.py", "")
            z.writestr(f"{module}/inner.py", "VALUE = 7")
        monkeypatch.syspath_prepend(str(tmp_path / name))
    try:
        for module in ("of_spark", "of_mine"):
            importlib.import_module(module)
        before = {p for p in _archives() if p.startswith(str(tmp_path))}
        assert any("pyspark.zip" in p for p in before)
        forget_archives()
        left = {p for p in _archives() if p.startswith(str(tmp_path))}
        assert left == {p for p in before if "mine.zip" in p}
        assert importlib.import_module("of_spark.inner").VALUE == 7
        assert importlib.import_module("of_mine.inner").VALUE == 7
    finally:
        for name in [n for n in sys.modules if n.startswith(("of_spark", "of_mine"))]:
            del sys.modules[name]


def _count(batches):
    pid, found = os.getpid(), len(_archives())
    for _ in batches:
        yield pa.record_batch({"pid": pa.array([pid], pa.int64()), "found": pa.array([found], pa.int64())})


def test_a_worker_that_has_run_a_task_begins_the_next_without_them(spark):
    seen: set[int] = set()
    again = 0
    for _ in range(4):
        rows = in_workers(spark.range(0, 4, 1, 2), _count, "pid bigint, found bigint").collect()
        again += sum(1 for pid, _ in rows if pid in seen)
        assert all(found == 0 for pid, found in rows if pid in seen)
        seen.update(pid for pid, _ in rows)
    assert again


# 130 MB of text, all given up before the task ends.
TASK = """
import os
import pyarrow as pa
from hudi_spark.runtime.python_workers import _InWorker

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def work(batches):
    held = [batch.column(0).cast(pa.string()) for batch in batches for _ in range(200)]
    yield pa.record_batch({"n": pa.array([len(held)])})

task, batch = _InWorker(work), pa.record_batch({"n": pa.array(range(100_000))})
list(task([batch.slice(0, 1)]))
before = resident()
assert [b.column(0).to_pylist() for b in task([batch])] == [[200]]
print((resident() - before) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_a_worker_gives_back_what_a_task_took():
    done = subprocess.run([sys.executable, "-c", TASK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40
