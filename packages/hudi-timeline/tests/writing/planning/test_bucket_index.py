"""The simple bucket index on both types of tables: every operation, and settings that are kept and enforced."""

from collections import Counter

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    DuplicateKeyError,
    HudiError,
    InvalidOptionError,
    OptionError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.storage.open import open_storage
from hudi_index import bucket_ids
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning.bucket_index import recorded_settings

INDEX, NUMBER, FIELDS = (
    "hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field",
)  # fmt: skip
BUCKET = {INDEX: "BUCKET", NUMBER: "4"}
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("ts", pa.int64())])
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}  # two writers at once
IDS = [f"k{n:02d}" for n in range(24)]
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(ids, p="a", ts=1):
    return pa.table([ids, list(range(len(ids))), [p] * len(ids), [ts] * len(ids)], schema=SCHEMA)


COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


def make(path, keys=("id",), kind=COW, **options):
    return HudiTable.create(
        str(path), SCHEMA, table_type=kind, name="t", record_keys=list(keys), partition_fields=["p"],
        ordering_fields=["ts"], options={**BUCKET, **options},
    )  # fmt: skip


@pytest.fixture(params=[COW, MOR])
def kind(request):
    return request.param


@pytest.fixture
def table(tmp_path, kind):
    made = make(tmp_path / "t", kind=kind)
    made.upsert(rows(IDS))
    return made


def found(table, *columns):
    every = table.read(meta_columns=True).to_arrow()
    return sorted(zip(*(every.column(c).to_pylist() for c in columns), strict=True))


def slices_of(table):
    return newest_slices_of(open_snapshot(open_storage(table.uri)))


def groups(table):
    """File id of each (partition, bucket); each bucket has one, and each key is where its hash says."""
    table = HudiTable.open(table.uri)
    names = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    read = table.read(meta_columns=True).to_arrow()
    keys, paths, files = (read.column(n).to_pylist() for n in names)
    settings = recorded_settings(table.config.properties)
    wanted = bucket_ids(pa.array(keys, pa.string()), settings.fields, settings.num_buckets).to_pylist()
    out = {}
    for path, file, number in zip(paths, files, wanted, strict=True):
        assert file[:9] == f"{number:08d}-"
        assert out.setdefault((path, number), file.partition("_")[0]) == file.partition("_")[0]
    slices = Counter((s.partition, int(s.file_id[:8])) for s in slices_of(table))
    assert set(slices.values()) <= {1}
    assert out.keys() <= slices.keys()
    return out


@pytest.mark.req("IX-10", "IX-23", "IX-26")
def test_each_bucket_of_a_partition_has_one_file_group_that_all_writes_go_to(table):
    first = groups(table)
    assert {number for _, number in first} == {0, 1, 2, 3}
    result = table.upsert(rows([*IDS[:9], "new"], ts=2))
    assert (result.lookup.index, result.lookup.opened) == ("BUCKET", 0)
    assert groups(table) == first
    assert found(table, "id", "ts") == sorted([(i, 2) for i in [*IDS[:9], "new"]] + [(i, 1) for i in IDS[9:]])
    table.upsert(rows(IDS[:2], p="b"))
    assert first.items() <= groups(table).items()


def test_small_files_are_not_filled_and_large_ones_not_split(tmp_path):
    table = make(
        tmp_path / "t", **{"hoodie.parquet.max.file.size": "5000", "hoodie.parquet.small.file.limit": "4000"}
    )
    many = [f"key-{n:06d}" for n in range(20_000)]
    table.bulk_insert(rows(many))
    assert len(groups(table)) == 4
    table.upsert(rows([f"more-{n:06d}" for n in range(20_000)], ts=2))
    assert len(groups(table)) == 4
    assert len(found(table, "id")) == 40_000


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_the_first_rows_of_a_bucket_make_its_file_group(tmp_path, operation, kind):
    table = make(tmp_path / "t", kind=kind)
    getattr(table, operation)(rows(["one"]))
    assert len(groups(table)) == 1
    getattr(table, operation)(rows(IDS))
    assert len(groups(table)) == 4
    assert len(found(table, "id")) == 25


def test_an_insert_adds_a_known_key_a_second_time_as_apache_hudi_unless_told_otherwise(tmp_path):
    table = make(tmp_path / "t")
    table.upsert(rows(IDS))
    before = groups(table)
    table.insert(rows(["k01", "x"], ts=5))
    assert groups(table) == before
    assert [ts for i, ts in found(table, "id", "ts") if i == "k01"] == [1, 5]
    table.insert(rows(["k02"], ts=5), options={"hoodie.merge.allow.duplicate.on.inserts": "false"})
    assert [ts for i, ts in found(table, "id", "ts") if i == "k02"] == [5]


@pytest.mark.req("IX-26")
def test_a_bulk_insert_into_buckets_that_are_there_neither_loses_nor_duplicates_a_key(table):
    before = groups(table)
    table.bulk_insert(rows(["k01", "k02", "x", "y"], ts=2))
    assert groups(table) == before
    assert found(table, "id", "ts") == sorted(
        [(i, 1) for i in IDS if i not in ("k01", "k02")] + [(i, 2) for i in ("k01", "k02", "x", "y")]
    )


def test_dropped_duplicates_are_keys_not_buckets(tmp_path):
    table = make(tmp_path / "t")
    table.upsert(rows(IDS))
    # Apache Hudi 0.15 drops every row whose bucket has a file group.
    result = table.insert(rows(["k01", "x"], ts=5), options={"hoodie.datasource.insert.dup.policy": "drop"})
    assert [row for row in found(table, "id", "ts") if row[1] == 5] == [("x", 5)]
    assert result.lookup.opened
    groups(table)
    with pytest.raises(DuplicateKeyError, match="1 rows have a key"):
        table.insert(rows(["k02", "z"]), options={"hoodie.datasource.insert.dup.policy": "fail"})
    table.insert(rows(["z"], ts=6), options={"hoodie.datasource.insert.dup.policy": "fail"})
    assert [row for row in found(table, "id", "ts") if row[1] == 6] == [("z", 6)]
    groups(table)


def test_deletes_go_by_bucket_too(table):
    table.delete(rows(["k01", "unknown"]))
    table.delete(rows(["k02"], p="nowhere"))
    assert found(table, "id") == sorted((i,) for i in IDS if i != "k01")
    groups(table)
    flagged = rows(["k03", "also unknown"], ts=2).append_column("_hoodie_is_deleted", pa.array([True, True]))
    table.upsert(flagged)
    assert found(table, "id") == sorted((i,) for i in IDS if i not in ("k01", "k03"))


def test_the_overwrites_give_each_bucket_a_new_file_group(table):
    table.upsert(rows(IDS, p="b"))
    before = groups(table)
    table.insert_overwrite(rows(["x", "y", "k01"], p="b"))
    after = groups(table)
    assert not {f for (p, _), f in after.items() if p == "b"} & set(before.values())
    assert {k: f for k, f in after.items() if k[0] == "a"} == {k: f for k, f in before.items() if k[0] == "a"}
    table.upsert(rows(["x", "z"], p="b", ts=2))
    table.insert_overwrite_table(rows(["x", "y"], p="c"))
    assert found(table, "id", "p") == [("x", "c"), ("y", "c")]
    table.upsert(rows(IDS))
    table.delete_partitions(["a"])
    table.upsert(rows(["k01"]))
    assert found(table, "id", "p") == [("k01", "a"), ("x", "c"), ("y", "c")]
    groups(table)


def test_prepped_rows_go_to_their_buckets(table):
    read = table.read(meta_columns=True).to_arrow()
    storage = open_storage(table.uri)
    for operation, given in (("upsert_prepped", read.slice(0, 5)), ("delete_prepped", read.slice(5, 5))):
        options = {**OPTIONS, "hoodie.datasource.write.operation": operation}
        execute(
            LocalEngine(1),
            storage,
            given if operation[0] == "u" else table.read(meta_columns=True).to_arrow().slice(5, 5),
            options,
        )
    assert len(found(table, "id")) == len(IDS) - 5
    groups(table)


@pytest.mark.req("IX-21", "WR-14")
def test_the_first_rows_of_a_bucket_make_a_base_file_and_later_ones_go_to_its_log(tmp_path):
    table = make(tmp_path / "t", kind=MOR)
    table.insert(rows(["k01", "k02"]))
    assert all(s.base_file is not None and not s.log_files for s in slices_of(table))
    before, bases = groups(table), {s.base_file.path for s in slices_of(table)}
    table.insert(rows(IDS, ts=2))
    assert bases <= {s.base_file.path for s in slices_of(table)}  # none was written again
    for piece in slices_of(table):
        known = (piece.partition, int(piece.file_id[:8])) in before
        assert piece.base_file is not None
        assert len(piece.log_files) == known
    assert before.items() <= groups(table).items()
    assert found(table, "id", "ts") == [(i, 2) for i in IDS]  # a known key is changed, not added again
    for policy in ("drop", "fail"):
        with pytest.raises(UnsupportedError, match="not looked for in log files"):
            table.insert(rows(["k01", "x"]), options={"hoodie.datasource.insert.dup.policy": policy})
    assert len(found(table, "id")) == len(IDS)


@pytest.mark.req("IX-24")
def test_hash_fields_are_some_of_the_record_key(tmp_path):
    table = make(tmp_path / "t", keys=("id", "n"), **{"hoodie.datasource.write.indexkey.field": "id"})
    table.upsert(rows(["same"] * 9))
    assert len(groups(table)) == 1  # all by "same", whatever `n` is
    table.upsert(rows(["same"] * 9, ts=2))
    assert found(table, "id", "ts") == [("same", 2)] * 9
    with pytest.raises(InvalidOptionError, match="ts, which is not in the record key"):
        make(tmp_path / "u", **{FIELDS: "id,ts"})
    with pytest.raises(ConflictingOptionError, match=r"hash.field is n, but the table was written with id"):
        table.upsert(rows(["same"]), options={FIELDS: "n"})


def test_a_table_with_virtual_keys(tmp_path):
    table = make(tmp_path / "t", **{"hoodie.populate.meta.fields": "false"})
    table.bulk_insert(rows(IDS))
    table.upsert(rows([*IDS[:5], "new"], ts=2))
    assert found(table, "id", "ts") == sorted([(i, 2) for i in [*IDS[:5], "new"]] + [(i, 1) for i in IDS[5:]])
    assert len(slices_of(table)) == 4


# --- settings


@pytest.mark.req("NEW-14")
def test_the_table_keeps_its_settings_and_later_writes_need_not_name_them(tmp_path):
    storage = open_storage(str(tmp_path / "t"))
    execute(
        LocalEngine(1), storage, rows(IDS), {**OPTIONS, INDEX: "BUCKET", "hoodie.hash.index.bucket.num": "3"}
    )
    said = table_config.load(storage).properties
    assert (said[INDEX], said[NUMBER], said[FIELDS]) == ("BUCKET", "3", "id")
    execute(LocalEngine(1), storage, rows(["k01"], ts=2), OPTIONS)
    assert len(groups(HudiTable.open(storage.uri))) == 3
    assert len(found(HudiTable.open(storage.uri), "id")) == len(IDS)


def test_a_new_table_has_the_number_of_buckets_of_apache_hudi(tmp_path):
    storage = open_storage(str(tmp_path / "t"))
    execute(LocalEngine(1), storage, rows(["abc"]), {**OPTIONS, INDEX: "BUCKET_HASH_INDEX"})
    assert table_config.load(storage).properties[NUMBER] == "256"


def refused(
    table, error, match, options, operations=("upsert", "insert", "bulk_insert", "delete", "insert_overwrite"),
    findings=(),
):  # fmt: skip
    before = slices_of(table), table.read(meta_columns=True).to_arrow()
    for operation in operations:
        with pytest.raises(error, match=match):
            getattr(HudiTable.open(table.uri), operation)(rows(IDS[:3], ts=9), options=options)
    assert (slices_of(table), table.read(meta_columns=True).to_arrow()) == before
    assert [f.code for f in table.verify()] == list(findings)


@pytest.mark.req("NEW-14", "IX-15")
def test_another_number_or_another_index_is_refused_and_nothing_is_written(table):
    refused(
        table, ConflictingOptionError, "num.buckets is 8, but the table was written with 4", {NUMBER: "8"}
    )
    for other in ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE"):
        refused(table, ConflictingOptionError, "is written with BUCKET", {INDEX: other})
        refused(table, HudiError, "BUCKET", {INDEX: other, "hudi.index.allow.switch": "true"}, ["upsert"])


@pytest.mark.req("NEW-14", "IX-15")
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", None])
def test_a_table_of_another_index_is_no_bucket_table(tmp_path, index):
    storage = open_storage(str(tmp_path / "t"))
    execute(LocalEngine(1), storage, rows(IDS), {**OPTIONS} | ({INDEX: index} if index else {}))
    table = HudiTable.open(storage.uri)
    refused(table, ConflictingOptionError, "is written with|is none of them|is no bucket", BUCKET)
    refused(table, ConflictingOptionError, "num.buckets is given, but", {NUMBER: "4"})


def silent(table):
    """The table as Apache Hudi leaves one: neither properties nor commits say its index."""
    storage = open_storage(table.uri)
    table_config.update(storage, {}, [table_config.INDEX, INDEX, NUMBER, FIELDS])
    for path in storage.list(".hoodie"):
        if path.name.endswith("commit"):
            text = storage.read(f".hoodie/{path.name}").decode()
            for word in (table_config.INDEX, NUMBER, FIELDS):
                text = text.replace(f'"{word}"', f'"x.{word}"')
            storage.delete(f".hoodie/{path.name}")
            storage.create(f".hoodie/{path.name}", text.encode())
    return HudiTable.open(table.uri)


@pytest.mark.req("NEW-14")
def test_a_table_that_does_not_say_its_number_asks_for_it_once(table):
    table = silent(table)
    refused(table, OptionError, "says nowhere how many buckets", {})
    refused(table, OptionError, "says nowhere how many buckets", {INDEX: "BUCKET"})
    refused(table, ConflictingOptionError, "file ids of a bucket index", {INDEX: "SIMPLE"})
    before = groups_by_name(table)
    table.upsert(rows(["k01"], ts=2), options=BUCKET)
    assert groups(table).items() == before.items()
    HudiTable.open(table.uri).upsert(rows(["k02"], ts=3))
    assert len(found(table, "id")) == len(IDS)


def groups_by_name(table):
    slices = slices_of(table)
    return {(s.partition, int(s.file_id[:8])): s.file_id for s in slices}


@pytest.mark.req("NEW-14")
@pytest.mark.parametrize(
    ("number", "match"),
    [("3", "is none of them"), ("2", "is none of them"), ("8", "belong to other buckets")],
)
def test_a_number_that_the_files_contradict_is_refused(table, number, match):
    refused(silent(table), ConflictingOptionError, match, {**BUCKET, NUMBER: number})


def test_other_hash_fields_than_the_files_were_written_with_are_refused(tmp_path):
    table = make(tmp_path / "t", keys=("id", "n"))
    table.upsert(rows(IDS))
    refused(silent(table), ConflictingOptionError, "belong to other buckets", {**BUCKET, FIELDS: "id"})


def test_a_key_in_the_wrong_file_group_fails_the_write_that_would_go_there(table):
    """Of a table whose properties say another number than some of its files were written with.

    A rewrite looks at all keys of the file, an append to its log at the least and the greatest.
    """
    table_config.update(open_storage(table.uri), {NUMBER: "8"})
    before = found(table, "id", "ts")
    for operation in ("upsert", "insert", "bulk_insert", "delete"):
        with pytest.raises(UnsupportedError, match="belong to other buckets"):
            getattr(HudiTable.open(table.uri), operation)(rows(IDS, ts=9))
    assert found(table, "id", "ts") == before
    assert table.verify() == []


def test_a_number_in_the_properties_that_is_none(table):
    table_config.update(open_storage(table.uri), {NUMBER: "many"})
    refused(table, InvalidOptionError, "no number of buckets", {}, ["upsert"], ["properties-value"])


@pytest.mark.req("NEW-14")
def test_properties_that_were_made_anew_are_found_again_in_the_commits(table):
    table_config.update(open_storage(table.uri), {}, [table_config.INDEX, INDEX, NUMBER, FIELDS])
    table = HudiTable.open(table.uri)
    refused(table, ConflictingOptionError, "was written with 4", {NUMBER: "5"})
    table.insert(rows(["new"]))
    assert HudiTable.open(table.uri).config.properties[NUMBER] == "4"
    assert len(groups(table)) == 4


def test_an_overwriting_write_may_choose_anew(table):
    storage = open_storage(table.uri)
    execute(LocalEngine(1), storage, rows(IDS), {**OPTIONS, **BUCKET, NUMBER: "2"}, mode="overwrite")
    assert len(groups(HudiTable.open(table.uri))) == 2
    execute(LocalEngine(1), storage, rows(IDS), {**OPTIONS, INDEX: "SIMPLE"}, mode="overwrite")
    assert NUMBER not in HudiTable.open(table.uri).config.properties


def test_made_up_keys_have_no_bucket(tmp_path):
    with pytest.raises(UnsupportedError, match="made up"):
        make(tmp_path / "t", keys=())


def test_two_writers_that_begin_the_same_bucket_are_a_conflict(tmp_path, kind):
    table = make(tmp_path / "t", kind=kind)
    table.upsert(rows(IDS, p="z"))

    class Rival(LocalEngine):
        """Another writer commits while this one has written its files."""

        def write(self, frame, context, routing):
            stats = super().write(frame, context, routing)
            HudiTable.open(table.uri).upsert(rows(["k01"], p="a"), options=LAZY)
            return stats

    with pytest.raises(WriteConflictError, match="of the same bucket"):
        execute(Rival(1), open_storage(table.uri), rows(["k01"], ts=2), {**OPTIONS, **LAZY})
    assert found(table, "id", "p", "ts")[1] == ("k01", "a", 1)
    groups(table)
