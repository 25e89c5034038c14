"""What Apache Hudi answers of tables of partial updates, payloads and structs, and where nothing is wrong with it.

Snapshots of the first two have tests of their own, row by row.
"""

import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

PARTIAL = ("partial_v8", "partial_v9")
PAYLOADS = ("payloads_v6", "payloads_v8", "payloads_v9")
BY_NAME = {"hoodie.schema.on.read.enable": "false"}  # of tables that dropped their schema history
QUESTIONS = [
    *((t, q) for v in (*PARTIAL, *PAYLOADS) for t in golden(v) for q in t.questions(READ_OPTIMIZED)),
    *((t, q) for t in golden("structs_v6") for q in t.questions(SNAPSHOT, READ_OPTIMIZED)),
]


@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=str)
def test_answers(opened, table, question):
    options = BY_NAME if "added" in table.name or "forgotten" in table.name else {}
    found = opened(table).read(query=question.kind, options=options).to_arrow()
    assert_same_answer(found, question.expected())
