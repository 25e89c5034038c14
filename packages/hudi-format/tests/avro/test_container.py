"""Avro object containers: those that fastavro writes, and what is none."""

import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.avro.container import checked_schema, container_header, container_parts, read_container
from hudi_format.errors import CorruptFileError, UnsupportedError

SCHEMA = {
    "type": "record",
    "name": "Plan",
    "namespace": "org.example",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"], "default": None}],
}


def written(*records, codec="null", schema=SCHEMA):
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records, codec=codec, sync_marker=b"s" * 16)
    return out.getvalue()


@given(
    st.integers(-(2**63), 2**63 - 1), st.one_of(st.none(), st.text()), st.sampled_from(["null", "deflate"])
)
def test_the_record_of_a_container_comes_back(number, text, codec):
    record = {"a": number, "b": text}
    assert read_container(written(record, codec=codec)) == ("Plan", record)


def test_blocks_are_counted_and_a_known_head_is_taken_again():
    data = written(*({"a": n, "b": "x" * 5000} for n in range(9)))
    parts = container_parts(data)
    assert sum(n for n, _ in parts.blocks) == 9
    assert json.loads(parts.schema)["name"].endswith("Plan")
    again = container_parts(written({"a": 1, "b": None}), parts.header)
    assert again.header is parts.header
    assert container_header(data) == parts.header


@pytest.mark.parametrize("records", [[], [{"a": 1, "b": None}] * 2])
def test_a_plan_is_one_record(records):
    with pytest.raises(
        CorruptFileError, match=f"unreadable plan: it holds {len(records)} records instead of one"
    ):
        read_container(written(*records), what="plan")


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_every_cut_is_corrupt(codec):
    data = written({"a": 300, "b": "text"}, codec=codec)
    for end in range(len(data)):
        with pytest.raises(CorruptFileError, match="unreadable plan"):
            read_container(data[:end], what="plan")


def test_a_changed_marker_or_codec_is_told():
    data = written({"a": 1, "b": None})
    with pytest.raises(CorruptFileError, match="cut off or damaged"):
        read_container(data[:-1] + b"t")
    with pytest.raises(UnsupportedError, match="snappyy"):
        read_container(written({"a": 1, "b": None}, codec="deflate").replace(b"\x0edeflate", b"\x0esnappyy"))
    with pytest.raises(CorruptFileError, match="does not begin"):
        container_parts(b"PAR1")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([{"name": "a", "type": {"type": "array", "items": "null"}}], "elements without bytes"),
        ([{"name": "a", "type": {"type": "record", "name": "E", "fields": []}}], "field without bytes"),
        ([{"name": "a", "type": ["null", "R"]}], "recursive type"),
    ],
)
def test_schemas_by_which_few_bytes_are_much_are_refused(fields, message):
    with pytest.raises(CorruptFileError, match=message):
        checked_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))
