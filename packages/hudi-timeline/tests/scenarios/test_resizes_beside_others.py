"""Resizes of bucket indexes beside writers, cleanings and other resizes: one of two that touch a bucket loses."""

import pytest
from resized_tables import FULL, IDS, LAZY, buckets, found, make, numbers, rows

from hudi_format.errors import StaleSnapshotError, WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.services.buckets import resizing
from hudi_timeline.services.buckets.resize_tasks import run_on_threads


def beside(monkeypatch, act):
    """Let a resize be overtaken between its files and its commit."""

    def late(tasks):
        stats = run_on_threads(tasks)
        act()
        return stats

    monkeypatch.setattr(resizing, "run_on_threads", late)


@pytest.mark.req("IX-28")
def test_an_overwrite_loses_to_a_write_and_to_a_new_file_group(tmp_path, monkeypatch):
    table = make(tmp_path / "t", number=6)
    plan = table.resize_buckets(5, overwrite=True, dry_run=True).plan
    table.upsert(rows(IDS[:1], "c"))
    with pytest.raises(WriteConflictError, match="other file groups"):
        table.resize_buckets(plan=plan)
    other = HudiTable.open(table.uri)
    beside(monkeypatch, lambda: other.upsert(rows(IDS[:1], ts=5), options=LAZY))
    with pytest.raises(WriteConflictError):
        table.resize_buckets(5, overwrite=True, options=LAZY)
    assert [r[2] for r in found(table, filter=f"id = '{IDS[0]}' and p = 'a'")] == [5]
    assert {of for shown in numbers(table).values() for _, of in shown} == {6}
    monkeypatch.undo()
    table.resize_buckets(5, overwrite=True)
    assert {of for shown in numbers(table).values() for _, of in shown} == {5}


@pytest.mark.req("NEW-22")
def test_of_two_resizes_the_second_is_refused_also_where_the_first_merged_empty_buckets(
    tmp_path, monkeypatch
):
    table = make(tmp_path / "t", "MERGE_ON_READ", "EXTENDIBLE_HASHING", 4)
    table.insert_overwrite_table(rows(buckets(4)[3]))
    table.resize_buckets(8)  # of which two have rows
    other = HudiTable.open(table.uri)
    merged = []

    def merge():
        monkeypatch.undo()
        least = {**LAZY, "hoodie.bucket.index.min.num.buckets": "7"}
        merged.append(other.resize_buckets(options=least))

    beside(monkeypatch, merge)
    with pytest.raises(WriteConflictError, match="other buckets first"):
        table.resize_buckets(options={**FULL, **LAZY, "hoodie.bucket.index.max.num.buckets": "20"})
    assert (merged[0].plan.moves, merged[0].plan.buckets) == ((), {"a": (8, 7)})
    HudiTable.open(table.uri).upsert(rows(IDS, ts=9))
    numbers(table)


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize(("bucket", "goes_on"), [(4, False), (0, False), (5, True)])
def test_the_first_row_of_a_bucket_meets_a_merge_of_empty_ones(tmp_path, bucket, goes_on):
    table = make(tmp_path / "t", "MERGE_ON_READ", "EXTENDIBLE_HASHING", 4)
    table.insert_overwrite_table(rows(buckets(4)[3]))
    table.resize_buckets(8)
    other, merged = HudiTable.open(table.uri), []

    def meanwhile(_):
        least = {**LAZY, "hoodie.bucket.index.min.num.buckets": "7"}
        merged.append(other.resize_buckets(options=least).plan)  # of 0 and 4, which have no file group
        return True

    key = buckets(8)[bucket][0]
    if goes_on:
        table.upsert(rows([key], ts=8), options=LAZY, validators=[meanwhile])
    else:
        with pytest.raises(WriteConflictError, match="other buckets first"):
            table.upsert(rows([key], ts=8), options=LAZY, validators=[meanwhile])
    assert (merged[0].moves, merged[0].buckets) == ((), {"a": (8, 7)})
    assert [r[0] for r in found(table) if r[2] == 8] == [key] * goes_on
    numbers(table)


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize("engine", ["SIMPLE", "EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
@pytest.mark.parametrize("ids", [IDS[:1], ["zz"]], ids=["update", "insert"])
@pytest.mark.sampled(6)
def test_a_write_that_comes_first_wins(tmp_path, monkeypatch, engine, ids):
    table = make(tmp_path / "t", "MERGE_ON_READ", engine)
    other = HudiTable.open(table.uri)
    beside(monkeypatch, lambda: other.upsert(rows(ids, ts=5), options=LAZY))
    number = 6 if engine == "SIMPLE" else None
    with pytest.raises(WriteConflictError):
        table.resize_buckets(number, options={**FULL, **LAZY})
    assert [r[2] for r in found(table, filter=f"id = '{ids[0]}' and p = 'a'")] == [5]
    numbers(table)
    monkeypatch.undo()
    table.resize_buckets(number, options=FULL)
    numbers(table)


@pytest.mark.req("NEW-22")
def test_a_write_to_another_partition_goes_on(tmp_path, monkeypatch):
    table = make(tmp_path / "t", engine="EXTENDIBLE_HASHING")
    other = HudiTable.open(table.uri)
    beside(monkeypatch, lambda: other.upsert(rows(IDS[:2], "b", ts=5), options=LAZY))
    table.resize_buckets(partitions=["a"], options={**FULL, **LAZY})
    shown = numbers(table)
    assert len(shown["a"]) > 3
    assert len(shown["b"]) <= 3


@pytest.mark.req("NEW-22", "IX-30")
@pytest.mark.parametrize("engine", ["EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
@pytest.mark.parametrize("first", ["the write", "the resize"])
@pytest.mark.sampled(3)
def test_writes_to_other_buckets_of_the_partition_go_on(tmp_path, monkeypatch, engine, first):
    table = make(tmp_path / "t", "MERGE_ON_READ", engine)
    one = {**FULL, **LAZY, "hoodie.bucket.index.max.num.buckets": "4"}
    plan = table.resize_buckets(partitions=["a"], options=one, dry_run=True).plan
    shown = table.read(["id", "_hoodie_file_name"], filter="p = 'a'").to_arrow().to_pylist()
    split = {f for m in plan.moves for f in m.file_ids}
    others = [r["id"] for r in shown if r["_hoodie_file_name"].lstrip(".")[:38] not in split]
    assert others
    assert len(others) < len(IDS)
    other = HudiTable.open(table.uri)
    resized = []

    def resize(_=None):
        resized.append(other.resize_buckets(plan=plan, options=LAZY).plan.buckets)
        return True

    if first == "the write":
        beside(monkeypatch, lambda: table.upsert(rows(others, ts=5), options=LAZY))
        resize()
    else:
        table.upsert(rows(others, ts=5), options=LAZY, validators=[resize])
    monkeypatch.undo()
    assert resized == [{"a": (3, 4)}]
    assert sorted(r[0] for r in found(table) if r[2] == 5) == sorted(others)
    numbers(table)
    table.upsert(rows([*IDS, "new"], ts=6))
    assert len(found(table)) == len(IDS) + 21
    numbers(table)


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize("engine", ["SIMPLE", "EXTENDIBLE_HASHING"])
def test_a_write_that_began_before_and_commits_after_it_is_refused(tmp_path, engine):
    table = make(tmp_path / "t", number=8)  # some keys have no file group yet
    if engine != "SIMPLE":
        table.resize_buckets(8, engine=engine)
    table.delete(rows(IDS, "b"))
    other = HudiTable.open(table.uri)
    resized = []

    def meanwhile(_):
        resized.append(other.resize_buckets(16, options=LAZY).instant)
        return True

    with pytest.raises(WriteConflictError):
        table.upsert(rows([f"n{n}" for n in range(3)], ts=8), options=LAZY, validators=[meanwhile])
    assert resized
    assert resized[0]
    numbers(table)


def test_a_stale_plan_is_refused(tmp_path):
    table = make(tmp_path / "t")
    plan = table.resize_buckets(6, dry_run=True).plan
    table.upsert(rows(IDS[:1], ts=5))
    with pytest.raises(WriteConflictError, match="does not fit"):
        table.resize_buckets(plan=plan)
    plan = table.resize_buckets(6, dry_run=True).plan
    table.upsert(rows(IDS[:1], "c"))
    with pytest.raises(WriteConflictError, match="other file groups"):
        table.resize_buckets(plan=plan)
    table.resize_buckets(6)
    with pytest.raises(WriteConflictError, match="6 buckets"):
        table.resize_buckets(plan=plan)
    with pytest.raises(ValueError, match="plan goes without"):
        table.resize_buckets(6, plan=plan)
    assert not [i for i in table.timeline.instants if not i.completed]


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize("engine", ["EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
@pytest.mark.parametrize("by", ["a resize of another bucket", "a first file group"])
@pytest.mark.sampled(3)
def test_a_plan_of_other_rings_or_file_groups_is_refused(tmp_path, engine, by):
    off = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
    table = make(tmp_path / "t", "MERGE_ON_READ", engine, 8)
    shown = table.read(["id", "_hoodie_file_name"], filter="p = 'a'").to_arrow().to_pylist()
    groups = {r["id"]: r["_hoodie_file_name"].lstrip(".")[:38] for r in shown}
    apart = {n: [i for i in IDS if groups[i] == n] for n in groups.values()}
    if by == "a first file group":  # of a bucket that the plan splits, or merges, as an empty one
        table.insert_overwrite_table(rows(apart.pop(groups[IDS[0]])))
        number = 16 if engine == "EXTENDIBLE_HASHING" else None
        least = {} if number else {"hoodie.bucket.index.min.num.buckets": "1"}
        plan = table.resize_buckets(number, options=least, dry_run=True).plan
        table.upsert(rows([i for ids in apart.values() for i in ids], ts=5), options=off)
    else:
        one = {**FULL, **off}  # of each partition the largest
        plan = table.resize_buckets(partitions=["a"], options=one, dry_run=True).plan
        other = next(n for n in apart if n != plan.moves[0].slices[0].file_id)
        for ts in (5, 6, 7):
            table.upsert(rows(apart[other], ts=ts), options=off)
        done = table.resize_buckets(partitions=["a"], options=one).plan
        assert [m.slices[0].file_id for m in done.moves] == [other]
    with pytest.raises(WriteConflictError, match="other buckets, or other file groups"):
        table.resize_buckets(plan=plan)
    table.upsert(rows(IDS, ts=9), options=off)
    numbers(table)


@pytest.mark.parametrize("mode", ["resize", "plan"])
def test_a_resize_whose_files_are_cleaned_meanwhile_looks_again_if_it_may(tmp_path, monkeypatch, mode):
    """By writers of one partition and a cleaning after them: it was a missing file, as of a damaged table."""
    options = {**LAZY, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    table = make(tmp_path / "t", **options)
    plan = table.resize_buckets(6, dry_run=True, options=options).plan
    tries = []

    def beside(tasks):
        tries.append(len(tasks))
        if len(tries) == 1:
            other = HudiTable.open(table.uri, options=options)
            other.upsert(rows(IDS, ts=3))
            newest = {
                "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
                "hoodie.cleaner.fileversions.retained": "1",
            }
            other.clean(options={**options, **newest})
        return run_on_threads(tasks)

    monkeypatch.setattr(resizing, "run_on_threads", beside)
    if mode == "plan":  # it fits only what it was made of
        with pytest.raises(StaleSnapshotError, match="were cleaned"):
            table.resize_buckets(plan=plan, options=options)
        assert {len(of) for of in numbers(table).values()} == {3}
    else:
        assert table.resize_buckets(6, options=options).instant
        assert {len(of) for of in numbers(table).values()} == {6}
    assert len(tries) == (1 if mode == "plan" else 2)
    assert {ts for i, p, ts, *_ in found(table) if p == "a"} == {3}
