"""Every answer of every golden table is asked for by some test, or is listed here with the reason."""

import test_golden_bootstrap as bootstrap
import test_golden_changes as changes
import test_golden_cleaned as cleaned
import test_golden_layout2 as layout2
import test_golden_merged as merged
import test_golden_merging as merging
import test_golden_orc as orc
import test_golden_own_types as own_types
import test_golden_partial as partial
import test_golden_read as read
import test_golden_replaced as replaced
import test_golden_special as special
import test_golden_unions as unions
from golden_tables import CLEANED, ROOT, golden

ASKED = [
    *read.QUESTIONS,
    *merged.QUESTIONS,
    *merging.QUESTIONS,
    *layout2.QUESTIONS,
    *layout2.CHANGES,
    *changes.QUESTIONS,
    *special.QUESTIONS,
    *unions.ANSWERED,
    *own_types.QUESTIONS,
    *replaced.QUESTIONS,
    *((cleaned.TABLE, q) for q in cleaned.TABLE.questions()),
    *((bootstrap.TABLE, q) for q in bootstrap.QUESTIONS),
    *((orc.WRITTEN, q) for q in orc.WRITTEN.questions()),
]
# By version, table and answer ("*": all tables of the version that have it).
REASONS = {
    (
        "v6",
        *CLEANED,
    ): "Apache Hudi gives no rows of a cleaned state; here that is an error, or this answer with a "
    "warning: test_what_is_left_of_a_cleaned_state_is_apache_hudis_answer_said_aloud",
    ("merging", "*", "unmerged"): "test_base_rows_and_log_records_side_by_side",
    # Apache Hudi's answers of these are wrong in some rows or refused here: the tests of them say which.
    **{(v, "*", "snapshot"): "test_golden_partial" for v in ("partial_v8", "partial_v9")},
    **{(v, "*", "snapshot"): "test_golden_payloads, test_golden_defaults" for v in special.PAYLOADS},
}
VERSIONS = [f.name for f in ROOT.iterdir() if any(f.glob("*.expected"))]


def answers() -> set[tuple[str, str, str]]:
    """Version, table and name of every expected answer, by the files that are there."""
    return {
        (v, folder.name.removesuffix(".expected"), file.stem)
        for v in VERSIONS
        for folder in (ROOT / v).glob("*.expected")
        for file in folder.glob("*.parquet")
    }


def test_every_answer_is_asked_for_or_has_a_reason():
    asked = {(t.version, t.name, q.name) for t, q in ASKED}
    listed = {a for a in answers() if a in REASONS or (a[0], "*", a[2]) in REASONS}
    assert answers() - asked - listed == set()
    assert asked <= answers()
    assert listed & asked == set()


def test_every_table_has_answers_and_every_answer_a_table():
    tables = {(t.version, t.name) for v in VERSIONS for t in golden(v)}
    without = {(t.version, t.name) for t, _ in unions.UNANSWERED}
    assert tables - without == {(v, name) for v, name, _ in answers()}


def test_what_apache_hudi_could_not_answer_is_asked_for_too():
    tests = (read, merged, layout2, partial, unions, cleaned)
    asked = {(t, name) for test in tests for t, name in test.UNANSWERED}
    assert asked == {(t, name) for v in VERSIONS for t in golden(v) for name in t.unanswered()}
    assert all((t.version, t.name, name) not in answers() for t, name in asked)
