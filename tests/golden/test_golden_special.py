"""What Apache Hudi answers of partial updates, payloads, structs and changed types, where nothing is wrong with it.

Snapshots of the first two have tests of their own, row by row.
"""

import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

PARTIAL = ("partial_v8", "partial_v9")
PAYLOADS = ("payloads_v6", "payloads_v8", "payloads_v9")
BY_NAME = {"hoodie.schema.on.read.enable": "false"}  # of tables that dropped their schema history
RETYPES = ("retypes_v6", "retypes_v8", "retypes_v9")
QUESTIONS = [
    *((t, q) for v in (*PARTIAL, *PAYLOADS) for t in golden(v) for q in t.questions(READ_OPTIMIZED)),
    *(
        (t, q)
        for v in ("structs_v6", *RETYPES)
        for t in golden(v)
        for q in t.questions(SNAPSHOT, READ_OPTIMIZED)
    ),
]


@pytest.mark.req("SE-04")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=str)
def test_special_tables_have_the_answers_of_apache_hudi(opened, table, question):
    options = BY_NAME if "added" in table.name or "forgotten" in table.name else {}
    found = opened(table).read(query=question.kind, options=options, meta_columns=True).to_arrow()
    assert_same_answer(found, question.expected())
