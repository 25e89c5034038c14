"""Records of a slice's blocks as the merge takes them: their kinds, keys and ordering values."""

import pyarrow as pa
import pytest
from slices import rows_of, write_slice

from hudi_format.file_slice.reader import SliceMerge
from hudi_format.file_slice.slice_entries import SliceEntries, compares
from hudi_format.log.scanner import SliceLog
from hudi_format.merge.payloads import payload_rule
from hudi_format.merge.record_merger import DATA, DATA_DELETED, DELETE, DELETE_DEFAULT
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage

DATA_COLUMNS = pa.schema([("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
SCHEMA = pa.schema([f.with_nullable(True) for f in with_meta(DATA_COLUMNS)])
RULE = payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload")


class Everything:
    """A resolver that keeps what it is given."""

    def resolve(self, entries):
        self.entries = entries
        raise StopIteration


def read(storage, found, merge):
    everything = Everything()
    with SliceLog(storage, found.log_files, merge.scope) as log:
        parts = SliceEntries(merge, SCHEMA, log.blocks)
        parts.records(found.log_files, everything)
        with pytest.raises(StopIteration):
            parts.add_all(log, storage.uri)
    return everything.entries, parts


@pytest.fixture
def parts(tmp_path):
    storage = open_storage(str(tmp_path))
    base = rows_of([("a", {"ts": 1, "_hoodie_is_deleted": False})], "1", SCHEMA)
    logged = [("a", {"ts": 2, "_hoodie_is_deleted": True}), ("b", {"ts": 3, "_hoodie_is_deleted": False})]
    gone = (pa.array(["c", "d"]), pa.array([4, None], pa.int64()))
    return storage, write_slice(storage, base, [rows_of(logged, "2", SCHEMA), gone], schema=SCHEMA)


def test_records_and_deletes_come_in_order_with_their_kinds(parts):
    entries, read_ = read(*parts, SliceMerge(RULE, "ts"))
    assert entries.keys.to_pylist() == ["a", "b", "c", "d"]
    assert entries.kinds.tolist() == [DATA_DELETED, DATA, DELETE, DELETE_DEFAULT]
    assert entries.ordering.to_pylist() == [2, 3, 4, None]
    assert not read_.partial


def test_nested_ordering_fields_do_not_count_among_records_of_version_6():
    assert compares(SliceMerge(RULE, "ts"))
    assert not compares(SliceMerge(RULE, "inner.ts"))
