"""Tables of Apache Hudi 0.15.0, undone commit by commit: after each, the table is what it was before that commit."""

from itertools import pairwise

import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_format.errors import MissingFileError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.table import HudiTable
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults
from hudi_timeline.verify.findings import Severity

TABLES = golden(
    "v6",
    "cow_clustered",
    "cow_insert_overwrite",
    "cow_partitioned",
    "mor_avro_logs",
    "mor_compacted_then_logs",
    "mor_parquet_logs",
    "mor_pending_compaction",
    "mor_rollback",
)
NO_METADATA = {"hoodie.metadata.enable": "false"}


def files(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def rows(table, as_of=None):
    found = table.read(as_of=as_of, meta_columns=True).to_arrow()
    return found.sort_by([("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")])


def wrong(table):
    """What `verify` finds that is not just worth a word."""
    return [f for f in table.verify() if f.severity is not Severity.INFO]


def states(table):
    """What the table held after each of its commits, as far as the cleaner left it, oldest first."""
    out: dict[str, pa.Table] = {}
    for instant in table.timeline.completed_writes():
        try:
            out[instant.time] = rows(table, instant.time)
        except MissingFileError:
            out.clear()
    return out


@pytest.mark.req("RC-01", "TM-10", "NEW-08")
@pytest.mark.parametrize("golden_table", TABLES, ids=str)
@pytest.mark.sampled(3)
def test_completed_commits_are_rolled_back_one_by_one(golden_table, tmp_path):
    path = golden_table.unpack(tmp_path)
    table = HudiTable.open(str(path))
    held = states(table)
    planned = max((i.time for i in table.timeline.pending("compaction")), default="")
    times = list(held)
    for before, instant in reversed(list(pairwise(times))):
        table = HudiTable.open(str(path))
        there = files(path)
        if instant < planned:
            with pytest.raises(UnsupportedError, match="was begun after"):
                table.rollback(instant, options=NO_METADATA)
            assert files(path) == there
            break
        plan = table.rollback(instant, dry_run=True, options=NO_METADATA)
        assert files(path) == there
        done = table.rollback(instant, options=NO_METADATA)
        assert (done.plans, done.files, done.blocks) == (plan.plans, plan.files, plan.blocks)
        table = HudiTable.open(str(path))
        assert table.timeline.find(instant) is None
        assert rows(table).equals(held[before]), instant
        assert wrong(table) == []


@pytest.mark.req("RC-06", "TM-11", "TM-12", "NEW-08")
@pytest.mark.parametrize("golden_table", TABLES, ids=str)
@pytest.mark.sampled(3)
def test_each_commit_is_savepointed_and_restored(golden_table, tmp_path):
    held = states(HudiTable.open(str(golden_table.unpack(tmp_path))))
    for number, instant in enumerate(list(held)[:-1]):
        path = golden_table.unpack(tmp_path / str(number))
        table = HudiTable.open(str(path))
        table.savepoint(instant, options=NO_METADATA)
        there = files(path)
        plan = table.restore(instant, dry_run=True)
        assert files(path) == there
        done = table.restore(instant, options=NO_METADATA)
        assert done.undone == plan.undone
        table = HudiTable.open(str(path))
        assert table.timeline.completed_writes()[-1].time == instant
        assert not table.timeline.pending_writes()
        assert not [i for i in table.timeline.pending("compaction") if i.time > instant]
        assert rows(table).equals(held[instant])
        assert wrong(table) == []
        gone = set(done.undone)
        left = [
            f for f in path.rglob("*.parquet") if ".hoodie" not in f.parts and f.stem.split("_")[-1] in gone
        ]
        assert left == []


@pytest.mark.req("OP-11", "OP-12")
@pytest.mark.parametrize("golden_table", golden("v5"), ids=str)
def test_tables_of_version_5_are_read_the_same_after_their_upgrade(golden_table, tmp_path):
    path = golden_table.unpack(tmp_path)
    held = rows(HudiTable.open(str(path)))
    HudiTable.open(str(path)).upgrade()
    table = HudiTable.open(str(path))
    assert table.table_version == 6
    assert rows(table).equals(held)
    assert wrong(table) == []
    if table.table_type == "COPY_ON_WRITE":
        table.downgrade()
        assert rows(HudiTable.open(str(path))).equals(held)


@pytest.mark.req("RC-01", "RC-04", "RC-06", "TM-03")
@pytest.mark.parametrize("what", ["rollback", "restore"])
@pytest.mark.sampled(2)
def test_undoing_a_merge_on_read_table_may_stop_at_any_change_of_the_store(tmp_path, what):
    (table,) = golden("v6", "mor_compacted_then_logs")
    path = table.unpack(tmp_path / "0")
    held = states(HudiTable.open(str(path)))
    last = list(held)[-1]
    to = list(held)[0 if what == "restore" else -2]
    number = 0
    while True:
        number += 1
        path = table.unpack(tmp_path / str(number))
        faults = Faults(Fault(CRASH, nth=number, operation=CHANGES))
        with faults.process():
            given = HudiTable._of(faults.wrap(LocalStorage(str(path))), NO_METADATA)
            given.rollback(last) if what == "rollback" else given.restore(to)
        if not faults.dead:
            break
        timeline = HudiTable.open(str(path)).timeline
        if what == "rollback":
            HudiTable.open(str(path)).rollback(options=NO_METADATA)
        elif not [i for i in timeline.of("restore") if i.completed]:
            HudiTable.open(str(path)).restore(to, options=NO_METADATA)
        found = HudiTable.open(str(path))
        begun = bool(found.timeline.of(what))
        assert rows(found).equals(held[to if begun else last]), number
        assert not found.timeline.pending(what)
        # As much as an undisturbed run leaves, and nothing more.
        commands = [f for f in path.rglob("*_1-0-1") if ".hoodie" not in f.parts]
        assert len({f.name.rpartition("_")[0] for f in commands}) == len(commands)
    assert number > 5
