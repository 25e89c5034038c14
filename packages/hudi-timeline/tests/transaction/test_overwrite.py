"""mode "overwrite" beside writers, readers and crashes: the old table or the new one, and nothing of both."""

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, HudiError, LockError, WriteConflictError
from hudi_format.schema.input_rows import as_reader
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.testing import CHANGES, CRASH, DELAY, FAIL, Fault, Faults
from hudi_timeline.transaction import overwrite, transaction
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.write.lock.wait_time_ms": "0",
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Readers that find no table wait for less time."""
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.001)


TOLD = (ConcurrentWriterError, LockError, WriteConflictError)
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}


def rows(v, n=4):
    return [{"id": f"k{i}", "p": f"p{i % 2}", "v": v, "ts": v} for i in range(n)]


def write(storage, data, mode="append", **more):
    given = {**OPTIONS, "hoodie.datasource.write.operation": "upsert", **more}
    return execute(LocalEngine(1), storage, as_reader(data), given, mode=mode)


def content(path):
    found = HudiTable.open(path).read(columns=["id", "v"]).to_arrow().to_pylist()
    return sorted((r["id"], r["v"]) for r in found)


def pairs(v, n=4):
    return [(f"k{i}", v) for i in range(n)]


OLD, NEW, EXTRA = pairs(0), pairs(1, 3), [("z", 9)]


def sound(path):
    findings = [f for f in HudiTable.open(path).verify(deep=True) if f.severity.name != "INFO"]
    assert not findings
    assert not (path / overwrite.ROOM).exists()
    assert {p.name for p in path.iterdir()} <= {".hoodie", "p0", "p1"}


def overwritten_with(path, faults, **more):
    """Overwrite a fresh table under faults; the error, None where it went well."""
    write(open_storage(path), rows(0))
    try:
        with faults.process():
            write(faults.wrap(open_storage(path)), rows(1, 3), "overwrite", **more)
    except HudiError as e:
        return e
    return None


def steps(tmp_path, calls, **more):
    """Numbers of the calls of an overwriting, or of its changes."""
    counted = Faults()
    assert overwritten_with(tmp_path / "counted", counted, **more) is None
    return [c.number for c in counted.log if not calls or c.operation in calls]


@pytest.mark.req("RC-01")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.sampled(2)
def test_a_crash_at_any_change_leaves_the_old_table_or_the_new_one(tmp_path, after):
    seen = set()
    changes = steps(tmp_path, CHANGES)
    for n in (*changes[:-24:6], *changes[-24::2]):  # the last of them are the switch
        path = tmp_path / f"t{n}"
        overwritten_with(path, Faults(Fault(CRASH, number=n, after=after)))
        try:
            found = content(path)
            assert found in (OLD, NEW), n
        except HudiError:
            found = None  # the next write brings the table
        write(open_storage(path), [{"id": "z", "p": "p0", "v": 9, "ts": 9}])
        now = content(path)
        assert now in (OLD + EXTRA, NEW + EXTRA), n
        assert found is None or now == found + EXTRA, n
        sound(path)
        seen.add((found is None, now == NEW + EXTRA))
    assert seen == {(False, False), (True, True), (False, True)}


@pytest.mark.req("RC-01")
def test_a_store_that_fails_in_the_switch_leaves_the_old_table_or_the_new_one(tmp_path):
    faults = [Fault(FAIL, number=n) for n in steps(tmp_path, CHANGES)[-24::3]]
    faults.append(Fault(FAIL, operation="rename", path=".hoodie/hoodie.properties"))  # all else is in place
    for n, fault in enumerate(faults):
        path = tmp_path / f"t{n}"
        assert overwritten_with(path, Faults(fault)) is not None or content(path) == NEW
        write(open_storage(path), [{"id": "z", "p": "p0", "v": 9, "ts": 9}])
        assert content(path) in (OLD + EXTRA, NEW + EXTRA), n
        sound(path)


@pytest.mark.req("RC-01")
def test_an_overwriting_after_a_crash_of_another_replaces_the_table(tmp_path):
    for n in steps(tmp_path, CHANGES)[::5]:
        path = tmp_path / f"t{n}"
        overwritten_with(path, Faults(Fault(CRASH, number=n)))
        write(open_storage(path), rows(2, 2), "overwrite")
        assert content(path) == pairs(2, 2), n
        assert len(HudiTable.open(path).timeline.completed_writes()) == 1
        sound(path)


def beside(tmp_path, n, rival, **more):
    """Overwrite a table, and let a rival act at the call with that number; what both raised."""
    path, raised = tmp_path / f"t{n}", []

    def act(seconds):
        try:
            rival(path)
        except HudiError as e:
            raised.append(e)

    ours = overwritten_with(path, Faults(Fault(DELAY, number=n), sleep=act), **more)
    return path, ours, raised[0] if raised else None


@pytest.mark.req("CC-40")
@pytest.mark.parametrize("policy", [{}, LAZY], ids=["eager", "lazy"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.sampled(3)
def test_a_rival_at_any_call_wins_or_is_told(tmp_path, mode, policy):
    data = [{"id": "z", "p": "p0", "v": 9, "ts": 9}]
    outcomes = set()
    for n in steps(tmp_path, None, **policy)[:: 9 if mode == "append" else 14]:
        path, ours, theirs = beside(
            tmp_path, n, lambda path: write(open_storage(path), data, mode, **policy), **policy
        )
        assert ours is None or isinstance(ours, TOLD), (n, ours)
        assert theirs is None or isinstance(theirs, TOLD), (n, theirs)
        assert ours is None or theirs is None, n
        alone = EXTRA if mode == "overwrite" else OLD + EXTRA
        allowed = [NEW] if theirs is not None else [alone] if ours is not None else [NEW, NEW + EXTRA, alone]
        assert content(path) in allowed, (n, ours, theirs)
        sound(path)
        outcomes.add(theirs is None)
    assert outcomes == {True, False}


@pytest.mark.req("CC-01")
def test_a_reader_at_any_call_sees_the_old_table_or_the_new_one(tmp_path):
    found = {}
    every = steps(tmp_path, None)
    for n in dict.fromkeys([*every[::8], *every[-8::2]]):  # the new one is there at the end only

        def look(path, n=n):
            try:
                found[n] = content(path)
            except HudiError as e:
                found[n] = e

        _, ours, _ = beside(tmp_path, n, look)
        assert ours is None
        assert isinstance(found[n], HudiError) or found[n] in (OLD, NEW), n
    assert OLD in found.values()
    assert NEW in found.values()


@pytest.mark.req("CC-01")
def test_a_read_under_way_gives_rows_of_one_table_or_an_error(tmp_path):
    counted = Faults()
    path = tmp_path / "counted"
    write(open_storage(path), rows(0))
    HudiTable._of(counted.wrap(open_storage(path))).read(columns=["id", "v"]).to_arrow()
    for n in range(1, counted.calls + 1):
        path = tmp_path / f"r{n}"
        write(open_storage(path), rows(0))
        faults = Faults(
            Fault(DELAY, number=n),
            sleep=lambda s, path=path: write(open_storage(path), rows(1, 3), "overwrite"),
        )
        try:
            got = HudiTable._of(faults.wrap(open_storage(path))).read(columns=["id", "v"]).to_arrow()
        except HudiError:
            continue
        found = sorted((r["id"], r["v"]) for r in got.to_pylist())
        assert found in (OLD, NEW), n


@pytest.mark.req("CC-40")
def test_a_writer_of_the_old_table_does_not_publish_into_the_new_one(tmp_path):
    path = tmp_path / "t"
    write(open_storage(path), rows(0))
    table = HudiTable.open(path)
    options = parse_transaction_options(LAZY)
    with transaction.begin_transaction(
        table.storage, table.config, operation="UPSERT", options=options
    ) as late:
        late.inflight(None)
        write(open_storage(path), rows(1, 3), "overwrite", **LAZY)
        with pytest.raises((ConcurrentWriterError, LockError)):
            late.commit([], schema_text="")
    assert content(path) == NEW
    assert len(HudiTable.open(path).timeline.instants) == 1
    sound(path)


@pytest.mark.req("CC-25")
def test_beside_a_live_writer_an_overwriting_is_refused_and_the_writer_goes_on(tmp_path):
    path = tmp_path / "t"
    write(open_storage(path), rows(0))
    table = HudiTable.open(path)
    with transaction.begin_transaction(table.storage, table.config, operation="UPSERT") as writer:
        writer.inflight(None)
        with pytest.raises(ConcurrentWriterError):
            write(open_storage(path), rows(1, 3), "overwrite")
        assert not (path / overwrite.ROOM).exists()
        writer.commit([], schema_text=HudiTable.open(path).config.create_schema or '"null"')
    assert writer.committed


@pytest.mark.req("RC-01")
def test_a_first_table_without_commits_survives_an_overwriting_that_fails(tmp_path):
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
    path = tmp_path / "t"
    HudiTable.create(path, schema, name="t", record_keys=["id"])
    faults = Faults(Fault(FAIL, operation="create", path="*.commit"))
    with pytest.raises(HudiError):
        write(faults.wrap(open_storage(path)), rows(1), "overwrite")
    assert HudiTable.open(path).read().to_arrow().num_rows == 0
    assert not (path / overwrite.ROOM).exists()
