"""Point look-ups: the right rows, and no file that need not be read."""

import random

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from made_tables import MadeTable, at, file_id

from hudi_format.errors import HudiError, MissingColumnError, SchemaError
from hudi_index.metadata_table import slice_records
from hudi_index.record_index import OpenedRecordIndex
from hudi_timeline.reading import point_lookup
from hudi_timeline.table import HudiTable

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
pytestmark = pytest.mark.req("NEW-26", "QR-12")


def rows(first, last, p="a", v=1):
    return [{"id": n, "part": f"x{n % 3}", "v": v, "p": p} for n in range(first, last)]


def written(tmp_path, **options):
    """Keys 0..99 in partition a, 100..199 in b, written by the engine: footers with key ranges and blooms."""
    keys = options.pop("keys", ["id"])
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=keys, partition_fields=["p"],
        options={**({"hoodie.populate.meta.fields": "false"} if options.pop("virtual", False) else {})},
    )  # fmt: skip
    table.bulk_insert(pa.Table.from_pylist(rows(0, 100) + rows(100, 200, "b"), SCHEMA))
    return table


def damage(table, partition):
    """Files of a partition lose their data pages; footers stay, so that only what is read is missed."""
    for path in (
        table.inspect.files().filter(pa.compute.field("partition") == partition).column("path").to_pylist()
    ):
        file = table.uri.removeprefix("file://") + "/" + path
        with open(file, "r+b") as out:
            end = out.seek(-8, 2)
            footer = int.from_bytes(out.read(4), "little")
            out.seek(4)
            out.write(b"\0" * (end - footer - 4))


def found(table, keys, **more):
    return sorted(table.get(keys, **more).column("id").to_pylist())


def test_several_missing_and_repeated_keys(tmp_path):
    table = written(tmp_path)
    assert found(table, ["3", "150", "no such key", "3"]) == [3, 150]
    assert found(table, []) == []
    assert found(table, pa.table({"id": pa.array([5, 6], pa.int32())})) == [5, 6]
    assert table.get(["none"]).schema == table.read().schema
    with pytest.raises(MissingColumnError):
        table.get(pa.table({"other": [1]}))


def test_a_file_whose_footer_says_no_is_not_read(tmp_path):
    table = written(tmp_path)
    damage(table, "b")
    assert found(table, ["3", "99"]) == [3, 99]
    with pytest.raises(HudiError):
        found(table, ["150"])
    assert found(table, ["150", "4"], partitions=["a"]) == [4]


@pytest.mark.parametrize("keys", [["id"], ["id", "part"]])
def test_virtual_keys_are_found_by_their_columns(tmp_path, keys):
    table = written(tmp_path, virtual=True, keys=keys)
    text = [f"id:{n},part:x{n % 3}" if len(keys) == 2 else str(n) for n in (7, 170)]
    assert found(table, [*text, "no such key"]) == [7, 170]
    assert found(table, pa.table({"id": [8], "part": ["x2"]})) == [8]


FORMS = {
    "table": pa.table, "batch": lambda c: pa.table(c).to_batches()[0], "reader": lambda c: pa.table(c).to_reader(),
    "columns": dict, "pandas": pd.DataFrame, "polars": lambda c: pytest.importorskip("polars").DataFrame(c),
    "rows": lambda c: pa.table(c).to_pylist(), "a tuple of rows": lambda c: tuple(pa.table(c).to_pylist()),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_keys_are_given_as_rows_of_every_form(tmp_path, form):
    rows = {"id": [9, 7], "part": ["x0", "x0"], "more": [1, 1]}
    table = written(tmp_path, keys=["id", "part"])
    assert found(table, FORMS[form](rows)) == [9]
    one = written(tmp_path / "one", keys=["id"])
    assert found(one, FORMS[form](rows)) == [7, 9]
    assert one.key_history(FORMS[form](rows)).changes.num_rows == 2
    assert not one.erasure_report(FORMS[form](rows)).erased


@pytest.mark.parametrize("keys", [{"id": "9"}, {"id": 9}, {"id": 9, "part": "x0"}])
def test_one_row_is_no_dict_of_columns(tmp_path, keys):
    with pytest.raises(SchemaError, match="do not form a table") as e:
        written(tmp_path).get(keys)
    assert "one row is a list of one dict" in e.value.remedy


def test_values_by_column_are_no_paths_of_partitions(tmp_path):
    table = written(tmp_path)
    for look in (table.get, table.key_history):
        with pytest.raises(TypeError, match="partitions are paths below the table"):
            look(["9"], partitions={"p": "a"})
    assert table.key_history(["9"], partitions="a/").changes.num_rows == 1


@pytest.mark.req("TL-15")
def test_composite_keys_are_found(tmp_path):
    table = written(tmp_path, keys=["id", "part"])
    assert found(table, ["id:9,part:x0", "id:9,part:x1"]) == [9]


def test_rows_as_they_were(tmp_path):
    table = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    table.commit(at(10), {("a", file_id(0)): [{"id": "1", "p": "a", "v": 1}]})
    table.commit(at(20), {("a", file_id(0)): [{"id": "1", "p": "a", "v": 2}]})
    assert table.open().get(["1"]).column("v").to_pylist() == [2]
    assert table.open().get(["1"], as_of=at(15)).column("v").to_pylist() == [1]


INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}


def test_the_record_index_stays_open_until_the_table_changes(tmp_path, monkeypatch):
    opened = []
    real = point_lookup._opened
    monkeypatch.setattr(point_lookup, "_opened", lambda scan_of: opened.append(1) or real(scan_of))
    written(tmp_path).upsert(pa.Table.from_pylist(rows(0, 1), SCHEMA), options=INDEXED)
    table = HudiTable.open(str(tmp_path / "t"), options={"hoodie.metadata.enable": "true"})
    damage(table, "b")  # of which no file is needed
    assert [found(table, [str(n)]) for n in range(5)] == [[n] for n in range(5)]
    assert len(opened) == 1
    HudiTable.open(str(tmp_path / "t")).upsert(pa.Table.from_pylist(rows(3, 4, v=7) + rows(500, 501), SCHEMA))
    assert table.get(["3", "500"]).sort_by("id").column("v").to_pylist() == [7, 1]
    HudiTable.open(str(tmp_path / "t")).delete("id = 4")
    assert found(table, ["4", "5"]) == [5]
    assert len(opened) == 3
    # With other options, of another time, and in other partitions, it is not the same question.
    assert found(table, ["5"], options={"hoodie.metadata.enable": "false"}) == [5]
    first = table.timeline.completed_writes()[0].time
    assert table.get(["3"], as_of=first).column("v").to_pylist() == [1]
    assert found(table, ["5"], partitions=["b"]) == []


def renaming(monkeypatch, name, folder):
    """A column is renamed by another writer before this function of the look-up is called for the first time."""
    real, left = getattr(point_lookup, name), [1]

    def called(*args, **more):
        if left:
            left.clear()
            HudiTable.open(folder).alter().rename("part", "place").move("v", first=True).execute()
        return real(*args, **more)

    monkeypatch.setattr(point_lookup, name, called)


@pytest.mark.req("CC-01")
def test_columns_are_in_the_order_of_the_state_that_is_read(tmp_path, monkeypatch):
    written(tmp_path)
    renaming(monkeypatch, "_look_up", str(tmp_path / "t"))
    got = HudiTable.open(str(tmp_path / "t")).get(["3"], meta_columns=False)
    assert got.schema.names == ["v", "p", "id", "place"]


@pytest.mark.req("CC-01")
def test_rows_of_the_index_and_rows_that_it_does_not_have_are_of_one_state(tmp_path, monkeypatch):
    """Else they would have the columns of two states."""
    written(tmp_path)
    table = HudiTable.open(str(tmp_path / "t"), options={"hoodie.metadata.enable": "true"})
    table.build_index("record_index")
    renaming(monkeypatch, "_finder", table.uri.removeprefix("file://"))
    got = table.get(["3", "none"], meta_columns=False)
    assert got.schema.names == ["v", "p", "id", "place"]
    assert got.column("place").to_pylist() == ["x0"]


@pytest.mark.req("CC-01")
@pytest.mark.parametrize(
    ("way", "by"),
    [("footers", "rollback"), ("index", "rollback"), ("columns", "rollback"), ("index", "clean")],
)
def test_files_that_go_before_they_are_looked_into_are_looked_for_again(tmp_path, monkeypatch, way, by):
    """A cleaning leaves the files of a scan of this process; those that the index names are of none."""
    table, folder = written(tmp_path, virtual=way == "columns"), str(tmp_path / "t")
    table.upsert(pa.Table.from_pylist(rows(0, 100, v=2), SCHEMA), options=INDEXED if way == "index" else {})
    real, left = point_lookup._looked_at, [1]

    def looked_at(*args):
        if left:
            left.clear()
            other = HudiTable.open(folder)
            if by == "rollback":
                other.rollback(other.timeline.completed_writes()[-1].time)
            else:
                other.upsert(pa.Table.from_pylist(rows(0, 100, v=3), SCHEMA))
                policy = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}
                other.clean(options={**policy, "hoodie.cleaner.fileversions.retained": "1"})
        return real(*args)

    monkeypatch.setattr(point_lookup, "_looked_at", looked_at)
    asked = HudiTable.open(folder, options={"hoodie.metadata.enable": str(way == "index").lower()})
    assert asked.get([{"id": 3, "p": "a"}])["v"].to_pylist() == [1 if by == "rollback" else 3]
    assert not left


def test_of_many_keys_in_all_files_the_index_is_asked_for_a_few(tmp_path, monkeypatch):
    written(tmp_path).upsert(pa.Table.from_pylist(rows(0, 1), SCHEMA), options=INDEXED)
    table = HudiTable.open(str(tmp_path / "t"), options={"hoodie.metadata.enable": "true"})
    asked, locate = [], OpenedRecordIndex.locate

    def counted(self, keys):
        asked.append(len(keys))
        return locate(self, keys)

    monkeypatch.setattr(OpenedRecordIndex, "locate", counted)

    def asks(numbers, **more):
        asked.clear()
        assert found(table, [*(str(n) for n in numbers), "none"], **more) == sorted(numbers)
        return asked

    assert asks(range(90, 110)) == [4]  # two for each of two file groups
    assert asks(range(200)) == [4]
    assert asks(range(90, 104)) == [15]  # so few are asked for at once
    # Those of one file group leave the other one alone.
    damage(table, "b")
    asked.clear()
    assert found(table, [str(n) for n in range(40)]) == list(range(40))
    assert asked == [4, 40]
    # It is the only one among the partitions that are asked for.
    asked.clear()
    assert found(table, [str(n) for n in range(40)], partitions=["a"]) == list(range(40))
    assert asked == [2]


def test_log_blocks_of_the_index_are_read_whether_they_are_held_or_not(tmp_path, monkeypatch):
    written(tmp_path).upsert(pa.Table.from_pylist(rows(0, 1), SCHEMA), options=INDEXED)
    for limit in (0, 1 << 20):
        monkeypatch.setattr(slice_records.OpenedSlices.__init__, "__kwdefaults__", {"log_bytes": limit})
        table = HudiTable.open(str(tmp_path / "t"), options={"hoodie.metadata.enable": "true"})
        table.upsert(pa.Table.from_pylist(rows(300, 302), SCHEMA))
        table.delete("id = 301")
        assert found(table, ["300", "301", "7"]) == [7, 300]
        assert found(table, ["300", "301", "7"]) == [7, 300]


def drawn_table(tmp_path, draw, table_type):
    """A table of drawn writes: keys that come, change, go and stand in several partitions, with nulls and lists."""
    schema = pa.schema([*SCHEMA, ("tags", pa.list_(pa.string())), ("text", pa.string())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], partition_fields=["p"], table_type=table_type,
        ordering_fields=["v"],
    )  # fmt: skip

    def some(count):
        keys = draw.sample(range(600), count)
        return pa.Table.from_pylist(
            [
                {
                    "id": n, "p": draw.choice("ab"), "part": draw.choice(["x", None]), "v": draw.randrange(100),
                    "tags": draw.choice([None, [], ["q", None], ["é"] * 3]), "text": "t" * draw.randrange(2000),
                }
                for n in keys
            ],
            schema,
        )  # fmt: skip

    # A record index has one place of each key.
    index = {**INDEXED, "hoodie.index.type": "GLOBAL_SIMPLE"}
    options = {
        **draw.choice([index, {"hoodie.index.type": "SIMPLE"}]),
        "hoodie.parquet.page.size": str(draw.choice([500, 1 << 20])),
    }
    table.upsert(some(400), options=options)
    for _ in range(3):
        if draw.random() < 0.5:
            table.upsert(some(60))
        else:
            first = draw.randrange(600)
            table.delete(f"id >= {first} and id < {first + 60}")
    return table


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 40))])
@pytest.mark.sampled(3)
def test_rows_by_keys_are_those_of_a_filtered_scan(tmp_path, table_type, seed):
    draw = random.Random(seed)
    table = drawn_table(tmp_path, draw, table_type)
    order = [("id", "ascending"), ("p", "ascending")]
    for count in (1, 2, 20, 500):
        keys = draw.sample(range(650), count)
        kept = pc.field("id").isin(pa.array(keys, pa.int64()))
        for meta in (True, False):
            expected = table.read(filter=kept, meta_columns=meta).to_arrow().sort_by(order)
            for options in ({}, {"hoodie.metadata.enable": "true"}):
                rows = table.get([str(k) for k in keys], meta_columns=meta, options=options)
                assert rows.sort_by(order).equals(expected)
