"""The table of simulated acts, and the model of its rows."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.testing import Violation
from hudi_timeline.testing.workload_table import COLUMNS, INITIAL, TABLES, made_table, modelled, put, rows_of


@pytest.mark.parametrize("kind", TABLES, ids=" ".join)
def test_the_table_is_as_the_acts_take_it_to_be(kind):
    assert rows_of(HudiTable.open(made_table(*kind))) == INITIAL


def test_data_brings_columns_and_leaves_null_in_what_it_lacks():
    rows = put(INITIAL, {"a": 7, "z": 8}, w=7)
    assert (rows["a"], rows["z"]) == (("x", 7, (("w", 7),)), ("y", 8, (("w", 7),)))
    assert rows[COLUMNS] == (*INITIAL[COLUMNS], ("w", "int64"))
    assert {k: row for k, row in rows.items() if k in [*"bcd"]} == {k: INITIAL[k] for k in [*"bcd"]}


def test_a_key_that_is_there_twice_is_a_violation():
    with pytest.raises(Violation, match="more than once"):
        modelled(pa.table({"id": ["a", "a"], "p": ["x", "y"], "v": [1, 2]}))
