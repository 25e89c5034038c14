"""Columns of Apache Hudi 1.2's own types: vectors and blobs, as it reads them.  No other release has them.

Made by tools/golden/make_own_type_tables.py.
"""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import assert_same_answer, golden

TABLES = golden("own_types_v9")
QUESTIONS = [(t, q) for t in TABLES for q in t.questions()]
VECTORS = [t for t in TABLES if t.name.startswith("vectors")]


@pytest.mark.req("QR-01", "QR-02", "SE-01")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
def test_own_types_are_read_as_apache_hudi_reads_them(opened, table, question):
    found = opened(table).read(query=question.kind, meta_columns=True).to_arrow()
    assert_same_answer(found, question.expected())


@pytest.mark.req("QR-01", "SE-01")
@pytest.mark.parametrize("table", VECTORS, ids=str)
def test_vectors_are_lists_of_numbers_in_every_kind_of_read(opened, table):
    whole = opened(table).read(meta_columns=True).to_arrow()
    assert [whole.schema.field(n).type.value_type for n in "vdi"] == [pa.float32(), pa.float64(), pa.int8()]
    some = opened(table).read(columns=["i", "id"], filter=pc.field("v").is_null()).to_arrow()
    assert some.num_rows
    assert some.to_pylist() == [{k: r[k] for k in ("i", "id")} for r in whole.to_pylist() if r["v"] is None]
    changed = opened(table).read_incremental("000", meta_columns=True).to_arrow().sort_by("id")
    assert (
        changed.select(["id", *"vdi"]).to_pylist() == whole.sort_by("id").select(["id", *"vdi"]).to_pylist()
    )
