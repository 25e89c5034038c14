"""Restores, rollbacks, savepoints and others beside a cleaning that is at work, between any two of its deletions."""

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    HudiError,
    MissingFileError,
    OptionError,
    UnsupportedError,
)
from hudi_timeline import HudiTable
from hudi_timeline.services import cleaning
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.action_metadata import GUARDED

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
OFF = {"hoodie.table.services.enabled": "false"}
VERSIONS = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
COMMITS = {"hoodie.cleaner.commits.retained": "1"}
POLICIES = {"commits": COMMITS, "versions": VERSIONS}
WRITES = 4


def rows(ts, partitions="ab"):
    return [{"id": f"{p}{i}", "p": p, "v": ts, "ts": ts} for p in partitions for i in range(2)]


class Crash(BaseException):
    pass


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )


@pytest.fixture
def commits(table):
    """Four writes of every file group; what the table held after each of them is its number."""
    return [table.upsert(rows(ts), options=OFF).instant for ts in range(1, WRITES + 1)]


@pytest.fixture
def between(monkeypatch):
    """Makes something happen before the first, or after the n-th deletion of the next cleaning."""

    def prepare(n, act):
        monkeypatch.setattr(cleaning, "LOCKED_S", 0.0)
        monkeypatch.setattr(cleaning, "_THREADS", 1)
        steps = iter(range(n + 1))
        real, acts = cleaning._execute, [act]

        def step():
            if next(steps, None) == n and acts:
                acts.pop()()

        def execute(*given):
            step()
            return real(*given)

        monkeypatch.setattr(cleaning, "_execute", execute)
        monkeypatch.setattr(cleaning, "rest", step)

    return prepare


def values(table, **asked):
    found = table.read(**asked).to_arrow()
    assert found.num_rows == 4
    (value,) = set(found.column("v").to_pylist())
    return value


def restore(n):
    return lambda table, commits: table.restore(commits[n - 1])


def savepoint(n):
    return lambda table, commits: table.savepoint(commits[n - 1])


# What is done, and what the table holds after it where it is not refused.
ACTS = {
    "restore 1": (restore(1), 1),
    "restore 2": (restore(2), 2),
    "restore 3": (restore(3), 3),
    "rollback": (lambda table, commits: table.rollback(commits[-1]), 3),
    "savepoint 1": (savepoint(1), 4),
    "savepoint 2": (savepoint(2), 4),
    "savepoint 3": (savepoint(3), 4),
    "savepoint 4": (savepoint(4), 4),
    "downgrade": (lambda table, commits: table.downgrade(5), 4),
    "upsert": (lambda table, commits: table.upsert(rows(5), options=OFF), 5),
    "clean": (lambda table, commits: table.clean(options=VERSIONS), 4),
    "archive": (lambda table, commits: table.archive(), 4),
}
REFUSALS = (MissingFileError, OptionError, ConcurrentWriterError, UnsupportedError)


def check(table, commits, act, refused):
    """The table holds what it should, its savepoints can be restored, and further services find nothing amiss."""
    assert values(table) == (WRITES if refused else ACTS[act][1])
    assert [f for f in table.verify(deep=True) if f.severity == "error"] == []
    for at in table.savepoints:
        table.restore(at)
        assert values(table) == commits.index(at) + 1
        table.delete_savepoint(at)
    if table.table_version == 5:
        table.upgrade()
    table.upsert(rows(9), options=COMMITS)
    table.upsert(rows(10), options=COMMITS)
    table.clean(options=VERSIONS)
    assert values(table) == 10
    assert [f for f in table.verify(deep=True) if f.severity == "error"] == []


@pytest.mark.sampled(24)
@pytest.mark.req("RC-06", "TS-19", "RC-08")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("act", ACTS)
def test_what_comes_between_two_deletions_keeps_its_files_or_is_refused(table, commits, between, act, policy):
    done = []

    def beside():
        try:
            ACTS[act][0](HudiTable.open(table.uri), commits)
            done.append("")
        except HudiError as e:
            done.append(e)

    planned = table.clean(options=POLICIES[policy], dry_run=True).plan.count
    assert planned == (4 if policy == "commits" else 6)
    at = len(act) % planned  # each place is met by some of the acts
    between(at, beside)
    try:
        table.clean(options=POLICIES[policy])
    except HudiError as e:  # what was done makes a plan that can go no further
        assert isinstance(e, UnsupportedError)  # noqa: PT017
    assert len(done) == 1
    assert not done[0] or isinstance(done[0], REFUSALS)
    check(table, commits, act, bool(done[0]))


@pytest.mark.sampled(18)
@pytest.mark.req("RC-06", "TS-19")
@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("act", ["restore 2", "restore 3", "rollback", "savepoint 3"])
def test_at_each_deletion(table, commits, between, act, step):
    refused = []

    def beside():
        try:
            ACTS[act][0](HudiTable.open(table.uri), commits)
        except REFUSALS as e:
            refused.append(e)

    between(step, beside)
    table.clean(options=VERSIONS)
    if step == 0:
        assert not refused  # nothing was deleted yet: the cleaning is withdrawn
        assert not table.timeline.of("clean")
    check(table, commits, act, refused)


@pytest.mark.sampled(18)
@pytest.mark.req("RC-06", "TS-19", "RC-01")
@pytest.mark.parametrize("step", [0, 1, 3, 5])
@pytest.mark.parametrize("by", ["us", "apache hudi"])
@pytest.mark.parametrize(
    "act", ["restore 1", "restore 3", "rollback", "savepoint 1", "savepoint 4", "upsert", "clean"]
)
def test_a_cleaning_that_died(table, commits, between, act, by, step):
    """Of a process of ours nobody goes on; what Apache Hudi began it may be at."""

    def crash():
        raise Crash

    between(step, crash)
    with pytest.raises(Crash):
        table.clean(options=VERSIONS)
    (pending,) = table.timeline.pending("clean")
    if by == "apache hudi" and step:
        path = f".hoodie/{pending.time}.clean.inflight"
        record = avro_files.parse("HoodieCleanerPlan", table.storage.read(path), path=path)
        assert record["extraMetadata"].pop(GUARDED)
        table.storage.publish(path, avro_files.render("HoodieCleanerPlan", record))
    refused = []
    try:
        ACTS[act][0](table, commits)
    except REFUSALS as e:
        refused.append(e)
    if by == "apache hudi" and step and act in ("restore 3", "rollback"):
        assert refused
        assert all(f"{pending.time}" in str(e) or isinstance(e, MissingFileError) for e in refused)
        assert table.timeline.pending("clean")
    check(table, commits, act, refused)


_CLEANING = """
import sys, time
from hudi_timeline import HudiTable
from hudi_format.storage import local
real, first = local.LocalStorage.delete, [True]
def slow(self, path):  # a store on which the first deletion takes a second
    if path.endswith(".parquet") and first:
        first.clear()
        open(sys.argv[2], "w").close()
        time.sleep(1.2)
    return real(self, path)
local.LocalStorage.delete = slow
HudiTable.open(sys.argv[1]).clean(options=eval(sys.argv[3]))
"""


@pytest.mark.req("RC-06", "TS-19")
@pytest.mark.parametrize("act", ["restore 3", "rollback", "savepoint 1"])
@pytest.mark.sampled(3)
def test_a_cleaning_of_another_process_on_a_slow_store(table, commits, tmp_path, act):
    begun = tmp_path / "begun"
    child = subprocess.Popen([sys.executable, "-c", _CLEANING, table.uri, str(begun), repr(VERSIONS)])
    until = time.monotonic() + 60
    while not Path(begun).exists() and child.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    refused = []
    try:
        ACTS[act][0](table, commits)
    except REFUSALS as e:
        refused.append(e)
    assert child.wait(60) == 0
    check(table, commits, act, refused)
