"""Floats inside of structs, lists and maps, in a table of version 9 whose columns became doubles.

Written by Apache Hudi 1.2.0: k0 to k5 with floats, k6 and k7 with doubles.  Its answers are below: floats keep the
digits that they print with, on every level; 0.15.0 and 1.0.2 have them so in plain columns only.  It reads base files
without Spark's vectorised reader alone, which refuses nested changes (`cannot be read in vectorized mode`).
"""

import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, golden

from hudi_format.file_slice.reader import read_file_slice
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import open_snapshot

VALUES = [0.1, 1.1, 16777216.0, 3.4e38, 1e-40, None, 0.1, 1.1]
INSIDE = [0.1, 1.1, 16777216.0, 3.4e38, 1e-40, 0.1, 1.1, 16777217.0]
WANTED = {
    f"k{n}": (v, {"f": v, "l": [i], "m": [("a", i)]})
    for n, (v, i) in enumerate(zip(VALUES, INSIDE, strict=True))
}


@pytest.mark.req("SE-02")
@pytest.mark.parametrize("kind", [SNAPSHOT, READ_OPTIMIZED])
@pytest.mark.parametrize("table", golden("floats_v9"), ids=str)
def test_floats_keep_their_digits_on_every_level(opened, table, kind):
    rows = opened(table).read(["id", "f", "s"], query=kind)
    assert {r["id"]: (r["f"], r["s"]) for r in rows.to_arrow().to_pylist()} == WANTED
    batches = [b for batch in rows.to_batches() for b in batch.to_pylist()]
    assert {r["id"]: (r["f"], r["s"]) for r in batches} == WANTED


@pytest.mark.parametrize("table", golden("floats_v9"), ids=str)
def test_one_slice_alone_has_them_too(table, tmp_path):
    snapshot = open_snapshot(open_storage(str(table.unpack(tmp_path))))
    merge, schema, found = slice_merge(snapshot), with_meta(snapshot.schema), {}
    for file_slice in snapshot.slices():
        for batch in read_file_slice(snapshot.storage, file_slice, merge, schema):
            found |= {r["id"]: (r["f"], r["s"]) for r in batch.to_pylist()}
    assert found == WANTED
