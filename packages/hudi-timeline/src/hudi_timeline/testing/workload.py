"""Acts of every operation and service on one small table, with what each means for its rows.

    Case({"one": ["upsert"], "two": ["compact"]}, "MERGE_ON_READ").run(seed=7)
    drawn(7).run()                                  # acts, faults and clocks that the seed chooses
    drawn(7).run(options={"hoodie.write.lock.provider": "mine:MyLock"})

The table has the columns `id`, `p` and `v`, two partitions, a savepoint, and one commit after it.  Rows of the model
are (p, v, w) by key, where `w` is a column that an act may add.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError, MissingFileError, StaleSnapshotError, StorageError
from hudi_timeline.options.transaction_options import CONFLICT_DETECTION, CONFLICT_RETRIES
from hudi_timeline.options.write_options import DROP_DUPLICATES
from hudi_timeline.table import HudiTable
from hudi_timeline.testing.faulty_storage import CRASH, DELAY, DOUBLE, FAIL, STALL, TEAR, Fault
from hudi_timeline.testing.histories import Violation, check
from hudi_timeline.testing.interleavings import Act, Done, Outcome, Rows, simulate
from hudi_timeline.testing.memory_storage import MemoryStorage
from hudi_timeline.timeline.instant import RESTORE
from hudi_timeline.verify.verify import verify

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
MERGE_ON_READ = "MERGE_ON_READ"
_FEW = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
_METADATA = "hoodie.metadata.enable"

OPTIONS: Mapping[str, str] = {**_FEW, CONFLICT_RETRIES: "3", "hoodie.compact.inline": "false"}
"""Options of simulations with these acts: services run as acts only, lost writes are tried again."""
BY_KEYS: Mapping[str, str] = {**OPTIONS, CONFLICT_DETECTION: "keys"}
"""The same with conflicts by record key."""

SAVED: Rows = {"a": ("x", 1, None), "b": ("x", 0, None), "c": ("y", 1, None), "d": ("y", 0, None)}
"""Rows as of the savepoint."""
INITIAL: Rows = {**SAVED, "b": ("x", 2, None)}
"""Rows as they are before the acts."""
_APART = 10
_PARTITION = {"a": "x", "b": "x", "c": "y", "d": "y"}


def _data(values: Mapping[str, int], **more: int) -> pa.Table:
    columns: dict[str, list[object]] = {
        "id": [*values], "p": [_partition(k) for k in values], "v": [*values.values()],
    }  # fmt: skip
    schema = SCHEMA
    for name, value in more.items():
        columns[name] = [value] * len(values)
        schema = schema.append(pa.field(name, pa.int64()))
    return pa.table(columns, schema)


def _partition(key: str) -> str:
    return _PARTITION.get(key, "x" if key < "r" else "y")


def _rows(values: Mapping[str, int], w: int | None = None) -> Rows:
    return {k: (_partition(k), v, w) for k, v in values.items()}


def made_table(table_type: str = "COPY_ON_WRITE") -> MemoryStorage:
    """The table, made once; `simulate` takes a copy."""
    return _made(table_type)


@cache
def _made(table_type: str) -> MemoryStorage:
    made = MemoryStorage()
    HudiTable.create(
        cast(str, made), SCHEMA, record_keys="id", partition_fields="p", name="simulated", table_type=table_type,
        options=_FEW,
    )  # fmt: skip
    table = HudiTable.open(made)
    table.upsert(_data({"a": 0, "b": 0, "c": 0, "d": 0}), options=_FEW)
    table.upsert(_data({"c": 1}), options=_FEW)
    table.upsert(_data({"a": 1}), options=_FEW)
    table.savepoint()
    table.upsert(_data({"b": 2}), options=_FEW)
    sound: set[str] = set()
    if findings := verify(made, deep=True, scan_of=table.read, sound=sound):
        raise Violation(f"the table to begin with is not sound: {findings}")
    made.keep_sound(sound)
    return made


def rows_of(table: HudiTable) -> Rows:
    """The table's rows, as the effects of the acts have them.

    Raises:
        Violation: a key that is there twice.
    """
    there = table.read().to_arrow().to_pylist()
    rows = {r["id"]: (r["p"], r["v"], r.get("w")) for r in there}
    if len(rows) != len(there):
        twice = sorted(r["id"] for r in there)
        raise Violation(f"keys are there more than once: {twice}")
    return rows


# --- the acts, each made with a number that only one actor has


def _upsert(n: int) -> Act:
    """Of keys of which another actor's has one, and the others lie in the same file group."""
    values = {"a" if n // _APART % 2 else "b": n, "d": n}
    return Act(lambda t: t.upsert(_data(values)), lambda rows: {**rows, **_rows(values)})


def _upsert_new(n: int) -> Act:
    """Upsert of a key that is not there: with conflicts by key another actor's too."""
    values = {"m": n}
    return Act(lambda t: t.upsert(_data(values)), lambda rows: {**rows, **_rows(values)})


def _insert(n: int) -> Act:
    values = {f"i{n}": n, f"s{n}": n}
    return Act(lambda t: t.insert(_data(values)), lambda rows: {**rows, **_rows(values)})


def _insert_known(n: int) -> Act:
    """Insert that drops rows whose key is there."""
    values = {"a": n, f"j{n}": n}
    return Act(lambda t: t.insert(_data(values), options={DROP_DUPLICATES: "true"}),
               lambda rows: {**_rows(values), **rows})  # fmt: skip


def _merge(n: int) -> Act:
    """Merge that updates what is there by what it reads, deletes and inserts."""
    values = {"b": n, "c": n, f"q{n}": n}

    def merge(table: HudiTable) -> object:
        clauses = table.merge(_data(values)).when_matched_delete("p = 'y'")
        clauses = clauses.when_matched_update({"v": pc.add(pc.field("v"), pc.field("source", "v"))})
        return clauses.when_not_matched_insert().execute()

    def effect(rows: Rows) -> Rows:
        found = {k: (p, rows[k][1] + v, rows[k][2]) if k in rows else (p, v, w)
                 for k, (p, v, w) in _rows(values).items() if k not in rows or p != "y"}  # fmt: skip
        return {**{k: r for k, r in rows.items() if k not in values}, **found}

    return Act(merge, effect)


def _bulk_insert(n: int) -> Act:
    values = {f"k{n}": n}
    return Act(lambda t: t.bulk_insert(_data(values)), lambda rows: {**rows, **_rows(values)})


def _delete(n: int) -> Act:
    keys = {"b": 0, "c": 0}
    return Act(lambda t: t.delete(_data(keys)), lambda rows: {k: r for k, r in rows.items() if k not in keys})


def _delete_where(n: int) -> Act:
    return Act(lambda t: t.delete("v >= 1 and p = 'x'"),
               lambda rows: {k: r for k, r in rows.items() if r[0] != "x" or r[1] < 1})  # fmt: skip


def _update(n: int) -> Act:
    """An update that depends on what it reads."""
    return Act(lambda t: t.update({"v": pc.add(pc.field("v"), 100 * n)}, "p = 'y'"),
               lambda rows: {k: (p, v + 100 * n if p == "y" else v, w) for k, (p, v, w) in rows.items()})  # fmt: skip


def _insert_overwrite(n: int) -> Act:
    values = {"a": n}
    return Act(lambda t: t.insert_overwrite(_data(values)),
               lambda rows: {**{k: r for k, r in rows.items() if r[0] != "x"}, **_rows(values)})  # fmt: skip


def _insert_overwrite_table(n: int) -> Act:
    values = {"a": n, "c": n}
    return Act(lambda t: t.insert_overwrite_table(_data(values)), lambda rows: _rows(values))


def _delete_partition(n: int) -> Act:
    return Act(lambda t: t.delete_partitions("y", missing_ok=True),
               lambda rows: {k: r for k, r in rows.items() if r[0] != "y"})  # fmt: skip


def _add_column(n: int) -> Act:
    values = {"c": n}
    return Act(lambda t: t.upsert(_data(values, w=n)), lambda rows: {**rows, **_rows(values, n)})


def _clean(n: int) -> Act:
    return Act(lambda t: t.clean(options={"hoodie.cleaner.commits.retained": "1"}))


def _archive(n: int) -> Act:
    few = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    return Act(lambda t: t.archive(options=few))


_COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}


def _compact(n: int) -> Act:
    return Act(lambda t: t.compact(options=_COMPACT))


def _schedule_compaction(n: int) -> Act:
    return Act(lambda t: t.compact(mode="schedule", options=_COMPACT))


def _execute_compaction(n: int) -> Act:
    return Act(lambda t: t.compact(mode="execute", options=_COMPACT))


def _log_compact(n: int) -> Act:
    return Act(lambda t: t.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"}))


@cache
def _saved(table_type: str) -> str:
    return HudiTable.open(made_table(table_type)).savepoints[0]


@cache
def _last(table_type: str) -> str:
    return HudiTable.open(made_table(table_type)).timeline.completed_writes()[-1].time


def _rollback(n: int) -> Act:
    """Rollback of the commit that was there last."""
    return Act(
        lambda t: t.rollback(_last(t.table_type)),
        lambda rows: dict(SAVED) if rows == INITIAL else None,
        lasts=True,
    )


def _rollback_dead(n: int) -> Act:
    return Act(lambda t: t.rollback())


def _savepoint(n: int) -> Act:
    return Act(lambda t: t.savepoint())


def _delete_savepoint(n: int) -> Act:
    return Act(lambda t: t.delete_savepoint(_saved(t.table_type)))


def _restore(n: int) -> Act:
    """Commit by commit, newest first: one that dies leaves the table before some of them, and is to be run again."""
    return Act(
        lambda t: t.restore(_saved(t.table_type)), lambda rows: dict(SAVED), lasts=True, goes_back=True
    )


def _downgrade(n: int) -> Act:
    return Act(lambda t: t.downgrade())


def _upgrade(n: int) -> Act:
    return Act(lambda t: t.upgrade())


def _deduplicate(n: int) -> Act:
    return Act(lambda t: t.deduplicate())


def _metadata_on(n: int) -> Act:
    """An upsert that makes the metadata table."""
    values = {"a": n}
    return Act(lambda t: t.upsert(_data(values), options={_METADATA: "true"}),
               lambda rows: {**rows, **_rows(values)})  # fmt: skip


def _metadata_off(n: int) -> Act:
    """An upsert that takes the metadata table away."""
    values = {"d": n}
    return Act(lambda t: t.upsert(_data(values), options={_METADATA: "false"}),
               lambda rows: {**rows, **_rows(values)})  # fmt: skip


def _read(n: int) -> Act:
    return Act(rows_of, sees=dict)


def _named(name: str, make: Callable[[int], Act]) -> Callable[[int], Act]:
    # No value that is there already: its loss would not show.
    return lambda n: replace(make(_APART * n), name=f"{name} {n}")


ACTS: Mapping[str, Callable[[int], Act]] = {
    make.__name__[1:]: _named(make.__name__[1:], make)
    for make in (
        _upsert, _upsert_new, _insert, _insert_known, _merge, _bulk_insert, _delete, _delete_where, _update,
        _insert_overwrite, _insert_overwrite_table, _delete_partition, _add_column, _clean, _archive, _compact,
        _schedule_compaction, _execute_compaction, _log_compact, _rollback, _rollback_dead, _savepoint,
        _delete_savepoint, _restore, _downgrade, _upgrade, _deduplicate, _metadata_on, _metadata_off, _read,
    )
}  # fmt: skip
"""The acts by name, each made with a number that only one actor has."""


# --- cases

_BROKEN = (CorruptFileError, MissingFileError, StorageError)
# Of ten drawn cases so many have a fault, a clock that is wrong, or a stop.
_FAULTY, _SKEWED, _STOPPED = 3, 1, 1
_LAST_STEP = 80
_VERSION = 6


@dataclass(frozen=True)
class Case:
    """Acts side by side, and what befalls them.

    Attributes:
        actors: names of acts by actor; a test's own `Act` may stand for one.
        faults, clocks: as of `simulate`.
        before: names of acts that are done before, one after the other.
        seed: of `run`, where it is given none.
    """

    actors: Mapping[str, Sequence[str | Act]]
    table_type: str = "COPY_ON_WRITE"
    options: Mapping[str, str] = field(default_factory=lambda: BY_KEYS)
    faults: Mapping[str, Sequence[Fault]] = field(default_factory=dict)
    clocks: Mapping[str, float] = field(default_factory=dict)
    before: Sequence[str] = ()
    seed: int = 0

    def run(
        self,
        seed: int | None = None,
        *,
        options: Mapping[str, str] | None = None,
        switches: Sequence[tuple[int, str]] | None = None,
        deep: bool = True,
    ) -> Outcome:
        """One interleaving, whose outcome is checked; of one with faults, mended too.

        Args:
            options: besides the case's own, such as a lock provider.
            switches: as of `simulate`.
            deep: verify with all data.

        Raises:
            Violation: the outcome is not right, or an error says that something is broken, and not that another was
                first.
        """
        numbers = iter(range(1, 100))
        actors = {
            name: [a if isinstance(a, Act) else ACTS[a](next(numbers)) for a in acts]
            for name, acts in self.actors.items()
        }
        made, initial = made_table(self.table_type), dict(INITIAL)
        if self.before:
            made = made.copy_of()
        for act in (ACTS[name](number) for number, name in enumerate(self.before, 100)):
            act.call(HudiTable.open(made, options=self.options))
            initial = act.effect(dict(initial)) or {}
        outcome = simulate(
            self.seed if seed is None else seed, made, actors,
            options={**self.options, **(options or {})}, faults=self.faults, clocks=self.clocks, switches=switches,
        )  # fmt: skip
        check(outcome, rows_of, initial, deep=deep, keys_once=True)
        for done in outcome.done:
            if isinstance(done.error, _BROKEN) and not done.struck and not _came_late(done):
                raise Violation(
                    f"seed {outcome.seed}: {done}: {done.error}. Switches: {list(outcome.switches)}"
                )
        if any(self.faults.values()):
            _mend(outcome)
            check(outcome, rows_of, initial, deep=deep, keys_once=True)
        return outcome


def _mend(outcome: Outcome) -> None:
    """What a user does after a crash, as the errors say."""
    table = outcome.table()
    if table.table_version < _VERSION:
        table.upgrade()
    if table.timeline.pending(RESTORE):
        table.restore(_saved(table.table_type))
        rows = rows_of(outcome.table())
        if rows != SAVED:
            raise Violation(f"seed {outcome.seed}: a restore that is run again leaves {rows}")
    table.rollback()


def _came_late(done: Done) -> bool:
    """Whether an error says no more than that files were cleaned or rolled back before."""
    restored = done.act.name.startswith("restore") and isinstance(done.error, MissingFileError)
    return restored or isinstance(done.error, StaleSnapshotError)


def drawn(seed: int) -> Case:
    """Case that a seed chooses: two or three actors, some with a fault, a wrong clock or a stop."""
    draw = random.Random(f"case {seed}")
    names = [*ACTS]
    actors = {
        "one": draw.choices(names, k=draw.choice([1, 1, 2, 3])),
        "two": draw.choices(names, k=draw.choice([1, 1, 2])),
    }
    if draw.random() < 0.2:
        actors["three"] = draw.choices(names, k=1)
    what = draw.randrange(10)
    faults: dict[str, list[Fault]] = {}
    if what < _FAULTY:
        kind = draw.choice([FAIL, FAIL, CRASH, CRASH, DOUBLE, TEAR, DELAY])
        number, after = draw.randint(1, _LAST_STEP), draw.random() < 0.5
        faults = {"one": [Fault(kind, number=number, after=after, keep=draw.random())]}
    elif what >= 10 - _STOPPED:
        # After a call: a stop between the last look at the lock and the call that it is for no storage can prevent.
        faults = {"one": [Fault(STALL, number=draw.randint(1, _LAST_STEP), after=True)]}
    clocks = {"one": draw.choice([-0.9, 0.5, 20.0])} if _FAULTY <= what < _FAULTY + _SKEWED else {}
    # By keys: by file groups two that add one key may leave it twice, as Apache Hudi's do.
    return Case(actors, draw.choice(["COPY_ON_WRITE", MERGE_ON_READ]), BY_KEYS, faults, clocks, seed=seed)


__all__ = [
    "ACTS",
    "BY_KEYS",
    "INITIAL",
    "OPTIONS",
    "SAVED",
    "SCHEMA",
    "Case",
    "drawn",
    "made_table",
    "rows_of",
]
