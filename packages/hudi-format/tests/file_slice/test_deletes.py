"""Deletes in the logs of a slice whose ordering values are of a class that the column had before it was widened."""

import pyarrow as pa
import pytest
from slices import SCHEMA, rows_of, write_slice

from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.merge.payloads import EVENT_TIME, PAYLOADS
from hudi_format.storage.open import open_storage

WIDENED = [
    (pa.int32(), pa.int64()), (pa.int32(), pa.float32()), (pa.int32(), pa.float64()), (pa.int64(), pa.float64()),
    (pa.float32(), pa.float64()),
]  # fmt: skip


def left(storage, file_slice, rule, schema):
    found = pa.Table.from_batches(
        read_file_slice(storage, file_slice, SliceMerge(rule, "ts"), schema), schema
    )
    return dict(zip(found["_hoodie_record_key"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.mark.req("PM-08", "LF-11", "SE-04")
@pytest.mark.parametrize(("before", "now"), WIDENED, ids=str)
def test_under_event_time_they_are_compared_as_numbers(tmp_path, before, now):
    """A late delete loses, and a record that is older than a delete; Apache Hudi 1.0.2 and 1.2.0 read no such table."""
    schema = SCHEMA.set(SCHEMA.get_field_index("ts"), pa.field("ts", now))
    base = rows_of([(f"k{n}", {"ts": 100}) for n in range(4)], "1", schema)
    gone = (pa.array(["k0", "k1", "k2"]), pa.array([50, 150, 150], before))
    after = rows_of([("k1", {"ts": 120}), ("k2", {"ts": 160})], "101", schema)
    storage = open_storage(str(tmp_path))
    file_slice = write_slice(storage, base, [gone, after], schema=schema)
    assert left(storage, file_slice, EVENT_TIME, schema) == {"k0": 100, "k2": 160, "k3": 100}
    # Before version 8 Apache Hudi looks at the classes, and deletes where they differ.
    payload = PAYLOADS["DefaultHoodieRecordPayload"]
    assert left(storage, file_slice, payload, schema) == {"k1": 120, "k2": 160, "k3": 100}
