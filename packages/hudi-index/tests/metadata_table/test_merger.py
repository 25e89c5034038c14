"""Records of the metadata table: how two of one key become one, and unions of several types as columns."""

import json

import pyarrow as pa
import pytest

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError
from hudi_format.schema.avro import from_avro
from hudi_index.metadata_table.merger import combine_files, combine_stats


def live(size):
    return {"size": size, "isDeleted": False}


GONE = {"size": 0, "isDeleted": True}


@pytest.mark.req("MT-03")
@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ([], [("a", live(1))], [("a", live(1))]),
        ([], [("a", GONE)], [("a", GONE)]),
        ([("a", live(5))], [("a", live(3))], [("a", live(5))]),
        ([("a", live(5)), ("b", live(1))], [("a", GONE)], [("b", live(1))]),
        ([("a", GONE)], [("a", GONE)], [("a", GONE)]),
        ([("a", GONE)], [("a", live(3))], [("a", live(3))]),
    ],
)
def test_lists_of_files_are_combined_entry_by_entry(old, new, both):
    assert combine_files(old, new) == both


def stats(low, high, count, **more):
    bounds = {"minValue": {"member0": None, "member1": low and {"value": low}},
              "maxValue": {"member0": None, "member1": high and {"value": high}}}  # fmt: skip
    return {**bounds, "valueCount": count, "nullCount": None, "totalSize": 1, "totalUncompressedSize": 1,
            "isDeleted": False, **more}  # fmt: skip


def test_statistics_of_one_column_are_widened():
    both = combine_stats(stats(3, 9, 5), stats(4, 11, 6))
    assert (both["minValue"]["member1"], both["maxValue"]["member1"]) == ({"value": 3}, {"value": 11})
    assert (both["valueCount"], both["nullCount"], both["totalSize"]) == (11, None, 2)
    assert combine_stats(stats(3, 9, 5), stats(None, None, 1))["minValue"]["member1"] == {"value": 3}
    later = stats(4, 5, 1, isDeleted=True)
    assert combine_stats(stats(3, 9, 5), later) is later


WRAPPERS = [
    {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
    for name, kind in (("B", "boolean"), ("L", "long"), ("S", "string"))
]
UNION = {"type": "record", "name": "r", "fields": [
    {"name": "low", "type": ["null", *WRAPPERS]}, {"name": "high", "type": ["null", "B", "L", "S"]},
    {"name": "n", "type": "int"},
]}  # fmt: skip


def test_a_union_of_records_is_a_struct_with_a_member_for_each():
    text = json.dumps(UNION)
    schema = from_avro(text, times_as_numbers=True)
    member = schema.field("low").type
    assert [f.name for f in member] == ["member0", "member1", "member2"]
    assert schema.field("high").type == member
    assert from_avro(text) == schema
    # low, high, n: null, S "x", 1; L 3, null, 2; B true, L -1, 3
    records = [b"\0\x06\x02x\x02", b"\x04\x06\0\x04", b"\x02\x01\x04\x01\x06"]
    offsets, lengths = [0, 5, 9], [5, 4, 5]
    rows = Decoder(text, arrow_schema=schema).decode(b"".join(records), offsets, lengths)
    rows.validate(full=True)

    def of(**given):
        return {f"member{n}": given.get(f"m{n}") for n in range(3)}

    assert rows.to_pylist() == [
        {"low": None, "high": of(m2={"value": "x"}), "n": 1},
        {"low": of(m1={"value": 3}), "high": None, "n": 2},
        {"low": of(m0={"value": True}), "high": of(m1={"value": -1}), "n": 3},
    ]
    # Members that are not wanted are passed over.
    narrow = pa.schema([("low", pa.struct([member.field("member1")])), ("n", pa.int32())])
    rows = Decoder(text, arrow_schema=narrow).decode(b"".join(records), offsets, lengths)
    assert rows["low"].to_pylist() == [None, {"member1": {"value": 3}}, {"member1": None}]
    assert rows["n"].to_pylist() == [1, 2, 3]
    with pytest.raises(CorruptFileError):
        Decoder(text, arrow_schema=schema).decode(b"\x08\0\0", [0], [3])
