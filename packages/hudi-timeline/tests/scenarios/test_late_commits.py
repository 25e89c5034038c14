"""Cleanings after a write that began long ago: whoever read the table before it was completed still has its files.

Commits count by the time at which they began.  One that began long ago is no longer among the last ones when it is
completed, and still it was not there a moment ago.
"""

import gc
import pickle
import time

import pytest
from rival_writers import DURING, LAZY, Between, make, rows, values

from hudi_format.errors import InstantNotFoundError, OptionError, StaleSnapshotError
from hudi_timeline import HudiTable

QUIET = {
    **LAZY,
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
POLICIES = {
    "commits": {"hoodie.cleaner.commits.retained": "2"},
    "versions": {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    },
}
WRITES = {
    "upsert": lambda table: table.upsert(rows("ax", v=9), options=QUIET),
    "delete": lambda table: table.delete([{"id": "a", "p": "x"}], options=QUIET),
    "overwrite": lambda table: table.insert_overwrite(rows("nx", v=9), options=QUIET),
    "partition deleted": lambda table: table.delete_partitions(["x"], options=QUIET),
}


def upserts(path, times=5, key="by"):
    for n in range(times):
        HudiTable.open(path).upsert(rows(key, ts=20 + n, v=20 + n), options=QUIET)


class Elsewhere:
    """A reader in another process, of which a cleaning knows nothing."""

    def __init__(self, path):
        self.expected = values(path)
        self._sent = pickle.dumps(HudiTable.open(path).read(["id", "p", "v"]))
        gc.collect()  # what this process reads is spared

    def reads_on(self):
        found = pickle.loads(self._sent).to_arrow().to_pylist()
        assert sorted((r["id"] + r["p"], r["v"]) for r in found) == self.expected
        gc.collect()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def cleaned(path, policy="commits"):
    return HudiTable.open(path).clean(options={**QUIET, **POLICIES[policy]})


@pytest.mark.req("TS-19", "CC-22")
@pytest.mark.sampled(6, values=False)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("write", WRITES)
def test_a_reader_from_before_a_late_commit_reads_on_after_a_cleaning(path, monkeypatch, write, kind):
    make(path, kind, **QUIET)
    readers = []

    def rivals(at):
        upserts(at)
        readers.append(Elsewhere(at))

    between = Between(monkeypatch, path, rivals, DURING)
    late = WRITES[write](HudiTable.open(path)).instant
    assert between.ran
    assert between.refused is None
    assert late < HudiTable.open(path).timeline.completed_writes()[-1].time
    readers.append(Elsewhere(path))
    assert readers[0].expected != readers[1].expected
    assert cleaned(path).plan.earliest.time <= late
    for reader in readers:
        reader.reads_on()
    # And they go when so many were completed since.
    upserts(path, 3)
    assert cleaned(path).plan.earliest.time > late
    if kind == "COPY_ON_WRITE" or write in (
        "overwrite",
        "partition deleted",
    ):  # others append to a slice that stays
        with pytest.raises(StaleSnapshotError):
            readers[0].reads_on()
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("TS-19")
def test_a_reader_from_before_a_late_compaction_reads_on_after_a_cleaning(path):
    table = make(path, "MERGE_ON_READ", **QUIET)
    upserts(path, 2, "ax")
    planned = table.compact(mode="schedule").scheduled
    upserts(path)
    reader = Elsewhere(path)
    assert HudiTable.open(path).compact(mode="execute").executed == (planned,)
    cleaned(path)
    reader.reads_on()


@pytest.mark.req("TS-19")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.sampled(2)
def test_a_read_of_this_process_keeps_what_a_late_commit_replaces_however_many_follow(
    path, monkeypatch, policy
):
    make(path, **QUIET)
    reads = []

    def rivals(at):
        upserts(at, 2)
        reads.append(HudiTable.open(at).read(["id", "v"]))

    Between(monkeypatch, path, rivals, DURING)
    WRITES["overwrite"](HudiTable.open(path))
    upserts(path, 6, "cq")
    cleaned(path, policy)
    assert {r["id"]: r["v"] for r in reads[0].to_arrow().to_pylist()} == {"a": 1, "b": 21, "c": 1}
    reads.clear()
    gc.collect()
    assert cleaned(path, policy).deleted


@pytest.mark.req("TS-19")
def test_states_that_a_cleaning_took_before_a_late_commit_are_not_read_as_whole(path, tmp_path):
    """Apache Hudi takes an instant seconds before it shows it: a cleaning may be past it then."""
    make(path, **QUIET)
    late = HudiTable.open(path).insert_overwrite(rows("nx", v=9), options=QUIET).instant
    shown = {p: p.read_bytes() for p in (tmp_path / "t" / ".hoodie").glob(f"{late}.*")}
    for file in shown:
        file.unlink()
    upserts(path)
    between = HudiTable.open(path).timeline.completed_writes()[2].time
    first = cleaned(path)
    assert first.deleted
    assert between < first.plan.earliest.time
    reader = Elsewhere(path)
    time.sleep(0.01)  # files are modified by the millisecond
    for file, content in shown.items():
        file.write_bytes(content)
    upserts(path, 1)
    second = cleaned(path)
    assert second.plan.earliest.time <= late
    assert not second.instant, "where all is gone already, no cleaning says that states since then are whole"
    reader.reads_on()
    table = HudiTable.open(path)
    with pytest.raises(InstantNotFoundError, match="cleaned"):
        table.read(as_of=between).to_arrow()
    with pytest.raises(OptionError, match="cleaned away"):
        table.savepoint(between)
    upserts(path, 2)
    assert cleaned(path).plan.files["x"], "what it replaced goes after as many commits"
    assert values(path) == [("by", 21), ("cq", 1), ("nx", 9)]
    assert HudiTable.open(path).verify(deep=True) == []
