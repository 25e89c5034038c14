"""Another hoodie.properties: what it may change, and what keeps it from doing so."""

import pyarrow as pa
import pytest
from converted_tables import cuts, opened, tree
from made_tables import at, ids

from hudi_format.errors import OptionError, UnsupportedError
from hudi_timeline import HudiTable, table_config
from hudi_timeline.table_config import TYPE, VERSION
from hudi_timeline.timeline.instant import COMPACTION


@pytest.mark.req("OP-02", "OP-03", "TL-03", "NEW-08")
def test_the_type_changes_by_other_properties_with_a_look_before(made):
    table = opened(made)
    new = {k: v for k, v in table.config.properties.items() if k != table_config.CHECKSUM}
    new[TYPE] = "MERGE_ON_READ"
    before = tree(made)
    plan = table.overwrite_properties(new, dry_run=True)
    assert (tree(made), plan.executed) == (before, False)
    assert str(plan).splitlines() == [
        "+ hoodie.compaction.payload.class=org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        "+ hoodie.compaction.record.merger.strategy=eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        f"- {TYPE}=COPY_ON_WRITE",
        f"+ {TYPE}=MERGE_ON_READ",
    ]
    assert table.overwrite_properties(new).changes == plan.changes
    again = opened(made)
    assert again.table_type == "MERGE_ON_READ"
    assert again.config.properties[table_config.CHECKSUM] == table_config.checksum(new)
    new = dict(again.config.properties)
    assert ids(again.read().to_arrow()) == ["a", "b"]
    assert again.overwrite_properties({**new, TYPE: "COPY_ON_WRITE"}).executed
    assert not opened(made).overwrite_properties({**new, TYPE: "COPY_ON_WRITE"}).executed


def test_entries_that_a_caller_changes_are_the_tables_when_they_are_written(made):
    table = opened(made)
    entries = table.config.properties
    entries[TYPE] = "MERGE_ON_READ"
    assert opened(made).config.properties[TYPE] == "COPY_ON_WRITE"
    assert table.overwrite_properties(entries).executed
    assert opened(made).table_type == "MERGE_ON_READ"


@pytest.mark.req("OP-02")
def test_properties_that_do_not_fit_are_listed_all_at_once(made):
    table = opened(made)
    new = dict(table.config.properties)
    del new[table_config.NAME], new[table_config.ARCHIVE_FOLDER]
    new |= {VERSION: "8", TYPE: "SOMETHING", "hoodie.table.precombine.fied": "ts",
            table_config.HIVE_STYLE: "true"}  # fmt: skip
    before = tree(made)
    with pytest.raises(OptionError) as e:
        table.overwrite_properties(new)
    text = "\n".join(e.value.details["errors"])
    for words in (
        "hoodie.table.name is missing", f"{table_config.ARCHIVE_FOLDER}=archived is lost", f"{VERSION}: '6' -> '8'",
        "not 'SOMETHING'", "hoodie.table.precombine.fied is unknown, is hoodie.table.precombine.field",
        f"{table_config.HIVE_STYLE}: 'false' -> 'true' contradicts",
    ):  # fmt: skip
        assert words in text
    assert tree(made) == before
    new = {**table.config.properties, "my.own": "x"}
    with pytest.raises(OptionError, match="unknown"):
        table.overwrite_properties(new)
    assert table.overwrite_properties(new, force=True).warnings == ("my.own is unknown",)
    assert opened(made).config.properties["my.own"] == "x"


@pytest.mark.req("OP-03")
def test_writes_and_plans_that_are_not_finished_keep_the_type(made):
    table = opened(made)
    to = {t: {**table.config.properties, TYPE: t} for t in ("MERGE_ON_READ", "COPY_ON_WRITE")}
    made.instant_file(f"{at(3)}.commit.requested")
    with pytest.raises(UnsupportedError, match="1 writes are not finished"):
        table.overwrite_properties(to["MERGE_ON_READ"])
    (made.path / f".hoodie/{at(3)}.commit.requested").unlink()
    table.overwrite_properties(to["MERGE_ON_READ"])
    made.instant_file(f"{at(3)}.{COMPACTION}.requested", b"plan")
    with pytest.raises(UnsupportedError, match="compaction"):
        opened(made).overwrite_properties(to["COPY_ON_WRITE"])


@pytest.mark.req("OP-02")
def test_new_properties_are_there_or_not_wherever_the_process_died(made):
    new = {**opened(made).config.properties, TYPE: "MERGE_ON_READ"}

    def check():
        assert opened(made).table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
        opened(made).overwrite_properties(new)
        assert opened(made).table_type == "MERGE_ON_READ"

    assert cuts(made, lambda s: HudiTable._of(s).overwrite_properties(new), check) > 3


def rows(table):
    return {r.pop("id"): r for r in table.read(meta_columns=False).to_arrow().to_pylist()}


def typed(path, kind):
    """The table, once its type is another."""
    table = HudiTable.open(path)
    table.overwrite_properties({**table.config.properties, TYPE: kind})
    return HudiTable.open(path)


@pytest.mark.req("OP-02", "OP-03")
@pytest.mark.parametrize("block", ["avro", "parquet"])
def test_a_table_with_changed_columns_goes_to_merge_on_read_and_back_as_the_refusals_say(tmp_path, block):
    path = str(tmp_path / "t")
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("w", pa.string())])
    table = HudiTable.create(path, schema, name="t", record_keys="id", ordering_fields="ts")
    options = {"hoodie.compact.inline": "false", "hoodie.logfile.data.block.format": block}

    def put(*given):
        table.upsert(pa.Table.from_pylist([*given]), options=options)

    put(*({"id": i, "ts": 1, "v": 1, "w": "x"} for i in "abc"))
    table.alter().rename("w", "word").add("w", "double").widen("v", pa.int64()).execute()
    put({"id": "a", "ts": 2, "v": 2**40, "word": "y", "w": 1.5})

    table = typed(path, "MERGE_ON_READ")
    put(
        {"id": "a", "ts": 3, "v": 3, "word": "z", "w": 2.5},
        {"id": "b", "ts": 3, "v": 3, "word": "z", "w": None},
    )
    table.delete({"id": ["c"]}, options=options)
    table.compact(mode="schedule")
    put({"id": "b", "ts": 4, "v": 4, "word": "zz", "w": 3.5, "n": "new"})
    held = {
        "a": {"ts": 3, "v": 3, "word": "z", "w": 2.5, "n": None},
        "b": {"ts": 4, "v": 4, "word": "zz", "w": 3.5, "n": "new"},
    }
    assert rows(table) == held
    with pytest.raises(UnsupportedError, match="is not finished") as refused:
        typed(path, "COPY_ON_WRITE")
    assert "run the compaction" in refused.value.remedy
    table.compact(mode="execute")
    assert rows(table) == held
    with pytest.raises(UnsupportedError, match="hold rows that are in no base file") as refused:
        typed(path, "COPY_ON_WRITE")
    assert r"HudiTable.compact()" in refused.value.remedy
    table.compact()
    assert rows(table) == held

    table = typed(path, "COPY_ON_WRITE")
    assert rows(table) == held
    put({"id": "b", "ts": 5, "v": 5, "word": "last", "w": None, "n": None})
    held["b"] = {"ts": 5, "v": 5, "word": "last", "w": None, "n": None}
    assert rows(table) == held
    assert table.verify(deep=True) == []


BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.req("OP-02")
@pytest.mark.parametrize(
    "change",
    [
        {"hoodie.bucket.index.num.buckets": "4"},
        {"hoodie.bucket.index.hash.field": "v"},
        {"hoodie.index.bucket.engine": "EXTENDIBLE_HASHING"},
        {"hudi.index.type": "SIMPLE"},
    ],
)
def test_buckets_of_files_that_are_there_stay(tmp_path, change):
    """Else a key is looked for in another bucket than it is in, and is there twice after the next write."""
    schema = pa.schema([("id", pa.string()), ("v", pa.string())])
    table = HudiTable.create(str(tmp_path / "t"), schema, name="t", record_keys="id", options=BUCKETS)
    old = dict(table.config.properties)
    table.upsert(pa.Table.from_pylist([{"id": str(n), "v": "x"} for n in range(8)], schema))
    with pytest.raises(OptionError, match=rf"{next(iter(change))}: .* contradicts the files that are there"):
        table.overwrite_properties({**old, **change})
    assert table.config.properties == old
    assert table.overwrite_properties({**old, **change}, force=True).executed


@pytest.mark.req("OP-02")
def test_properties_from_before_a_resize_do_not_take_it_back(tmp_path):
    table = HudiTable.create(
        str(tmp_path / "t"), [{"id": str(n)} for n in range(8)], name="t", record_keys="id", options=BUCKETS
    )
    table.upsert([{"id": str(n)} for n in range(8)])
    table.resize_buckets(4)
    old = dict(table.config.properties)
    table.resize_buckets(8)
    with pytest.raises(OptionError, match=r"hudi.bucket.index.resizes: .* contradicts"):
        table.overwrite_properties(old)
    table.upsert([{"id": str(n)} for n in range(8)])
    assert table.count() == 8
    assert table.verify(deep=True) == []


@pytest.mark.req("OP-02")
def test_another_index_without_buckets_is_no_contradiction(tmp_path):
    table = HudiTable.create(str(tmp_path / "t"), [{"id": "a"}], name="t", record_keys="id")
    table.upsert([{"id": "a"}], options={"hoodie.index.type": "SIMPLE"})
    new = {**table.config.properties, "hudi.index.type": "BLOOM"}
    assert table.overwrite_properties(new).executed
