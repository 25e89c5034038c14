"""Bucket index of a write: number of buckets and hash fields, by options and table.

Apache Hudi 0.15 stores neither, checks only that the fields are among the record key's, and so writes a key a second
time where another number is given.  Here the table keeps both, in hoodie.properties under Apache Hudi's own names,
whose writes take them from there, and each commit says them too.  A table that does not say them yet is looked
at once: its file groups and a sample of their keys must be those of the given number and fields.

Source: RFC-29; Apache Hudi 0.15.0, tried (tests/interop/test_bucket_index.py); apache/hudi#13241.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    OptionError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.file_names import is_bucket_file_id, looks_bucketed
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.model import FileSlice, WriteStat
from hudi_format.parquet.reader import read_keys
from hudi_index.bucket import DEFAULT_BUCKETS, FEATURE, BucketIndex, bucket_number
from hudi_index.consistent_hashing import ConsistentBucketIndex
from hudi_index.lookup import BUCKET, LookupTask
from hudi_timeline.file_system_view.bucket_settings import ENGINES, name_of, recorded_settings, settled
from hudi_timeline.file_system_view.file_slices import MERGE_ON_READ, newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import any_ring, has_rings, with_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.file_options import (
    BUCKET_ENGINE,
    EXTENDIBLE_HASHING,
    HASH_FIELDS,
    INDEX_TYPE,
    NUM_BUCKETS,
)
from hudi_timeline.options.table_options import TABLE_TYPE

# Above this many groups, numbers below `looks_bucketed`'s bound cannot be chance; for fewer, only small ones
# count: a random id would pass for a bucket's in one of 400,000 tables of one file group.
_FEW_GROUPS = 3
_SMALL_BUCKET = 10_000
# Files whose keys are looked at where the table does not say its settings.
_SAMPLE = 8
_ANEW = 'write the table anew (mode "overwrite") to change anything else of it.'


def bucketed_files(snapshot: TableSnapshot) -> str:
    """File id that shows that a table is written with a bucket index; "" where none does."""
    ring = any_ring(snapshot) if has_rings(snapshot) else None
    if ring is not None:
        return ring.nodes[0].file_id
    ids: list[str] = []
    for instant in reversed(snapshot.timeline.completed_writes()):
        ids = sorted({s.file_id for s in snapshot.commits.get(instant).stats if s.file_id})
        if ids:
            break
    small = len(ids) > _FEW_GROUPS or all(is_bucket_file_id(i) and int(i[:8]) < _SMALL_BUCKET for i in ids)
    return ids[0] if small and looks_bucketed(ids) else ""


def settings(
    config: WriteConfig,
    key_spec: KeySpec,
    snapshot: TableSnapshot | None,
    kind: str,
    recorded: str | None,
    *,
    table: str,
) -> BucketIndex | None:
    """Settings of a write with the index BUCKET; None for another one.

    Args:
        snapshot: the table; None for a new one.
        kind: the write's index.
        recorded: the index that the table remembers.

    Raises:
        ConflictingOptionError: the options contradict the table, or its file groups.
        OptionError: nobody says the number of buckets of a table that is there.
        InvalidOptionError: hash fields that are not all in the record key.
        UnsupportedError: file groups that no such index has, record keys that are made up, or consistent hashing of a
            copy-on-write table.
    """
    if kind != BUCKET:
        _refuse_settings(config, kind, table=table)
        return None
    if key_spec.auto:
        raise UnsupportedError(
            "record keys are made up, and the index BUCKET needs keys of columns", table=table,
            remedy=f"name the record key fields, or omit {INDEX_TYPE}.", option=INDEX_TYPE,
        )  # fmt: skip
    said, groups = None, []
    if snapshot is not None:
        extra = (snapshot.commits.get(i).extra for i in reversed(snapshot.timeline.completed_writes()))
        said = recorded_settings(
            settled(snapshot.config.properties, snapshot.timeline), extra if recorded == BUCKET else ()
        )
        groups = [] if said is not None and recorded == BUCKET else newest_slices_of(snapshot)
    ring = any_ring(snapshot) if snapshot is not None and has_rings(snapshot) else None
    kept = _engine(config, snapshot, said, has_ring=ring is not None, table=table)
    consistent = kept is ConsistentBucketIndex
    number = config.num_buckets
    if ring is not None and said is None:
        number = number or ring.num_buckets
    if said is not None:
        if number is not None and number != said.num_buckets:
            raise _conflict(NUM_BUCKETS, number, said.num_buckets, table)
        number = said.num_buckets
    elif ring is None and groups and consistent:
        raise _foreign(groups[0], table, " by consistent hashing")
    elif number is None and groups and bucket_number(groups[0].file_id) is None:
        raise _foreign(groups[0], table)
    elif number is None and groups:
        raise OptionError(
            f"the table has file groups of a bucket index, such as {groups[0].file_id}, and says nowhere how many "
            "buckets a partition has",
            table=table,
            remedy=f"set {INDEX_TYPE}=BUCKET, {NUM_BUCKETS} and, if not all record key fields are hashed, "
            f"{HASH_FIELDS} as the table was written with (Apache Hudi's default is {DEFAULT_BUCKETS}).",
            option=NUM_BUCKETS,
        )
    fields = config.hash_fields or ()
    stored = () if said is None else said.fields
    if stored and fields and set(stored) != set(fields):
        raise _conflict(HASH_FIELDS, ",".join(fields), ",".join(stored), table)
    fields = stored or fields or key_spec.key_fields
    others = [f for f in fields if f not in key_spec.key_fields]
    if others:
        raise InvalidOptionError(
            f"{HASH_FIELDS} names {', '.join(others)}, which is not in the record key "
            f"({', '.join(key_spec.key_fields)}): an update of it would go to another bucket",
            table=table, remedy="hash fields of the record key only, or omit it for all of them.", option=HASH_FIELDS,
        )  # fmt: skip
    index = kept(number or DEFAULT_BUCKETS, tuple(fields))
    if groups and snapshot is not None:
        _check_groups(index, snapshot, table)
    return index


def _engine(
    config: WriteConfig,
    snapshot: TableSnapshot | None,
    said: BucketIndex | None,
    *,
    has_ring: bool,
    table: str,
) -> type[BucketIndex]:
    """Kind of bucket index.

    Raises:
        ConflictingOptionError: the table has another one.
        UnsupportedError: consistent hashing of a copy-on-write table.
    """
    of_table = ConsistentBucketIndex if has_ring else None if said is None else type(said)
    asked = None if config.bucket_engine is None else ENGINES[config.bucket_engine]
    if asked is not None and of_table not in (None, asked):
        raise _conflict(BUCKET_ENGINE, config.bucket_engine, name_of(of_table), table)
    kept = of_table or asked or BucketIndex
    if kept is not ConsistentBucketIndex:
        return kept
    kind = config.table_type if snapshot is None else snapshot.config.table_type
    if kind != MERGE_ON_READ:
        raise UnsupportedError(
            "a copy-on-write table cannot have consistent hashing, nor can it in Apache Hudi", table=table,
            remedy=f"set {TABLE_TYPE}={MERGE_ON_READ}, or {BUCKET_ENGINE}={EXTENDIBLE_HASHING}.", option=BUCKET_ENGINE,
        )  # fmt: skip
    return kept


def _conflict(option: str, given: object, stored: object, table: str) -> ConflictingOptionError:
    return ConflictingOptionError(
        f"{option} is {given}, but the table was written with {stored}: keys would be looked for in other file groups, "
        "and written a second time",
        table=table, remedy=f"omit it; `hudi buckets resize PATH` gives the table more buckets, and {_ANEW}",
        option=option,
    )  # fmt: skip


def _foreign(piece: FileSlice, table: str, which: str = "") -> ConflictingOptionError:
    return ConflictingOptionError(
        f"the index is BUCKET{which}, but the table has file group {piece.file_id} in partition "
        f"{piece.partition!r}, which is none of them" if which else
        f"the index is BUCKET, but file group {piece.file_id} in partition {piece.partition!r} is no bucket",
        table=table,
        remedy=f"set {NUM_BUCKETS} to what the table was written with, or, if it was written with another index, "
        f"use that one; {_ANEW}",
        option=INDEX_TYPE if bucket_number(piece.file_id) is None else NUM_BUCKETS,
    )  # fmt: skip


def _check_groups(index: BucketIndex, snapshot: TableSnapshot, table: str) -> None:
    """Refuse settings that the file groups, and a sample of their keys, contradict.

    Raises:
        ConflictingOptionError: a file group or key of other settings.
        UnsupportedError: two file groups of one bucket.
    """
    by_partition: dict[str, list[str]] = {}
    files = []
    slices = newest_slices_of(snapshot)
    index = with_rings(index, snapshot, {s.partition for s in slices})
    for piece in slices:
        if index.number(piece.file_id, piece.partition) is None:
            raise _foreign(piece, table, f" with {index.num_buckets} buckets")
        by_partition.setdefault(piece.partition, []).append(piece.file_id)
        if piece.base_file is not None:
            files.append(piece.base_file)
    for partition, ids in by_partition.items():
        index.groups(partition, ids, table=table)
    config = snapshot.config
    virtual = None if config.populate_meta_fields else config.record_key_spec()
    for file in files[:: max(1, -(-len(files) // _SAMPLE))]:
        keys = read_keys(snapshot.storage, file.path, virtual, size=file.size)
        try:
            index.check_keys(keys, file.file_id, partition=file.partition, table=table, path=file.path)
        except UnsupportedError as e:
            raise ConflictingOptionError(
                e.message, table=table, file=file.path, remedy=e.remedy, option=NUM_BUCKETS
            ) from None


def _refuse_settings(config: WriteConfig, index: str, *, table: str) -> None:
    """Refuse settings of a bucket index in a write with another index.

    Raises:
        ConflictingOptionError: the option, and the index.
    """
    if config.num_buckets is not None:
        raise ConflictingOptionError(
            f"{NUM_BUCKETS} is given, but the write's index is {index}", table=table,
            remedy=f"set {INDEX_TYPE}=BUCKET for a new table, or omit it.", option=NUM_BUCKETS,
        )  # fmt: skip


def with_groups(
    task: LookupTask,
    slices: Mapping[str, Sequence[FileSlice]],
    snapshot: TableSnapshot,
    *,
    looks: bool = False,
) -> LookupTask:
    """The task of a look-up, with the table's file groups and rings for a bucket index.

    Args:
        looks: whether keys are looked for.

    Raises:
        UnsupportedError: keys are to be looked for, and some may stand in logs only; or file groups of a ring were
            replaced.
    """
    if task.bucket is None:
        return task
    logged = next((s for of in slices.values() for s in of if s.log_files), None)
    if logged is not None and (looks or task.drop_known):
        raise UnsupportedError(
            f"known keys are not looked for in log files, and file group {logged.file_id} has some: with the index "
            "BUCKET new records go to logs",
            table=snapshot.storage.uri, remedy="upsert the rows, or compact the table first.", feature=FEATURE,
        )  # fmt: skip
    index = with_rings(task.bucket, snapshot, slices)
    if isinstance(index, ConsistentBucketIndex):
        _refuse_replaced(index, snapshot)
    return replace(
        task,
        bucket=index,
        groups={p: tuple(s.file_id for s in of) for p, of in slices.items()},
    )


def _refuse_replaced(index: ConsistentBucketIndex, snapshot: TableSnapshot) -> None:
    """Refuse rings with file groups that were replaced, as Apache Hudi leaves them.

    Raises:
        UnsupportedError: the file group, and what replaced it.
    """
    gone = snapshot.written().replaced
    for partition, ring in index.rings.items():
        for node in ring.nodes:
            at = gone.get((partition, node.file_id))
            if at is not None:
                raise UnsupportedError(
                    f"file group {node.file_id} of partition {partition!r} was replaced by {at} and still is on the "
                    "partition's ring: rows that are written into it are not read",
                    table=snapshot.storage.uri, feature=FEATURE, instant=at,
                    remedy="write the partition's rows with insert_overwrite, which gives it new file groups.",
                )  # fmt: skip


def refuse_second_groups(
    index: BucketIndex,
    stats: Sequence[WriteStat],
    others: Iterable[tuple[str, Sequence[WriteStat]]],
    *,
    table: str,
    instant: str,
) -> None:
    """Refuse a commit that gives a bucket a second file group.

    Two writes that both put the first record into a bucket make a file group each, which share no file id.

    Args:
        stats: of this write.
        others: instants completed since this write began, with their statistics.

    Raises:
        WriteConflictError: another write made another file group of one of this write's buckets first.
    """
    if isinstance(index, ConsistentBucketIndex):  # the ring gives each bucket one file id
        return
    own = {(s.partition, bucket_number(s.file_id)): s.file_id for s in stats}
    for rival, written in others:
        for stat in written:
            mine = own.get((stat.partition, bucket_number(stat.file_id)))
            if mine is not None and mine != stat.file_id:
                raise WriteConflictError(
                    f"{rival} made file group {stat.file_id} of the same bucket of partition {stat.partition!r} first",
                    table=table, instant=instant,
                    remedy="run the write again; it then builds on the other one's result.", rival=rival,
                    file_groups=[f"{stat.partition or '.'}/{stat.file_id}"],
                )  # fmt: skip
