"""Merges by the defaults of columns, over schemas whose defaults are not null: refused, never merged otherwise."""

import json

import pytest
from golden_tables import golden

from hudi_format.errors import UnsupportedError
from hudi_timeline.table import HudiTable

PAYLOAD = "payload_OverwriteNonDefaultsWithLatestAvroPayload"


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
def test_a_default_that_is_not_null_is_refused_by_merges_that_look_at_it(tmp_path):
    (table,) = golden("v6", PAYLOAD)
    path = table.unpack(tmp_path)
    before = HudiTable.open(str(path)).read().to_arrow()
    names = [f.name for f in HudiTable.open(str(path)).schema if str(f.type) == "string"]
    with_default(path, names[-1], "nothing")
    opened = HudiTable.open(str(path))
    with pytest.raises(UnsupportedError, match=names[-1]) as e:
        opened.read().to_arrow()
    assert "OverwriteNonDefaults" in str(e.value)
    if opened.table_type == "COPY_ON_WRITE":
        with pytest.raises(UnsupportedError, match=names[-1]):
            opened.upsert(before)


@pytest.mark.req("PM-09", "SE-01")
def test_other_merges_do_not_look_at_defaults(tmp_path):
    (table,) = golden("v6", "payload_OverwriteWithLatestAvroPayload")
    path = table.unpack(tmp_path)
    before = HudiTable.open(str(path)).read().to_arrow()
    names = [f.name for f in HudiTable.open(str(path)).schema if str(f.type) == "string"]
    with_default(path, names[-1], "nothing")
    assert HudiTable.open(str(path)).read().to_arrow().equals(before)
