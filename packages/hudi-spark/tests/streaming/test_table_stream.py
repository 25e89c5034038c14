"""Tables as streams: every change once, across restarts, from where the options say."""

import json
import shutil
import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import ConflictingOptionError, NotAHudiTableError, UnsupportedError
from hudi_spark import patches
from hudi_spark.runtime.settings import HAS_DATA_SOURCES
from hudi_spark.streaming.table_stream import TableStream
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.instant import next_instant

pytestmark = [pytest.mark.spark, pytest.mark.req("IN-14", "IN-15", "ST-09")]

START = "hoodie.datasource.streaming.startOffset"
CDC = {"hoodie.datasource.query.incremental.format": "cdc"}
POLL = {"hudi.streaming.poll.seconds": "0.2"}
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])


def rows(*ids, ts=1, city="oslo"):
    return pa.table({"id": list(ids), "city": [city] * len(ids), "ts": [ts] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def table(path):
    return HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["city"], ordering_fields=["ts"]
    )


@pytest.fixture
def spool(tmp_path, monkeypatch):
    """Where folders of marker files go, before Spark 4."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def drain(spark, path, tmp_path):
    """Read what there is now, on from the checkpoint; gives the rows of each run."""

    def run(checkpoint="checkpoint", **options):
        got = []

        def take(frame, number):
            got.extend(r.asDict() for r in frame.collect())

        stream = spark.readStream.format("hudi").options(**POLL, **options).load(path)
        assert stream.isStreaming
        query = (
            stream.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(400), "the query came to its end"
        assert query.exception() is None
        return got

    return run


def ids(found):
    return sorted((r["id"], r["ts"]) for r in found)


def test_each_change_comes_once_across_restarts(table, drain, spool):
    table.upsert(rows("1", "2"))
    table.upsert(rows("3"))
    given = {START: "earliest"}
    assert ids(drain(**given)) == [("1", 1), ("2", 1), ("3", 1)]
    assert drain(**given) == []
    table.upsert(rows("1", "4", ts=2))
    for folder in spool.iterdir():  # may be lost between runs
        shutil.rmtree(folder)
    assert ids(drain(**given)) == [("1", 2), ("4", 2)]


def test_a_stream_starts_where_it_is_told_to(table, drain):
    table.upsert(rows("1"))
    second = table.upsert(rows("2")).instant
    table.upsert(rows("3"))
    assert ids(drain("b", **{START: second})) == [("3", 1)]
    assert drain("c", **{START: "latest"}) == []
    table.upsert(rows("4"))
    assert ids(drain("c", **{START: "latest"})) == [("4", 1)]


@pytest.mark.parametrize("order", ["stable", "start", "completion"])
@pytest.mark.parametrize("changes", [{}, CDC], ids=["rows", "changes"])
@pytest.mark.one_version
def test_a_stream_that_read_past_a_restore_has_nothing_to_read_until_there_is_more(
    table, path, order, changes
):
    """What it has read last is no longer there, and the newest commit is an older one."""
    stream = TableStream.of(path, {"hudi.read.incremental.order": order, **changes})
    table.upsert(rows("1"))
    kept = table.savepoint()
    table.upsert(rows("2"))
    read = stream.latest()
    assert stream.scan(stream.initial(), read).to_arrow().num_rows == 2
    table.restore(kept)
    end = stream.latest()
    assert end < read
    assert stream.scan(read, end).to_arrow().num_rows == 0
    table.upsert(rows("3"))
    assert stream.latest() > read
    assert stream.scan(read, stream.latest()).to_arrow().num_rows == 1


@pytest.mark.req("IN-09")
@pytest.mark.parametrize("order", ["stable", "start", "completion"])
@pytest.mark.sampled(3)
@pytest.mark.one_version
def test_a_stream_goes_on_from_what_a_commit_published(table, drain, order):
    """The checkpoint of a job that read in another order than the stream does."""
    table.upsert(rows("1"))
    second = table.upsert(rows("2"))
    table.upsert(rows("3"))
    published = second.completion if order == "completion" else second.instant
    for number, own in enumerate(("stable", "completion")):
        given = {START: published, "hudi.streaming.start.order": order, "hudi.read.incremental.order": own}
        assert ids(drain(f"c{number}", **given)) == [("3", 1)]


def test_a_stream_of_changes(table, drain):
    table.upsert(rows("1", "2"))
    table.upsert(rows("1", ts=2))
    table.delete(rows("2"))
    found = [(r["op"], json.loads(r["after"] or r["before"])["id"]) for r in drain(**CDC)]
    assert sorted(found) == [("d", "2"), ("i", "1"), ("i", "2"), ("u", "1")]
    table.upsert(rows("5"))
    assert [r["op"] for r in drain(**CDC)] == ["i"]


def test_a_running_query_follows_the_table(spark, table, path, tmp_path):
    table.upsert(rows("0"))
    seen = []

    def take(frame, number):
        seen.extend(r["id"] for r in frame.select("id").collect())

    stream = spark.readStream.format("hudi").options(**POLL).load(path).where("ts > 0")
    query = (
        stream.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        for n in range(1, 4):
            table.upsert(rows(str(n)))
        for _ in range(1500):
            if len(seen) >= 4:
                break
            query.awaitTermination(0.2)
        assert sorted(seen) == ["0", "1", "2", "3"]
    finally:
        query.stop()


@pytest.mark.skipif(HAS_DATA_SOURCES, reason="there each query has a reader of its own")
def test_queries_of_one_frame_get_each_change_once(spark, table, path, tmp_path):
    """One after the other, with checkpoints of their own; two at once are refused."""
    table.upsert(rows("1"))
    frame = spark.readStream.format("hudi").options(**POLL).load(path)
    seen = {"a": [], "b": []}

    def start(name, **trigger):
        write = frame.writeStream.foreachBatch(lambda f, _: seen[name].extend(r.id for r in f.collect()))
        return write.option("checkpointLocation", str(tmp_path / name)).trigger(**trigger).start()

    for number in ("2", "3"):
        for name in seen:
            query = start(name, availableNow=True)
            assert query.awaitTermination(400), "the query came to its end"
        table.upsert(rows(number))
    assert {name: sorted(ids) for name, ids in seen.items()} == {"a": ["1", "2"], "b": ["1", "2"]}
    running = start("a", processingTime="100 milliseconds")
    try:
        with pytest.raises(UnsupportedError, match="load the stream again for each query"):
            start("b", availableNow=True)
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("as.of.instant", "20260101000000000"),
        ("as.of.instant", "never"),
        ("hoodie.datasource.read.begin.instanttime", "000"),
        ("hoodie.datasource.read.end.instanttime", "20260101000000000"),
    ],
)
@pytest.mark.parametrize("query", ["", "incremental"])
def test_bounds_of_queries_are_none_of_a_stream(spark, path, table, option, value, query):
    given = {option: value} | ({"hoodie.datasource.query.type": query} if query else {})
    with pytest.raises(ConflictingOptionError, match=f"streams do not support {option}") as e:
        spark.readStream.format("hudi").options(**given).load(path)
    assert START in e.value.remedy


def test_no_stream_follows_what_is_no_table(spark, path, table):
    with pytest.raises(NotAHudiTableError, match="not a Hudi table"):
        spark.readStream.format("hudi").load(path + "-not")


@pytest.mark.skipif(not HAS_DATA_SOURCES, reason="before 4.0 the session itself plans the stream")
def test_the_data_source_is_told_the_settings_of_the_session(spark, table, path):
    """It plans in a process that sees no session; the call's own options count, and no setting of queries does."""
    told = []
    spark.conf.set(START, "latest")
    spark.conf.set("hoodie.metadata.enable", "false")
    spark.conf.set("hoodie.datasource.query.type", "snapshot")
    load = patches._load_stream(lambda self, path, format, schema, **options: told.append((path, options)))
    reader = spark.readStream.format("hudi").option(START, "earliest")
    load(reader, path)
    assert told == [(path, {"hoodie.metadata.enable": "false"})]


@pytest.mark.one_version
def test_open_commits_are_waited_for(table, drain, path):
    first = table.upsert(rows("1")).instant
    hole = Path(path) / ".hoodie" / f"{next_instant(first)}.commit.requested"
    hole.touch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stats = table.inspect
    assert stats is not None
    assert ids(drain()) == [("1", 1)]
    later = next_instant(next_instant(first))
    for file in list((Path(path) / ".hoodie").glob(f"{first}*")):  # a later commit, by another writer
        shutil.copy(file, file.with_name(file.name.replace(first, later)))
    assert drain() == []
    hole.unlink()
    assert HudiTable.open(path).latest_offset() == later
