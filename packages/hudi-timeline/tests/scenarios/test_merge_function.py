"""Tables whose merge is a Python function or expressions: written, read, and kept in the table."""

import merge_functions
import pyarrow as pa
import pytest
from golden_tables import golden
from typer.testing import CliRunner

from hudi_format.errors import (
    ConflictingOptionError,
    FunctionNotAllowedError,
    InvalidOptionError,
    MergeFunctionError,
)
from hudi_timeline import allow_functions
from hudi_timeline.cli.main import app
from hudi_timeline.table import HudiTable

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("count", pa.int64()),
        ("name", pa.string()),
    ]
)
EXPRESSIONS = {"count": "sum", "name": "non_null"}


def make(path, merge, **more):
    return HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type=more.pop("hoodie.datasource.write.table.type", "COPY_ON_WRITE"),
        options={"hudi.merge": merge, "hoodie.metadata.enable": False, **more},
    )  # fmt: skip


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in given], SCHEMA)


def held(table):
    found = table.read(meta_columns=False).to_arrow().select(SCHEMA.names)
    return sorted(tuple(r.values()) for r in found.to_pylist())


@pytest.mark.req("NEW-04", "PM-10", "PM-13", "PM-14")
def test_upserts_merge_by_expressions_and_the_table_remembers_them(tmp_path):
    table = make(tmp_path, EXPRESSIONS)
    # Records of one key in one write meet in their order, as those of several writes.
    table.upsert(rows(("a", "x", 1, 1, "one"), ("b", "x", 1, 5, "b"), ("a", "x", 2, 10, None)))
    again = HudiTable.open(str(tmp_path))
    again.upsert(rows(("a", "x", 3, 100, None), ("a", "x", 2, 1000, "late"), ("c", "x", 1, 7, "c")))
    assert held(again) == [("a", "x", 3, 1111, "late"), ("b", "x", 1, 5, "b"), ("c", "x", 1, 7, "c")]
    assert again.config.payload_class == "io.hudi.python.MergeFunction"
    again.delete(rows(("b", "x", 1, 0, "")))
    again.upsert(rows(("b", "x", 9, 1, None)))
    assert held(again)[1] == ("b", "x", 9, 1, None)


@pytest.mark.req("NEW-04", "PM-02", "PM-10")
def test_upserts_merge_by_a_function_which_may_delete(tmp_path):
    table = make(tmp_path, merge_functions.add_up)
    table.upsert(rows(("a", "x", 1, 1, "a"), ("b", "x", 1, 5, "b")))
    result = table.upsert(rows(("a", "x", 1, 2, "a2"), ("b", "x", 1, -5, "b2"), ("c", "x", 1, 3, "c")))
    assert held(table) == [("a", "x", 1, 3, "a2"), ("c", "x", 1, 3, "c")]
    (stat,) = result.write_stats
    assert (stat.num_deletes, stat.num_update_writes, stat.num_inserts) == (1, 1, 1)
    assert table.get(["b"]).num_rows == 0


HOOKED = {
    "function": merge_functions.in_unit,
    "insert": merge_functions.first_of,
    "properties": {"times": "2", "name": "new"},
}


@pytest.mark.req("NEW-04", "PM-01", "PM-03", "PM-05")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_functions_get_properties_and_make_records_of_which_nothing_is_stored(tmp_path, kind, index):
    more = {"hoodie.bucket.index.num.buckets": 2} if index == "BUCKET" else {}
    kind_of = {"hoodie.datasource.write.table.type": kind}
    table = make(tmp_path, HOOKED, **kind_of, **{"hoodie.index.type": index}, **more)
    off = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}
    table.upsert(rows(("a", "x", 1, 1, "a"), ("b", "x", 1, -1, "b"), ("a", "x", 2, 2, "a2")), options=off)
    # Within one write too they meet in their order: the first was made, the second merged into it.
    both = ("merge_functions:in_unit", "merge_functions:first_of")
    with allow_functions(*both):
        assert held(table) == [("a", "x", 2, 6, "a2")]
    table = HudiTable.open(str(tmp_path))
    given = {**off, "hudi.merge": HOOKED}
    table.upsert(rows(("a", "x", 3, 1, "a3"), ("b", "x", 3, 5, "b3"), ("c", "x", 3, -5, "c")), options=given)
    table.insert(rows(("d", "x", 3, 1, "d"), ("e", "x", 3, -1, "e")), options=given)
    now = [("a", "x", 3, 14, "a3"), ("b", "x", 3, 5, "new"), ("d", "x", 3, 1, "new")]
    with allow_functions(*both):
        assert held(table) == now
        table.delete(rows(("a", "x", 3, 0, "")), options=off)
        table.upsert(rows(("a", "x", 4, 9, "again")), options=off)
        now[0] = ("a", "x", 4, 9, "new")
        assert held(table) == now
        if kind == "MERGE_ON_READ":
            table.compact()
        assert held(table) == now
    assert table.verify() == []
    with pytest.raises(FunctionNotAllowedError, match="first_of"), allow_functions("merge_functions:in_unit"):
        table.upsert(rows(("a", "x", 5, 1, "")))


@pytest.mark.req("NEW-04", "PM-15")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_a_delete_ends_only_what_came_before_it_in_a_write(tmp_path, kind, index):
    flagged = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    given = {
        "hoodie.index.type": index, "hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0",
    } | ({"hoodie.bucket.index.num.buckets": 2} if index == "BUCKET" else {})  # fmt: skip
    table = HudiTable.create(
        str(tmp_path), flagged, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type=kind, options={"hudi.merge": EXPRESSIONS, **given},
    )  # fmt: skip

    def upsert(*changes):
        columns = [{**dict(zip(flagged.names, r, strict=True))} for r in changes]
        table.upsert(pa.Table.from_pylist(columns, flagged), options=given)

    upsert(*((k, "x", 1, 1, k, False) for k in "abcd"))
    upsert(("a", "x", 2, 10, "a2", False), ("a", "x", 3, 0, "", True), ("a", "x", 2, 100, "a3", False),
           ("b", "x", 2, 10, "b2", False), ("b", "x", 3, 0, "", True), ("n", "x", 1, 0, "", True),
           ("c", "x", 0, 0, "", True), ("c", "x", 0, 10, "c2", False), ("c", "x", 9, 100, None, False))  # fmt: skip
    now = [("a", "x", 2, 100, "a3"), ("c", "x", 9, 110, "c2"), ("d", "x", 1, 1, "d")]
    assert held(table) == now
    if kind == "MERGE_ON_READ":
        table.compact()
    assert held(table) == now
    assert table.verify(deep=True) == []


STORED = [("c", "x", 4, 1, "c1"), ("d", "x", 2, 6, "d2"), ("e", "x", 2, -6, "e2")]


@pytest.mark.req("NEW-04", "NEW-28")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_records_that_stand_twice_are_no_new_ones(tmp_path, kind):
    """What makes records of which nothing is stored would drop, or change, some that are."""
    table = make(tmp_path, HOOKED, **{"hoodie.datasource.write.table.type": kind})
    off = {"hoodie.compact.inline": "false", "hoodie.table.services.enabled": "false"}
    table.bulk_insert(
        rows(("c", "x", 4, 1, "c1"), ("d", "x", 1, 5, "d1"), ("e", "x", 1, -5, "e1")), options=off
    )
    table.bulk_insert(rows(*STORED[1:]), options=off)
    with allow_functions("merge_functions:in_unit", "merge_functions:first_of"):
        table.deduplicate(options=off)
        assert held(table) == [STORED[0], ("d", "x", 2, 22, "d2"), ("e", "x", 2, -22, "e2")]


@pytest.mark.req("NEW-04")
def test_an_incremental_read_keeps_records_of_what_was_stored_before(tmp_path):
    table = make(tmp_path, HOOKED, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    off = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}
    first = table.upsert(rows(("a", "x", 1, 10, "a"), ("b", "x", 1, 10, "b")), options=off)
    table.upsert(rows(("a", "x", 2, -3, "a2"), ("n", "x", 2, 1, "n"), ("m", "x", 2, -1, "m")), options=off)
    with allow_functions("merge_functions:in_unit", "merge_functions:first_of"):
        assert held(table) == [("a", "x", 2, 14, "a2"), ("b", "x", 1, 10, "new"), ("n", "x", 2, 1, "new")]
        found = table.read_incremental(first.instant).to_arrow().select(SCHEMA.names).to_pylist()
        assert sorted(tuple(r.values()) for r in found) == [("a", "x", 2, -3, "a2"), ("n", "x", 2, 1, "new")]
        # From the beginning on nothing was stored before.
        found = table.read_incremental("0").to_arrow().select(SCHEMA.names).to_pylist()
        assert sorted(tuple(r.values()) for r in found) == held(table)


def test_a_function_that_fails_leaves_the_table_as_it_was(tmp_path):
    table = make(tmp_path, "merge_functions:fail")
    table.upsert(rows(("a", "x", 1, 1, "a")))
    with pytest.raises(MergeFunctionError, match="on purpose"):
        table.upsert(rows(("a", "x", 2, 2, "b")))
    assert held(table) == [("a", "x", 1, 1, "a")]


def test_what_contradicts_the_tables_merge_is_refused(tmp_path):
    table = make(tmp_path, EXPRESSIONS)
    table.upsert(rows(("a", "x", 1, 1, "a")))
    payload = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    }
    for options in ({"hudi.merge": {"count": "max"}}, payload | {"hudi.merge": EXPRESSIONS}):
        with pytest.raises(ConflictingOptionError):
            table.upsert(rows(("a", "x", 1, 1, "a")), options=options)
    with pytest.raises(ValueError, match="merges by"):
        table.upsert(rows(("a", "x", 1, 1, "a")), options=payload)
    with pytest.raises(InvalidOptionError, match="a lambda"):
        table.upsert(rows(("a", "x", 1, 1, "a")), options={"hudi.merge": lambda old, new, context: new})
    assert held(table) == [("a", "x", 1, 1, "a")]


@pytest.mark.req("NEW-05", "PM-11")
def test_the_laws_of_a_tables_merge_are_checked_on_its_rows(tmp_path):
    table = make(tmp_path, EXPRESSIONS)
    table.upsert(rows(*((f"k{n}", "x", n % 3, n, None if n % 2 else f"n{n}") for n in range(30))))
    assert set(table.check_merge().broken) == {"commutative", "ties", "idempotent"}
    assert not table.check_merge({"ts": "max", "count": "max", "name": "max"}).broken
    assert "ties" in table.check_merge(merge_functions.newest, real=False).broken
    assert table.check_merge(payload="DefaultHoodieRecordPayload").merge == "DefaultHoodieRecordPayload"
    with pytest.raises(InvalidOptionError, match="no_such_module"):
        table.check_merge("no_such_module:f")


@pytest.mark.req("NEW-05")
def test_the_command_says_which_law_is_broken(tmp_path):
    table = make(tmp_path, EXPRESSIONS)
    table.upsert(rows(*((f"k{n}", "x", n % 3, n, "x") for n in range(1, 9))))
    said = CliRunner().invoke(app, ["check-merge", str(tmp_path)])
    assert said.exit_code == 1
    assert "idempotent: broken" in said.stdout
    assert "then b again gives" in said.stdout
    sound = CliRunner().invoke(
        app, ["check-merge", str(tmp_path), "--merge", '{"ts": "max", "count": "max", "name": "max"}']
    )
    assert sound.exit_code == 0, sound.output
    assert "idempotent: holds" in sound.stdout


@pytest.mark.req("NEW-24")
def test_a_stream_takes_less_memory_than_a_table_unless_the_user_says_how_much(tmp_path):
    (golden_table,) = golden("v6", "mor_avro_logs")
    table = HudiTable.open(str(golden_table.unpack(tmp_path)))
    for options, whole, stream in (
        ({}, 1 << 30, 128 << 20),
        ({"hoodie.memory.merge.max.size": "500000000"}, 500_000_000, 500_000_000),
        ({"hoodie.memory.spillable.map.path": "/data"}, 1 << 30, 128 << 20),
    ):
        merge = table.read(options=options).plan.merge
        assert merge is not None
        assert merge.limit is not None
        assert merge.limit.bytes == whole
        assert merge.limit.for_stream().bytes == stream
        assert merge.limit.for_stream().folder == options.get("hoodie.memory.spillable.map.path", "")
