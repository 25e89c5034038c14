"""Lock servers that go away, and wires to them that are cut or hang: while a lock is asked for, held, and given back.

Whoever cannot know that it still has the lock does not publish; nobody waits for ever; the next writer goes on.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cut_wire import CutWire
from hudi_format.errors import HudiError, LockError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks import dynamodb, hive_metastore
from hudi_timeline.concurrency.locks.provider import InProcessLock, Lock, TableLock
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.options.transaction_options import DYNAMODB, HIVE_METASTORE, ZOOKEEPER
from hudi_timeline.transaction import late_publication
from hudi_timeline.transaction.transaction import Transaction
from lock_servers import LockServer
from s3_server import KEY, REGION, SECRET, S3Server

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = "hoodie.write.lock."
LONGEST_S = 150  # of a call that is to end by itself
PATIENT = {LOCK + "num_retries": "15", LOCK + "wait_time_ms": "30000"}
"""Of who goes on afterwards: what is lost has to run out, and a server that was started again to answer."""
SOON = {LOCK + "num_retries": "1", LOCK + "wait_time_ms": "3000", LOCK + "wait_time_ms_between_retry": "50"}


@dataclass
class Wired:
    """A lock provider whose server is behind a wire.

    Attributes:
        says: what an error names.
        port: of the server itself.
        server: None for one that other tests use too.
        keeps: whether the server has its locks still after it was started again.
    """

    wire: CutWire
    options: dict[str, str]
    says: str
    port: int
    server: LockServer | None = None
    keeps: bool = False
    faults: dict[str, Callable[[], object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.faults = {
            "cut": self.wire.cut,
            "reset": lambda: self.wire.cut(reset=True),
            "stall": self.wire.stall,
        }
        server = self.server
        if server is not None:
            self.faults |= {
                "freeze": server.freeze,
                "kill": server.kill,
                "empty": lambda: (server.kill(), server.start(empty=True)),
                "restart": lambda: (server.kill(), server.start()),
            }

    def mend(self, fault: str) -> None:
        self.wire.mend()
        if fault == "freeze":
            self.server.thaw()
        if fault == "kill":
            self.server.start()


def options_of(kind: str, port: int) -> dict[str, str]:
    name = uuid.uuid4().hex
    if kind == "zookeeper":
        own = {"provider": ZOOKEEPER, "zookeeper.url": "127.0.0.1", "zookeeper.port": str(port),
               "zookeeper.base_path": "/locks", "zookeeper.lock_key": name,
               "zookeeper.session_timeout_ms": "1500", "zookeeper.connection_timeout_ms": "5000"}  # fmt: skip
    elif kind.startswith("dynamodb"):
        own = {"provider": DYNAMODB, "dynamodb.table": "hudi_locks", "dynamodb.partition_key": name,
               "dynamodb.region": REGION, "dynamodb.endpoint_url": f"http://127.0.0.1:{port}"}  # fmt: skip
    else:
        own = {"provider": HIVE_METASTORE, "hivemetastore.uris": f"thrift://127.0.0.1:{port}",
               "hivemetastore.database": "default", "hivemetastore.table": f"t_{name}",
               "heartbeat_interval_ms": "1000"}  # fmt: skip
    keys = {"hoodie.aws.access.key": KEY, "hoodie.aws.secret.key": SECRET}
    return {**SOON, **{LOCK + k: v for k, v in own.items()}, **(keys if kind.startswith("dynamodb") else {})}


SAYS = {"zookeeper": "ZooKeeper", "dynamodb": "DynamoDB", "metastore": "Hive metastore"}


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], LockServer]]:
    started: dict[str, LockServer] = {}

    def of(kind: str) -> LockServer:
        if kind not in started:
            started[kind] = LockServer(kind)
        return started[kind]

    yield of
    for server in started.values():
        server.stop()


@pytest.fixture
def wired(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wired]:
    kind = request.param
    monkeypatch.setattr(hive_metastore, "_TIMEOUT_S", 2)
    monkeypatch.setattr(dynamodb, "_MOST_TIMEOUT_S", 2.0)
    dynamodb._client.cache_clear()
    server = None if kind == "dynamodb" else request.getfixturevalue("servers")(kind.replace("-local", ""))
    port = request.getfixturevalue("s3_server").port if server is None else server.port
    wire = CutWire(port)
    says = SAYS[kind.partition("-")[0]]
    yield Wired(
        wire,
        options_of(kind, wire.port),
        says,
        port,
        server,
        keeps=kind in ("zookeeper", "metastore-on-disk"),
    )
    wire.close()
    dynamodb._client.cache_clear()


def table_lock(path: Path, options: dict[str, str]) -> TableLock:
    return lock_of(open_storage(str(path)), parse_transaction_options(options))


def ends(act: Callable[[], Any]) -> Any:
    """What a call gives or raises, which is to end by itself."""
    got: list[Any] = []

    def run() -> None:
        try:
            got.append(act())
        except BaseException as e:  # noqa: BLE001 - it is looked at by who asked
            got.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LONGEST_S)
    assert not thread.is_alive(), "it waits and waits"
    return got[0]


def made(path: Path, options: dict[str, str]) -> HudiTable:
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"])
    table.insert(pa.table({"id": ["a"], "v": [1]}, SCHEMA), options=options)
    return table


def check_error(error: Any, wired: Wired) -> None:
    assert isinstance(error, LockError), repr(error)
    assert wired.says in str(error)
    assert error.remedy
    assert "\n" not in str(error)


def check_goes_on(table: HudiTable, options: dict[str, str], *, rows: int) -> None:
    """The next writer writes, and all is well with the table."""
    fresh = HudiTable.open(table.uri)
    result = ends(
        lambda: fresh.upsert(pa.table({"id": ["next"], "v": [9]}, SCHEMA), options={**options, **PATIENT})
    )
    assert not isinstance(result, BaseException), repr(result)
    assert not fresh.timeline.pending_writes()
    assert fresh.read(["id"]).to_arrow().num_rows == rows + 1
    assert fresh.verify(deep=True) == []


SLOW = pytest.mark.slow
FAULTS = ("cut", "reset", "stall", "freeze", "kill", "empty", "restart")


def cases(cheap: set[tuple[str, str]], faults: tuple[str, ...] = FAULTS) -> list[Any]:
    """Every server with every fault that it can have; those of CI, and the others slow."""
    wires = ("cut", "reset", "stall")
    all_ = [(k, f) for k in ("zookeeper", "dynamodb-local", "metastore", "metastore-on-disk") for f in faults]
    all_ += [("dynamodb", f) for f in faults if f in wires]
    return [pytest.param(k, f, marks=() if (k, f) in cheap else SLOW, id=f"{k}-{f}") for k, f in all_]


@pytest.mark.req("CC-10", "CC-26")
@pytest.mark.parametrize(
    ("wired", "fault"), cases({("zookeeper", "stall"), ("dynamodb", "cut")}), indirect=["wired"]
)
@pytest.mark.sampled(2)
def test_who_cannot_know_that_it_has_the_lock_does_not_publish(tmp_path, wired, fault, monkeypatch):
    """The server, or the wire to it, goes away between the checks of a commit and its last look at the lock."""
    table = made(tmp_path / "t", wired.options)
    tidy = Transaction._delete_other_attempts
    struck = []

    def before_the_last_look(transaction, metadata):
        tidy(transaction, metadata)
        if not struck:
            struck.append(fault)
            wired.faults[fault]()

    monkeypatch.setattr(Transaction, "_delete_other_attempts", before_the_last_look)
    got = ends(lambda: table.upsert(pa.table({"id": ["a", "b"], "v": [2, 2]}, SCHEMA), options=wired.options))
    rows = table.read(["id", "v"]).to_arrow().to_pylist()
    wired.mend(fault)
    assert struck
    if isinstance(got, BaseException):
        check_error(got, wired)
        assert rows == [{"id": "a", "v": 1}]
    else:  # a server that comes back with its state soon enough knows its holder
        assert fault == "restart"
        assert len(rows) == 2
    check_goes_on(table, wired.options, rows=len(rows))


@pytest.mark.req("CC-10")
@pytest.mark.parametrize(
    ("wired", "fault"),
    cases({("dynamodb", "stall")}, ("cut", "reset", "stall", "freeze", "kill")),
    indirect=["wired"],
)
def test_a_lock_that_cannot_be_asked_for_is_an_error(tmp_path, wired, fault):
    table = made(tmp_path / "t", wired.options)
    wired.faults[fault]()
    got = ends(lambda: table.upsert(pa.table({"id": ["b"], "v": [2]}, SCHEMA), options=wired.options))
    wired.mend(fault)
    check_error(got, wired)
    check_goes_on(table, wired.options, rows=1)


@pytest.mark.req("CC-10")
@pytest.mark.parametrize(
    ("wired", "fault"),
    cases({("zookeeper", "cut"), ("dynamodb", "reset")}, ("cut", "reset", "stall", "freeze", "kill")),
    indirect=["wired"],
)
@pytest.mark.sampled(2)
def test_a_commit_stands_whose_lock_cannot_be_given_back(tmp_path, wired, fault, monkeypatch):
    table = made(tmp_path / "t", wired.options)
    look = late_publication.check
    struck = []

    def first_the_fault(*arguments):
        if not struck:
            struck.append(fault)
            wired.faults[fault]()
        return look(*arguments)

    monkeypatch.setattr(late_publication, "check", first_the_fault)
    got = ends(lambda: table.upsert(pa.table({"id": ["b"], "v": [2]}, SCHEMA), options=wired.options))
    wired.mend(fault)
    assert not isinstance(got, BaseException), repr(got)
    assert struck
    assert [w for w in got.warnings if "lock" in w]
    check_goes_on(table, wired.options, rows=2)


@pytest.mark.req("CC-10")
@pytest.mark.parametrize(
    ("wired", "fault"),
    cases({("zookeeper", "empty")}, ("empty", "restart", "stall", "cut")),
    indirect=["wired"],
)
def test_two_holders_of_which_one_has_lost_its_server(tmp_path, wired, fault):
    """While one cannot be heard of another takes the lock; the first one neither passes for a holder nor ends it."""
    options = {**wired.options, LOCK + "wait_time_ms": "20000"}
    if fault == "restart" and wired.says == "ZooKeeper":  # it comes back before its holder's session is over
        options |= {LOCK + "zookeeper.session_timeout_ms": "10000", LOCK + "num_retries": "15"}
    first = table_lock(tmp_path, options)
    # Not over the wire.
    direct = {k: v.replace(str(wired.wire.port), str(wired.port)) for k, v in {**options, **PATIENT}.items()}
    held = first.lock
    assert held.try_acquire()
    wired.faults[fault]()
    second = table_lock(tmp_path, direct)
    second.lock._threads = InProcessLock("of another process")

    def take() -> str:
        with second.held():
            second.verify()
            with pytest.raises(LockError):
                held.verify()
            wired.mend(fault)
            with pytest.raises(LockError):
                held.verify()
            held.release()
            second.verify()
        return "taken"

    if fault == "restart" and wired.keeps:
        held.verify()
        held.release()
        return
    got = ends(take)
    assert got == "taken", repr(got)
    third = table_lock(tmp_path, direct)
    with third.held():
        third.verify()


@pytest.mark.req("CC-10")
@pytest.mark.parametrize("wired", ["zookeeper"], indirect=True)
def test_no_further_tries_are_not_endless_tries(tmp_path, wired):
    options = {**wired.options, LOCK + "num_retries": "0"}
    lock: Lock = table_lock(tmp_path, options).lock
    assert lock.try_acquire()
    wired.wire.cut()
    got = ends(lock.verify)
    check_error(got, wired)
    ends(lock.release)


LOCKING, COMMITTING = rb"PUT \S+/\.locks/", rb"PUT \S+\.commit HTTP"


@pytest.fixture
def behind_a_wire(s3_server: S3Server) -> Iterator[tuple[CutWire, HudiTable, dict[str, Any]]]:
    """A wire to a store, a table there, and storage options over the wire."""
    wire = CutWire(s3_server.port)
    table = HudiTable.create(
        f"s3://{s3_server.new_bucket()}/t", SCHEMA, name="t", record_keys=["id"],
        storage_options=s3_server.storage_options,
    )  # fmt: skip
    table.insert(pa.table({"id": ["a"], "v": [1]}, SCHEMA))
    address = {"endpoint_url": f"http://127.0.0.1:{wire.port}", "region_name": REGION}
    yield wire, table, {**s3_server.storage_options, "client_kwargs": address}
    wire.close()


@pytest.mark.parametrize("request_", [LOCKING, COMMITTING], ids=["lock", "commit"])
@pytest.mark.sampled(2)
def test_an_answer_of_a_store_that_is_lost_is_asked_for_again(behind_a_wire, request_):
    """The write on condition was done, and the client that repeats it is refused by its own file."""
    wire, table, options = behind_a_wire
    wire.lose_answer(request_)
    HudiTable.open(table.uri, storage_options=options).upsert(pa.table({"id": ["b"], "v": [2]}, SCHEMA))
    assert wire.lost == 1
    assert set(table.read(["id"]).to_arrow()["id"].to_pylist()) == {"a", "b"}
    assert table.verify(deep=True) == []


def test_an_error_does_not_say_that_nothing_is_visible_where_that_cannot_be_known(behind_a_wire):
    """The commit is done, its answer lost, and the store is out of reach from then on."""
    wire, table, options = behind_a_wire
    once = {**options, "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2}}
    cut_off = HudiTable.open(table.uri, storage_options=once)
    wire.lose_answer(COMMITTING, wire.cut)
    with pytest.raises(HudiError) as e:
        cut_off.upsert(pa.table({"id": ["c"], "v": [3]}, SCHEMA))
    assert wire.lost == 1
    notes = " ".join(e.value.__notes__)
    assert "may be completed" in notes
    assert "nothing of it is visible" not in notes
    wire.mend()
    assert set(table.read(["id"]).to_arrow()["id"].to_pylist()) == {"a", "c"}
    table.upsert(pa.table({"id": ["d"], "v": [4]}, SCHEMA))
    assert set(table.read(["id"]).to_arrow()["id"].to_pylist()) == {"a", "c", "d"}
    assert table.verify(deep=True) == []
