"""Non-blocking concurrency control: writers of one file slice all succeed, in whatever order they commit."""

import itertools
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from rival_writers import Between

from hudi_format.errors import ConflictingOptionError, UnsupportedError, WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.options import parse_write_options
from hudi_timeline.services.compaction import compaction
from hudi_timeline.transaction import retries
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

PAYLOAD = "hoodie.datasource.write.payload.class"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
TABLE = {**BUCKETS, PAYLOAD: "DefaultHoodieRecordPayload", "hoodie.compact.inline": "false"}
MODE = "hoodie.write.concurrency.mode"
FREE = {MODE: "NON_BLOCKING_CONCURRENCY_CONTROL", **TABLE}
OCC = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL", **TABLE}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
DURING = "while it writes"

pytestmark = pytest.mark.req("CC-31")


def rows(ids, ts, v=0, p="x"):
    return pa.table(
        {"id": list(ids), "p": [p] * len(ids), "ts": [ts] * len(ids), "v": [v] * len(ids)}, SCHEMA
    )


def create(path, **options):
    return HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ", options={**TABLE, **options},
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "t"
    create(str(path)).upsert(rows("abcdef", ts=1), options=TABLE)
    return path


@pytest.fixture
def path(made, tmp_path, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.0)
    shutil.copytree(made, tmp_path / "t")
    return str(tmp_path / "t")


def content(path):
    table = HudiTable.open(path)
    assert table.verify(deep=True) == []
    found = table.read(meta_columns=False).to_arrow().to_pylist()
    assert len({r["id"] for r in found}) == len(found)
    return {r["id"]: (r["ts"], r["v"]) for r in found}


@pytest.mark.parametrize("operation", ["upsert", "insert"])
@pytest.mark.parametrize(("ours", "theirs"), [(9, 5), (5, 9)])
@pytest.mark.sampled(3)
def test_two_that_append_to_one_slice_both_succeed_and_the_greater_ordering_value_wins(
    path, monkeypatch, operation, ours, theirs
):
    between = Between(
        monkeypatch,
        path,
        lambda p: HudiTable.open(p).upsert(rows("abn", theirs, v=theirs), options=FREE),
        DURING,
    )
    result = getattr(HudiTable.open(path), operation)(rows("abm", ours, v=ours), options=FREE)
    assert (between.refused, result.retries) == (None, 0)
    there = content(path)
    assert there["a"] == there["b"] == (9, 9)
    assert (there["n"], there["m"], there["c"]) == ((theirs, theirs), (ours, ours), (1, 0))
    newest = [i.time for i in HudiTable.open(path).timeline.completed_writes()][-2:]
    assert result.instant == newest[0], "the one that began first was completed last"
    HudiTable.open(path).compact()
    assert content(path) == there


@pytest.mark.req("CC-43")
def test_conflicting_writes_stay_on_the_timeline_by_their_ends_and_the_payload_decides(path, monkeypatch):
    """None is aborted: a follower gets each when it has ended, and has what the table has by the ordering field."""
    start = HudiTable.open(path).read_incremental("000", order="completion").checkpoint
    pulled, checkpoints = [], [start]

    def pull():
        scan = HudiTable.open(path).read_incremental(checkpoints[-1], order="completion")
        pulled.append({r["id"]: r["ts"] for r in scan.to_arrow().to_pylist()})
        checkpoints.append(scan.checkpoint)

    def rival(where):
        HudiTable.open(where).upsert(rows("an", 9), options=FREE)
        pull()

    Between(monkeypatch, path, rival, DURING)
    result = HudiTable.open(path).upsert(rows("am", 5), options=FREE)
    pull()
    assert result.retries == 0
    assert pulled == [{"a": 9, "n": 9}, {"a": 5, "m": 5}]
    table = HudiTable.open(path)
    kept = table.timeline.completed_writes()[-2:]
    assert [i.action for i in kept] == ["deltacommit"] * 2
    assert kept[0].time == result.instant, "it began first and ended last"
    assert table.timeline.of("rollback") == ()
    followed = {key: max(of.get(key, 0) for of in pulled) for key in "amn"}
    assert {k: ts for k, (ts, _) in content(path).items() if k in followed} == followed


def test_under_optimistic_concurrency_control_the_same_is_a_conflict(path, monkeypatch):
    Between(monkeypatch, path, lambda p: HudiTable.open(p).upsert(rows("ab", 5), options=FREE), DURING)
    with pytest.raises(WriteConflictError):
        HudiTable.open(path).upsert(rows("ab", 9), options=OCC)


def test_one_of_several_may_be_optimistic(path, monkeypatch):
    """It commits first, so that nothing came in between; the other one's order makes no difference."""
    Between(monkeypatch, path, lambda p: HudiTable.open(p).upsert(rows("ab", 5), options=OCC), DURING)
    assert HudiTable.open(path).upsert(rows("ab", 9), options=FREE).retries == 0
    assert content(path)["a"] == (9, 0)


RIVALS = {
    "deletes": (lambda t: t.delete(rows("a", 99), options=FREE), {"b": 9, "a": 9}),
    "overwrites the partition": (lambda t: t.insert_overwrite(rows("z", 3), options=FREE), {"z": 3, "a": 9, "b": 9}),
    "plans a compaction": (lambda t: t.compact(mode="schedule"), {"a": 9, "b": 9}),
}  # fmt: skip


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.sampled(3)
def test_what_does_make_a_difference_is_a_conflict_and_the_write_is_made_again(path, monkeypatch, rival):
    act, left = RIVALS[rival]
    if rival == "plans a compaction":
        # As Apache Hudi, which plans compactions beside open writes.
        monkeypatch.setattr(compaction, "open_writes", lambda *_: [])
        HudiTable.open(path).upsert(rows("abcdef", ts=2), options=FREE)  # there is a log to compact
    between = Between(monkeypatch, path, lambda p: act(HudiTable.open(p)), DURING)
    result = HudiTable.open(path).upsert(rows("ab", ts=9, v=9), options=FREE)
    assert (between.refused, result.retries) == (None, 1)
    there = content(path)
    assert {k: there[k][0] for k in left} == left
    HudiTable.open(path).compact()
    assert content(path) == there


def test_rows_that_were_read_from_the_table_are_not_written_beside_others(path, monkeypatch):
    def rival(where):
        HudiTable.open(where).upsert(rows("ab", ts=5, v=5), options=FREE)

    for act in (
        lambda t: t.delete(rows("a", 9), options=FREE),
        lambda t: t.delete("id = 'a'", options=FREE),
    ):
        between = Between(monkeypatch, path, rival, DURING)
        with pytest.raises(WriteConflictError):
            act(HudiTable.open(path))
        assert content(path) == {k: (r["ts"], r["v"]) for (k, _), r in between.state[0].items()}


@pytest.mark.req("RC-01", "RC-04")
def test_a_write_that_fails_takes_nothing_of_the_other_one_along(path, monkeypatch):
    def fails(_):
        HudiTable.open(path).upsert(rows("ab", ts=5, v=5), options=FREE)
        raise RuntimeError("stopped")

    with pytest.raises(Exception, match="stopped"):
        HudiTable.open(path).upsert(rows("abc", ts=9), options=FREE, validators=[fails])
    there = content(path)
    assert (there["a"], there["c"]) == ((5, 5), (1, 0))
    HudiTable.open(path).upsert(rows("c", ts=7), options=FREE)
    assert content(path) == {**there, "c": (7, 0)}


def test_no_compaction_is_planned_beside_an_open_write(path, monkeypatch):
    HudiTable.open(path).upsert(rows("abcdef", ts=2), options=FREE)
    skipped = []
    Between(monkeypatch, path, lambda p: skipped.append(HudiTable.open(p).compact()), DURING)
    assert HudiTable.open(path).upsert(rows("ab", ts=9), options=FREE).retries == 0
    assert "is not completed" in skipped[0].skipped
    assert content(path)["a"] == (9, 0)


def test_two_first_records_of_one_bucket_come_to_one_file_group(path, monkeypatch):
    def rival(where):
        HudiTable.open(where).upsert(rows("mno", ts=5, p="new"), options=FREE)

    between = Between(monkeypatch, path, rival, DURING)
    result = HudiTable.open(path).upsert(rows("mnopq", ts=9, p="new"), options=FREE)
    assert (between.refused, result.retries) == (None, 1)
    there = content(path)
    assert {there[k] for k in "mnopq"} == {(9, 0)}
    ids = {f["file_id"] for f in HudiTable.open(path).inspect.files().to_pylist() if f["partition"] == "new"}
    assert len(ids) == len({i[:8] for i in ids})


def test_it_ends_after_some_tries_where_others_are_always_first(path, monkeypatch):
    monkeypatch.setattr(retries, "MOST_REBASES", 3)
    tried = []

    class Always(Between):
        def once(self):
            if not self.ran:
                self.ran = True
                # It does not wait for the write that has precedence, and is in the same thread.
                soon = {**OCC, "hudi.write.precedence.wait_ms": "10"}
                tried.append(HudiTable.open(self.path).delete(rows("a", 99), options=soon))
                self.ran = False

    rival = Always(monkeypatch, path, None, DURING)
    once = rival.once
    rival.once = lambda: None if len(tried) > 50 or rival.ran else once()
    with pytest.raises(WriteConflictError):
        HudiTable.open(path).upsert(rows("a", ts=9), options=FREE)
    assert len(tried) == 4


@pytest.mark.req("CC-32", "CC-36")
def test_many_writers_beside_compactions_come_to_what_the_ordering_field_says(path):
    writers, rounds = 3, 5
    together, done = threading.Barrier(writers), threading.Event()

    def write(nth):
        wrote = {}
        for turn in range(rounds):
            together.wait(120)
            ts = 10 + (turn * 7 + nth * 5) % 23 * writers + nth  # no two are equal, and they do not only grow
            ids = "abcdef" if turn % 2 else "abxyz"
            HudiTable.open(path).upsert(rows(ids, ts=ts, v=nth), options=FREE)
            wrote |= {key: max(wrote.get(key, (0, 0)), (ts, nth)) for key in ids}
        return wrote

    def compact():
        while not done.wait(0.1):
            HudiTable.open(path).compact()

    with ThreadPoolExecutor(writers + 1) as pool:
        service = pool.submit(compact)
        try:
            wrote = [future.result() for future in [pool.submit(write, nth) for nth in range(writers)]]
        finally:
            done.set()
            together.abort()
        service.result()
    want = {key: max(of.get(key, (0, 0)) for of in wrote) for key in "abcdefxyz"}
    assert content(path) == want


REFUSED = {
    "copy-on-write": ({"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}, "no logs"),
    "another index": ({"hoodie.index.type": "SIMPLE", "hoodie.bucket.index.num.buckets": ""}, "index BUCKET"),
    "consistent hashing": ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "fixed number"),
    "the last one wins": ({PAYLOAD: "OverwriteWithLatestAvroPayload"}, "commutative is broken"),
    "values are filled": ({PAYLOAD: "PartialUpdateAvroPayload"}, "associative is broken"),
    "captured changes": ({"hoodie.table.cdc.enabled": "true"}, "captures changes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_reason_where_the_order_of_writes_matters(tmp_path, name):
    options, why = REFUSED[name]
    given = {
        **FREE,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        **options,
    }
    given = {k: v for k, v in given.items() if v}
    path = str(tmp_path / "t")
    with pytest.raises(UnsupportedError, match=why) as e:
        execute(LocalEngine(), open_storage(path), rows("ab", 1), given)
    assert "OPTIMISTIC" in e.value.remedy
    assert not (tmp_path / "t").exists() or not list((tmp_path / "t").iterdir())


def test_marks_of_deletion_are_refused_which_win_or_lose_by_the_order_of_writes(path):
    marked = rows("a", 9).append_column("_hoodie_is_deleted", pa.array([True]))
    with pytest.raises(UnsupportedError, match="commutative is broken"):
        HudiTable.open(path).upsert(marked, options=FREE)


def test_without_an_ordering_field_and_with_keys_compared_it_is_refused(tmp_path):
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, SCHEMA.remove(2), name="t", record_keys=["id"], partition_fields=["p"],
        table_type="MERGE_ON_READ", options=TABLE,
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="no ordering field"):
        table.upsert(rows("a", 1).drop_columns(["ts"]), options=FREE)
    with pytest.raises(ConflictingOptionError, match="each key has one file group"):
        parse_write_options({**FREE, "hudi.write.conflict.detection": "keys"})


def test_every_order_of_three_commits_gives_the_same_rows(path, tmp_path):
    """The blocks of three writers, committed in each order, read and compacted."""
    seen = set()
    for n, order in enumerate(itertools.permutations((3, 4, 5))):
        where = str(tmp_path / f"order{n}")
        shutil.copytree(path, where)
        for ts in order:
            HudiTable.open(where).upsert(rows("ab" if ts == 4 else "bc", ts=ts, v=ts), options=FREE)
        before = content(where)
        HudiTable.open(where).compact()
        assert content(where) == before
        seen.add(tuple(sorted(before.items())))
    assert len(seen) == 1
