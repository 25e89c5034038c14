"""Operations that change a table, each with the tiny table that it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format import Storage, ValidationError
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency import markers
from hudi_timeline.testing import CRASH, Fault, Faults, TableBuilder, make_state
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, ROLLBACK
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    # Filters for 60,000 keys in files of three make most of the time.
    "hoodie.index.bloom.num_entries": "100",
}
EXTRA = "k90"
"""The key of the write that follows."""
Act = Callable[[Storage], object]


def rows(n: int, start: int = 0, v: int = 0) -> pa.Table:
    ids = range(start, start + n)
    return pa.table({"id": [f"k{i}" for i in ids], "v": pa.array([v] * n, pa.int64()),
                     "ts": pa.array([v] * n, pa.int64()), "p": [f"p{i % 2}" for i in ids]})  # fmt: skip


@contextmanager
def options_of(more: Mapping[str, str]) -> Iterator[None]:
    """Scope in which all operations have these options too."""
    before = dict(OPTIONS)
    OPTIONS.update(more)
    try:
        yield
    finally:
        OPTIONS.clear()
        OPTIONS.update(before)


def write(storage: Storage, data: pa.Table | None, operation: str = "upsert", mode: str = "append",
          **more: str) -> object:  # fmt: skip
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    return execute(LocalEngine(1), storage, data, options, mode=mode)


def next_write(storage: Storage) -> object:
    """What comes after a cut: one more row."""
    return write(storage, rows(1, 90, v=9))


def three_commits(storage: Storage) -> None:
    write(storage, rows(6))
    write(storage, rows(2, 0, v=1))
    write(storage, rows(2, 6, v=2))


# Changed rows go to log files, and nothing is compacted.
TO_LOGS = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline.max.delta.commits": "100"}


def nothing(storage: Storage) -> None:
    """No table."""


def dead_writer(storage: Storage) -> None:
    """Three commits, and a write whose process died just before its commit."""
    three_commits(storage)
    faults = Faults(Fault(CRASH, operation="create", path="*.commit"))
    with faults.process():
        write(faults.wrap(storage), rows(4, 5, v=7))
    assert faults.dead


def six_versions(storage: Storage) -> None:
    """Six commits that rewrite the same rows, none cleaned."""
    for v in range(6):
        write(storage, rows(6, v=v), **{"hoodie.clean.automatic": "false"})


def logging(storage: Storage) -> None:
    """Three commits of a table with change data capture."""
    write(storage, rows(6), **{"hoodie.table.cdc.enabled": "true"})
    write(storage, rows(2, 0, v=1))
    write(storage, rows(2, 6, v=2))


def dead_logging_writer(storage: Storage) -> None:
    logging(storage)
    faults = Faults(Fault(CRASH, operation="create", path="*.commit"))
    with faults.process():
        write(faults.wrap(storage), rows(4, 5, v=7))
    assert faults.dead


def merge_on_read(storage: Storage) -> None:
    """Three delta commits of our own, two of them to logs."""
    write(
        storage, rows(6), "bulk_insert", **TO_LOGS, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    )
    write(storage, rows(4, v=1), **TO_LOGS)
    write(storage, rows(2, v=2), **TO_LOGS)


def dead_log_writer(storage: Storage) -> None:
    merge_on_read(storage)
    faults = Faults(Fault(CRASH, operation="create", path="*.deltacommit"))
    with faults.process():
        write(faults.wrap(storage), rows(4, 2, v=7), **TO_LOGS)
    assert faults.dead


WITH_METADATA = {"hoodie.metadata.enable": "true"}


def listed(storage: Storage) -> None:
    """Three commits of a table with a metadata table."""
    write(storage, rows(6), **WITH_METADATA)
    write(storage, rows(2, 0, v=1))
    write(storage, rows(2, 6, v=2))


def dead_listed_writer(storage: Storage) -> None:
    """The same, and a write whose process died between the commit of the metadata table and its own."""
    listed(storage)
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/2*.commit"))
    with faults.process():
        write(faults.wrap(storage), rows(4, 5, v=7))
    assert faults.dead


def listed_versions(storage: Storage) -> None:
    """Six commits that rewrite the same rows, none cleaned, in a table with a metadata table."""
    for v in range(6):
        write(storage, rows(6, v=v), **WITH_METADATA, **{"hoodie.clean.automatic": "false"})


def listed_logs(storage: Storage) -> None:
    """Delta commits to logs, in a table with a metadata table."""
    made = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **WITH_METADATA}
    write(storage, rows(6), "bulk_insert", **TO_LOGS, **made)
    write(storage, rows(4, v=1), **TO_LOGS)
    write(storage, rows(2, v=2), **TO_LOGS)


def dead_listed_log_writer(storage: Storage) -> None:
    listed_logs(storage)
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/2*.deltacommit", nth=2))
    with faults.process():
        write(faults.wrap(storage), rows(4, 2, v=7), **TO_LOGS)
    assert faults.dead


INDEXED = {
    **WITH_METADATA,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}


def indexed(storage: Storage) -> None:
    """Two commits of a table whose metadata table has all indexes."""
    write(storage, rows(6), **INDEXED)
    write(storage, rows(2, 6, v=2))


def dead_indexed_writer(storage: Storage) -> None:
    indexed(storage)
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/2*.commit"))
    with faults.process():
        write(faults.wrap(storage), rows(4, 5, v=7))
    assert faults.dead


def indexed_logs(storage: Storage) -> None:
    made = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **INDEXED}
    write(storage, rows(6), "bulk_insert", **TO_LOGS, **made)
    write(storage, rows(4, v=1), **TO_LOGS)


def savepointed(storage: Storage) -> None:
    three_commits(storage)
    HudiTable._of(storage).savepoint()


def emptied_partition(storage: Storage) -> None:
    """A partition whose last rows were replaced, and commits after it: a cleaning removes files and folder."""
    write(storage, rows(6))
    HudiTable._of(storage, OPTIONS).delete_partitions(["p1"])
    for v in range(1, 4):
        write(storage, rows(1, v=v), **{"hoodie.clean.automatic": "false"})


# Two buckets on the ring of each partition.
ON_RINGS = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.num.buckets": "2", "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.compact.inline.max.delta.commits": "100"}  # fmt: skip


def on_rings(storage: Storage) -> None:
    """A partition with a ring, whose records are in logs too."""
    write(storage, rows(6).filter(pc.field("p") == "p1"), **ON_RINGS)
    write(storage, rows(2, 1, v=1).filter(pc.field("p") == "p1"))


IN_BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
"""Two buckets in each partition."""
FULL = {"hoodie.parquet.max.file.size": "100"}
"""All buckets are full."""


def in_buckets(storage: Storage) -> None:
    """Two commits of a table with simple buckets."""
    write(storage, rows(6), **IN_BUCKETS)
    write(storage, rows(2, 4, v=1))


def logged_buckets(storage: Storage) -> None:
    write(storage, rows(6), **IN_BUCKETS, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    write(storage, rows(2, 4, v=1))


def multiplied(storage: Storage) -> None:
    in_buckets(storage)
    _table(storage).resize_buckets(4)


def _multiply(storage: Storage) -> None:
    _table(storage).resize_buckets(4)


def _split_full(storage: Storage) -> None:
    most = {"hoodie.bucket.index.max.num.buckets": "4"}
    table = _table(storage)
    found = table.config.properties.get("hoodie.index.bucket.engine")
    table.resize_buckets(engine=None if found else "EXTENDIBLE_HASHING", options={**FULL, **most})


def _roll_back_newest(storage: Storage) -> None:
    """The resize, if it is still there; and what a rollback that was cut left."""
    table = _table(storage)
    commits = table.timeline.completed_writes()
    if len(commits) > 2 and not table.timeline.pending(ROLLBACK):
        table.rollback(commits[-1].time)
    else:
        table.rollback()


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        act: does it.
        prepare: makes the table that it finds.
        again: whether a cut operation is continued by running it again, before the next write.
        through: whether earlier states of the table are passed through on the way, and what follows may end it.
        creates: whether there may be no table after a cut.
        writes: whether a write can follow.
        slow: left out of CI, where shorter ones cut the same steps.
    """

    name: str
    act: Act
    prepare: Callable[[Storage], None] = three_commits
    again: bool = False
    through: bool = False
    creates: bool = False
    writes: bool = True
    slow: bool = False


def _table(storage: Storage) -> HudiTable:
    return HudiTable._of(storage, OPTIONS)


def _refused(storage: Storage) -> None:
    """A write that fails at its end and is rolled back with a record of it."""
    try:
        execute(LocalEngine(1), storage, rows(4, 4, v=8), {**OPTIONS, "hoodie.clean.automatic": "false"},
                validators=[_says_no])  # fmt: skip
    except ValidationError:
        return
    raise AssertionError("the validator was not asked")


def _says_no(change: object) -> bool:
    return False


def _broken(storage: Storage) -> None:
    """A write that fails while its files are there, and is rolled back."""
    transaction = begin_transaction(storage, table_config.load(storage), operation="UPSERT")
    try:
        with transaction:
            transaction.inflight({})
            name = f"aa000001-1111-1111-1111-1111111111aa-0_0-1-0_{transaction.instant}.parquet"
            markers.create(storage, transaction.instant, "p0", name, "CREATE")
            storage.touch(f"p0/{name}", b"half")
            raise _Failed
    except _Failed:
        return


class _Failed(Exception):
    """What the write fails by."""


def _savepoint_first(storage: Storage) -> None:
    table = _table(storage)
    first = table.timeline.completed_writes()[0].time
    if first not in table.savepoints:  # run again after a cut, it may be done
        table.savepoint(first)


def _restore(storage: Storage) -> None:
    table = _table(storage)
    table.restore(table.timeline.completed_writes()[0].time)


def _delete_savepoint(storage: Storage) -> None:
    table = _table(storage)
    for at in table.savepoints:
        table.delete_savepoint(at)


_KEEP_ONE = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def _first_commit(storage: Storage) -> None:
    table = _table(storage)
    table.restore(table.timeline.completed_writes()[0].time)


def _roll_back_third(storage: Storage) -> None:
    """The third commit, if it is still there; and what a rollback that was cut left."""
    table = _table(storage)
    commits = table.timeline.completed_writes()
    if len(commits) > 2 and not table.timeline.pending(ROLLBACK):
        table.rollback(commits[2].time)
    else:
        table.rollback()


def _roll_back_compaction(storage: Storage) -> None:
    table = _table(storage)
    for instant in table.timeline.pending(COMPACTION):
        if instant.state == INFLIGHT:
            table.rollback(instant.time)
    table.rollback()


def delta_commits(storage: Storage) -> None:
    """A merge-on-read table: base files, and two commits of log files."""
    made = TableBuilder(storage, table_type="MERGE_ON_READ")
    made.commit(
        "first",
        made.base("first", {"k1": 1, "k2": 2}),
        made.base("first", {"k3": 3}, group=2, partition="p1"),
    )
    made.commit("second", made.log("second", {"k1": 10, "k4": 4}))
    made.commit(
        "third",
        made.log("third", {"k2": 20}, deletes=["k1"]),
        made.log("third", {"k3": 30}, group=2, partition="p1"),
    )


def dead_delta_commit(storage: Storage) -> None:
    made = TableBuilder(storage, table_type="MERGE_ON_READ")
    made.commit("first", made.base("first", {"k1": 1, "k2": 2}))
    made.commit("second", made.log("second", {"k1": 10}))
    instant = made.pending("third")
    for stat in (made.log("third", {"k2": 20}), made.base("third", {"k5": 5}, group=5)):
        kind = "APPEND" if ".log." in stat.path else "CREATE"
        markers.create(storage, instant, "p0", stat.path.rpartition("/")[2], kind)


def scheduled(storage: Storage) -> None:
    delta_commits(storage)
    _table(storage).compact(mode="schedule")


def _unschedule(storage: Storage) -> None:
    table = _table(storage)
    for instant in table.timeline.pending(COMPACTION):
        table.unschedule_compaction(instant.time)


def _run_compactions(storage: Storage) -> None:
    """Each by its name: else one that is begun, and has no heartbeat, is left to the program that began it."""
    table = _table(storage)
    for instant in table.timeline.pending("compaction"):
        table.compact(mode="execute", instant=instant.time)
    table.compact()


def dead_compaction(storage: Storage) -> None:
    make_state("dead compaction", storage)


def version_5(storage: Storage) -> None:
    three_commits(storage)
    HudiTable._of(storage).downgrade()


def littered(storage: Storage) -> None:
    """What repair takes away: files of no instant, a marker, an inflight file too few."""
    three_commits(storage)
    newest = HudiTable._of(storage).timeline.completed_writes()[-1]
    storage.touch("p0/aa000001-1111-1111-1111-1111111111aa-0_0-1-0_20990101000000000.parquet", b"half")
    markers.create(
        storage, newest.time, "p0", f"{TableBuilder.group(1)}_0-1-0_{newest.time}.parquet", "CREATE"
    )
    storage.delete(f".hoodie/{newest.time}.inflight")


def _properties(storage: Storage) -> None:
    table = _table(storage)
    table.overwrite_properties({**table.config.properties, "hoodie.table.type": "MERGE_ON_READ"})


OPERATIONS = {
    o.name: o
    for o in (
        Operation("insert", lambda s: write(s, rows(2, 10, v=3), "insert")),
        Operation("upsert", lambda s: write(s, rows(6, 3, v=3))),
        Operation("bulk_insert", lambda s: write(s, rows(3, 10, v=3), "bulk_insert")),
        Operation("delete", lambda s: write(s, rows(4).select(["id", "p"]), "delete")),
        Operation("delete by filter", lambda s: _table(s).delete("v = 1")),
        Operation("delete_partition", lambda s: _table(s).delete_partitions(["p1"])),
        Operation("insert_overwrite", lambda s: write(s, rows(1, 20, v=3), "insert_overwrite")),
        Operation("insert_overwrite_table", lambda s: write(s, rows(2, 20, v=3), "insert_overwrite_table")),
        Operation("upsert on rings, of which one is new", lambda s: write(s, rows(6, 2, v=3)), on_rings),
        Operation("insert_overwrite of a ring", lambda s: write(s, rows(3, 20, v=3), "insert_overwrite"), on_rings),
        Operation("delete_partition with a ring", lambda s: _table(s).delete_partitions(["p1"]), on_rings),
        Operation("buckets multiplied", _multiply, logged_buckets, again=True),
        Operation("full buckets split", _split_full, in_buckets),
        Operation("rings split", lambda s: _table(s).resize_buckets(options=FULL), on_rings),
        Operation("rollback of multiplied buckets", _roll_back_newest, multiplied, again=True),
        Operation("upsert that logs changes", lambda s: write(s, rows(6, 3, v=3)), logging),
        Operation("insert that logs changes", lambda s: write(s, rows(2, 10, v=3), "insert"), logging),
        Operation("upsert to logs", lambda s: write(s, rows(6, 3, v=3), **TO_LOGS), merge_on_read),
        Operation("delete to logs", lambda s: write(s, rows(4).select(["id", "p"]), "delete", **TO_LOGS),
                  merge_on_read),
        Operation("upsert to logs, and a compaction", lambda s: write(
            s, rows(6, 3, v=3), **{**TO_LOGS, "hoodie.compact.inline.max.delta.commits": "3"}), merge_on_read),
        Operation("rollback of a dead write to logs", lambda s: write(s, rows(2, 1, v=3), **TO_LOGS),
                  dead_log_writer),
        Operation("rollback of a dead write that logged changes", lambda s: write(s, rows(2, 10, v=3)),
                  dead_logging_writer),
        Operation("first write, listed", lambda s: write(s, rows(3), **WITH_METADATA), nothing, creates=True,
                  again=True, slow=True),
        Operation("metadata table made", lambda s: write(s, rows(2, 10, v=3), "insert", **WITH_METADATA), slow=True),
        Operation("metadata table dropped", lambda s: write(
            s, rows(2, 10, v=3), "insert", **{"hoodie.metadata.enable": "false"}), listed, slow=True),
        Operation("upsert, listed", lambda s: write(s, rows(6, 3, v=3)), listed),
        Operation("upsert to logs, listed, and a compaction", lambda s: write(
            s, rows(6, 3, v=3), **{**TO_LOGS, "hoodie.compact.inline.max.delta.commits": "3"}), listed_logs, slow=True),
        Operation("rollback of a dead write, listed", lambda s: write(s, rows(2, 10, v=3)),
                  dead_listed_writer, slow=True),
        Operation("rollback of a dead write to logs, listed", lambda s: write(s, rows(2, 1, v=3), **TO_LOGS),
                  dead_listed_log_writer),
        Operation("write with services, listed", lambda s: write(
            s, rows(2, v=8), **{**_KEEP_ONE, "hoodie.metadata.compact.max.delta.commits": "2"}),
                  listed_versions, slow=True),
        Operation("delete, indexed", lambda s: write(s, rows(4, 4).select(["id", "p"]), "delete"), indexed),
        Operation("upsert, indexed", lambda s: write(s, rows(6, 3, v=3)), indexed, slow=True),
        Operation("insert_overwrite, indexed", lambda s: write(s, rows(1, 20, v=3), "insert_overwrite"), indexed,
                  slow=True),
        Operation("indexes made", lambda s: write(s, rows(2, 10, v=3), "insert", **INDEXED), slow=True),
        Operation("one index dropped", lambda s: write(
            s, rows(2, 10, v=3), "insert", **{"hoodie.metadata.record.index.enable": "false"}), indexed, slow=True),
        Operation("delete to logs, indexed, and a compaction", lambda s: write(
            s, rows(4, 1).select(["id", "p"]), "delete",
            **{**TO_LOGS, "hoodie.compact.inline.max.delta.commits": "2"}), indexed_logs, slow=True),
        Operation("rollback of a dead write, indexed", lambda s: write(s, rows(2, 10, v=3)), dead_indexed_writer,
                  slow=True),
        Operation("write with a compaction of indexes", lambda s: write(
            s, rows(2, v=8), **{**_KEEP_ONE, "hoodie.metadata.compact.max.delta.commits": "2"}), indexed, slow=True),
        Operation("restore, indexed", _restore, indexed, again=True, through=True, slow=True),
        Operation("restore, listed", _restore, listed, again=True, through=True, slow=True),
        Operation("first write", lambda s: write(s, rows(3)), nothing, creates=True, again=True),
        Operation("create table", lambda s: _create(s), nothing, creates=True, again=True),
        Operation("mode overwrite", lambda s: write(s, rows(2, 30, v=3), "insert", "overwrite"), creates=True,
                  slow=True),  # CI cuts it in hudi-timeline's test_overwrite
        Operation("rollback of a dead write", lambda s: write(s, rows(2, 10, v=3)), dead_writer),
        Operation("rollback of a refused write", _refused),
        Operation("rollback of a broken write", _broken),
        Operation("lazy rollback", lambda s: _table(s).clean(
            options={"hoodie.cleaner.policy.failed.writes": "LAZY"}), dead_writer),
        Operation("savepoint", _savepoint_first, again=True),
        Operation("delete savepoint", _delete_savepoint, savepointed, again=True),
        Operation("restore", _restore, again=True, through=True),
        Operation("clean", lambda s: _table(s).clean(
            options={"hoodie.cleaner.commits.retained": "2"}), six_versions),
        Operation("clean of a partition", lambda s: _table(s).clean(
            options={"hoodie.cleaner.commits.retained": "1"}), emptied_partition),
        Operation("archive", lambda s: _table(s).archive(options=_KEEP_ONE), six_versions),
        Operation("write with services", lambda s: write(s, rows(2, v=8), **_KEEP_ONE), six_versions),
        Operation("rollback of a commit", _roll_back_third, again=True),
        Operation("rollback of a commit, and a write", _roll_back_third, through=True),
        Operation("rollback of a delta commit", _roll_back_third, delta_commits, again=True, writes=False),
        Operation("rollback of a dead delta commit", lambda s: _table(s).rollback(), dead_delta_commit,
                  again=True, writes=False),
        Operation("rollback of a dead compaction", _roll_back_compaction, dead_compaction,
                  again=True, writes=False),
        Operation("restore of delta commits", _first_commit, delta_commits, again=True, through=True, writes=False),
        Operation("compaction", lambda s: _table(s).compact(), delta_commits, again=True, writes=False),
        Operation("schedule of a compaction", lambda s: _table(s).compact(mode="schedule"), delta_commits,
                  again=True, writes=False),
        Operation("run of a dead compaction", _run_compactions, dead_compaction, again=True, writes=False),
        Operation("unschedule of a compaction", _unschedule, scheduled, again=True, writes=False),
        Operation("upgrade", lambda s: _table(s).upgrade(), version_5, again=True),
        Operation("downgrade", lambda s: _table(s).downgrade(), again=True, writes=False),
        Operation("properties", _properties, again=True, writes=False),
        Operation("repair", lambda s: _table(s).repair(), littered, again=True),
        Operation("table config", lambda s: table_config.update(s, {"hoodie.x": "1"}, ["hoodie.table.cdc.enabled"])),
    )
}  # fmt: skip


def _create(storage: Storage) -> None:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "p",
        "hoodie.table.precombine.field": "ts",
    }
    if storage.info(table_config.PROPERTIES_FILE) is None:  # run again after a cut, it may be done
        table_config.create(storage, properties)
