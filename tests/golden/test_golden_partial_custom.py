"""Partial updates under a merge of the user's: expressions take them column by column, functions are refused."""

import json

import pyarrow.compute as pc
import pytest
from golden_tables import golden

from hudi_format.errors import UnsupportedError

TABLES = [t for v in ("v8", "v9") for t in golden(v, "merge_partial_event_time")]


def add_up(old, new, context):
    return new


@pytest.mark.req("PM-10", "PM-12")
@pytest.mark.parametrize("memory", [None, "1"])
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_columns_that_an_update_does_not_name_stay_and_are_not_merged(opened, table, memory):
    options = {"hudi.merge": json.dumps({"seq": "sum", "ts": "max", "v": "last", "w": "first"})}
    if memory is not None:
        options["hoodie.memory.merge.max.size"] = memory
    found = opened(table).read(options=options).to_arrow().sort_by("id")
    rows = {r["id"]: (r["ts"], r["seq"], r["v"], r["w"]) for r in found.to_pylist()}
    unseen = {f"k{n:02d}": (100, 0, "v1", "w1") for n in (8, 9)}
    assert rows == {
        "k00": (200, 0, "a", "w1"),  # v at 200, w at 150: the first w stays
        "k01": (250, 0, "a", "w1"),
        "k02": (100, 0, "a", "w1"),
        # k03 was updated and deleted
        "k04": (100, 0, "a", "w1"),
        "k05": (400, 1, "c", "w1"),  # of the whole record its seq is added, once
        "k06": (300, 1, "c", "w1"),
        "k07": (100, 0, "c", "w1"),
        **unseen,
    }


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_one_column_alone_is_merged_as_among_others(opened, table):
    options = {"hudi.merge": json.dumps({"seq": "sum"})}
    whole = opened(table).read(options=options).to_arrow().sort_by("id")
    alone = opened(table).read(["id", "seq"], options=options).to_arrow().sort_by("id")
    assert alone.equals(whole.select(["id", "seq"]))
    assert pc.sum(alone["seq"]).as_py() == 2


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_function_would_get_values_that_no_one_wrote(opened, table):
    with pytest.raises(UnsupportedError, match="partial updates, which a merge function") as e:
        opened(table).read(options={"hudi.merge": "test_golden_partial_custom:add_up"}).to_arrow()
    assert "expressions" in e.value.remedy
