"""Indexes of the metadata table, built while writers go on: never read half built, never short of what was written."""

import os
import shutil
import sys

import pytest
from listed_tables import KEPT, TYPES, made, rows, table, write

from hudi_format.errors import (
    ConcurrentWriterError,
    InstantNotFoundError,
    MissingFileError,
    OptionError,
    StaleSnapshotError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_config import KEPT as PARTITIONS
from hudi_timeline.metadata_table import index_build
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from hudi_timeline.testing import CHANGES, CRASH, Case, Fault, Faults, preemptions
from hudi_timeline.timeline.action_metadata import read_action
from hudi_timeline.timeline.instant import INDEXING

INDEXES = PARTITIONS[1:]
SMALL = {
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


def complete(storage):
    config = table_config.load(storage)
    assert config.metadata_partitions_inflight == ()
    return config.metadata_partitions


def sound(storage):
    return table(storage).verify(deep=True) == []


@pytest.fixture
def meanwhile(monkeypatch):
    """Has an action happen after the content of each index was read, and before it counts."""

    def happens(act):
        real = index_build.read_content

        def read(snapshot, partition, indexes):
            content = real(snapshot, partition, indexes)
            act(partition)
            return content

        monkeypatch.setattr(index_build, "read_content", read)

    return happens


@pytest.mark.req("TS-30")
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.sampled(2)
def test_writers_go_on_while_indexes_are_built_and_nothing_of_theirs_is_lost(storage, table_type, meanwhile):
    write(storage, rows(6), **{"hoodie.datasource.write.table.type": table_type})
    write(storage, rows(4, v=1))
    seen = []

    def act(partition):
        assert set(table_config.load(storage).metadata_partitions_inflight) == set(INDEXES)
        assert write(storage, rows(5, 4 + 3 * len(seen), v=2)).warnings == ()
        assert write(storage, rows(1, len(seen)).select(["id", "p"]), "delete").warnings == ()
        seen.append(partition)

    meanwhile(act)
    result = table(storage, **SMALL).build_index(INDEXES)
    assert seen == list(INDEXES)
    assert result.built == PARTITIONS
    assert result.warnings == ()
    assert complete(storage) == tuple(sorted(PARTITIONS))
    assert sound(storage)
    (done,) = table(storage).timeline.of(INDEXING)
    assert [p.partition for p in read_action(storage, done).partitions] == list(INDEXES)
    for v in range(3, 6):
        write(storage, rows(7, v, v=v), **{"hoodie.metadata.compact.max.delta.commits": "2"})
    assert sound(storage)


def test_a_plan_is_executed_by_a_later_call_and_a_dry_run_changes_nothing(storage):
    made(storage)
    planned = table(storage).build_index("column_stats", dry_run=True)
    assert (planned.planned, planned.scheduled, planned.built) == (("column_stats",), "", ())
    assert table(storage).timeline.of(INDEXING) == ()
    scheduled = table(storage).build_index("column_stats", mode="schedule").scheduled
    assert table(storage).build_index("column_stats", mode="schedule").scheduled == ""  # it is planned
    assert complete(storage) == ("files",)
    with pytest.raises(InstantNotFoundError, match=scheduled):
        table(storage).build_index(mode="execute", instant="20200101000000000")
    write(storage, rows(4, v=1))
    assert table(storage).build_index(mode="execute").executed == (scheduled,)
    assert complete(storage) == ("column_stats", "files")
    assert sound(storage)
    assert table(storage).build_index("column_stats").built == ()  # it is there


@pytest.mark.req("TM-16")
@pytest.mark.sampled(9, values=False)
@pytest.mark.parametrize("partition", INDEXES)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_build_that_dies_at_any_change_is_kept_by_writers_and_done_again(tmp_path, table_type, partition):
    whole = tmp_path / "whole"
    made(open_storage(str(whole)), table_type)
    write(open_storage(str(whole)), rows(4, v=1))
    nth = 1
    while True:
        path = tmp_path / f"t{nth}"
        shutil.copytree(whole, path)
        storage = open_storage(str(path))
        faults = Faults(Fault(CRASH, operation=CHANGES, after=True, nth=nth))
        with faults.process():
            table(faults.wrap(storage), **SMALL).build_index(partition)
        if not faults.dead:
            break
        where = f"after change {nth}, {faults.log[-1].operation} {faults.log[-1].path}"
        read = table(storage).read(["id"], options={"hoodie.metadata.enable": "true"}).to_arrow()
        assert read.num_rows == 6, where
        assert write(storage, rows(3, 5, v=2)).warnings == (), where
        table(storage, **SMALL).build_index(partition)
        assert complete(storage) == tuple(sorted(("files", partition))), where
        assert table(storage).verify(deep=True) == [], where
        assert [i for i in table(storage).timeline.instants if not i.completed] == [], where
        shutil.rmtree(path)
        nth += 1 if os.environ.get("HUDI_SOAK") else 3
    assert nth > 10


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("partition", INDEXES)
@pytest.mark.sampled(6)
def test_what_a_writer_did_not_keep_is_caught_up(storage, table_type, partition, meanwhile):
    """A writer that read the table's properties before the build began."""
    made(storage, table_type)
    for v in range(3):
        write(storage, rows(4, v=v), **{"hoodie.clean.automatic": "false"})

    def act(_):
        table_config.update(storage, {METADATA_PARTITIONS_INFLIGHT: ""})
        write(storage, rows(6, 3, v=5))
        write(storage, rows(2).select(["id", "p"]), "delete")
        write(storage, rows(1, 20), "insert_overwrite")
        table(storage, **{"hoodie.cleaner.commits.retained": "1"}).clean()
        table_config.update(storage, {METADATA_PARTITIONS_INFLIGHT: partition})

    meanwhile(act)
    assert table(storage, **SMALL).build_index(partition).built == (partition,)
    assert sound(storage)


def test_a_rollback_of_what_the_content_was_read_from_is_no_index(storage, meanwhile):
    made(storage)
    last = write(storage, rows(4, 10, v=1)).instant
    undone = []

    def act(_):
        if not undone:
            undone.append(table(storage).rollback(last))

    meanwhile(act)
    result = table(storage).build_index("record_index")
    assert result.built == ()
    assert "dropped it" in result.refused["record_index"]
    assert complete(storage) == ("files",)
    assert table(storage).timeline.of(INDEXING) == ()
    assert table(storage).build_index("record_index").built == ("record_index",)
    assert sound(storage)


def test_a_key_that_comes_to_a_second_file_group_meanwhile_has_no_place(storage, meanwhile):
    made(storage)
    twice = rows(1).set_column(2, "p", [["p1"]])
    meanwhile(lambda _: write(storage, twice, "insert"))
    result = table(storage).build_index(["record_index", "column_stats"])
    assert "'k0' is in several file groups" in result.refused["record_index"]
    assert result.built == ("column_stats",)
    assert complete(storage) == ("column_stats", "files")
    assert sound(storage) or all(f.code == "duplicate-key" for f in table(storage).verify(deep=True))


def test_a_build_of_some_columns_says_what_apache_hudi_s_readers_need(storage):
    name = "hoodie.metadata.index.column.stats.column.list"
    write(storage, rows(4))
    for options in ({name: "ts"}, {}):
        result = table(storage, **options).build_index("column_stats")
        assert [name in w for w in result.warnings] == [True] * bool(options)
        table(storage).drop_index("column_stats")


def test_indexes_that_cannot_be_are_refused_before_anything_is_planned(storage):
    made(storage)
    with pytest.raises(UnsupportedError, match="'secondary_index_x' is no partition"):
        table(storage).build_index("secondary_index_x")
    with pytest.raises(OptionError, match="drops the metadata table"):
        table(storage, **{"hoodie.metadata.enable": "false"}).build_index("column_stats")
    assert table(storage).timeline.of(INDEXING) == ()


def test_a_table_without_a_metadata_table_gets_its_listing_first_where_nothing_is_pending(storage):
    write(storage, rows(6), **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    write(storage, rows(4, v=1))
    compaction = table(storage).compact(mode="schedule").scheduled
    with pytest.raises(ConcurrentWriterError, match=compaction):
        table(storage).build_index("column_stats")
    assert storage.info(FOLDER) is None
    table(storage).compact()
    assert table(storage).build_index("files").built == ("files",)
    assert table(storage).build_index("column_stats").built == ("column_stats",)
    assert sound(storage)


def test_a_plan_whose_metadata_table_was_dropped_is_what_to_run_first(storage):
    made(storage)
    planned = table(storage).build_index("column_stats", mode="schedule").scheduled
    write(storage, rows(4, v=1), **{"hoodie.metadata.enable": "false"})
    assert storage.info(FOLDER) is None
    with pytest.raises(ConcurrentWriterError, match=planned) as caught:
        table(storage).build_index("bloom_filters")
    assert "build_index(mode='execute')" in caught.value.remedy
    assert table(storage).build_index(mode="execute").executed == (planned,)
    assert table(storage).build_index("bloom_filters").built == ("bloom_filters",)
    assert sound(storage)


@pytest.mark.parametrize("dead", [False, True])
def test_of_several_plans_whose_metadata_table_was_dropped_the_first_makes_it(storage, monkeypatch, dead):
    made(storage)
    plans = [
        table(storage).build_index(i, mode="schedule").scheduled for i in ("column_stats", "bloom_filters")
    ]
    if dead:  # the process of the second has died while it built
        with monkeypatch.context() as patch:
            patch.setattr(index_build, "read_content", lambda *_: sys.exit(9))
            with pytest.raises(SystemExit):
                table(storage).build_index(mode="execute", instant=plans[1])
        for beat in heartbeat.list_instants(storage):
            heartbeat.delete(storage, beat)
    write(storage, rows(4, v=1), **{"hoodie.metadata.enable": "false"})
    assert storage.info(FOLDER) is None
    pending = [i.time for i in table(storage).timeline.pending(INDEXING)]
    assert plans[0] in pending
    assert table(storage).build_index(mode="execute").executed == tuple(pending)
    assert set(complete(storage)) >= {"files", "column_stats"}
    write(storage, rows(3, v=2))
    assert sound(storage)


def test_a_dropped_index_is_gone_with_its_pending_build_and_a_live_one_stays(storage, meanwhile):
    made(storage)
    table(storage).build_index(["column_stats", "record_index"])
    scheduled = table(storage).build_index("bloom_filters", mode="schedule").scheduled
    assert table(storage).drop_index(["column_stats", "bloom_filters"], dry_run=True).withdrawn == (
        scheduled,
    )
    dropped = table(storage).drop_index(["column_stats", "bloom_filters"])
    assert (dropped.dropped, dropped.withdrawn) == (("column_stats",), (scheduled,))
    assert complete(storage) == ("files", "record_index")
    assert write(storage, rows(4, v=1)).warnings == ()
    assert sound(storage)
    with pytest.raises(OptionError, match="has no bloom_filters"):
        table(storage).drop_index("bloom_filters")

    def act(_):
        with pytest.raises(ConcurrentWriterError):
            table(storage).drop_index("column_stats")
        with pytest.raises(ConcurrentWriterError):
            table(storage).build_index("column_stats")

    meanwhile(act)
    assert table(storage).build_index("column_stats").built == ("column_stats",)
    assert table(storage).drop_index("files").dropped == ("column_stats", "files", "record_index")
    assert storage.info(FOLDER) is None


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (["column_stats", "stats"], "has no stats"),
        (["bloom_filters", "record_index"], "has no record_index"),
        (["files", "stats"], "has no stats"),
        (["secondary_index_b", "column_stats", "secondary_index_a"], "secondary_index_a, secondary_index_b"),
        ("record_index", "has no record_index"),
        ([], "no index to drop was named"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_dropped_where_one_of_the_names_is_not_there(storage, named, message, dry_run):
    made(storage)
    table(storage).build_index("column_stats")
    scheduled = table(storage).build_index("bloom_filters", mode="schedule").scheduled
    with pytest.raises(OptionError, match=message) as e:
        table(storage).drop_index(named, dry_run=dry_run)
    assert e.value.remedy == "it has column_stats, files, bloom_filters."
    assert complete(storage) == ("column_stats", "files")
    assert [i.time for i in table(storage).timeline.pending(INDEXING)] == [scheduled]
    assert table(storage).drop_index(["column_stats", "bloom_filters"]).withdrawn == (scheduled,)


def test_an_index_that_another_process_dropped_first_is_named(storage, monkeypatch):
    made(storage)
    table(storage).build_index(["column_stats", "bloom_filters"])
    drops = [["column_stats"]]
    locked = ServiceContext.locked

    def meanwhile(context, **given):
        if drops:
            table(storage).drop_index(drops.pop())
        return locked(context, **given)

    monkeypatch.setattr(ServiceContext, "locked", meanwhile)
    with pytest.raises(OptionError, match="has no column_stats"):
        table(storage).drop_index(["bloom_filters", "column_stats"])
    assert complete(storage) == ("bloom_filters", "files")


def test_a_build_taken_for_dead_completes_nothing(storage, meanwhile):
    made(storage)
    begun, other = [], []

    def act(_):
        begun.append(True)
        if len(begun) > 1:
            return
        (build,) = table(storage).timeline.pending(INDEXING)
        heartbeat.delete(storage, build.time)
        other.append(table(storage).build_index("column_stats"))

    meanwhile(act)
    with pytest.raises(ConcurrentWriterError):
        table(storage).build_index("column_stats")
    assert other[0].built == ("column_stats",)
    assert complete(storage) == ("column_stats", "files")
    assert sound(storage)


def test_a_writer_leaves_a_build_of_another_program_alone(storage):
    """The state while Apache Hudi executes a plan: its inflight file is empty."""
    made(storage)
    scheduled = table(storage).build_index("column_stats", mode="schedule").scheduled
    storage.create(f".hoodie/{scheduled}.indexing.inflight", b"")
    table_config.update(storage, {METADATA_PARTITIONS_INFLIGHT: "column_stats"})
    with pytest.raises(UnsupportedError, match="column_stats"):
        write(storage, rows(4, v=1))
    with pytest.raises(UnsupportedError, match="column_stats") as e:  # whether that one is alive nothing says
        table(storage).build_index()
    assert "hudi index drop" in e.value.remedy
    assert table(storage).drop_index("column_stats").withdrawn == (scheduled,)
    assert write(storage, rows(4, v=1)).warnings == ()
    assert table(storage).build_index("column_stats").built == ("column_stats",)
    assert sound(storage)


def test_indexes_asked_for_asynchronously_are_left_to_a_build(storage):
    asked = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.async": "true"}
    made(storage)
    assert write(storage, rows(4, v=1), **KEPT, **asked).warnings == ()
    assert complete(storage) == ("files",)
    table(storage).build_index("column_stats")
    assert write(storage, rows(4, v=2), **KEPT, **asked).warnings == ()
    assert complete(storage) == ("column_stats", "files")
    assert sound(storage)


def test_what_a_completed_build_did_not_say_any_more_the_next_write_says(storage):
    made(storage)
    table(storage).build_index("column_stats")
    half = {METADATA_PARTITIONS: "files", METADATA_PARTITIONS_INFLIGHT: "column_stats"}
    table_config.update(storage, half)
    assert write(storage, rows(4, v=1)).warnings == ()
    assert complete(storage) == ("column_stats", "files")
    assert sound(storage)
    # What another program has half built since is another content, whatever that build said.
    shutil.rmtree(f"{storage.uri}/{FOLDER}/column_stats")
    table_config.update(storage, half)
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="left column_stats half built"):
            table(storage).build_index("column_stats", dry_run=dry_run)
    table(storage).drop_index("column_stats")
    assert table(storage).build_index("column_stats").built == ("column_stats",)
    assert sound(storage)


@pytest.mark.req("TS-30")
@pytest.mark.parametrize("undo", ["restore", "rollback", "erase"])
@pytest.mark.sampled(3)
def test_a_build_whose_files_are_undone_or_cleaned_meanwhile_looks_again(undo):
    """At each step of the build: it was a missing file, and the plan stayed behind."""
    for found in preemptions(Case({"one": ["build_record_index"], "two": [undo]}), "one"):
        assert all(d.error is None or d.act.name.startswith(undo) for d in found.outcome.done), (
            found.outcome.done
        )
        timeline = found.outcome.table().timeline
        assert not timeline.pending(INDEXING) or any(d.error for d in found.outcome.done)


@pytest.mark.parametrize("at", ["group_count", "read_content"])
@pytest.mark.parametrize("undone", [True, False], ids=["undone", "lost"])
def test_a_build_that_misses_a_file_takes_its_plan_away(storage, monkeypatch, at, undone):
    """Each time the newest commit is undone, before its files are read; or a file of it is lost."""
    write(storage, rows(6))
    looks = []

    def misses(snapshot, *_):
        looks.append(snapshot.instant)
        newest = [s.base_file for s in newest_slices_of(snapshot) if s.base_file.instant == snapshot.instant]
        if undone:
            table(storage).rollback(snapshot.instant)
            write(storage, rows(1, len(looks)))
        raise MissingFileError("the base file is missing", table=storage.uri, file=newest[0].path)

    write(storage, rows(1))
    monkeypatch.setattr(index_build, at, misses)
    with pytest.raises(MissingFileError) as raised:
        table(storage, **SMALL).build_index(["record_index"])
    assert isinstance(raised.value, StaleSnapshotError) == undone
    assert len(set(looks)) == len(looks) == (4 if undone else 1)
    assert table(storage).timeline.pending(INDEXING) == ()
    assert complete(storage) == ("files",)
