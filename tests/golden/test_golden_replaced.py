"""File groups that Apache Hudi writes into after it replaced them: no snapshot has their rows.

Made by tools/golden/make_replaced_tables.py: a partition deleted and written again, with consistent hashing.
"""

import pytest
from golden_tables import INCREMENTAL, SNAPSHOT, assert_same_answer, golden

TABLES = [t for v in ("v6", "v8", "v9") for t in golden(f"replaced_{v}")]
QUESTIONS = [(t, q) for t in TABLES for q in t.questions()]


@pytest.mark.req("IN-01", "QR-01")
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_rows_that_were_written_into_a_replaced_group_are_given_where_apache_hudi_gives_them(opened, table):
    assert_same_answer(opened(table).read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())
    whole, window = table.questions(INCREMENTAL)
    assert whole.begin == "000"
    for question in (whole, window):
        found = opened(table).read_incremental(question.begin, meta_columns=True).to_arrow()
        assert_same_answer(found, question.expected())
    # Apache Hudi 0.15 looks at the commits of a range alone, 1.0 and later at all.
    given = sorted(found.column("id").to_pylist())
    assert given == (["a", "b", "c"] if table.version == "replaced_v6" else ["b"])
