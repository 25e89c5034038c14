"""Early conflict detection: a writer meets the markers of another one before it writes a file."""

import json
import threading

import pytest
from rival_writers import Between, rows, state

from hudi_format.errors import ConflictingOptionError, UnsupportedError, WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.locks import select
from hudi_timeline.options import parse_write_options
from hudi_timeline.transaction import early_conflicts, retries
from hudi_timeline.transaction.transaction import Transaction, begin_transaction
from hudi_timeline.writing.workers import bucket_worker as workers
from hudi_timeline.writing.workers import file_writer

EARLY = "hoodie.write.concurrency.early.conflict."
OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
DIRECT = {**OCC, EARLY + "detection.enable": "true"}
STRATEGY = EARLY + "detection.strategy"
WITHIN = {
    **DIRECT,
    STRATEGY: "org.apache.hudi.table.marker.SimpleTransactionDirectMarkerBasedDetectionStrategy",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}

pytestmark = pytest.mark.req("CC-16")


@pytest.fixture
def path(shared_table, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.0)
    return shared_table


class Rival:
    """A writer that has announced a file of the partition x and has not committed yet."""

    def __init__(self, path, *, batched=False, file_id=None, kind="MERGE"):
        table = HudiTable.open(path)
        options = parse_write_options(OCC).transaction
        self.transaction = begin_transaction(table.storage, table.config, operation="UPSERT", options=options)
        self.transaction.inflight({})
        self.instant, self.storage = self.transaction.instant, table.storage
        there = table.inspect.files().to_pylist()
        self.file_id = file_id or next(f["file_id"] for f in there if f["partition"] == "x")
        name = f"{self.file_id}_0-1-1_{self.instant}.parquet"
        if batched:  # as Apache Hudi's timeline server keeps them
            root = f".hoodie/.temp/{self.instant}"
            self.storage.publish(f"{root}/MARKERS.type", b"TIMELINE_SERVER_BASED")
            lines = f"y/{self.file_id}_0-1-1_{self.instant}.parquet.marker.MERGE\nx/{name}.marker.{kind}\nx/{name}.mar"
            self.storage.publish(f"{root}/MARKERS3", lines.encode())
        else:
            markers.create(self.storage, self.instant, "x", name, kind)


def files(path):
    return set(HudiTable.open(path).inspect.files()["path"].to_pylist())


@pytest.mark.parametrize("batched", [False, True], ids=["direct markers", "markers of a timeline server"])
@pytest.mark.parametrize("options", [DIRECT, WITHIN], ids=["direct", "transaction"])
def test_the_later_of_two_ends_before_it_writes_a_file(path, monkeypatch, options, batched):
    rival = Rival(path, batched=batched)
    before = state(path)
    started = []
    start = file_writer.start_marked
    monkeypatch.setattr(file_writer, "start_marked", lambda *args: (started.append(args), start(*args))[1])
    with pytest.raises(WriteConflictError, match="nothing of it was written") as e:
        HudiTable.open(path).upsert(rows("ax", ts=9), options=options)
    assert started == []
    assert e.value.rival == rival.instant
    assert e.value.file_groups == (f"x/{rival.file_id}",)
    assert (e.value.details["early"], e.value.retry_safe) == (True, True)
    assert "process" in e.value.owner
    HudiTable.open(path).upsert(rows("by", ts=9), options=options)  # another file group
    rival.transaction.commit([], schema_text=_schema_text(path))
    assert {k: r for k, r in state(path)[0].items() if k[1] == "x"} == {
        k: r for k, r in before[0].items() if k[1] == "x"
    }
    assert HudiTable.open(path).verify(deep=True) == []


def _schema_text(path):
    table = HudiTable.open(path)
    return json.loads(table.storage.read(table.timeline.completed_writes()[-1].path))["extraMetadata"][
        "schema"
    ]


def test_without_the_option_it_writes_its_files_and_loses_or_wins_when_it_commits(path):
    Rival(path)
    HudiTable.open(path).upsert(rows("ax", ts=9), options=OCC)
    assert state(path)[0]["a", "x"]["ts"] == 9


@pytest.mark.parametrize("options", [DIRECT, WITHIN], ids=["direct", "transaction"])
def test_the_mark_of_a_writer_that_began_later(path, monkeypatch, options):
    """By the direct strategy the later one gives way, by the other the one that comes second."""
    late = []

    def rival(where):
        late.append(Rival(where))

    Between(monkeypatch, path, rival, "while it writes")
    if options is DIRECT:
        HudiTable.open(path).upsert(rows("ax", ts=9), options=options)
        assert state(path)[0]["a", "x"]["ts"] == 9
    else:
        with pytest.raises(WriteConflictError) as e:
            HudiTable.open(path).upsert(rows("ax", ts=9), options=options)
        assert e.value.rival == late[0].instant


@pytest.mark.parametrize(
    "end", ["its process died", "it was completed", "it is a compaction", "it was rolled back"]
)
def test_marks_that_count_no_more(path, monkeypatch, end):
    rival = Rival(path)
    if end == "its process died":
        rival.transaction._heartbeat.give_up()
    elif end == "it was completed":  # and was killed before it removed its markers
        rival.storage.create(f".hoodie/{rival.instant}.commit", rival.transaction.metadata_of(
            [], schema_text=_schema_text(path)).to_json())  # fmt: skip
    elif end == "it is a compaction":  # which keeps its heartbeat
        for name in ("inflight", "commit.requested"):
            rival.storage.delete(f".hoodie/{rival.instant}.{name}")
    else:
        rival.transaction.abort()
    HudiTable.open(path).upsert(rows("ax", ts=9), options=DIRECT)
    assert state(path)[0]["a", "x"]["ts"] == 9


def test_commits_since_its_begin_are_looked_at_where_that_is_asked_for(path, monkeypatch):
    asked = {**DIRECT, EARLY + "check.commit.conflict": "true"}
    for options, early in ((DIRECT, None), (asked, True)):
        Between(
            monkeypatch,
            path,
            lambda p: HudiTable.open(p).upsert(rows("ax", ts=5), options=OCC),
            "while it writes",
        )
        with pytest.raises(WriteConflictError) as e:
            HudiTable.open(path).upsert(rows("ax", ts=9), options=options)
        assert e.value.details.get("early") is early
    assert HudiTable.open(path).verify(deep=True) == []


def test_it_is_tried_again_and_goes_on_when_the_other_one_has_ended(path, monkeypatch):
    rival = Rival(path)
    ended = []

    def pause(_):
        if not ended:
            ended.append(rival.transaction.abort())

    monkeypatch.setattr(retries.time, "sleep", pause)
    result = HudiTable.open(path).upsert(
        rows("ax", ts=9), options={**DIRECT, "hoodie.write.num.retries.on.conflict.failures": "2"}
    )
    assert result.retries == 1
    assert state(path)[0]["a", "x"]["ts"] == 9


def test_two_first_file_groups_of_one_bucket_are_one(tmp_path):
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, rows("ax").schema, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    table.insert(rows("by"), options={**OCC, **BUCKETS})
    rival = Rival(path, file_id="00000000-1111-1111-1111-111111111111-0", kind="CREATE")
    with pytest.raises(WriteConflictError) as e:
        HudiTable.open(path).upsert(rows("ax"), options={**DIRECT, **BUCKETS})
    assert e.value.rival == rival.instant


@pytest.mark.parametrize("provider", [None, "InProcessLockProvider", "FileSystemBasedLockProvider"])
def test_of_two_that_check_at_once_one_goes_on_under_the_lock(path, monkeypatch, provider):
    """Both are at the point of marking the file; without a lock both would see nothing."""
    options = {**WITHIN, **({"hoodie.write.lock.provider": provider} if provider else {})}
    together = threading.Barrier(2)
    inflight = Transaction.inflight

    def both_inflight(transaction, profile):
        inflight(transaction, profile)
        together.wait(60)

    monkeypatch.setattr(Transaction, "inflight", both_inflight)
    outcomes, ends = [], threading.Barrier(2)
    write = workers.confirm_marked

    def after_both(*args):
        ends.wait(60)
        return write(*args)

    def upsert(ts):
        try:
            HudiTable.open(path).upsert(rows("ax", ts=ts), options=options)
            outcomes.append("won")
        except WriteConflictError as e:
            outcomes.append("early" if e.details.get("early") else "late")
            ends.wait(60)

    monkeypatch.setattr(workers, "confirm_marked", after_both)
    threads = [threading.Thread(target=upsert, args=(ts,)) for ts in (8, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(outcomes) == ["early", "won"]


def test_with_zookeeper_a_file_group_has_a_lock_of_its_own_where_apache_hudi_has_it(path, monkeypatch):
    given = {
        **WITHIN,
        "hoodie.write.lock.provider": "ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": "nowhere",
        "hoodie.write.lock.zookeeper.base_path": "/locks",
        "hoodie.write.lock.zookeeper.lock_key": "t",
    }
    table = HudiTable.open(path)
    options = parse_write_options(given).transaction
    plain = begin_transaction(
        table.storage, table.config, operation="UPSERT", options=parse_write_options(OCC).transaction
    )
    early = early_conflicts.of(plain, options, by_bucket=False)
    made = early._lock(table.storage, "x", "abc-0")
    assert "/locks/x/abc-0" in made.lock.name
    assert select.lock_of(table.storage, options).lock.name != made.lock.name
    plain.abort()


REFUSED = [
    ({EARLY + "detection.enable": "true"}, ConflictingOptionError, "OPTIMISTIC_CONCURRENCY_CONTROL"),
    ({**DIRECT, "hudi.write.conflict.detection": "keys"}, ConflictingOptionError, "leave out one"),
    ({**DIRECT, STRATEGY: "org.example.Mine"}, UnsupportedError, "SimpleDirectMarker"),
]


@pytest.mark.parametrize(("options", "error", "remedy"), REFUSED)
def test_what_does_not_go_with_it_is_refused(options, error, remedy):
    with pytest.raises(error) as e:
        parse_write_options(options)
    assert remedy in e.value.remedy


def test_the_strategy_of_timeline_servers_is_taken_for_the_direct_one(path):
    name = "AsyncTimelineServerBasedDetectionStrategy"
    for text in (name, "org.apache.hudi.timeline.service.handlers.marker." + name):
        rival = Rival(path)
        with pytest.raises(WriteConflictError):
            HudiTable.open(path).upsert(rows("ax", ts=9), options={**DIRECT, STRATEGY: text})
        rival.transaction.abort()


def test_a_file_group_that_is_marked_is_its_writers_until_that_has_ended(path, monkeypatch):
    """As a lock of the file group, which is waited for with retries: nobody else begins a file of it meanwhile."""
    rival, before, tries, sleep = Rival(path), files(path), [], retries.time.sleep

    def pause(seconds):
        if seconds:  # those between tries are 0.0: a commit waits for the next tick of the clock
            return sleep(seconds)
        tries.append(files(path) == before)
        if len(tries) == 2:
            rival.transaction.commit([], schema_text=_schema_text(path))

    monkeypatch.setattr(retries.time, "sleep", pause)
    options = {**WITHIN, "hoodie.write.num.retries.on.conflict.failures": "9"}
    result = HudiTable.open(path).upsert(rows("ax", ts=9), options=options)
    assert (tries, result.retries) == ([True, True], 2)
    assert rival.instant < result.instant
    assert HudiTable.open(path).verify(deep=True) == []
