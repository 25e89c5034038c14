"""Partition values that would be read back as null: empty text, and the name of the partition of null."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.errors import InvalidOptionError, PartitionPathError
from hudi_format.keygen.partition_path import HIVE_DEFAULT
from hudi_timeline import HudiTable

WRITE = "hoodie.datasource.write."
AS_HUDI = {"hudi.partition.null.texts": "write"}
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("q", pa.string()), ("v", pa.int64()), ("ts", pa.int64())]
)
NULLS = ["", HIVE_DEFAULT]
OPERATIONS = ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]
STYLES = [(hive, encode) for hive in ("false", "true") for encode in ("false", "true")]


@pytest.fixture(params=STYLES, ids=lambda s: f"hive-{s[0]}-encoded-{s[1]}")
def style(request):
    return request.param


@pytest.fixture
def table(tmp_path, style):
    return made(tmp_path, style, ["p"])


def made(tmp_path, style, fields):
    options = {WRITE + "hive_style_partitioning": style[0], WRITE + "partitionpath.urlencode": style[1]}
    return HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], partition_fields=fields, ordering_fields=["ts"],
        options=options,
    )  # fmt: skip


def rows(values, v=1, q="q"):
    return [{"id": f"k{n}", "p": p, "q": q, "v": v, "ts": v} for n, p in enumerate(values)]


def stored(table):
    found = table.read(columns=["id", "p", "v"]).to_arrow().sort_by("id")
    return [tuple(r.values()) for r in found.select(["id", "p", "v"]).to_pylist()]


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.sampled(2)
def test_rows_to_store_are_refused_and_the_table_stays_as_it_was(table, operation):
    table.upsert(rows(["x", None]))
    commits = [i.time for i in table.timeline.completed_writes()]
    for value in NULLS:
        with pytest.raises(PartitionPathError, match="in 2 of 4 rows, which would be read back as null") as e:
            getattr(table, operation)(rows(["y", value, value, None], 2))
        assert e.value.details["column"] == "p"
        assert e.value.details["rows"] == 2
        assert "write null" in e.value.remedy
        assert "hudi.partition.null.texts=write" in e.value.remedy
        table = HudiTable.open(table.storage.uri)
        assert stored(table) == [("k0", "x", 1), ("k1", None, 1)]
        assert [i.time for i in table.timeline.completed_writes()] == commits
        assert table.verify(deep=True) == []


@pytest.mark.req("KG-03")
def test_every_column_of_a_path_counts(tmp_path, style):
    table = made(tmp_path, style, ["p", "q"])
    for value in NULLS:
        with pytest.raises(PartitionPathError, match="partition column 'q'") as e:
            table.insert(rows(["a", None], q=value))
        assert e.value.details["rows"] == 2
        with pytest.raises(PartitionPathError, match="partition column 'p'"):
            table.insert(rows(["a", value]))
    table.insert(rows(["a", None], q=None), options=AS_HUDI)
    assert stored(table) == [("k0", "a", 1), ("k1", None, 1)]


@pytest.mark.req("KG-03", "QR-01")
@pytest.mark.sampled(3)
def test_rows_that_are_there_are_null_for_every_read_and_found_by_every_write(table):
    values = [*NULLS, None, "a"]
    table.upsert(rows(values), options=AS_HUDI)
    assert stored(table) == [("k0", None, 1), ("k1", None, 1), ("k2", None, 1), ("k3", "a", 1)]
    assert table.read(filter="p is null").to_arrow().num_rows == 3
    for value in NULLS:
        assert table.read(filter=pc.field("p") == value).to_arrow().num_rows == 0
    assert len(table.get([{"id": f"k{n}"} for n in range(4)]).to_pylist()) == 4
    # As the remedy says: null is the same partition, so that the same records are updated.
    assert table.upsert(rows([None] * 3, 2)).updated == 3
    assert table.upsert(rows(values, 3), options=AS_HUDI).updated == 4
    assert [v for *_, v in stored(table)] == [3, 3, 3, 3]
    # Rows are deleted by what was written and by what is read, without the option.
    assert table.delete(rows(NULLS[:1])).deleted == 1
    assert table.delete(rows([None] * 2)[1:]).deleted == 1
    assert table.delete(pc.field("p").is_null()).deleted == 1
    assert stored(table) == [("k3", "a", 3)]
    assert table.verify(deep=True) == []


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_every_kind_of_text_is_looked_at(tmp_path, kind):
    table = made(tmp_path, STYLES[0], ["p"])
    given = pa.Table.from_pylist(rows(["a", "", "b"]), SCHEMA)
    values = given.column("p").cast(kind)
    with pytest.raises(PartitionPathError, match="in 1 of 3 rows"):
        table.insert(given.set_column(1, "p", values))
    # What a dictionary holds and no row has is no value.
    table.insert(given.set_column(1, "p", values).slice(2))
    table.insert(given.set_column(1, "p", values).slice(0, 1))
    assert stored(table) == [("k0", "a", 1), ("k2", "b", 1)]


def test_the_fields_name_before_it_is_the_same_folder_without_hive_style(tmp_path):
    table = made(tmp_path / "plain", ("false", "false"), ["p"])
    with pytest.raises(PartitionPathError, match="read back as null"):
        table.insert(rows([f"p={HIVE_DEFAULT}"]))
    for style in STYLES[1:]:
        table = made(tmp_path / "-".join(style), style, ["p"])
        table.insert(rows([f"p={HIVE_DEFAULT}"]))
        assert stored(table) == [("k0", f"p={HIVE_DEFAULT}", 1)]


def test_they_are_set_aside_where_bad_rows_are(tmp_path, table):
    aside = str(tmp_path / "aside")
    table.insert(rows(["a", "", HIVE_DEFAULT, None]), options={"hudi.quarantine.path": aside})
    assert stored(table) == [("k0", "a", 1), ("k3", None, 1)]
    found = HudiTable.open(aside).read().to_arrow().sort_by("id")
    assert found.column("id").to_pylist() == ["k1", "k2"]
    assert all("read back as null" in t for t in found.column("_hudi_quarantine_reason").to_pylist())


def test_another_choice_is_refused(table):
    with pytest.raises(InvalidOptionError, match="refuse"):
        table.insert(rows(["a"]), options={"hudi.partition.null.texts": "keep"})


SLASHED = [("a/b", "c"), ("a", "b/c"), (None, "x/y"), ("a/q=b", "c")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("values", SLASHED)
def test_paths_that_do_not_tell_their_values_apart_are_refused(tmp_path, operation, values):
    table = made(tmp_path, STYLES[0], ["p", "q"])
    table.upsert(rows(["x"]))
    commits = [i.time for i in table.timeline.completed_writes()]
    given = pa.Table.from_pylist(
        [{"id": "n", "p": values[0], "q": values[1], "v": 2, "ts": 2}], schema=SCHEMA
    )
    with pytest.raises(PartitionPathError, match="does not tell the values of p, q apart") as e:
        getattr(HudiTable.open(table.uri), operation)(given)
    assert "urlencode=true" in e.value.remedy
    assert "hudi.partition.null.texts=write" in e.value.remedy
    assert [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()] == commits
    assert stored(HudiTable.open(table.uri)) == [("k0", "x", 1)]
    HudiTable.open(table.uri).delete(given)  # which is not there
    getattr(HudiTable.open(table.uri), operation)(given, options=AS_HUDI)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("values", SLASHED)
@pytest.mark.parametrize("style", STYLES[1:], ids=lambda s: f"hive-{s[0]}-encoded-{s[1]}")
def test_slashes_are_written_where_paths_tell_the_values_apart(tmp_path, style, values):
    table = made(tmp_path, style, ["p", "q"])
    table.upsert([{"id": "n", "p": values[0], "q": values[1], "v": 2, "ts": 2}])
    found = HudiTable.open(table.uri).read(["p", "q"]).to_arrow().to_pylist()
    assert found == [{"p": values[0], "q": values[1]}] or (values[0] == "a/q=b" and style[1] == "false")


def test_one_column_takes_a_whole_path(tmp_path):
    table = made(tmp_path, STYLES[0], ["p"])
    table.upsert(rows(["a/b", "a/b/c"]))
    assert [p for _, p, _ in stored(HudiTable.open(table.uri))] == ["a/b", "a/b/c"]
