"""Frames and streams that outlive the state they stand for: their rows or an error, whatever a session ignores."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from hudi_format.errors import HudiError, StaleSnapshotError
from hudi_spark.reading import logged_slices, reader
from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
HARD = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.parquet.small.file.limit": "0",
}
SETTINGS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
ERRORS = (HudiError, PySparkException, Py4JJavaError)
_WRITER = """
import sys
from hudi_timeline import HudiTable
for ts in range(100, 106):
    HudiTable.open(sys.argv[1]).upsert(
        [{"id": f"{p}{i}", "p": p, "v": ts, "ts": ts} for p in ("2024", "2024/01") for i in range(3)],
        options=eval(sys.argv[2]),
    )
"""


def rows(ts, partitions=("2024", "2024/01", "_x", None)):
    return [{"id": f"{p}{i}", "p": p, "v": ts, "ts": ts} for p in partitions for i in range(3)]


@pytest.fixture(params=["false", "true"], ids=["strict", "ignoring"])
def session_of(spark, request):
    for name in SETTINGS:
        spark.conf.set(name, request.param)
    yield spark
    for name in SETTINGS:
        spark.conf.unset(name)


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    made.upsert(rows(1), options=HARD)
    for ts in range(2, 8):
        made.upsert(rows(ts, ["c"]), options=HARD)
    return made


def write(table):
    subprocess.run([sys.executable, "-c", _WRITER, table.uri, repr(HARD)], check=True)


def given(frame):
    return sorted((r.id, r.p, r.v) for r in frame.select("id", "p", "v").collect())


@pytest.mark.req("TL-05")
def test_partitions_inside_of_partitions_are_read_with_their_values(spark, table):
    want = sorted((r["id"], r["p"], r["v"]) for r in table.read(["id", "p", "v"]).to_arrow().to_pylist())
    frame = spark.read.format("hudi").load(table.uri)
    found = sorted((r.id, r.p, r.v) for r in frame.select("id", "p", "v").collect())
    assert [w for w in want if w[1] is not None] == [f for f in found if f[1] is not None]
    assert len(found) == len(want) == 15
    assert {r.p for r in frame.where("p like '2024/%'").select("p").collect()} == {"2024/01"}


@pytest.mark.req("CC-01", "QR-13")
@pytest.mark.sampled(2)
def test_a_held_frame_gives_its_rows_or_an_error(session_of, table):
    frame = session_of.read.format("hudi").load(table.uri).where("p is not null")
    changes = session_of.read.format("hudi").option("hoodie.datasource.query.type", "incremental").option(
        "hoodie.datasource.read.begin.instanttime", table.timeline.completed_writes()[-2].time
    ).load(table.uri)  # fmt: skip
    want = given(frame), given(changes)
    write(table)
    for held, rows_before in zip((frame, changes), want, strict=True):
        try:
            assert given(held) == rows_before
        except StaleSnapshotError as e:
            assert "load the table again" in e.remedy  # noqa: PT017
    with pytest.raises(StaleSnapshotError, match="cleaned") as e:
        given(frame)
    assert "\n" not in str(e.value)
    if session_of.conf.get(SETTINGS[0]) == "true":
        return
    # However it is run: by PySpark's own conversions, and below a write of another format.
    with pytest.raises(StaleSnapshotError):
        frame.toPandas()
    with pytest.raises(StaleSnapshotError):
        frame.write.parquet(f"{table.uri}-copy")
    with pytest.raises(StaleSnapshotError):
        frame.write.format("hudi").options(**{"hoodie.table.name": "u"}).mode("append").save(
            f"{table.uri}-other"
        )


@pytest.mark.req("CC-01", "QR-13")
@pytest.mark.sampled(2)
def test_a_frame_by_workers_gives_its_rows_or_an_error(session_of, table, monkeypatch):
    """As merge-on-read slices, changes and stores that the JVM does not know are read."""
    for module in (reader, logged_slices):
        monkeypatch.setattr(module, "PARQUET", ".other")
    frame = session_of.read.format("hudi").load(table.uri).where("p is not null")
    assert len(given(frame)) == 12
    write(table)
    with pytest.raises(ERRORS, match="HUDI-E0402"):
        given(frame)


@pytest.mark.req("CC-01", "QR-13")
@pytest.mark.sampled(2)
def test_files_that_go_before_spark_looks_for_them_are_missed(session_of, table, monkeypatch):
    real = reader.files_by_schema

    def late(*given):
        found = real(*given)
        write(table)
        return found

    monkeypatch.setattr(reader, "files_by_schema", late)
    with pytest.raises(ERRORS):
        given(session_of.read.format("hudi").load(table.uri))


@pytest.mark.req("CC-01")
@pytest.mark.sampled(2)
def test_a_plan_of_a_state_that_was_cleaned_is_refused(session_of, table, monkeypatch):
    real = reader.scan_for

    def late(*given, **more):
        scan = real(*given, **more)
        write(table)
        return scan

    monkeypatch.setattr(reader, "scan_for", late)
    with pytest.raises(StaleSnapshotError):
        session_of.read.format("hudi").load(table.uri)


@pytest.mark.req("CC-01")
def test_a_damaged_file_is_an_error(session_of, table):
    frame = session_of.read.format("hudi").load(table.uri)
    for path in Path(table.uri, "2024").glob("*.parquet"):
        data = path.read_bytes()
        path.write_bytes(data[:100] + bytes(len(data) - 200) + data[-100:])
    with pytest.raises(ERRORS):
        given(frame)


@pytest.mark.req("CC-01")
def test_a_write_on_spark_misses_the_file_that_it_looks_keys_up_in(session_of, table):
    from hudi_spark.writing.stored_keys import stored_keys
    from hudi_timeline.file_system_view.base_files import base_files

    files = base_files(table.read(meta_columns=True)._source.snapshot.files())
    keys = stored_keys(session_of, table.storage, files)
    assert keys.count() == 15
    shutil.rmtree(f"{table.uri}/2024/01")
    with pytest.raises(ERRORS):
        keys.count()
