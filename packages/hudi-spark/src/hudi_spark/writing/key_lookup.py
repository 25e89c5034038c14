"""Key lookup of BLOOM, the global indexes and the record index on Spark.

The latest files are dealt out to as many tasks as run side by side.  A task gets the keys of its files'
partitions (for a global index: all keys), asks the footers, reads the keys of the files that are left, and hands
back the keys that it found with their places.  Of the incoming rows only keys cross to Python for that, of the
files only footers and key columns are read, and nothing passes through the driver.

With the record index each task gets the keys of some of its shards instead, once each, and reads the index.

A place is that of a row's number, which stands for a key only as long as the rows are kept.  Where an executor is lost
with some of them, Spark evaluates these again, maybe in another order: so each place has its key's checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.errors import WriteFailedError
from hudi_format.model import BaseFile
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import FileLookup, KeyStages, LookupCount, LookupTask, surviving, with_equal_keys
from hudi_index.record_index import KeyLocator, files_are_cheaper, shards_by_task
from hudi_index.tagging import MOVED, STORED_IN
from hudi_spark.runtime.python_workers import in_workers
from hudi_spark.types import quoted
from hudi_spark.writing.bucket_partitioner import entry_sql, slots, small_frame
from hudi_spark.writing.deleted_keys import is_delete
from hudi_spark.writing.key_places import (
    CHECKSUM,
    DEAD,
    FOUND,
    LOGGED,
    PATH,
    ROW_ID,
    STAYS,
    checksum,
    checksums,
    found_type,
    place_batch,
    place_type,
)
from hudi_spark.writing.key_stages import COMPARED, TOLD, marks, without_marks
from hudi_spark.writing.rows_of_keys import HAS_DATA, ordering_of
from hudi_spark.writing.stored_keys import FILE_ID

_SLOT, _PLACES, _GOES = "_hudi_slot", "_hudi_places", "_hudi_goes"
# Partition of a place beside that of the row, and the file id of a row that goes nowhere: no file's begins so.
_AT, _NOWHERE = "_hudi_at", ":"
# Whether a row stays in another partition than its own, where none moves.
LEFT = "_hudi_left"
# What opening one more file costs, in bytes of reading.
_FILE_COST = 1 << 20
# Up to this many partitions are written into the plan; above it they are joined.
_LITERAL_PARTITIONS = 256


class _Verdicts(AccumulatorParam[dict[str, str]]):
    """Accumulated verdicts per file; idempotent, as tasks may run twice."""

    def zero(self, value: dict[str, str]) -> dict[str, str]:
        return {}

    def addInPlace(self, value1: dict[str, str], value2: dict[str, str]) -> dict[str, str]:
        value1.update(value2)
        return value1


class Lookup:
    """One lookup of a number of rows: located ones, and statistics once they were computed.

    Args:
        stages: counts what resolved the keys, of found places with marks; None where they are not counted.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        task: LookupTask,
        parallelism: int,
        rows: int,
        stages: Callable[[DataFrame], tuple[DataFrame, KeyStages]] | None = None,
    ) -> None:
        self._stages = stages
        self._keys: KeyStages | None = None
        self._spark = spark
        self._storage = storage
        self._task = task
        self._parallelism = parallelism
        self._rows = rows
        self._verdicts: Accumulator[dict[str, str]] = spark.sparkContext.accumulator({}, _Verdicts())
        self._doubts: Accumulator[dict[str, str]] = spark.sparkContext.accumulator({}, _Verdicts())
        self._files = 0
        self.left = 0  # `LookupCount.left`, once it was counted

    @property
    def _marks(self) -> bool:
        return self._stages is not None

    @property
    def count(self) -> LookupCount:
        said = [d.partition(" ") for _, d in sorted(self._doubts.value.items())]
        count = LookupCount.of(
            self._task.index,
            self._verdicts.value.values(),
            doubted=sum(int(n) for n, _, _ in said),
            why=next((why for _, _, why in said), ""),
        )
        count = replace(count, keys=self._keys, left=self.left)
        return count if self._task.locator is None else replace(count, files=self._files)

    def find(self, rows: DataFrame, files: Mapping[str, Sequence[BaseFile]]) -> DataFrame:
        """Found locations by `ROW_ID`, for a left join with the rows."""
        self._files = sum(len(of) for of in files.values())
        task, locator = self._task, self._task.locator
        asked = files, task.groups, locator, self._rows, self._parallelism
        if task.logged is None and files_are_cheaper(self._storage, *asked):
            self._task = replace(task, locator=None)
        elif locator is not None:
            return self._by_index(rows, files, locator)
        return self._over_all(rows, files) if self._task.is_global else self._within(rows, files)

    def placed(self, joined: DataFrame) -> DataFrame:
        """Rows with `FILE_ID` ("" for none), once per target.

        With a global index also with `MOVED` or `LEFT`, and with the partition that they go to.
        """
        joined = of_their_keys(joined)
        if self._task.is_global:
            return (_sent_to_each if self._each_by_itself else _sent_on)(joined, self._task)
        return joined.withColumn(FILE_ID, F.coalesce(F.col(FILE_ID), F.lit("")))

    def _places(self, found: DataFrame) -> DataFrame:
        """Places that workers found, whose keys are counted where that is asked for."""
        if self._stages is None:
            return found
        found, self._keys = self._stages(found)
        return without_marks(found)

    def _within(self, rows: DataFrame, files: Mapping[str, Sequence[BaseFile]]) -> DataFrame:
        groups = deal(files, self._parallelism)
        number = slots(len(groups))
        of_partition: dict[str, list[int]] = {}
        for slot, group in zip(number, groups, strict=True):
            for partition in dict.fromkeys(f.partition for f in group):
                of_partition.setdefault(partition, []).append(slot)
        keys = rows.select(RECORD_KEY, PARTITION_PATH, ROW_ID)
        sent = self._with_slots(keys, of_partition).repartition(len(groups), _SLOT)
        worker = FindInPartitions(
            self._storage, self._task, self._verdicts, self._marks, dict(zip(number, groups, strict=True))
        )
        found = self._places(in_workers(sent, worker, FOUND))
        if self._task.logged is None:
            return found.drop(DEAD)
        places = F.collect_list(F.struct(FILE_ID, DEAD))
        counted = found.groupBy(ROW_ID, CHECKSUM).agg(places.alias(_PLACES))
        alive = F.explode(_that_count(F.col(_PLACES), self._task)).alias(_GOES)
        file = F.col(f"{_GOES}.{FILE_ID}").alias(FILE_ID)
        return counted.select(ROW_ID, CHECKSUM, alive).select(ROW_ID, CHECKSUM, file)

    def _with_slots(self, keys: DataFrame, of_partition: Mapping[str, list[int]]) -> DataFrame:
        """Each key once per task with files of its partition."""
        if len(of_partition) > _LITERAL_PARTITIONS:
            kinds = (
                T.StructType().add(PARTITION_PATH, T.StringType()).add(_SLOT, T.ArrayType(T.IntegerType()))
            )
            table = small_frame(self._spark, of_partition.items(), kinds)
            joined = keys.join(F.broadcast(table), PARTITION_PATH)
            return joined.select(*keys.columns, F.explode(_SLOT).alias(_SLOT))
        entries = {p: f"array({','.join(map(str, numbers))})" for p, numbers in of_partition.items()}
        of_row = F.expr(entry_sql(PARTITION_PATH, entries)) if entries else F.array().cast("array<int>")
        return keys.select("*", F.explode(of_row).alias(_SLOT))

    def _needed(self) -> list[str]:
        """Columns of the rows that decide where they go."""
        task = self._task
        wanted = [RECORD_KEY, PARTITION_PATH, ROW_ID]
        if task.ordering_column is not None and (task.combine or task.compares_stored):
            wanted.append(f"`{task.ordering_column.name}`")
        return wanted

    def _by_index(
        self, rows: DataFrame, files: Mapping[str, Sequence[BaseFile]], locator: KeyLocator
    ) -> DataFrame:
        """Locations by the record index, each task asking for the keys of its shards."""
        task = self._task
        of_shard = shards_by_task(locator.count, self._parallelism)
        tasks = max(of_shard, default=0) + 1
        number = slots(tasks)
        keys = rows.select(*self._needed())
        slot = T.StructType([*keys.schema.fields, T.StructField(_SLOT, T.IntegerType())])
        dealt = in_workers(keys, DealByShard(locator, tuple(number[n] for n in of_shard)), slot)
        worker = FindByIndex(self._storage, task, self._verdicts, self._marks, dict(files), self._doubts)
        return self._grouped(in_workers(dealt.repartition(tasks, _SLOT), worker, found_type(task)))

    @property
    def _each_by_itself(self) -> bool:
        """Whether where a row goes is told by each of its places, without a look at the others.

        Where rows move, what becomes of one place depends on the others, and of those beside logs some do not count.
        """
        return not self._task.update_partition and self._task.logged is None

    def _grouped(self, found: DataFrame) -> DataFrame:
        """All places of each row: together, or each in a row of its own."""
        found = self._places(found)
        if self._each_by_itself:
            file = F.coalesce(F.col(FILE_ID), F.lit(_NOWHERE))
            return found.select(ROW_ID, CHECKSUM, file.alias(FILE_ID), F.col(PARTITION_PATH).alias(_AT))
        place = F.struct(*(f.name for f in place_type(self._task)))
        return found.groupBy(ROW_ID, CHECKSUM).agg(F.collect_list(place).alias(_PLACES))

    def _over_all(self, rows: DataFrame, files: Mapping[str, Sequence[BaseFile]]) -> DataFrame:
        task = self._task
        groups = deal(files, self._parallelism)
        wanted = self._needed()
        number = slots(len(groups))
        every = F.explode(F.array(*map(F.lit, number))).alias(_SLOT)
        sent = rows.select(*wanted, every).repartition(len(groups), _SLOT)
        worker = FindEverywhere(
            self._storage,
            task,
            self._verdicts,
            self._marks,
            dict(zip(number, groups, strict=True)),
            number[0],
        )
        return self._grouped(in_workers(sent, worker, found_type(task)))


def of_their_keys(joined: DataFrame) -> DataFrame:
    """Rows joined with places, all of which are those of their own keys; else the job fails.

    Without this a row would take the place of another one, and be there a second time beside itself.
    """
    error = WriteFailedError(
        "rows that Spark lost, with an executor, came in another order when it evaluated them again",
        remedy="run the write again; nothing of it is visible. Where this happens often, save the rows first.",
    )
    other = F.raise_error(f"{type(error).__module__}.{type(error).__name__}: {error}").cast("boolean")
    same = F.col(CHECKSUM).isNull() | (F.col(CHECKSUM) == checksum())
    return joined.where(F.when(same, F.lit(True)).otherwise(other)).drop(CHECKSUM)


def _sent_to_each(rows: DataFrame, task: LookupTask) -> DataFrame:
    """As `_sent_on`, of rows that stay where they are, joined with each place by itself."""
    at, here, file = F.col(_AT), F.col(PARTITION_PATH), F.col(FILE_ID)
    # A place without a file: another row of the key is kept.
    kept = rows.where(file.isNull() | (file != _NOWHERE))
    left = F.coalesce(at != here, F.lit(False)) & ~is_delete(rows, task)
    own = (RECORD_KEY, PARTITION_PATH, FILE_ID, _AT, HAS_DATA)
    others = [quoted(n) for n in rows.columns if n not in own]
    return kept.select(
        RECORD_KEY,
        F.coalesce(at, here).alias(PARTITION_PATH),
        *others,
        F.coalesce(file, F.lit("")).alias(FILE_ID),
        F.lit(False).alias(MOVED),
        left.alias(LEFT),
    )


def _sent_on(rows: DataFrame, task: LookupTask) -> DataFrame:
    """Rows with the locations of their keys, once per target."""
    places = F.coalesce(F.col(_PLACES), F.array().cast(T.ArrayType(place_type(task))))
    if task.logged is not None:
        places = _that_count(places, task)
    # A place without a file: another row of the key is kept.
    kept = rows.where(~F.exists(places, lambda p: p[FILE_ID].isNull()))
    here = F.col(PARTITION_PATH)
    data = F.col(HAS_DATA) if HAS_DATA in rows.columns else ~is_delete(rows, task)
    may_move = data if task.update_partition else F.lit(False)
    may_be_left = ~is_delete(rows, task)
    nowhere = F.lit(None).cast("string")

    def goes(p: Column) -> Column:
        elsewhere = may_move & (p[PARTITION_PATH] != here)
        moved = elsewhere & ~p[STAYS]
        again = F.lit(False)  # merged with the stored record, where that is
        if task.renews_stored:
            again = elsewhere & p[STAYS]
        if task.merges_beside_logs and task.logged is not None:
            again = again | (may_move & ~moved & p[LOGGED])
        here_again = F.when(again, p[PATH])
        return F.struct(
            p[PARTITION_PATH].alias(PARTITION_PATH),
            p[FILE_ID].alias(FILE_ID),
            moved.alias(MOVED),
            *([] if task.update_partition else [(may_be_left & (p[PARTITION_PATH] != here)).alias(LEFT)]),
            *([here_again.alias(STORED_IN)] if task.needs_stored else []),
        )

    found = F.transform(places, goes)
    stored: list[Column] = []
    if task.needs_stored:
        filled = F.array_min(F.transform(places, lambda p: p[PATH])) if task.takes_values_along else nowhere
        stored = [filled.alias(STORED_IN)]
    left = [] if task.update_partition else [F.lit(False).alias(LEFT)]
    fresh = F.array(
        F.struct(
            here.alias(PARTITION_PATH), F.lit("").alias(FILE_ID), F.lit(False).alias(MOVED), *left, *stored
        )
    )
    # A record that leaves every file that it is in goes to its own partition as a new one.
    stays = F.exists(found, lambda g: ~g[MOVED])
    goals = F.when(stays, found).otherwise(F.concat(found, fresh))
    own = (RECORD_KEY, PARTITION_PATH, _PLACES, HAS_DATA)
    others = [quoted(n) for n in rows.columns if n not in own]
    named = [MOVED, *([LEFT] if left else []), *([STORED_IN] if stored else [])]
    spread = kept.select(RECORD_KEY, F.explode(goals).alias(_GOES), *others)
    return spread.select(
        RECORD_KEY,
        F.col(f"{_GOES}.{PARTITION_PATH}").alias(PARTITION_PATH),
        *others,
        F.col(f"{_GOES}.{FILE_ID}").alias(FILE_ID),
        *(F.col(f"{_GOES}.{n}").alias(n) for n in named),
    )


def _counting(lookup: FileLookup, file: BaseFile, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows found in a file that may count, and the mask of those that a log has deleted."""
    dead = lookup.deleted(file, at)
    logged = lookup.task.logged
    if logged is not None and file.path in logged.planned:
        at, dead = at[~dead], dead[~dead]
    return at, dead


def _that_count(places: Column, task: LookupTask) -> Column:
    """Places where a log has not deleted the key; of a key deleted everywhere one, as `tagging`."""
    alive = F.filter(places, lambda p: ~p[DEAD])
    if task.only_living:
        return alive
    return F.when(F.size(alive) > 0, alive).otherwise(F.slice(F.array_sort(places), 1, 1))


def deal(files: Mapping[str, Sequence[BaseFile]], tasks: int) -> list[tuple[BaseFile, ...]]:
    """Files in balanced groups, with each partition in few of them; at least one group."""
    all_files = [f for partition in sorted(files) for f in files[partition]]
    total = sum(max(f.size, 0) + _FILE_COST for f in all_files)
    share = -(-total // max(1, min(tasks, len(all_files))))
    groups: list[list[BaseFile]] = [[]]
    room = share
    for file in all_files:
        if room <= 0:
            groups.append([])
            room += share
        groups[-1].append(file)
        room -= max(file.size, 0) + _FILE_COST
    return [tuple(g) for g in groups]


@dataclass(frozen=True)
class _Find:
    """Worker that looks up keys; the last column of its rows is their slot number.

    Attributes:
        marks: whether rows whose keys were compared are marked.
    """

    storage: Storage
    task: LookupTask
    verdicts: Accumulator[dict[str, str]]
    marks: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [b for b in batches if b.num_rows]
        if not parts:
            return
        rows = pa.Table.from_batches(parts)
        slots_of = pa.compute.unique(rows.column(_SLOT)).to_pylist()
        for slot in slots_of:
            alone = len(slots_of) == 1
            yield from self._find(
                slot, rows if alone else rows.filter(pa.compute.equal(rows.column(_SLOT), slot))
            )

    def _find(self, slot: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Places of the keys of one slot."""
        raise NotImplementedError

    def _one_per_key(self, rows: pa.Table) -> tuple[pa.Table, FileLookup, pa.Table]:
        """The rows that are kept, what looks up their keys, and the rows that are not kept."""
        kept, ordering, lost = _kept(rows, self.task)
        compared = ordering if self.task.compares_stored else None
        return kept, FileLookup(self.storage, kept.column(RECORD_KEY), self.task, compared), lost


@dataclass(frozen=True)
class FindInPartitions(_Find):
    """Worker that looks up a task's partitions' keys in its files.

    Attributes:
        groups: files by slot number.
    """

    groups: Mapping[int, tuple[BaseFile, ...]]

    def _find(self, slot: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        ids = rows.column(ROW_ID).to_numpy()
        codes, known = _codes(rows)
        lookups: dict[int, tuple[FileLookup, np.ndarray]] = {}
        verdicts: dict[str, str] = {}
        for file in self.groups[slot]:
            code = known.get(file.partition)
            if code is None:
                continue
            if code not in lookups:
                mine = np.flatnonzero(codes == code)
                keys = rows.column(RECORD_KEY).take(pa.array(mine))
                lookups[code] = FileLookup(self.storage, keys, self.task), ids[mine]
            lookup, mine_ids = lookups[code]
            found = lookup.find(file)
            verdicts[_name(file)] = found.verdict
            if len(found.rows):
                at = with_equal_keys(found.rows, lookup.same_keys)
                at, dead = _counting(lookup, file, at)
                columns = [
                    pa.array(mine_ids[at]),
                    checksums(lookup.keys.take(pa.array(at))),
                    pa.repeat(pa.scalar(file.file_id), len(at)),
                    pa.array(dead),
                ]
                yield pa.RecordBatch.from_arrays(columns, names=FOUND.names)
        if self.marks:
            for lookup, mine_ids in lookups.values():
                yield marks(FOUND, mine_ids[_compared(lookup)], COMPARED)
        self.verdicts.add(verdicts)


@dataclass(frozen=True)
class FindEverywhere(_Find):
    """Worker that looks up all keys in a task's files.

    The task with slot `first` also says which rows go nowhere because another row of their key is kept: they get a
    place without a file.

    Attributes:
        groups: files by slot number.
    """

    groups: Mapping[int, tuple[BaseFile, ...]]
    first: int

    def _find(self, slot: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        task = self.task
        rows, lookup, lost = self._one_per_key(rows)
        if lost.num_rows and slot == self.first:
            yield place_batch(task, lost, None, None)
        codes, known = _codes(rows)
        verdicts: dict[str, str] = {}
        for file in self.groups[slot]:
            elsewhere = codes != known.get(file.partition, -1)
            found = lookup.find(file, elsewhere)
            lookup.check_base(
                file, found.rows, elsewhere if task.update_partition else np.zeros(len(codes), bool)
            )
            verdicts[_name(file)] = found.verdict
            if not len(found.rows):
                continue
            at = with_equal_keys(found.rows, lookup.same_keys)
            stays = None
            if found.stays is not None:
                stays = np.isin(at, with_equal_keys(found.rows[found.stays], lookup.same_keys))
            kept, dead = _counting(lookup, file, at)
            if stays is not None:
                stays = stays[np.isin(at, kept)]
            yield place_batch(task, rows, kept, file, stays, dead)
        if self.marks:
            yield marks(found_type(task), rows.column(ROW_ID).to_numpy()[_compared(lookup)], COMPARED)
        self.verdicts.add(verdicts)


@dataclass(frozen=True)
class DealByShard:
    """Worker that adds the slot of each key's shard.

    Attributes:
        slot: by shard.
    """

    locator: KeyLocator
    slot: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        slot = np.array(self.slot, dtype=np.int32)
        for batch in batches:
            shards = self.locator.shards(batch.column(batch.schema.get_field_index(RECORD_KEY)))
            columns = [*batch.columns, pa.array(slot[shards])]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, _SLOT])


@dataclass(frozen=True)
class FindByIndex(_Find):
    """Worker that asks the record index for the keys of its shards, with all rows of each.

    Attributes:
        files: all latest base files by partition.
        doubts: per slot, how many keys were looked for in the files, and why.
    """

    files: Mapping[str, Sequence[BaseFile]]
    doubts: Accumulator[dict[str, str]]

    def _find(self, slot: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        task = self.task
        rows, lookup, lost = self._one_per_key(rows)
        if lost.num_rows:
            yield place_batch(task, lost, None, None)
        told = lookup.places()
        if told is None:
            raise ValueError("a look-up by the record index needs one")
        held = dict(told.rows)
        if len(told.doubted):
            self.doubts.add({str(slot): f"{len(told.doubted)} {told.why}"})
            rest, verdicts = lookup.among(told.doubted), {}
            for file in (f for of in self.files.values() for f in of):
                found = rest.find(file)
                verdicts[_name(file)] = found.verdict
                if len(found.rows):
                    alive = told.doubted[found.rows[~rest.deleted(file, found.rows)]]
                    group = (file.partition, file.file_id)
                    held[group] = np.union1d(held[group], alive) if group in held else alive
            self.verdicts.add(verdicts)
            lookup.compared[told.doubted[rest.compared]] = True
        if self.marks:
            ids = rows.column(ROW_ID).to_numpy()
            for at in told.rows.values():
                yield marks(found_type(task), ids[with_equal_keys(at, lookup.same_keys)], TOLD)
            yield marks(found_type(task), ids[_compared(lookup)], COMPARED)
        codes, known = _codes(rows)
        bases = {(f.partition, f.file_id): f for of in self.files.values() for f in of if f.name}
        for (partition, file_id), mine in held.items():
            base = bases.get((partition, file_id))
            file = base or BaseFile(partition, "", file_id, "")  # it may have logs alone
            elsewhere = codes != known.get(partition, -1)
            lookup.check_base(file, mine, elsewhere if task.update_partition else np.zeros(len(codes), bool))
            stays = None if base is None else lookup.staying(file, mine, elsewhere)
            at = with_equal_keys(mine, lookup.same_keys)
            if stays is not None:
                stays = np.isin(at, with_equal_keys(mine[stays], lookup.same_keys))
            yield place_batch(task, rows, at, file, stays)


def _name(file: BaseFile) -> str:
    """What tells a file apart; one without a name is a file group."""
    return file.path if file.name else f"{file.partition}/{file.file_id}"


def _compared(lookup: FileLookup) -> np.ndarray:
    """Mask of rows whose keys were compared."""
    same = lookup.same_keys
    return lookup.compared if same is None else lookup.compared[same]


def _kept(rows: pa.Table, task: LookupTask) -> tuple[pa.Table, pa.ChunkedArray | pa.Array | None, pa.Table]:
    """Rows of which one is kept per key, in order, with ordering values; and the others."""
    rows = rows.sort_by(ROW_ID)
    ordering = ordering_of(rows, task)
    lost = rows.slice(0, 0)
    if not task.combine or task.fills_within or task.keeps_together:
        return rows, ordering, lost
    keep = surviving(rows.column(RECORD_KEY), task, ordering)
    if len(keep) == rows.num_rows:
        return rows, ordering, lost
    others = np.ones(rows.num_rows, dtype=bool)
    others[keep] = False
    lost = rows.take(pa.array(np.flatnonzero(others)))
    picked = pa.array(keep)
    return rows.take(picked), None if ordering is None else ordering.take(picked), lost


def _codes(rows: pa.Table) -> tuple[np.ndarray, dict[str, int]]:
    """Partition number of each row, and the partitions' numbers."""
    paths = rows.column(PARTITION_PATH).combine_chunks().dictionary_encode()
    known = {p: n for n, p in enumerate(paths.dictionary.to_pylist())}
    return paths.indices.to_numpy(zero_copy_only=False), known
