"""Mistakes that were found by trying the engine without a JVM against a plain model; each has its test."""

from datetime import time
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from hudi_format.errors import InstantNotFoundError, OptionError, SchemaError
from hudi_timeline import HudiTable

SIMPLE = pa.schema([("k", pa.string()), ("v", pa.int64())])
OPERATIONS = ("insert", "upsert", "bulk_insert", "insert_overwrite", "insert_overwrite_table", "delete")
EVENT_TIME = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
}


def make(path, schema=SIMPLE, **kwargs):
    return HudiTable.create(str(path / "t"), schema, **{"name": "t", "record_keys": ["k"], **kwargs})


def rows(table, *columns):
    return sorted(
        tuple(r.values()) for r in table.read(columns or None, meta_columns=False).to_arrow().to_pylist()
    )


@pytest.mark.parametrize("partition_fields", [[], ["v"]])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_write_of_no_rows_is_a_commit_first_and_later(tmp_path, operation, partition_fields):
    table = make(tmp_path, partition_fields=partition_fields)
    assert getattr(table, operation)(SIMPLE.empty_table()).instant
    assert rows(table) == []
    table.upsert(pa.table({"k": ["a"], "v": [1]}))
    getattr(table, operation)(pa.RecordBatchReader.from_batches(SIMPLE, []))
    assert rows(table) == ([] if operation == "insert_overwrite_table" else [("a", 1)])


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), pa.array([Decimal("1.5")], pa.decimal128(8, 1))),
        (pa.array([1.0]), pa.array([1])),
    ],
)
@pytest.mark.parametrize("partition_fields", [[], ["p"]])
def test_keys_and_paths_are_made_of_the_values_as_the_table_stores_them(
    tmp_path, stored, given, partition_fields
):
    schema = pa.schema([("k", stored.type), ("p", stored.type), ("v", pa.int64())])
    table = make(tmp_path, schema, partition_fields=partition_fields)
    table.bulk_insert(pa.table([stored, stored, pa.array([1])], schema=schema))
    table.upsert(pa.table({"k": given, "p": given, "v": [2]}))
    assert rows(table, "v") == [(2,)]
    assert table.get(pa.table({"k": stored})).num_rows == 1
    assert table.delete(pa.table({"k": given, "p": given})).deleted == 1
    table.bulk_insert(pa.table({"k": given, "p": given, "v": [3]}))
    table.upsert(pa.table([stored, stored, pa.array([4])], schema=schema))
    assert rows(table, "v") == [(4,)]


@pytest.mark.parametrize("value", ["100%25", "p=1", "p=", "a%2Fb", "", "x"])
def test_delete_by_filter_reaches_rows_whose_partition_path_reads_as_another_value(tmp_path, value):
    schema = pa.schema([("k", pa.string()), ("p", pa.string())])
    table = make(tmp_path, schema, partition_fields=["p"])
    # Empty text is a value that reads as another one, null: stored only where asked for.
    stored = {"hudi.partition.null.texts": "write"}
    table.bulk_insert(pa.table({"k": ["a", "b"], "p": [value, "other"]}), options=stored)
    assert table.delete("k = 'a'").deleted == 1
    assert rows(table, "k") == [("b",)]


@pytest.mark.parametrize("options", [{}, EVENT_TIME])
def test_a_nested_ordering_field_decides(tmp_path, options):
    schema = pa.schema([("k", pa.string()), ("s", pa.struct([("o", pa.int64())])), ("v", pa.int64())])
    table = make(tmp_path, schema, ordering_fields=["s.o"], options=options)
    table.upsert(pa.table({"k": ["a", "a"], "s": [{"o": 5}, {"o": 4}], "v": [1, 2]}, schema=schema))
    assert rows(table, "v") == [(1,)]
    table.upsert(pa.table({"k": ["a"], "s": [{"o": 3}], "v": [3]}, schema=schema))
    assert rows(table, "v") == [(1,)] if options else [(3,)]


def test_the_index_of_a_pandas_frame_is_no_column(tmp_path):
    table = make(tmp_path)
    table.upsert(pd.DataFrame({"k": ["a", "b"], "v": [1, 2]}, index=[7, 9]))
    assert table.schema.names == ["k", "v"]


def test_dictionaries_of_views_are_written(tmp_path):
    codes, texts = pa.array([0, None, 1], pa.uint32()), pa.array(["x", "y"], pa.string_view())
    table = make(tmp_path, pa.schema([("k", pa.string()), ("v", pa.string())]))
    table.upsert(pa.table({"k": ["a", "b", "c"], "v": pa.DictionaryArray.from_arrays(codes, texts)}))
    assert rows(table) == [("a", "x"), ("b", None), ("c", "y")]


@pytest.mark.parametrize(
    "data", [[{"k": "a", "v": 1}, {"k": "b", "v": "x"}], {"k": ["a", "b"], "v": [1]}, {"k": "a", "v": 1},
             pd.DataFrame({"k": ["a", "b"], "v": [1, "x"]})],
)  # fmt: skip
def test_rows_that_make_no_table_are_a_typed_error(tmp_path, data):
    with pytest.raises(SchemaError, match="do not form a table"):
        make(tmp_path).upsert(data)


def test_columns_that_a_delete_does_not_need_may_have_any_type(tmp_path):
    table = make(tmp_path)
    table.upsert(pa.table({"k": ["a", "b"], "v": [1, 2]}))
    table.delete(pa.table({"k": ["a"], "nothing": [None], "v": ["text"]}))
    assert rows(table) == [("b", 2)]


def test_delete_partitions_takes_a_text_as_one_partition_and_refuses_commas(tmp_path):
    schema = pa.schema([("k", pa.string()), ("p", pa.string())])
    table = make(tmp_path, schema, partition_fields=["p"])
    names = ["a", "b", "ab", "a,b"]
    table.bulk_insert(pa.table({"k": names, "p": names}))
    table.delete_partitions("ab")
    for wrong in (["a,b"], [1]):
        with pytest.raises(OptionError, match="comma"):
            table.delete_partitions(wrong)
    assert rows(table, "k") == [("a",), ("a,b",), ("b",)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("v = 1.0", [1]), ("v > 1.5", [2**60]), ("v < 1.5", [1]), ("v <= 1e3", [1]), ("v = 1.5", []),
        ("v > 99999999999999999999", []), ("v < 99999999999999999999", [1, 2**60]), ("v in (1.0, 2.5)", [1]),
        ("not (v = 1.5)", [1, 2**60]), (f"v = {2**60}", [2**60]), (f"v >= {2**60}.5", []),
    ],
)  # fmt: skip
def test_long_columns_compare_with_fractions_and_greater_numbers(tmp_path, text, found):
    table = make(tmp_path)
    table.upsert(pa.table({"k": ["a", "b", "c"], "v": [1, 2**60, None]}))
    assert sorted(table.read(filter=text).to_arrow()["v"].to_pylist()) == found


@pytest.mark.parametrize("moment", [time(12), 17])
def test_a_moment_of_another_type_is_a_typed_error(tmp_path, moment):
    with pytest.raises(InstantNotFoundError, match="as a point in time"):
        make(tmp_path).read(as_of=moment)
