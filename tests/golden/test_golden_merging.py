"""Tables that pin how records of one key meet in logs of version 6, for each payload (tools/golden/merging.py)."""

from dataclasses import replace

import pytest
from golden_tables import AS_OF, READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import UnsupportedError
from hudi_format.merge.payloads import PAYLOADS, Order
from hudi_timeline.file_system_view import slice_merge

TABLES = golden("merging")
QUESTIONS = [(t, q) for t in TABLES for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF)]


@pytest.mark.req("PM-01", "PM-02", "PM-06", "PM-07", "PM-08", "PM-09", "PM-12", "PM-15")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t.name}-{q.name}" for t, q in QUESTIONS])
def test_records_meet_as_they_do_in_apache_hudi(opened, table, question):
    read = opened(table)
    found = (
        read.read(as_of=question.instant, meta_columns=True)
        if question.kind == AS_OF
        else read.read(query=question.kind, meta_columns=True)
    )
    assert_same_answer(found.to_arrow(), question.expected())


@pytest.mark.req("PM-14")
@pytest.mark.parametrize("memory", ["1000000", "1"])
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
@pytest.mark.sampled(4)
def test_base_rows_and_log_records_side_by_side(opened, table, memory):
    options = {"hoodie.datasource.merge.type": "skip_merge", "hoodie.memory.merge.max.size": memory}
    found = opened(table).read(options=options, meta_columns=True).to_arrow()
    by = ["_hoodie_record_key", "_hoodie_commit_time"]
    assert_same_answer(found, table.question("unmerged").expected(), by)
    assert found.num_rows > table.question(SNAPSHOT).expected().num_rows


# Rules with one thing other; the tables tell them apart, or else they would pin less than they are for.
OTHERS = {
    "later record of a log": {"within": Order.LATER},
    "greatest record of a log": {"within": Order.GREATEST},
    "first of equal records of a log": {"within": Order.GREATEST_FIRST},
    "stored row never wins": {"against_stored": Order.LATER},
    "greater stored row wins": {"against_stored": Order.GREATEST},
    "equal stored row wins": {"against_stored": Order.GREATEST_FIRST},
    "nulls filled in a log": {"fill_within": True},
    "nulls not filled in a log": {"fill_within": False},
    "nulls filled from the stored row": {"fill_stored": True},
    "nulls not filled from the stored row": {"fill_stored": False},
    "deletes compared": {"tombstones_compare": True},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
@pytest.mark.sampled(4)
def test_another_rule_gives_other_rows(opened, table, other, monkeypatch):
    rule = PAYLOADS[table.name]
    changed = replace(rule, **OTHERS[other])
    if changed == rule:
        return
    monkeypatch.setattr(slice_merge, "payload_rule", lambda _: changed)
    read = opened(table)
    same = True
    for question in table.questions(SNAPSHOT, AS_OF):
        found = (
            read.read(as_of=question.instant, meta_columns=True)
            if question.kind == AS_OF
            else read.read(meta_columns=True)
        )
        try:
            assert_same_answer(found.to_arrow(), question.expected())
        except (AssertionError, UnsupportedError):  # or a combination that no payload has
            same = False
    assert not same
