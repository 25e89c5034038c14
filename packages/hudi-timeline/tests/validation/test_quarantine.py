"""The quarantine: bad rows go to a table of their own, once, whatever happens to the write."""

import json

import pyarrow as pa
import pytest
from bad_input import OPTIONS, content, make, rows

from hudi_format.errors import HudiError, ValidationError
from hudi_timeline import HudiTable
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.transaction import transaction
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.validation import quarantine

RULES = {"hudi.write.rules": "paid: fare >= 0"}


@pytest.fixture
def path(tmp_path):
    make(tmp_path / "t")
    return tmp_path / "t"


@pytest.fixture
def table(path):
    return HudiTable.open(str(path))


@pytest.fixture
def options(tmp_path):
    return {**RULES, "hudi.quarantine.path": str(tmp_path / "q")}


def data(fare=-7.0, **more):
    """Good: x. Bad: a, its fare; one without a key; one outside of the table; one without an ordering value."""
    return rows(
        "a", "x", "none", "out", "order",
        id=pa.array(["a", "x", None, "out", "order"]),
        city=["c0", "c0", "c0", "../out", "c0"],
        fare=[fare, 8.0, 1.0, 1.0, 1.0],
        ts=pa.array([5, 5, 5, 5, None], pa.int64()),
        **more,
    )  # fmt: skip


def kept(tmp_path, columns=("_hudi_quarantine_instant", "_hudi_quarantine_rule", "id", "fare")):
    found = HudiTable.open(str(tmp_path / "q")).read().to_arrow()
    return sorted((tuple(r[c] for c in columns) for r in found.to_pylist()), key=str)


WRITES = {
    "insert": lambda t, d, **k: t.insert(d, **k),
    "upsert": lambda t, d, **k: t.upsert(d, **k),
    "bulk_insert": lambda t, d, **k: t.bulk_insert(d, **k),
    "stream": lambda t, d, **k: t.bulk_insert(d.to_reader(2), **k),
    "insert_overwrite": lambda t, d, **k: t.insert_overwrite(d, **k),
    "insert_overwrite_table": lambda t, d, **k: t.insert_overwrite_table(d, **k),
}


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize("operation", WRITES)
def test_bad_rows_are_kept_with_the_reason_and_the_others_written(tmp_path, path, table, options, operation):
    result = WRITES[operation](table, data(), options=options)
    ordering = operation not in (
        "bulk_insert",
        "stream",
        "insert",
        "insert_overwrite",
        "insert_overwrite_table",
    )
    wanted = {"paid": 1, "record_key": 1, "partition_path": 1} | ({"ordering_value": 1} if ordering else {})
    assert result.quarantined == wanted
    assert result.quarantine == str(tmp_path / "q")
    assert f"{sum(wanted.values())} quarantined in" in repr(result)
    assert "quarantined" in result._repr_html_()
    assert {r[0] for r in kept(tmp_path)} == {result.instant}
    assert {r[1]: r[2] for r in kept(tmp_path)}.items() >= {
        "paid": "a", "record_key": None, "partition_path": "out",
    }.items()  # fmt: skip
    ids = table.read(["id", "fare"]).to_arrow().to_pylist()
    assert {"id": "x", "fare": 8.0} in ids
    assert {"id": "a", "fare": -7.0} not in ids
    whole = (
        HudiTable.open(str(tmp_path / "q"))
        .read(filter="_hudi_quarantine_rule = 'paid'")
        .to_arrow()
        .to_pylist()
    )
    assert whole[0]["box"] == {"x": 1, "y": "q"}
    assert whole[0]["_hudi_quarantine_reason"] == "not true: fare >= 0"
    assert whole[0]["_hudi_quarantine_operation"] == operation.replace("stream", "bulk_insert")
    extra = read_commit(table.storage, table.timeline.find(result.instant)).extra["hudi.quarantine"]
    assert json.loads(extra) == {"path": str(tmp_path / "q"), "rows": sum(wanted.values()), "rules": wanted}


@pytest.mark.req("NEW-33")
def test_deletes_without_a_key_are_kept_too(tmp_path, table, options):
    result = table.delete(rows("a", "b", id=pa.array(["a", None]), city=["c0", "c0"]), options=options)
    assert (result.deleted, result.quarantined) == (1, {"record_key": 1})
    assert kept(tmp_path, ("_hudi_quarantine_operation", "id", "city")) == [("delete", None, "c0")]


@pytest.mark.req("NEW-33")
def test_nothing_good_is_still_a_commit_that_says_so(tmp_path, table, options):
    bad = rows("x", fare=[-1.0])
    result = table.upsert(bad, options={**options, "hoodie.allow.empty.commit": "false"})
    assert result.instant
    assert result.quarantined == {"paid": 1}
    assert [r[0] for r in kept(tmp_path)] == [result.instant]
    assert table.upsert(rows("y"), options=options).quarantined == {}
    assert len(kept(tmp_path)) == 1


@pytest.mark.req("NEW-33")
def test_batches_add_up_and_columns_may_come(tmp_path, table, options):
    table.upsert(data(), options=options)
    table.upsert(data(note=["n"] * 5), options=options)
    found = kept(tmp_path, ("id", "note", "_hudi_quarantine_rule"))
    assert len(found) == 8
    assert {r[1] for r in found} == {None, "n"}


@pytest.mark.req("NEW-33")
def test_a_limit_and_wrong_paths(tmp_path, path, table, options):
    before = content(path)
    with pytest.raises(ValidationError, match="the quarantine takes 3 rows at most, and there are 4"):
        table.upsert(data(), options={**options, "hudi.quarantine.max.rows": 3})
    for wrong in (path, path / "below", path.parent):
        with pytest.raises(HudiError, match="lie one in the other"):
            table.upsert(data(), options={**options, "hudi.quarantine.path": str(wrong)})
    assert content(path) == before
    assert not (tmp_path / "q").exists()


class Died(BaseException):
    """Stands for the end of the process: nothing of ours catches it to tidy up."""


@pytest.mark.req("NEW-33")
def test_a_write_that_dies_between_the_two_commits_loses_and_doubles_nothing(
    tmp_path, path, table, options, monkeypatch
):
    first = table.upsert(data(), options=options)
    with monkeypatch.context() as patch:
        commit_of_table = transaction.Transaction.commit

        def die(self, *arguments, **named):
            if self.storage.uri == str(path):
                self._open = False  # as if the process were gone: no rollback
                self._heartbeat.halt()
                raise Died
            return commit_of_table(self, *arguments, **named)

        patch.setattr(transaction.Transaction, "commit", die)
        with pytest.raises(Died):
            table.upsert(data(fare=-9.0), options=options)
    dead = {r[0] for r in kept(tmp_path)} - {first.instant}
    assert len(dead) == 1, "its bad rows are there"
    assert [r for r in kept(tmp_path) if r[0] in dead and r[1] == "paid"] == [(*dead, "paid", "a", -9.0)]
    (path / ".hoodie" / ".heartbeat" / dead.pop()).unlink()
    again = table.upsert(data(fare=-9.0), options=options)
    assert {r[0] for r in kept(tmp_path)} == {first.instant, again.instant}
    assert len(kept(tmp_path)) == 8
    there = len(list((tmp_path / "q" / ".hoodie").glob("*.replacecommit")))
    table.upsert(rows("y"), options=options)
    assert len(list((tmp_path / "q" / ".hoodie").glob("*.replacecommit"))) == there, "taken out once"


@pytest.mark.req("NEW-33")
def test_a_commit_that_fails_takes_its_rows_out_again(tmp_path, path, table, options, monkeypatch):
    first = table.upsert(data(), options=options)
    rows_before = kept(tmp_path)
    publish = transaction.Transaction._publish

    def refuse(self, metadata):
        if self.storage.uri == str(path):
            raise OSError("no space")
        publish(self, metadata)

    with monkeypatch.context() as patch:
        patch.setattr(transaction.Transaction, "_publish", refuse)
        with pytest.raises(OSError, match="no space"):
            table.upsert(data(fare=-9.0), options=options)
    assert kept(tmp_path) == rows_before
    assert table.timeline.completed_writes()[-1].time == first.instant


@pytest.mark.req("NEW-33")
def test_a_quarantine_that_cannot_be_written_stops_the_write(tmp_path, path, table, options):
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "something.txt").write_text("else")
    ids = table.read(["id"]).to_arrow()
    with pytest.raises(HudiError, match="something else than a Hudi table"):
        table.upsert(data(), options=options)
    assert table.read(["id"]).to_arrow() == ids


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize("operation", ["upsert", "stream"])
@pytest.mark.parametrize("tries", [1, 3])
def test_the_bad_rows_wait_for_others_that_write_to_the_quarantine(
    tmp_path, table, options, monkeypatch, operation, tries
):
    first = WRITES[operation](table, data(), options=options)
    other = HudiTable.open(str(tmp_path / "q"))
    begun = begin_transaction(other.storage, other.config, operation="upsert")
    begun.__enter__()
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == tries:
            begun.__exit__(None, None, None)

    monkeypatch.setattr(quarantine.time, "sleep", pause)
    second = WRITES[operation](table, data(), options=options)
    assert len(pauses) == tries
    of = {i: [r[1:] for r in kept(tmp_path) if r[0] == i] for i in (first.instant, second.instant)}
    assert len(of[first.instant]) > 1
    assert of[second.instant] == of[first.instant]
    assert other.verify(deep=True) == []


def test_rows_of_archived_and_unknown_instants_stay(tmp_path, table, options):
    """Only what the timeline says was rolled back is taken out."""
    table.upsert(data(), options=options)
    assert (
        quarantine.abandoned(table.storage, table.timeline, HudiTable.open(str(tmp_path / "q")).storage) == []
    )
    assert OPTIONS["hoodie.table.name"] == "trips"


@pytest.mark.req("MB-07")
def test_what_is_told_of_each_record_is_added_up_over_the_commit(tmp_path, path, table, options):
    """Event times of the records that were updated; those that failed, by what was wrong with them."""
    given = {
        **options,
        "hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload",
        "hoodie.payload.event.time.field": "seen",
    }
    names = [f"n{n}" for n in range(4)]
    cities = [f"c{n % 2}" for n in range(4)]

    def batch(ts, seen, fare):
        return rows(
            *names, id=names, city=cities, ts=pa.array([ts] * 4, pa.int64()), fare=fare
        ).append_column("seen", pa.array(seen, pa.int64()))

    assert (
        table.upsert(batch(5, [1_600_000_000] * 4, [1.0] * 4), options=given).event_times is None
    )  # inserts
    seen = [1_700_000_000, 1_700_000_300_000, 1_700_000_100, 1_500_000_000]
    result = table.upsert(batch(6, seen, [1.0, 1.0, 1.0, -1.0]), options=given)
    assert (result.updated, result.files_rewritten, dict(result.quarantined)) == (3, 2, {"paid": 1})
    assert result.event_times == (1_700_000_000_000, 1_700_000_300_000)
    (newest,) = [i for i in table.timeline.completed_writes() if i.time == result.instant]
    recorded = read_commit(table.storage, newest)
    times = [t for s in recorded.stats for t in (s.min_event_time, s.max_event_time)]
    assert (min(times), max(times)) == result.event_times
    assert json.loads(recorded.extra["hudi.quarantine"])
