"""Plans of rollbacks: their fields, and what they may not delete."""

import pytest

from hudi_format.errors import CorruptFileError
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.action_metadata import InstantName, RollbackPlan, RollbackRequest, parse_action
from hudi_timeline.transaction.rollback_plan import command_requests, files_to_delete

T = "20260101000000000"
OLD = "20250101000000000"
pytestmark = pytest.mark.req("RC-01", "TM-10")


def name(number, instant=T):
    return f"aa{number:06x}-1111-1111-1111-1111111111aa-0_0-1-2_{instant}.parquet"


def test_fields_are_those_of_a_rollback_that_apache_hudi_made(golden_timelines):
    folder = golden_timelines / "v6/cow_rollback/.hoodie"
    for path in folder.glob("*.rollback.requested"):
        plan = avro_files.parse("HoodieRollbackPlan", path.read_bytes())
        assert set(plan["RollbackRequests"][0]) == {
            "partitionPath", "fileId", "latestBaseInstant", "filesToBeDeleted", "logBlocksToBeDeleted"
        }  # fmt: skip
        found = files_to_delete(parse_action("rollback", "REQUESTED", path.read_bytes()))
        assert sum(map(len, found.values())) == 3
        assert set(found) == {"oslo", "pune", "sao_paulo"}


def test_a_plan_never_deletes_a_file_of_another_instant():
    files = (f"/t/p/{name(1, OLD)}", "/t/p/.hoodie_partition_metadata", f"/q/{name(2)}")
    plan = RollbackPlan(InstantName(T, "commit"), (RollbackRequest("p", files=files),))
    assert files_to_delete(plan) == {"p": [name(2)]}


@pytest.mark.parametrize(("file_id", "base"), [("../x", OLD), ("", OLD), ("aa-0", "../1"), ("a/b", OLD)])
def test_a_plan_with_a_slice_that_is_none_is_refused(file_id, base):
    request = RollbackRequest("p", file_id, base, log_blocks={"x.log": 1})
    plan = RollbackPlan(InstantName(T, "commit"), (request,))
    with pytest.raises(CorruptFileError, match="not below the table"):
        command_requests(plan)
