"""What a copy-on-write table promises: one short proof for each row of the requirements that no other test names."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudi_format.file_names import parse_base_file
from hudi_timeline import HudiTable
from hudi_timeline.testing import Faults
from hudi_timeline.writing import operation
from hudi_timeline.writing.local_engine import LocalEngine

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("n", pa.int32()), ("note", pa.string()), ("ts", pa.int64())]
)
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}


def rows(*ids, city="oslo", n=1, note="first", ts=1):
    made = [{"id": i, "city": city, "n": n, "note": note, "ts": ts} for i in ids]
    return pa.Table.from_pylist(made, SCHEMA)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


@pytest.fixture
def table(path):
    made = HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["city"], ordering_fields=["ts"]
    )
    made.insert(pa.concat_tables([rows("a", "b"), rows("c", city="rome")]))
    return made


def now(table):
    return HudiTable.open(table.uri)


def records(table, *names, **how):
    got = now(table).read(list(names), **how).to_arrow()
    return sorted(tuple(r.values()) for r in got.select(list(names)).to_pylist())


def base_files(path):
    return {f: f.read_bytes() for f in Path(path).rglob("*.parquet") if ".hoodie" not in f.parts}


@pytest.mark.req("TL-06")
def test_a_data_file_alone_has_all_columns_and_a_folder_is_a_plain_dataset(table, path):
    for file in base_files(path):
        alone = pq.ParquetFile(file).read()
        assert alone.schema.field("city").type == pa.string()
        assert set(alone["city"].to_pylist()) == {file.parent.name}
    plain = ds.dataset([str(f) for f in base_files(path)], format="parquet").to_table(columns=SCHEMA.names)
    assert (
        plain.sort_by("id").to_pylist() == now(table).read(SCHEMA.names).to_arrow().sort_by("id").to_pylist()
    )


@pytest.mark.req("TL-07", "TL-06")
def test_a_partition_path_made_of_a_moment_leaves_the_column_its_type_in_the_files(tmp_path):
    schema = pa.schema([("id", pa.string()), ("at", pa.int64())])
    options = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    made = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], partition_fields=["at"], options=options
    )
    made.insert(pa.table({"id": ["a"], "at": [1_709_600_000_000]}, schema=schema), options=options)
    (file,) = base_files(tmp_path / "t")
    assert str(file.parent.relative_to(tmp_path / "t")) == "2024/03/05"
    assert pq.ParquetFile(file).read()["at"].to_pylist() == [1_709_600_000_000]


@pytest.mark.req("TL-11", "FS-01", "FS-02", "FS-08", "WR-11")
def test_an_update_makes_a_new_version_of_its_file_group_and_leaves_the_old_one(table, path):
    before = base_files(path)
    first = now(table).timeline.completed_writes()[-1].time
    result = table.upsert(rows("a", note="second", ts=2))
    after = base_files(path)
    assert {f: after[f] for f in before} == before
    (new,) = set(after) - set(before)
    (old,) = (f for f in before if f.parent.name == "oslo")
    mine, theirs = parse_base_file("", new.name), parse_base_file("", old.name)
    assert (mine.file_id, mine.instant) == (theirs.file_id, result.instant)
    assert theirs.instant == first


@pytest.mark.req("TL-18", "TL-19", "TL-22", "TL-24", "IN-13", "IN-14")
def test_meta_columns_say_where_a_record_comes_from_and_survive_rewrites(table, path):
    first = now(table).timeline.completed_writes()[-1].time
    seqno = dict(records(table, "id", "_hoodie_commit_seqno"))
    second = table.upsert(rows("a", note="second", ts=2)).instant
    third = table.upsert(rows("a", note="third", ts=3)).instant
    assert dict(records(table, "id", "_hoodie_commit_time")) == {"a": third, "b": first, "c": first}
    again = dict(records(table, "id", "_hoodie_commit_seqno"))
    assert (again["b"], again["c"]) == (seqno["b"], seqno["c"])
    assert again["a"] != seqno["a"]
    assert len(set(again.values())) == 3
    assert again["a"].startswith(f"{third}_")
    for file in base_files(path):
        assert set(pq.ParquetFile(file).read(["_hoodie_file_name"])["_hoodie_file_name"].to_pylist()) == {
            file.name
        }
    # The record's own time orders changes, whatever file they lie in.
    changed = now(table).read_incremental(first, meta_columns=True).to_arrow()
    assert changed["_hoodie_commit_time"].to_pylist() == [third]
    assert second < third


@pytest.mark.req("TL-23")
def test_without_meta_fields_the_table_reads_the_same(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "v"), SCHEMA, name="v", record_keys=["id"], partition_fields=["city"],
        ordering_fields=["ts"], options={"hoodie.populate.meta.fields": "false"},
    )  # fmt: skip
    made.insert(rows("a", "b"))
    made.upsert(rows("b", note="second", ts=2))
    assert records(made, "id", "note") == [("a", "first"), ("b", "second")]
    for file in base_files(tmp_path / "v"):
        assert set(pq.ParquetFile(file).read()["_hoodie_record_key"].to_pylist()) == {None}


@pytest.mark.req("TL-26")
def test_rows_without_a_key_get_one(tmp_path):
    made = HudiTable.create(str(tmp_path / "k"), SCHEMA, name="k", record_keys=[], partition_fields=["city"])
    made.bulk_insert(rows("a", "a"))
    made.bulk_insert(rows("a"))
    keys = now(made).read(["_hoodie_record_key"]).to_arrow()["_hoodie_record_key"].to_pylist()
    assert len(set(keys)) == 3


def test_each_attempt_has_a_write_token_of_its_own(path):
    made = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["city"])
    given = pa.concat_tables([rows(f"k{i}", city=f"c{i}") for i in range(6)])
    made.insert(given)
    tokens = [parse_base_file("", f.name).write_token for f in base_files(path)]
    assert len(set(tokens)) == 6


@pytest.mark.req("FS-06", "IX-03", "FS-09")
def test_a_key_stays_in_its_file_group_and_the_view_of_an_instant_knows_its_slices(table, path):
    def group():
        return dict(records(table, "id", "_hoodie_file_name"))["b"].partition("_")[0]

    home, seen = group(), {}
    for n in range(3):
        result = table.upsert(
            pa.concat_tables([rows("b", ts=n + 2, n=n), rows(f"new{n}")]), options=NEW_FILES
        )
        assert group() == home
        seen[result.instant] = n
    for instant, n in seen.items():
        got = now(table).read(["id", "n"], as_of=instant).to_arrow()
        assert dict(zip(got["id"].to_pylist(), got["n"].to_pylist(), strict=True))["b"] == n
        assert got.num_rows == 4 + n


@pytest.mark.req("WR-05", "IN-11")
def test_a_soft_delete_keeps_the_key_and_shows_in_incremental_queries(table):
    first = now(table).timeline.completed_writes()[-1].time
    gone = (
        rows("a", ts=2)
        .set_column(2, "n", pa.nulls(1, pa.int32()))
        .set_column(3, "note", pa.nulls(1, pa.string()))
    )
    table.upsert(gone)
    assert records(table, "id", "n", "note")[0] == ("a", None, None)
    assert now(table).read_incremental(first).to_arrow()["id"].to_pylist() == ["a"]


@pytest.mark.req("WR-06")
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
def test_a_delete_removes_every_copy_of_a_key(table, index):
    table.insert(rows("a"), options=NEW_FILES)
    table.bulk_insert(rows("a", "a"))
    assert [r[0] for r in records(table, "id")].count("a") == 4
    table.delete(rows("a"), options={"hoodie.index.type": index})
    assert records(table, "id") == [("b",), ("c",)]


@pytest.mark.req("WR-26", "FS-14", "IN-19")
def test_nothing_is_seen_before_the_one_publish_at_the_end(table, monkeypatch):
    """When the commit begins all files are there, and a reader still sees the state before."""
    seen = []
    finish = operation._finish

    def look(plan, transaction, *rest, **more):
        there = {f.name for f in base_files(table.uri)}
        seen.append((records(table, "id"), [Path(s.path).name in there for s in rest[1]]))
        return finish(plan, transaction, *rest, **more)

    monkeypatch.setattr(operation, "_finish", look)
    table.upsert(rows("a", "z", ts=2))
    assert seen == [([("a",), ("b",), ("c",)], [True])]
    assert records(table, "id") == [("a",), ("b",), ("c",), ("z",)]


@pytest.mark.req("QR-13", "QR-14")
def test_a_reader_takes_no_lock_and_reads_the_same_again(table, path):
    opened = now(table)
    then = opened.timeline.completed_writes()[-1].time
    scan = opened.read(["id", "note"])
    first = scan.to_arrow()
    lock = Path(path, ".hoodie", "lock")
    lock.write_text("held by another")
    assert now(table).read().count() == 3
    lock.unlink()
    table.upsert(rows("a", "new", note="second", ts=2))
    assert scan.to_arrow().equals(first)
    assert now(table).read(["id", "note"], as_of=then).to_arrow().equals(first)


@pytest.mark.req("IN-12", "IN-15")
def test_a_pipeline_reads_changes_writes_them_on_and_goes_on_from_its_checkpoint(table, tmp_path):
    target = HudiTable.create(
        str(tmp_path / "out"), SCHEMA, name="out", record_keys=["id"], ordering_fields=["ts"]
    )
    checkpoint = "000"
    for step in range(4):
        if step:  # several changes of one record between two runs: the latest state is taken
            table.upsert(rows("a", n=10 * step, ts=2 * step + 1))
            table.upsert(pa.concat_tables([rows("a", n=10 * step + 1, ts=2 * step + 2), rows(f"s{step}")]))
        scan = now(table).read_incremental(checkpoint, columns=SCHEMA.names)
        changes = scan.to_arrow().select(SCHEMA.names)
        assert changes["id"].to_pylist().count("a") == 1
        target.upsert(changes.cast(SCHEMA))
        checkpoint = scan.checkpoint
        assert records(target, *SCHEMA.names) == records(table, *SCHEMA.names)


@pytest.mark.req("MB-08")
def test_statistics_are_kept_with_what_was_written(table, path):
    result = table.upsert(rows("a", "d", ts=2))
    (stat,) = result.write_stats
    file = Path(path, stat.path)
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts) == (3, 1, 1)
    assert stat.file_size_in_bytes == file.stat().st_size
    group = pq.ParquetFile(file).metadata.row_group(0)
    by_name = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
    assert (by_name["id"].min, by_name["id"].max, by_name["n"].null_count) == ("a", "d", 0)
    commit = now(table).inspect.commits().to_pylist()[-1]
    assert (commit["rows_updated"], commit["rows_inserted"], commit["bytes_written"]) == (
        1,
        1,
        file.stat().st_size,
    )


@pytest.mark.req("TL-29")
def test_a_copied_table_is_the_same_table(table, tmp_path):
    shutil.copytree(table.uri, tmp_path / "copy")
    moved = HudiTable.open(str(tmp_path / "copy"))
    moved.upsert(rows("a", note="there", ts=2))
    assert records(table, "id", "note")[0] == ("a", "first")
    assert records(moved, "id", "note")[0] == ("a", "there")
    assert pc.sum(now(table).read(["n"]).to_arrow()["n"]).as_py() == 3


@pytest.mark.req("SS-07")
def test_operations_neither_move_nor_copy_files_of_data(table, path):
    """An overwriting of the whole table alone puts the new one into the old one's place."""
    calls = Faults()
    storage = calls.wrap(table.storage)
    written = [
        ("upsert", rows("a", "x", n=2, ts=2)),
        ("insert", rows("y")),
        ("bulk_insert", rows("z")),
        ("delete", rows("b")),
        ("insert_overwrite", rows("q", city="rome")),
        ("insert_overwrite_table", rows("r")),
    ]
    for name, data in written:
        options = {"hoodie.datasource.write.operation": name, "hoodie.table.name": "t"}
        operation.execute(LocalEngine(1), storage, data, options)
    assert records(table, "id") == [("r",)]
    moved = [
        c.path for c in calls.log if c.operation in ("rename", "copy") and not c.path.startswith(".hoodie/")
    ]
    assert moved == []
    assert sum(c.path.endswith(".parquet") for c in calls.log if c.operation == "open_output") >= 5
