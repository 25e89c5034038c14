"""The ways of four calls through the rooms, as CONTRIBUTING.md names them, against the calls that are made."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import hudi_spark
from hudi_timeline import HudiTable

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
WAYS = {
    name.strip("` "): re.findall(r"`([\w.]+)`", steps)
    for name, steps in re.findall(
        r"^\| ([^|]+) \| (`.+→.+) \|$", TEXT.split("## Four ways")[1].split("##")[0], re.MULTILINE
    )
}
ROWS = pa.table({"id": ["a"], "p": ["x"], "n": [1]})
FEW = {"hoodie.clean.automatic": "false", "hoodie.cleaner.commits.retained": "1"}
# Loaded again where a transaction or a service has the lock, as the text says; methods of PySpark that call another.
AGAIN = {"hudi_timeline.file_system_view.snapshot.load_snapshot", "hudi_spark.patches"}
# What Spark runs in processes of its own.
IN_WORKERS = {
    "hudi_timeline.writing.workers.bucket_worker.write_bucket",
    "hudi_format.file_slice.writer.merge_file",
}


def steps_of(way: str) -> list[str]:
    return [s if s.startswith("hudi_") else f"hudi_timeline.{s}" for s in WAYS[way]]


def followed(call: Callable[[], object], steps: list[str]) -> list[str]:
    """The steps that a call takes, one after the other, on all threads."""
    taken: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        module = frame.f_globals.get("__name__", "")
        for name in (module, f"{module}.{frame.f_code.co_qualname}"):
            if name in steps and (not taken or taken[-1] != name):
                taken.append(name)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return taken


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **FEW}
    made = HudiTable.create(
        tmp_path / "t", ROWS.schema, name="t", record_keys="id", partition_fields=["p"], options=options
    )
    made.upsert(ROWS, options=FEW)
    return HudiTable.open(tmp_path / "t")


@pytest.fixture(scope="module")
def spark() -> Iterator[object]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = hudi_spark.configure(builder).getOrCreate()
    yield session
    session.stop()


def test_an_upsert_without_a_jvm_goes_through_the_rooms_in_order(tmp_path: Path) -> None:
    made = HudiTable.create(tmp_path / "t", ROWS.schema, name="t", record_keys="id", partition_fields=["p"])
    made.upsert(ROWS)
    check("HudiTable.upsert", lambda: made.upsert(ROWS))


def test_a_filtered_read_goes_through_the_rooms_in_order(table: HudiTable) -> None:
    table.upsert(ROWS, options=FEW)
    check("a filtered read", lambda: table.read(filter="p = 'x' and n > 0").to_arrow())


def test_a_cleaning_goes_through_the_rooms_in_order(table: HudiTable) -> None:
    for _ in range(2):
        table.insert_overwrite(ROWS, options=FEW)
    check("a clean", lambda: table.clean(options=FEW))


def test_a_data_frame_goes_through_the_rooms_in_order(spark, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS.to_pylist(), "id string, p string, n long")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }

    def save() -> None:
        frame.write.format("hudi").options(**options).mode("append").save(str(tmp_path / "t"))

    save()
    check("a DataFrame upserted on Spark", save, unseen=IN_WORKERS)


def check(way: str, call: Callable[[], object], unseen: set[str] = frozenset()) -> None:
    steps = [s for s in steps_of(way) if s not in unseen]
    taken = followed(call, steps)
    assert list(dict.fromkeys(taken)) == steps
    back = [step for n, step in enumerate(taken) if step in taken[:n] and step not in AGAIN]
    assert not back, taken
