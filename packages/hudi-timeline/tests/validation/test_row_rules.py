"""Rules of rows: what breaks them, on each operation."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input import content, rows
from write_operations import OPERATIONS

from hudi_format.errors import ValidationError


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert", "stream", "insert_overwrite_table"])
@pytest.mark.parametrize(
    "rule", ["fare >= 0", "abs(fare) = fare", pc.field("fare") >= 0], ids=["own", "duckdb", "arrow"]
)
@pytest.mark.sampled(4)
def test_a_rule_refuses_rows_of_each_operation(path, table, operation, rule):
    before = content(path)
    with pytest.raises(ValidationError, match="rule 'paid' finds 1 bad rows, with keys a") as e:
        OPERATIONS[operation](table, rules={"paid": rule})
    assert content(path) == before
    assert (e.value.details["rule"], e.value.details["rows"], e.value.details["sample"]) == ("paid", 1, ["a"])


@pytest.mark.req("NEW-33")
def test_null_breaks_a_rule_and_a_delete_does_not(path, table):
    def flagged(deleted):
        data = rows("a", fare=pa.array([None], pa.float64()), ts=pa.array([9], pa.int64()))
        return data.append_column("_hoodie_is_deleted", pa.array([deleted]))

    rule = {
        "hudi.write.rules": "paid: fare > 0; city <> ''",
        "hoodie.write.set.null.for.missing.columns": "true",
    }
    with pytest.raises(ValidationError, match="'paid'"):
        table.upsert(flagged(False), options=rule)
    assert table.upsert(flagged(True), options=rule).deleted == 1
    with pytest.raises(ValidationError, match="others: \"city <> ''\" 1"):
        table.upsert(rows("y", "z", "q", fare=[0.0, -1.0, 3.0], city=["c0", "c0", ""]), options=rule)
    # Options may be those of all writes of a job: a delete has no rows to ask.
    assert table.delete(rows("b", city=["c1"]), options=rule).deleted == 1
