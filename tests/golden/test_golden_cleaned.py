"""Files that a commit wrote into a file group which an archived commit had replaced, and that a cleaning took.

Written by Apache Hudi 1.2.0 as a table of version 8 with consistent hashing; answered by it, with
tools/golden/answer_table.py.
"""

import pytest
from golden_tables import AS_OF, INCREMENTAL, READ_OPTIMIZED, assert_same_answer, golden

from hudi_format.errors import InstantNotFoundError, MissingFileError
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view import outlived_snapshot

(TABLE,) = golden("cleaned_v8")
UNANSWERED = [(TABLE, name) for name in sorted(TABLE.unanswered())]


@pytest.mark.req("QR-01", "IN-01", "TS-19")
@pytest.mark.parametrize("question", TABLE.questions(), ids=lambda q: q.name)
def test_what_is_missing_for_a_reason_is_not_missed(opened, question):
    table = opened(TABLE)
    if question.kind == AS_OF:
        scan = table.read(as_of=question.instant, meta_columns=True)
    elif question.kind == INCREMENTAL:
        scan = table.read_incremental(question.begin, question.end, meta_columns=True)
    else:
        scan = table.read(
            query=question.kind if question.kind == READ_OPTIMIZED else "snapshot", meta_columns=True
        )
    found = scan.to_arrow()
    assert scan.complete
    assert_same_answer(found, question.expected())


@pytest.mark.req("IN-17")
@pytest.mark.parametrize("question", sorted(TABLE.unanswered()))
def test_what_apache_hudi_does_not_answer_is_refused(opened, question):
    with pytest.raises(InstantNotFoundError, match="were cleaned"):
        opened(TABLE).read(as_of=question.removeprefix("asof_"))


def test_a_file_of_a_group_that_nothing_replaced_is_missed(tmp_path):
    path = TABLE.unpack(tmp_path)
    table = HudiTable.open(str(path))
    replaced = outlived_snapshot.replaced_in_archive(table.read(meta_columns=True)._source.snapshot)
    (path / "p0=é" / ".82849481-7838-3971-bea0-fd81ac487265-0_20261123032606307.log.1_2-968-2451").unlink()
    assert ("p0=é", "82849481-7838-3971-bea0-fd81ac487265-0") not in replaced
    with pytest.raises(MissingFileError, match="is missing"):
        table.read().to_arrow()
