"""Archived instants of all versions: which there were, and what they did."""

import pytest
from golden_tables import SNAPSHOT, golden

from hudi_timeline.archived import archived_instants, read_archived
from hudi_timeline.instant import WRITE_ACTIONS
from hudi_timeline.table import HudiTable


@pytest.mark.req("TM-20")
@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
def test_every_commit_of_the_rows_is_on_the_timeline_or_in_the_archive(version, tmp_path):
    (table,) = golden(version, "cow_archived")
    read = HudiTable.open(str(table.unpack(tmp_path)))
    archived = archived_instants(read.storage, read.config)
    active = {i.time for i in read.timeline.completed_writes()}
    written = set(table.question(SNAPSHOT).expected().column("_hoodie_commit_time").to_pylist())
    assert written <= active | {i.time for i in archived}
    assert written - active
    operations = []
    for instant in archived:
        done = read_archived(read.storage, read.config, instant)
        if instant.action in WRITE_ACTIONS:
            operations.append(done.operation)
            assert all(s.file_id in s.path for s in done.stats)
            assert done.schema_text
        else:
            assert done.files_deleted == sum(len(p.deleted) for p in done.partitions.values()) > 0
    # What the table's making says, oldest first, as far as it is archived.
    made = [o["operation"].upper() for o in table.meta["operations"]]
    assert operations == made[: len(operations)]
