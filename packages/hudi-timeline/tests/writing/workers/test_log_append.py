import errno
import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    InvalidOptionError,
    SchemaError,
    StorageError,
    WriteFailedError,
)
from hudi_format.file_slice.writer import stamp
from hudi_format.log.block import BlockType
from hudi_format.log.delete_block import OrderingType, read_deletes
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import markers
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.writing.workers import bucket_worker as workers
from hudi_timeline.writing.workers import log_append
from hudi_timeline.writing.workers.tasks import TaskToken

FIELDS = [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())]
MODELS = "org.apache.hudi.common.model."
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}


def made(path, schema=None, *, kind="MERGE_ON_READ", payload=None, options=None, ordering=("ts",)):
    given = {"hoodie.datasource.write.payload.class": MODELS + payload} if payload else {}
    return HudiTable.create(
        str(path), pa.schema(schema or FIELDS), name="t", table_type=kind, record_keys=["id"],
        partition_fields=["p"], ordering_fields=list(ordering), options={**given, **(options or {})},
    )  # fmt: skip


def rows(*given):
    return pa.Table.from_pylist(
        [dict(zip(("id", "p", "ts", "v"), r, strict=True)) for r in given], schema=pa.schema(FIELDS)
    )


def log_paths(result):
    return [s.path for s in result.write_stats if ".log." in s.path]


def blocks(table, path):
    storage = LocalStorage(table.uri)
    with LogFileReader.open(storage, path) as reader:
        return [(b, reader.content(b)) for b in reader.blocks]


@pytest.fixture
def table(tmp_path):
    t = made(tmp_path / "t")
    t.bulk_insert(rows(*((str(n), "a", 1, float(n)) for n in range(6))))
    return t


def values(t, **kwargs):
    return {r["id"]: r["v"] for r in t.read(["id", "v"], **kwargs).to_arrow().to_pylist()}


@pytest.mark.req("LF-12", "WR-12", "TL-12", "TM-09")
def test_an_append_is_a_data_block_and_then_a_delete_block_in_a_new_log_file_of_the_slice(tmp_path):
    t = made(tmp_path / "t", [*FIELDS, ("_hoodie_is_deleted", pa.bool_())])
    first = t.bulk_insert(
        rows(("1", "a", 1, 1.0), ("2", "a", 1, 2.0)).append_column(
            "_hoodie_is_deleted", pa.array([False] * 2)
        )
    )
    batch = rows(("2", "a", 5, 9.0), ("1", "a", 7, 8.0)).append_column(
        "_hoodie_is_deleted", pa.array([True, False])
    )
    result = t.upsert(batch, options=NO_SMALL_FILES)
    (stat,) = result.write_stats
    assert result.action == "deltacommit"
    assert stat.prev_commit == first.instant
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (1, 1, 0, 1)
    assert stat.extra["logVersion"] == 1
    assert stat.extra["logOffset"] == 0
    assert stat.extra["baseFile"] == Path(first.write_stats[0].path).name
    assert stat.extra["logFiles"] == [Path(stat.path).name]
    assert stat.file_size_in_bytes == (tmp_path / "t" / stat.path).stat().st_size
    (data, _), (delete, content) = blocks(t, stat.path)
    assert (data.type, delete.type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    assert data.instant == delete.instant == result.instant
    deletes = read_deletes(delete, content)
    assert deletes.keys.to_pylist() == ["2"]
    assert values(t) == {"1": 8.0}
    assert values(t, query="read_optimized") == {"1": 1.0, "2": 2.0}
    saved = json.loads((tmp_path / "t/.hoodie" / f"{result.instant}.deltacommit").read_bytes())
    assert saved["partitionToWriteStats"]["a"][0]["logFiles"] == stat.extra["logFiles"]
    assert t.verify() == []


def test_logged_rows_say_the_commit_and_name_the_file_id(table):
    result = table.upsert(rows(("3", "a", 2, 30.0)), options=NO_SMALL_FILES)
    (row,) = (r for r in table.read(meta_columns=True).to_arrow().to_pylist() if r["id"] == "3")
    assert row["_hoodie_commit_time"] == result.instant
    assert row["_hoodie_commit_seqno"].startswith(f"{result.instant}_")
    assert row["_hoodie_file_name"] == result.write_stats[0].file_id
    assert row["_hoodie_partition_path"] == "a"


def test_each_append_is_a_file_of_the_next_version_whose_token_says_the_write(table):
    results = [table.upsert(rows(("1", "a", n, float(n))), options=NO_SMALL_FILES) for n in (2, 3, 4)]
    names = [Path(log_paths(r)[0]).name for r in results]
    assert [n.split(".log.")[1].split("_")[0] for n in names] == ["1", "2", "3"]
    for name, result in zip(names, results, strict=True):
        assert name.rpartition("_")[2].split("-")[1] == str(int(result.instant[-9:]))
    assert len(set(names)) == 3


@pytest.mark.parametrize("name", ["avro", "parquet", "hfile"])
@pytest.mark.req("LF-18")
def test_the_type_of_data_blocks_is_chosen_by_the_option(tmp_path, name):
    t = made(tmp_path / "t")
    t.bulk_insert(rows(("1", "a", 1, 1.0), ("2", "a", 1, 2.0)))
    result = t.upsert(
        rows(("1", "a", 2, 3.0)), options={**NO_SMALL_FILES, "hoodie.logfile.data.block.format": name}
    )
    ((block, _),) = blocks(t, log_paths(result)[0])
    wanted = {"avro": BlockType.AVRO_DATA, "parquet": BlockType.PARQUET_DATA, "hfile": BlockType.HFILE_DATA}
    assert block.type == wanted[name]
    assert values(t) == {"1": 3.0, "2": 2.0}


@pytest.mark.req("WR-17")
def test_blocks_and_files_end_at_their_sizes(table):
    small = {
        **NO_SMALL_FILES, "hoodie.logfile.data.block.max.size": "200", "hoodie.logfile.max.size": "2000",
    }  # fmt: skip
    result = table.upsert(rows(*((str(n), "a", 2, 100.0 + n) for n in range(6))), options=small)
    assert len(log_paths(result)) > 1
    assert sum(len(blocks(table, p)) for p in log_paths(result)) == 6
    assert sum(s.num_writes for s in result.write_stats) == 6
    assert values(table) == {str(n): 100.0 + n for n in range(6)}
    assert table.verify() == []
    after = table.upsert(rows(("0", "a", 3, 0.5)), options=NO_SMALL_FILES)
    assert after.write_stats[0].extra["logVersion"] > len(log_paths(result))
    assert values(table)["0"] == 0.5


@pytest.mark.req("WR-17")
@pytest.mark.parametrize(
    "index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "BUCKET"]
)
@pytest.mark.sampled(2)
def test_no_new_row_goes_where_there_is_a_log_whatever_its_bytes_count_for(tmp_path, index):
    """As in Apache Hudi, whose partitioner looks at logs only where the index knows the keys in them."""
    placed = set()
    for share in ("0", "0.35", "1000"):
        buckets = {"hoodie.bucket.index.num.buckets": "1"} if index == "BUCKET" else {}
        t = made(tmp_path / share, options={"hoodie.index.type": index, **buckets})
        t.upsert(rows(("1", "a", 1, 2.0)))
        t.upsert(rows(("1", "a", 2, 3.0)))
        (logged,) = {s.file_id for s in newest_slices_of(open_snapshot(t.storage)) if s.log_files}
        added = t.upsert(
            rows(("new", "a", 2, 5.0)), options={"hoodie.logfile.to.parquet.compression.ratio": share}
        )
        placed.add(tuple(s.file_id == logged for s in added.write_stats))
        assert values(t)["new"] == 5.0
    assert placed == {(index == "BUCKET",)}
    with pytest.raises(InvalidOptionError, match="not allowed"):
        t.upsert(rows(("new", "a", 3, 5.0)), options={"hoodie.logfile.to.parquet.compression.ratio": "much"})


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (pa.int32(), 5, OrderingType.INT),
        (pa.int64(), 5, OrderingType.LONG),
        (pa.float64(), 5.5, OrderingType.DOUBLE),
        (pa.string(), "b", OrderingType.STRING),
        (pa.date32(), date(2026, 1, 2), OrderingType.DATE),
        (pa.decimal128(9, 2), Decimal("5.25"), OrderingType.DECIMAL),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, tzinfo=UTC), OrderingType.LONG),
    ],
)
def test_a_flagged_delete_has_the_ordering_value_that_apache_hudi_gives_it(tmp_path, kind, value, stored):
    t = made(
        tmp_path / "t",
        [("id", pa.string()), ("p", pa.string()), ("ts", kind), ("_hoodie_is_deleted", pa.bool_())],
    )
    row = {"id": "1", "p": "a", "ts": value, "_hoodie_is_deleted": False}
    t.bulk_insert(pa.Table.from_pylist([row], schema=t.schema))
    gone = pa.Table.from_pylist([{**row, "_hoodie_is_deleted": True}], schema=t.schema)
    result = t.upsert(gone, options=NO_SMALL_FILES)
    (part,) = read_deletes(*blocks(t, log_paths(result)[0])[0]).ordering
    assert part.type == stored
    assert t.read().to_arrow().num_rows == 0


def test_the_operation_delete_has_no_ordering_value_and_wins(table):
    table.upsert(rows(("1", "a", 100, 5.0)), options=NO_SMALL_FILES)
    table.delete(pa.table({"id": ["1"], "p": ["a"]}))
    assert "1" not in values(table)


def test_files_of_attempts_that_lost_are_deleted_at_the_commit(table, tmp_path, monkeypatch):
    made_by = []
    real = log_append.append_log

    def twice(context, bucket, given, token, counter):
        real(context, bucket, given, TaskToken(token.partition_id, token.stage_id, 77), counter)
        stats = real(context, bucket, given, token, counter)
        made_by.extend(s.path for s in stats)
        return stats

    monkeypatch.setattr(workers, "append_log", twice)
    result = table.upsert(rows(("1", "a", 2, 9.0)), options=NO_SMALL_FILES)
    there = {p.name for p in (tmp_path / "t/a").iterdir() if ".log." in p.name}
    assert there == {Path(p).name for p in made_by} == {Path(p).name for p in log_paths(result)}
    assert table.verify() == []


@pytest.mark.req("RC-01", "RC-09")
def test_a_failed_append_is_taken_back_by_a_command_block(table, tmp_path, monkeypatch):
    before = values(table)
    table.upsert(rows(("2", "a", 2, 22.0)), options=NO_SMALL_FILES)

    def fails(*_):
        raise WriteFailedError("no")

    with monkeypatch.context() as patch:
        patch.setattr(log_append, "confirm_marked", fails)
        with pytest.raises(WriteFailedError):
            table.upsert(rows(("1", "a", 2, 9.0)), options=NO_SMALL_FILES)
    assert values(table) == {**before, "2": 22.0}
    table.upsert(rows(("3", "a", 2, 33.0)), options=NO_SMALL_FILES)
    assert values(table) == {**before, "2": 22.0, "3": 33.0}
    assert table.verify() == []
    assert not markers.list_instants(LocalStorage(str(tmp_path / "t")))


def test_a_disk_that_is_full_in_mid_append_leaves_the_table_as_it_was(table, tmp_path, monkeypatch):
    before, real = values(table), LocalStorage.open_output

    def full(self, path):
        out = real(self, path)
        if ".log." in path and tmp_path.name in self.uri:
            out.close()  # what is written to it fails from now on
            return Broken()
        return out

    class Broken:
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

        close = flush

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "open_output", full)
        with pytest.raises(StorageError, match="No space left"):
            table.upsert(rows(("1", "a", 2, 9.0)), options=NO_SMALL_FILES)
    assert values(table) == before
    table.upsert(rows(("1", "a", 2, 9.0)), options=NO_SMALL_FILES)
    assert values(table) == {**before, "1": 9.0}
    assert table.verify() == []


def test_an_attempt_that_outlives_its_write_leaves_no_log_file(table, tmp_path, monkeypatch):
    late = []
    real = log_append.append_log

    def kept(*arguments):
        late.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(workers, "append_log", kept)
    table.upsert(rows(("1", "a", 2, 9.0)), options=NO_SMALL_FILES)
    before = sorted(p.name for p in (tmp_path / "t/a").iterdir())
    context, bucket, given, token, counter = late[0]
    with pytest.raises(ConcurrentWriterError):
        real(context, bucket, given, TaskToken(token.partition_id, 0, 5), counter)
    # Also where it had begun before the commit, which took its marker away.
    context = replace(context, completed="")
    files = log_append._LogFiles(context, bucket, bucket.log, TaskToken(token.partition_id, 0, 6))
    files.writer.append_rows(stamp(given, files.spec, counter))
    markers.delete(context.storage, context.instant)
    with pytest.raises(ConcurrentWriterError):
        files.close()
    files.abort()
    assert sorted(p.name for p in (tmp_path / "t/a").iterdir()) == before


def test_validators_see_the_merged_rows(table):
    seen = {}

    def look(change):
        seen["changed"] = sorted(change.rows(["id"]).to_arrow().column("id").to_pylist())
        seen["deleted"] = change.deleted().column(0).to_pylist()
        seen["before"], seen["after"] = (
            {r["id"]: r["v"] for r in s(["id", "v"]).to_arrow().to_pylist()}
            for s in (change.before, change.after)
        )

    table.upsert(rows(("1", "a", 2, 9.0)), options=NO_SMALL_FILES)
    table.delete(pa.table({"id": ["2"], "p": ["a"]}), options=NO_SMALL_FILES)
    table.upsert(rows(("1", "a", 3, 8.0)), options=NO_SMALL_FILES, validators=[look])
    assert (seen["changed"], seen["deleted"]) == (["1"], [])
    assert (seen["before"]["1"], seen["after"]["1"], "2" in seen["before"]) == (9.0, 8.0, False)
    table.delete(pa.table({"id": ["3"], "p": ["a"]}), options=NO_SMALL_FILES, validators=[look])
    assert seen["deleted"] == ["3"]


@pytest.mark.parametrize(
    "query", ["select count(*) from <TABLE_NAME>#6", "select sum(v) from <TABLE_NAME>#23.0"]
)
def test_sql_validators_see_the_merged_rows(table, query):
    named = {
        **NO_SMALL_FILES,
        "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
        "hoodie.precommit.validators.single.value.sql.queries": query,
    }
    table.upsert(rows(("1", "a", 2, 9.0)), options=named)


@pytest.mark.req("NEW-04", "IX-08")
def test_a_merge_of_the_users_goes_with_a_global_index(tmp_path):
    given = {"hoodie.index.type": "GLOBAL_SIMPLE", "hudi.merge": {"v": "sum"}}
    t = made(tmp_path / "t", options=given)
    t.upsert(rows(("1", "a", 1, 1.0), ("2", "a", 1, 1.0)), options=given)
    t.upsert(rows(("1", "a", 2, 2.0)), options=given)
    t.upsert(rows(("1", "b", 3, 4.0), ("2", "a", 2, 8.0)), options=given)
    found = t.read(["id", "_hoodie_partition_path", "v"]).to_arrow().to_pylist()
    assert sorted(tuple(r.values()) for r in found) == [("1", "b", 7.0), ("2", "a", 9.0)]


def test_a_value_that_does_not_fit_the_schema_fails_before_anything_is_written(table, tmp_path):
    before = sorted(p.name for p in (tmp_path / "t/a").iterdir())
    with pytest.raises(SchemaError):
        table.upsert(pa.table({"id": ["1"], "p": ["a"], "ts": ["x"], "v": [1.0]}))
    assert sorted(p.name for p in (tmp_path / "t/a").iterdir()) == before


def test_an_append_of_no_rows_makes_no_file(table):
    result = table.delete(pa.table({"id": ["none"], "p": ["a"]}))
    assert result.write_stats == ()


def held(t):
    return Counter(str(sorted(r.items())) for r in t.read(meta_columns=False).to_arrow().to_pylist())


@pytest.mark.sampled(6, values=False)
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("seed", range(2))
def test_both_types_of_tables_hold_the_same_rows_after_the_same_writes(tmp_path, index, seed):
    """With ordering values that grow, and where what a payload compares makes no difference."""
    draw = random.Random(f"{index}{seed}")
    options = {"hoodie.index.type": index, "hoodie.compact.inline.max.delta.commits": "100"}
    if seed % 2:
        options |= NO_SMALL_FILES
    tables = [
        made(tmp_path / kind, kind=kind, options=options) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    ]
    home = {}  # a key stays in its partition, so that it is unique for all indexes
    for step in range(8):
        batch = {}
        for _ in range(draw.randint(1, 12)):
            key = str(draw.randrange(20))
            where = home.setdefault(key, draw.choice("abc"))
            batch[key] = (key, where, step, draw.random())
        kind = draw.choice(["upsert", "upsert", "upsert", "delete", "insert_overwrite"]) if step else "upsert"
        for t in tables:
            getattr(t, kind)(rows(*batch.values()), options=options)
        left, right = (held(t) for t in tables)
        assert left == right, (kind, step)
    for t in tables:
        assert t.verify() == []
