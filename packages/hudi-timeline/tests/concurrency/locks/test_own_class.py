"""What a lock of the user's own has to be, and what becomes of its errors."""

import sys
from importlib import import_module

import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, InvalidOptionError, LockError
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency.locks.holding import ShownLock
from hudi_timeline.concurrency.locks.provider import QueuedLock
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.transaction.transaction import begin_transaction

PROVIDER = "hoodie.write.lock.provider"
OWN = """
import threading

_free = threading.Lock()
calls = []


class Own:
    def __init__(self, uri, options):
        self.name = f"own lock of {uri}"
        calls.append(dict(options))

    def try_acquire(self):
        return _free.acquire(blocking=False)

    def verify(self):
        calls.append("verify")

    def release(self):
        if _free.locked():
            _free.release()

    def holder(self):
        return ""


class NotGivenBack(Own):
    fails = True

    def release(self):
        super().release()
        if self.fails:
            raise ConnectionError("the server has gone")


class Failing(Own):
    # Fails in one of its methods, with an error of its server.

    fails = ""
    error = ConnectionError("no route to the lock server")
    asked = 0

    def _ask(self, method):
        type(self).asked += 1
        if self.fails == method:
            raise self.error

    def __init__(self, uri, options):
        super().__init__(uri, options)
        self._ask("its constructor")

    def try_acquire(self):
        self._ask("try_acquire")
        return super().try_acquire()

    def verify(self):
        self._ask("verify")

    def release(self):
        super().release()
        self._ask("release")

    def holder(self):
        self._ask("holder")
        return "me"


class Waiting(Failing):
    def try_acquire(self):
        return False

    def wait_for_turn(self, seconds):
        self._ask("wait_for_turn")


class Shown(Failing):
    def holding(self):
        self._ask("holding")

    def end_holding(self, token):
        self._ask("end_holding")
        return True


class NoLock:
    def __init__(self, uri, options):
        pass
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "own_locks_of_this_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(folder))
    yield "own_locks_of_this_test"
    sys.modules.pop("own_locks_of_this_test", None)


@pytest.mark.req("CC-09")
def test_a_lock_of_the_users_own_is_that_of_a_write(storage, own):
    options = {PROVIDER: f"{own}:Own", "hoodie.write.lock.zookeeper.url": "for:it"}
    config = parse_transaction_options(options)
    with begin_transaction(storage, table_config.load(storage), operation="UPSERT", options=config) as write:
        write.inflight(None)
        write.commit([], schema_text="")
    calls = import_module(own).calls
    assert calls[0]["hoodie.write.lock.zookeeper.url"] == "for:it"
    assert "verify" in calls
    with pytest.raises(InvalidOptionError, match="try_acquire"):
        lock_of(storage, parse_transaction_options({PROVIDER: f"{own}:NoLock"}))
    with pytest.raises(InvalidOptionError, match="Nothing"):
        lock_of(storage, parse_transaction_options({PROVIDER: f"{own}:Nothing"}))


def test_a_write_is_not_taken_for_failed_where_a_lock_of_the_users_own_cannot_be_given_back(tmp_path, own):
    rows = pa.table({"k": ["a"], "n": [1]})
    lock = {PROVIDER: f"{own}:NotGivenBack"}
    table = HudiTable.create(tmp_path / "t", rows.schema, name="t", record_keys="k")
    for _ in range(2):
        assert table.insert(rows, options=lock).instant
    import_module(own).NotGivenBack.fails = False
    assert table.insert(rows, options=lock).instant
    assert table.count() == 3


ROWS = pa.table({"k": ["a"], "n": [1]})


@pytest.fixture
def failing(own, monkeypatch):
    """Has the locks of the module fail in a method."""

    def fails(method, error=None):
        module = import_module(own)
        monkeypatch.setattr(module.Failing, "fails", method)
        if error is not None:
            monkeypatch.setattr(module.Failing, "error", error)
        return module

    return fails


@pytest.mark.parametrize(
    ("method", "name", "act"),
    [
        ("its constructor", "Failing", lambda t, o: t.insert(ROWS, options=o)),
        ("try_acquire", "Failing", lambda t, o: t.insert(ROWS, options=o)),
        ("try_acquire", "Failing", lambda t, o: t.clean(options=o)),
        ("verify", "Failing", lambda t, o: t.insert(ROWS, options=o)),
        ("wait_for_turn", "Waiting", lambda t, o: t.insert(ROWS, options=o)),
        ("holding", "Shown", lambda t, o: t.lock_report(options=o)),
    ],
)
@pytest.mark.parametrize(
    "error", [ConnectionError("no route"), RuntimeError("no route"), KeyError("no route")]
)
def test_an_error_of_a_lock_of_the_users_own_is_a_lock_error_that_names_it(
    tmp_path, own, failing, method, name, act, error
):
    table = HudiTable.create(tmp_path / "t", ROWS.schema, name="t", record_keys="k")
    failing(method, error)
    provider = f"{own}:{name}"
    with pytest.raises(LockError, match="no route") as e:
        act(table, {PROVIDER: provider})
    assert f"{provider} failed in {method}: {type(error).__name__}" in e.value.message
    assert e.value.table == table.uri
    assert e.value.details["option"] == PROVIDER
    assert e.value.__cause__ is error
    failing("")
    assert table.insert(ROWS, options={PROVIDER: f"{own}:Failing"}).instant
    assert table.count() == 1


@pytest.mark.parametrize("error", [LockError("it is the second one"), InvalidOptionError("no address")])
def test_an_error_of_this_project_stays_what_it_is(tmp_path, own, failing, error):
    table = HudiTable.create(tmp_path / "t", ROWS.schema, name="t", record_keys="k")
    for method in ("its constructor", "try_acquire", "verify"):
        failing(method, error)
        with pytest.raises(HudiError) as e:
            table.insert(ROWS, options={PROVIDER: f"{own}:Failing"})
        assert e.value is error


def test_who_does_not_tell_the_holder_is_not_free_all_the_same(tmp_path, own, failing):
    table = HudiTable.create(tmp_path / "t", ROWS.schema, name="t", record_keys="k")
    failing("holder")
    with pytest.raises(LockError, match=r"was not free within 1 ms.*no route to the lock server"):
        table.insert(ROWS, options={PROVIDER: f"{own}:Waiting", "hoodie.write.lock.wait_time_ms": "1"})


def test_a_lock_of_the_users_own_is_queued_and_shown_where_its_class_is(storage, own, failing):
    failing("")
    kinds = {"Own": (False, False), "Waiting": (True, False), "Shown": (False, True)}
    for name, (queued, shown) in kinds.items():
        lock = lock_of(storage, parse_transaction_options({PROVIDER: f"{own}:{name}"})).lock
        assert (isinstance(lock, QueuedLock), isinstance(lock, ShownLock)) == (queued, shown)
        if shown:
            assert lock.holding() is None
            assert lock.end_holding("token") is True
