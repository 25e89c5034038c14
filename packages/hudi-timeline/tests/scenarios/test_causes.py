"""What a function of the user's raised stays the cause of the error that a write ends with."""

import sys
import traceback
import types

import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, MergeFunctionError, ValidationError
from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def rows(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)


def fails(*given):
    raise LookupError("of the user's")


def lines_of(error):
    return [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)]


def make(path, **options):
    return HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"], options=options
    )


def test_of_a_validator(tmp_path):
    with pytest.raises(ValidationError) as e:
        make(tmp_path / "t").insert(rows(("a", 1)), validators=[fails])
    assert isinstance(e.value.__cause__, LookupError)
    assert lines_of(e.value)[-1] == "fails"


@pytest.mark.parametrize("memory", [{}, {"hoodie.memory.merge.max.size": "1000000"}], ids=["held", "spilled"])
def test_of_a_merge_function(tmp_path, monkeypatch, memory):
    module = types.ModuleType("merges_of_a_test")
    module.fails = fails
    monkeypatch.setitem(sys.modules, "merges_of_a_test", module)
    given = {"hudi.merge": "merges_of_a_test:fails", **memory}
    table = make(tmp_path / "t", **given)
    table.insert(rows(("a", 1)), options=given)
    with pytest.raises(MergeFunctionError) as e:
        table.upsert(rows(("a", 2)), options=given)
    assert isinstance(e.value.__cause__, LookupError)
    assert lines_of(e.value)[-1] == "fails"


def test_of_a_function_that_orders_rows(tmp_path, monkeypatch):
    module = types.ModuleType("orders_of_a_test")
    module.fails = fails
    monkeypatch.setitem(sys.modules, "orders_of_a_test", module)
    with pytest.raises((HudiError, LookupError)) as e:
        make(tmp_path / "t").bulk_insert(
            rows(("a", 1)),
            options={"hoodie.bulkinsert.user.defined.partitioner.class": "orders_of_a_test:fails"},
        )
    error = e.value if isinstance(e.value, LookupError) else e.value.__cause__
    assert isinstance(error, LookupError)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "fails"


def test_of_a_rule_that_nothing_understands(tmp_path):
    pytest.importorskip("duckdb")
    with pytest.raises(HudiError) as e:
        make(tmp_path / "t").insert(rows(("a", 1)), rules={"r": "ts >>> ) 1"})
    # Both say why in the message; a cause besides would be a traceback of 60 lines on Spark.
    assert "DuckDB says" in str(e.value)
    assert "at character 5" in str(e.value)
    assert e.value.__cause__ is None
