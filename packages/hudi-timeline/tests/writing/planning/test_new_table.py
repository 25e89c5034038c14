"""What a new table needs.  Partitions to delete: by name, by pattern, by rows; and names that no partition has."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import OptionError, SchemaError, UnknownPartitionError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing import writes
from hudi_timeline.writing.parquet_import import import_parquet
from hudi_timeline.writing.planning.new_table import PartitionsToDelete, choose, require_all

THERE = ["y=2024/m=01", "y=2024/m=02", "y=2025/m=01", "[x]", "x", "a*b"]


ODD = ["p=%2A", "p=a", "p=a%2A", "p=ab", "p=a*", "*", "x"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("form", ["{}", "/{}/"])
def test_a_name_that_is_a_partitions_is_no_pattern(name, form):
    assert choose([form.format(name)], [], ODD) == PartitionsToDelete((name,))
    # Where it is none, it is one.
    others = [p for p in ODD if p != name]
    hits = {
        "p=%2A": others[:4],
        "p=a%2A": ["p=a", "p=a*", "p=ab"],
        "p=a*": ["p=a", "p=a%2A", "p=ab"],
        "*": others,
    }
    assert choose([name], [], others).found == tuple(sorted(hits.get(name, [])))


@pytest.mark.parametrize("hive", ["true", "false"])
@pytest.mark.parametrize("encoded", ["true", "false"])
def test_the_partition_of_a_star_is_deleted_without_the_others(tmp_path, hive, encoded):
    options = {
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.partitionpath.urlencode": encoded,
    }
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table = HudiTable.create(tmp_path / "t", schema, record_keys="id", partition_fields="p", options=options)
    table.upsert([{"id": n, "p": p} for n, p in enumerate(["a", "*", "b", "b*", "bc"])])
    for star in ("b*", "*"):
        paths = table.read(["_hoodie_partition_path"], f"p = '{star}'").to_arrow()
        table.delete_partitions(paths["_hoodie_partition_path"].to_pylist())
    assert sorted(table.read(["p"]).to_arrow()["p"].to_pylist()) == ["a", "b", "bc"]


@pytest.mark.parametrize(
    ("names", "found", "unknown"),
    [
        (["x"], ("x",), ()),
        (["/y=2025/m=01/"], ("y=2025/m=01",), ()),
        (["y=2024/*"], ("y=2024/m=01", "y=2024/m=02"), ()),
        (["y=2024/%2A", "x", "x"], ("x", "y=2024/m=01", "y=2024/m=02"), ()),
        (["[x]"], ("[x]",), ()),
        (["[x]*"], ("[x]",), ()),
        (["?"], (), ("?",)),
        (["a*b"], ("a*b",), ()),
        (["Y=2025/m=01", "y=2026/*"], (), ("Y=2025/m=01", "y=2026/*")),
    ],
)
def test_names_and_patterns_choose_what_is_there(names, found, unknown):
    assert choose(names, ["x"], THERE) == PartitionsToDelete(found, unknown)


def test_without_names_the_partitions_of_the_rows_count_as_they_are():
    assert choose([], ["x", "a*b", "z*"], THERE) == PartitionsToDelete(("a*b", "x"), ("z*",))


def test_the_commit_lists_unknown_names_and_no_patterns():
    chosen = choose(["x", "nope", "no*"], [], THERE)
    assert chosen.listed == ("nope", "x")
    assert chosen.warnings() == ("nope, no* are no partitions of the table: nothing was deleted there",)
    assert choose(["nope"], [], THERE).warnings()[0].startswith("nope is no partition of")
    assert choose(["x"], [], THERE).warnings() == ()


def test_unknown_names_are_refused_with_those_that_were_probably_meant():
    require_all(choose(["x"], [], THERE), THERE, table="/t")
    with pytest.raises(UnknownPartitionError, match=r"did you mean y=2025/m=01") as e:
        require_all(choose(["y=2025/m=1"], [], THERE), THERE, table="/t")
    assert e.value.details["partitions"] == ["y=2025/m=1"]


def test_a_table_without_a_name_is_an_error_of_options_and_leaves_nothing(tmp_path):
    rows = pa.table({"id": ["a"]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    key = {"hoodie.datasource.write.recordkey.field": "id"}
    for make in (
        lambda: writes.write(open_storage(str(tmp_path / "t")), "upsert", rows, key, opened=False),
        lambda: import_parquet(str(tmp_path / "rows.parquet"), str(tmp_path / "t"), key),
    ):
        with pytest.raises(OptionError, match="has no name") as e:
            make()
        assert not isinstance(e.value, SchemaError)
        assert e.value.details["option"] == "hoodie.table.name"
        assert "hoodie.table.name" in e.value.remedy
        assert not (tmp_path / "t").exists()
