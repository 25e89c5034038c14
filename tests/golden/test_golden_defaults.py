"""Merges by the defaults of columns, over schemas whose defaults are not null: read as Apache Hudi reads them."""

import json

import pytest
from golden_tables import SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import UnsupportedError
from hudi_timeline.table import HudiTable

TABLES = [t for v in ("v6", "v8", "v9") for t in golden(f"payloads_{v}") if t.name.startswith("defaults_")]


def with_default(path, column, value):
    """Give a column of every commit's schema a default."""
    for file in path.glob(".hoodie/*commit"):
        commit = json.loads(file.read_text())
        schema = json.loads(commit["extraMetadata"]["schema"])
        field = next(f for f in schema["fields"] if f["name"] == column)
        branches = [b for b in field["type"] if b != "null"]
        field |= {"type": [*branches, "null"], "default": value}
        commit["extraMetadata"]["schema"] = json.dumps(schema)
        file.write_text(json.dumps(commit))


@pytest.mark.req("PM-09", "SE-01")
@pytest.mark.parametrize("memory", [None, "1"])
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(4)
def test_values_like_their_columns_default_are_filled_as_in_apache_hudi(opened, table, memory):
    options = {} if memory is None else {"hoodie.memory.merge.max.size": memory}
    assert_same_answer(
        opened(table).read(options=options, meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected()
    )


@pytest.mark.req("PM-09")
def test_a_default_that_is_a_list_with_elements_is_refused(tmp_path):
    (table,) = golden("payloads_v6", "defaults_overwrite")
    path = table.unpack(tmp_path)
    for file in path.glob(".hoodie/*commit"):
        text = file.read_text().replace('\\"default\\": []', '\\"default\\": [1]')
        file.write_text(text)
    with pytest.raises(UnsupportedError, match="column list has a default with list elements") as e:
        HudiTable.open(str(path)).read().to_arrow()
    assert e.value.remedy


@pytest.mark.req("PM-09")
def test_other_merges_do_not_look_at_defaults(tmp_path):
    (table,) = golden("v6", "payload_OverwriteWithLatestAvroPayload")
    path = table.unpack(tmp_path)
    before = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    names = [f.name for f in HudiTable.open(str(path)).schema if str(f.type) == "string"]
    with_default(path, names[-1], "nothing")
    assert HudiTable.open(str(path)).read(meta_columns=True).to_arrow().equals(before)
