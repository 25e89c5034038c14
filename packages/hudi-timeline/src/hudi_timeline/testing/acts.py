"""Acts of every operation and service, with what each means for the rows.

    ACTS["upsert"](1)               # made with a number that only one actor has

Their table is that of `workload_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import pyarrow.compute as pc

from hudi_timeline import metadata_config
from hudi_timeline.options.file_options import NUM_BUCKETS
from hudi_timeline.options.write_options import DROP_DUPLICATES
from hudi_timeline.table import HudiTable
from hudi_timeline.table_config import TYPE
from hudi_timeline.testing.interleavings import Act, Rows
from hudi_timeline.testing.workload_table import (
    COLUMNS,
    CONSISTENT_HASHING,
    COPY_ON_WRITE,
    EXTENDIBLE_HASHING,
    INITIAL,
    MERGE_ON_READ,
    SAVED,
    SIMPLE,
    Columns,
    data_of,
    last_of,
    modelled,
    only,
    put,
    rows_of,
    savepoint_of,
)
from hudi_timeline.timeline.instant import COMPACTION

_METADATA = "hoodie.metadata.enable"
# No value that is there already: its loss would not show.
_APART = 10

# --- writes


def _upsert(n: int) -> Act:
    """Of keys of which another actor's has one, and the others lie in the same file group."""
    values = {"a" if n // _APART % 2 else "b": n, "d": n}
    return Act(lambda t: t.upsert(data_of(values)), lambda rows: put(rows, values))


def _upsert_new(n: int) -> Act:
    """Upsert of a key that is not there: with conflicts by key another actor's too."""
    values = {"m": n}
    return Act(lambda t: t.upsert(data_of(values)), lambda rows: put(rows, values))


def _upsert_all(n: int) -> Act:
    """Upsert with the columns that others rename, drop and widen: one that is gone comes anew."""
    values, more = {"a": n, f"l{n}": n}, {"n": n, "s": f"s{n}"}
    return Act(lambda t: t.upsert(data_of(values, **more)), lambda rows: put(rows, values, **more))


def _add_column(n: int) -> Act:
    values = {"c": n}
    return Act(lambda t: t.upsert(data_of(values, w=n)), lambda rows: put(rows, values, w=n))


def _upsert_by_index(n: int) -> Act:
    """Upsert that looks for its keys in the record index, which it makes where it is not there."""
    values, options = {"c": n, f"o{n}": n}, {"hoodie.index.type": "RECORD_INDEX", **_indexes("record.index")}
    return Act(lambda t: t.upsert(data_of(values), options=options), lambda rows: put(rows, values))


def _upsert_inline(n: int) -> Act:
    """Upsert that compacts, cleans and archives afterwards; where the compaction fails, it raises and is written."""
    values = {"b": n, "c": n}

    def upsert(table: HudiTable) -> object:
        compact = _INLINE_COMPACTION if table.table_type == MERGE_ON_READ else {}
        return table.upsert(data_of(values), options={**_FEWER, **_INLINE, **compact})

    return Act(upsert, lambda rows: put(rows, values), in_parts=True)


def _insert(n: int) -> Act:
    values = {f"i{n}": n, f"s{n}": n}
    return Act(lambda t: t.insert(data_of(values)), lambda rows: put(rows, values))


def _insert_known(n: int) -> Act:
    """Insert that drops rows whose key is there."""
    values = {"a": n, f"j{n}": n}
    return Act(
        lambda t: t.insert(data_of(values), options={DROP_DUPLICATES: "true"}),
        lambda rows: put(rows, {k: v for k, v in values.items() if k not in rows}),
    )


def _merge(n: int) -> Act:
    """Merge that updates what is there by what it reads, deletes and inserts."""
    values = {"b": n, "c": n, f"q{n}": n}

    def merge(table: HudiTable) -> object:
        clauses = table.merge(data_of(values)).when_matched_delete("p = 'y'")
        clauses = clauses.when_matched_update({"v": pc.add(pc.field("v"), pc.field("source", "v"))})
        return clauses.when_not_matched_insert().execute()

    def effect(rows: Rows) -> Rows:
        stays = only(rows, lambda k, row: k not in values or row[0] != "y")
        updated = {k: (r[0], r[1] + values[k], r[2]) for k, r in stays.items() if k in values}
        return {**put(stays, {k: v for k, v in values.items() if k not in rows}), **updated}

    return Act(merge, effect)


def _bulk_insert(n: int) -> Act:
    values = {f"k{n}": n}
    return Act(lambda t: t.bulk_insert(data_of(values)), lambda rows: put(rows, values))


def _delete(n: int) -> Act:
    keys = {"b": 0, "c": 0}
    return Act(lambda t: t.delete(data_of(keys)), lambda rows: only(rows, lambda k, _: k not in keys))


def _delete_where(n: int) -> Act:
    return Act(
        lambda t: t.delete("v >= 1 and p = 'x'"),
        lambda rows: only(rows, lambda _, row: row[0] != "x" or row[1] < 1),
    )


def _erase(n: int) -> Act:
    """Erasure of a key from every file, by a delete and services: one that fails may have done some of them."""
    return Act(lambda t: t.erase(["b"]), lambda rows: only(rows, lambda k, _: k != "b"), in_parts=True)


def _update(n: int) -> Act:
    """An update that depends on what it reads."""
    return Act(
        lambda t: t.update({"v": pc.add(pc.field("v"), 100 * n)}, "p = 'y'"),
        lambda rows: {
            k: (row[0], row[1] + 100 * n, row[2]) if k != COLUMNS and row[0] == "y" else row
            for k, row in rows.items()
        },
    )


def _insert_overwrite(n: int) -> Act:
    values = {"a": n}
    return Act(
        lambda t: t.insert_overwrite(data_of(values)),
        lambda rows: put(only(rows, lambda _, row: row[0] != "x"), values),
    )


def _insert_overwrite_table(n: int) -> Act:
    values = {"a": n, "c": n}
    return Act(
        lambda t: t.insert_overwrite_table(data_of(values)),
        lambda rows: put(only(rows, lambda k, row: False), values),
    )


def _delete_partition(n: int) -> Act:
    return Act(
        lambda t: t.delete_partitions("y", missing_ok=True),
        lambda rows: only(rows, lambda _, row: row[0] != "y"),
    )


# --- columns


def _altered(rows: Rows, columns: Callable[[Columns], Columns], names: Mapping[str, str | None]) -> Rows:
    """Rows after a change of columns: their values are under another name, or gone."""
    renamed = {}
    for key, row in rows.items():
        if key != COLUMNS:
            kept = ((new, x) for name, x in row[2] if (new := names.get(name, name)) is not None)
            renamed[key] = (*row[:2], tuple(sorted(kept)))
    return {COLUMNS: columns(rows[COLUMNS]), **renamed}


def _alter_add(n: int) -> Act:
    """The column that `add_column` adds too."""

    def columns(there: Columns) -> Columns:
        at = [name for name, _ in there].index("v") + 1
        return (*there[:at], ("w", "int64"), *there[at:])

    return Act(
        lambda t: t.alter().add("w", "long", after="v").execute(),
        lambda rows: None if "w" in dict(rows[COLUMNS]) else _altered(rows, columns, {}),
    )


def _alter_rename(n: int) -> Act:
    def columns(there: Columns) -> Columns:
        return tuple(("m" if name == "n" else name, kind) for name, kind in there)

    def effect(rows: Rows) -> Rows | None:
        there = dict(rows[COLUMNS])
        return None if "m" in there or "n" not in there else _altered(rows, columns, {"n": "m"})

    return Act(lambda t: t.alter().rename("n", "m").execute(), effect)


def _alter_drop(n: int) -> Act:
    def columns(there: Columns) -> Columns:
        return tuple((name, kind) for name, kind in there if name != "s")

    return Act(
        lambda t: t.alter().drop("s").execute(),
        lambda rows: _altered(rows, columns, {"s": None}) if "s" in dict(rows[COLUMNS]) else None,
    )


def _alter_widen(n: int) -> Act:
    def columns(there: Columns) -> Columns:
        return tuple((name, "int64" if name == "n" else kind) for name, kind in there)

    return Act(
        lambda t: t.alter().widen("n", "long").execute(),
        lambda rows: _altered(rows, columns, {}) if dict(rows[COLUMNS]).get("n") == "int32" else None,
    )


def _alter_move(n: int) -> Act:
    def columns(there: Columns) -> Columns:
        left = [c for c in there if c[0] != "s"]
        return (left[0], *(c for c in there if c[0] == "s"), *left[1:])

    return Act(
        lambda t: t.alter().move("s", after="id").execute(),
        lambda rows: _altered(rows, columns, {}) if "s" in dict(rows[COLUMNS]) else None,
    )


# --- services

_FEWER = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}
_COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}
_LOG_COMPACT = {"hoodie.log.compaction.blocks.threshold": "1"}
_INLINE_COMPACTION = {**_COMPACT, "hoodie.compact.inline": "true"}
_INLINE = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
}


def _pending_compaction(table: HudiTable) -> str:
    """A pending compaction, which is planned where there is none; "" where nothing is to be compacted."""
    pending = table.timeline.pending(COMPACTION)
    return pending[0].time if pending else table.compact(mode="schedule", options=_COMPACT).scheduled


def _rollback(n: int) -> Act:
    """Rollback of the commit that was there last."""
    return Act(
        lambda t: t.rollback(last_of(t.name)),
        lambda rows: dict(SAVED) if rows == INITIAL else None,
        lasts=True,
    )


def _restore(n: int) -> Act:
    """Commit by commit, newest first: one that dies leaves the table before some of them, and is to be run again."""
    return Act(
        lambda t: t.restore(savepoint_of(t.name)), lambda rows: dict(SAVED), lasts=True, goes_back=True
    )


def _to_type(table: HudiTable, kind: str) -> object:
    return table.overwrite_properties({**table.config.properties, TYPE: kind})


# --- the metadata table

INDEXES = ("column_stats", "bloom_filters", "record_index")


def _indexes(*names: str) -> dict[str, str]:
    """Options of a write that makes the metadata table with these indexes."""
    return {_METADATA: "true", **{f"hoodie.metadata.{name}.enable": "true" for name in names}}


def _metadata_on(n: int) -> Act:
    """An upsert that makes the metadata table."""
    values = {"a": n}
    return Act(lambda t: t.upsert(data_of(values), options=_indexes()), lambda rows: put(rows, values))


def _metadata_off(n: int) -> Act:
    """An upsert that takes the metadata table away."""
    values = {"d": n}
    return Act(
        lambda t: t.upsert(data_of(values), options={_METADATA: "false"}), lambda rows: put(rows, values)
    )


def _drop(table: HudiTable, partitions: Collection[str]) -> object:
    """Drop what is there of these, or what it then builds."""
    there = [p for p in metadata_config.built(table.config) if p in partitions]
    if not there:
        table.build_index(partitions)
    return table.drop_index(there or partitions)


# --- buckets

_SMALL = {"hoodie.parquet.max.file.size": "1000"}


def _number_of(table: HudiTable) -> int:
    return int(table.config.properties[NUM_BUCKETS]) if NUM_BUCKETS in table.config.properties else 1


# --- reads


def _read(n: int) -> Act:
    return Act(rows_of, sees=dict)


def _get(n: int) -> Act:
    """All rows by their keys, those of every actor."""
    keys = [*"abcdm", *(f"{letter}{_APART * k}" for letter in "ijklopqs" for k in range(1, 8))]
    keys += [f"{letter}{_APART * k}" for letter in "ijklopqs" for k in range(100, 104)]
    return Act(lambda t: modelled(t.get(keys, meta_columns=False)), sees=dict)


def _named(name: str, make: Callable[[int], Act]) -> Callable[[int], Act]:
    return lambda n: replace(make(_APART * n), name=f"{name} {n}")


def _by_name(*makers: Callable[[int], Act]) -> dict[str, Callable[[int], Act]]:
    return {make.__name__[1:]: make for make in makers}


def _services(**calls: Callable[[HudiTable], object]) -> dict[str, Callable[[int], Act]]:
    """Acts that leave the rows as they are, by name."""

    def act(call: Callable[[HudiTable], object]) -> Callable[[int], Act]:
        return lambda n: Act(call)

    return {name: act(call) for name, call in calls.items()}


_MAKERS: Mapping[str, Callable[[int], Act]] = {
    **_by_name(
        _upsert, _upsert_new, _upsert_all, _add_column, _upsert_by_index, _upsert_inline, _insert, _insert_known,
        _merge, _bulk_insert, _delete, _delete_where, _erase, _update, _insert_overwrite, _insert_overwrite_table,
        _delete_partition, _alter_add, _alter_rename, _alter_drop, _alter_widen, _alter_move,
    ),
    **_services(
        clean=lambda t: t.clean(options={"hoodie.cleaner.commits.retained": "1"}),
        archive=lambda t: t.archive(options=_FEWER),
        compact=lambda t: t.compact(options=_COMPACT),
        schedule_compaction=lambda t: t.compact(mode="schedule", options=_COMPACT),
        execute_compaction=lambda t: t.compact(mode="execute", options=_COMPACT),
        # Withdrawal of a pending compaction, or of one that it plans.
        unschedule_compaction=lambda t: t.unschedule_compaction(_pending_compaction(t)),
        repair_compaction=lambda t: t.repair_compaction(_pending_compaction(t)),
        log_compact=lambda t: t.log_compact(options=_LOG_COMPACT),
        schedule_log_compaction=lambda t: t.log_compact(mode="schedule", options=_LOG_COMPACT),
        execute_log_compaction=lambda t: t.log_compact(mode="execute", options=_LOG_COMPACT),
    ),
    **_by_name(_rollback),
    **_services(
        rollback_dead=lambda t: t.rollback(),
        savepoint=lambda t: t.savepoint(),
        delete_savepoint=lambda t: t.delete_savepoint(savepoint_of(t.name)),
    ),
    **_by_name(_restore),
    **_services(
        downgrade=lambda t: t.downgrade(),
        upgrade=lambda t: t.upgrade(),
        deduplicate=lambda t: t.deduplicate(),
        repair=lambda t: t.repair(deep=True),
        to_merge_on_read=lambda t: _to_type(t, MERGE_ON_READ),
        to_copy_on_write=lambda t: _to_type(t, COPY_ON_WRITE),
    ),
    **_by_name(_metadata_on, _metadata_off),
    **_services(
        build_column_stats=lambda t: t.build_index("column_stats"),
        build_bloom_filters=lambda t: t.build_index("bloom_filters"),
        build_record_index=lambda t: t.build_index("record_index"),
        schedule_index=lambda t: t.build_index(INDEXES, mode="schedule"),
        execute_index=lambda t: t.build_index(mode="execute"),
        drop_index=lambda t: _drop(t, INDEXES[::2]),
        drop_metadata=lambda t: _drop(t, ["files"]),
        # Twice as many buckets of all partitions.
        double_buckets=lambda t: t.resize_buckets(2 * _number_of(t)),
        # A number of buckets that is no multiple of what it is.
        overwrite_buckets=lambda t: t.resize_buckets(3 if _number_of(t) % 3 else 4, overwrite=True),
        # Full buckets are split, which all are.
        split_buckets=lambda t: t.resize_buckets(options=_SMALL),
        # Nearly empty buckets are merged, which all are.
        merge_buckets=lambda t: t.resize_buckets(),
        # The partitions of a table of simple buckets differ from here on.
        grow_apart=lambda t: t.resize_buckets(engine=EXTENDIBLE_HASHING, partitions=["x"], options=_SMALL),
        schedule_resize=lambda t: t.resize_buckets(mode="schedule", options=_SMALL),
        execute_resize=lambda t: t.resize_buckets(mode="execute", options=_SMALL),
    ),
    **_by_name(_read, _get),
}  # fmt: skip
ACTS: Mapping[str, Callable[[int], Act]] = {name: _named(name, make) for name, make in _MAKERS.items()}
"""The acts by name, each made with a number that only one actor has."""


_ENGINES: Mapping[str, Collection[str]] = {
    "upsert_by_index": ("",),
    "double_buckets": (SIMPLE, EXTENDIBLE_HASHING),
    "overwrite_buckets": (SIMPLE,),
    "split_buckets": (CONSISTENT_HASHING, EXTENDIBLE_HASHING),
    "merge_buckets": (CONSISTENT_HASHING, EXTENDIBLE_HASHING),
    "grow_apart": (SIMPLE, EXTENDIBLE_HASHING),
    "schedule_resize": (CONSISTENT_HASHING,),
    "execute_resize": (CONSISTENT_HASHING,),
}


# Of copy-on-write tables, which become merge-on-read by an act, `compact` and `log_compact` are enough.
_OF_LOGS = (
    "schedule_compaction",
    "execute_compaction",
    "unschedule_compaction",
    "repair_compaction",
    "schedule_log_compaction",
    "execute_log_compaction",
)


def acts_on(table_type: str, index: str = "") -> list[str]:
    """Names of acts that a table does not always refuse.

    Args:
        index: engine of its bucket index; "" for none.
    """
    refused = _OF_LOGS if table_type == COPY_ON_WRITE else ()
    return [n for n in ACTS if n not in refused and (n not in _ENGINES or index in _ENGINES[n])]
