"""Base rows that stay, and changed rows: together what a merged read gives."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slice_strategies import PLACES, RULES, blocks, log_parts, records, with_places
from slices import SCHEMA, rows_of, write_slice

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import CorruptFileError
from hudi_format.file_slice.base_rows import BaseFileRead, BaseFileReader
from hudi_format.file_slice.changed_rows import changed_positions, changed_rows
from hudi_format.file_slice.reader import SliceMerge, merged_rows
from hudi_format.merge.payloads import payload_rule
from hudi_format.storage.open import open_storage

OVERWRITE = SliceMerge(payload_rule(None), "ts")


def texts(table):
    return sorted(map(repr, table.to_pylist()))


def parts_of(storage, file_slice, merge, schema):
    """Merged rows; changed positions and rows; base rows."""
    file = file_slice.base_file
    base = BaseFileRead(storage, file.path if file else "", merge.merge_schema(schema, schema))
    logs = file_slice.log_files
    empty = base.schema.empty_table()
    want = pa.concat_tables([empty, *merged_rows(base, logs, merge, batch_rows=4)])
    stored = empty
    if file is not None:
        opened = BaseFileReader(base)
        stored = opened.read()
        opened.close()
    changed = pa.concat_tables([empty, *changed_rows(base, logs, merge, batch_rows=4)])
    return want, changed_positions(base, logs, merge), changed, stored


@pytest.mark.req("QR-01", "PM-15")
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.custom or r.name + "-fill" * r.fills)
@settings(max_examples=8, deadline=None)
@given(
    base=records, given_blocks=blocks, with_base=st.booleans(), limit=st.sampled_from([None, MemoryLimit(1)])
)
@pytest.mark.sampled(4)
def test_unchanged_and_changed_rows_are_the_merged_rows(
    tmp_path_factory, rule, base, given_blocks, with_base, limit
):
    storage = open_storage(str(tmp_path_factory.mktemp("slice")))
    schema = SCHEMA
    if rule.sequence:
        schema, base, given_blocks = PLACES, with_places(base), [with_places(b) for b in given_blocks]
    stored = rows_of(base, "1", schema) if with_base else None
    file_slice = write_slice(
        storage, stored, log_parts(given_blocks, schema), row_group_rows=3, schema=schema, files=2
    )
    want, positions, changed, stored = parts_of(
        storage, file_slice, SliceMerge(rule, "ts", limit=limit), schema
    )
    stays = np.ones(stored.num_rows, bool)
    stays[positions] = False
    assert texts(pa.concat_tables([stored.filter(pa.array(stays)), changed])) == texts(want)
    assert (np.diff(positions) > 0).all()


def test_of_rows_that_are_replaced_whole_keys_alone_are_read(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path))
    base = rows_of([(f"k{n}", {"ts": 5, "text": "old"}) for n in range(9)], "1")
    later = rows_of([("k3", {"ts": 7, "text": "new"}), ("new", {"ts": 1})], "101")
    file_slice = write_slice(storage, base, [later], row_group_rows=3)
    read = []
    real = BaseFileReader.__init__

    def noted(self, wanted, *more):
        read.append(wanted.schema.names)
        real(self, wanted, *more)

    asked = BaseFileRead(storage, file_slice.base_file.path, OVERWRITE.merge_schema(SCHEMA, SCHEMA))
    monkeypatch.setattr(BaseFileReader, "__init__", noted)
    assert changed_positions(asked, file_slice.log_files, OVERWRITE).tolist() == [3]
    found = pa.concat_tables(changed_rows(asked, file_slice.log_files, OVERWRITE))
    assert sorted(found["_hoodie_record_key"].to_pylist()) == ["k3", "new"]
    assert read == [["_hoodie_record_key"]] * 2


def test_a_base_row_without_a_key_is_an_error_in_both_parts(tmp_path):
    storage = open_storage(str(tmp_path))
    base = rows_of([("k1", {"ts": 5}), (None, {"ts": 5})], "1")
    file_slice = write_slice(storage, base, [rows_of([("k1", {"ts": 7})], "101")], row_group_rows=3)
    asked = BaseFileRead(storage, file_slice.base_file.path, OVERWRITE.merge_schema(SCHEMA, SCHEMA))
    for merge in (OVERWRITE, replace(OVERWRITE, limit=MemoryLimit(1))):
        for part in (changed_positions, lambda *a: list(changed_rows(*a))):
            with pytest.raises(CorruptFileError, match="no record key"):
                part(asked, file_slice.log_files, merge)
