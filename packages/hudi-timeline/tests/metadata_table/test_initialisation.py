"""Making a metadata table: what another process is at, or has left, at each step."""

import pytest
from serviced_tables import SCHEMA, rows, write

from hudi_format.errors import ConcurrentWriterError
from hudi_timeline import HudiTable
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table import deltacommit
from hudi_timeline.testing import CRASH, Fault, Faults

INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
# hoodie.properties; of each partition the base file, and the delta commit's inflight and completed file.
FILES = 7


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        tmp_path / "t", SCHEMA, name="t", record_keys="k", partition_fields="p", options=INDEXED
    )
    write(made, range(3), INDEXED)
    return made


@pytest.mark.parametrize("nth", range(FILES))
@pytest.mark.sampled(6)
def test_a_restore_whose_metadata_table_another_process_makes_too_is_a_typed_error(table, nth, monkeypatch):
    """The other one took the lock over; whatever it has come to, the table is restored, and a next write settles it."""
    to = table.timeline.completed_writes()[-1].time
    before = table.read().to_arrow().sort_by("k")
    write(table, range(3, 6), INDEXED)
    real, made = deltacommit.create_own, []

    def rivalled(storage, path, content):
        if storage.uri.endswith(FOLDER):
            made.append(path)
            if len(made) == nth + 1:
                storage.create(path, content + b" ")  # the other one was first
        return real(storage, path, content)

    with monkeypatch.context() as patched:
        patched.setattr(deltacommit, "create_own", rivalled)
        with pytest.raises(ConcurrentWriterError, match="another process") as e:
            table.restore(to)
    assert e.value.file == made[-1]
    assert "lock provider" in e.value.remedy
    again = HudiTable.open(table.uri, options=INDEXED)
    assert again.timeline.completed_writes()[-1].time == to
    assert again.read(options={"hoodie.metadata.enable": "false"}).to_arrow().sort_by("k").equals(before)
    again.restore(to)
    again.upsert(rows(9))
    assert set(again.config.metadata_partitions) == {"files", "column_stats"}
    assert again.verify(deep=True) == []


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("nth", range(1, 15))
@pytest.mark.sampled(6)
def test_what_a_killed_rebuild_leaves_is_in_nobody_s_way(table, nth):
    to = table.timeline.completed_writes()[-1].time
    write(table, range(3, 6), INDEXED)
    faults = Faults(Fault(CRASH, operation="create", path=f"*{FOLDER}/*", nth=nth))
    with faults.process():
        HudiTable.open(faults.wrap(table.storage), options=INDEXED).restore(to)
    again = HudiTable.open(table.uri, options=INDEXED)
    again.restore(to)
    again.upsert(rows(9))
    assert set(again.config.metadata_partitions) == {"files", "column_stats"}
    assert again.verify(deep=True) == []
