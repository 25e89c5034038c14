"""Acts of every operation and service side by side on one small table.

    Case({"one": ["upsert"], "two": ["compact"]}, "MERGE_ON_READ").run(seed=7)
    drawn(7).run()                                  # acts, table, faults and clocks that the seed chooses
    drawn(7).run(options={"hoodie.write.lock.provider": "mine:MyLock"})

The acts are those of `ACTS`, the table is that of `workload_table`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError, MissingFileError, StaleSnapshotError, StorageError
from hudi_timeline.options.transaction_options import CONFLICT_DETECTION, CONFLICT_RETRIES
from hudi_timeline.table import HudiTable
from hudi_timeline.testing.acts import ACTS, acts_on
from hudi_timeline.testing.faulty_storage import CRASH, DELAY, DOUBLE, FAIL, STALL, TEAR, Fault
from hudi_timeline.testing.histories import check, check_serializable, violation
from hudi_timeline.testing.interleavings import Act, Done, Outcome, Rows, on_this_thread, simulate
from hudi_timeline.testing.memory_storage import MemoryStorage
from hudi_timeline.testing.simulated_time import SimulatedTime
from hudi_timeline.testing.workload_table import (
    FEW,
    INITIAL,
    SAVED,
    SCHEMA,
    TABLES,
    made_table,
    modelled,
    rows_of,
    savepoint_of,
)
from hudi_timeline.timeline.instant import RESTORE

OPTIONS: Mapping[str, str] = {
    **FEW, CONFLICT_RETRIES: "3", "hoodie.compact.inline": "false", "hudi.write.precedence.wait_ms": "500",
}  # fmt: skip
"""Options of simulations with these acts: services run as acts only, lost writes are tried again, nobody waits long."""
BY_KEYS: Mapping[str, str] = {**OPTIONS, CONFLICT_DETECTION: "keys"}
"""The same with conflicts by record key."""

_BROKEN = (CorruptFileError, MissingFileError, StorageError)
# Of ten drawn cases so many have a fault, a clock that is wrong, or a stop.
_FAULTY, _SKEWED, _STOPPED = 3, 1, 1
_LAST_STEP = 80
_VERSION = 6
# Readers ask the metadata table.
_ASKED = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
# How likely a drawn table has a bucket index.
_BUCKETS = 0.3
_PLAIN = sum(not index for _, index in TABLES)


@dataclass(frozen=True)
class Case:
    """Acts side by side, and what befalls them.

    Attributes:
        actors: names of acts by actor; a test's own `Act` may stand for one.
        faults, clocks: as of `simulate`.
        before: names of acts that are done before, one after the other.
        seed: of `run`, where it is given none.
        index: engine of the table's bucket index; "" for none.
    """

    actors: Mapping[str, Sequence[str | Act]]
    table_type: str = "COPY_ON_WRITE"
    options: Mapping[str, str] = field(default_factory=lambda: BY_KEYS)
    faults: Mapping[str, Sequence[Fault]] = field(default_factory=dict)
    clocks: Mapping[str, float] = field(default_factory=dict)
    before: Sequence[str] = ()
    seed: int = 0
    index: str = ""

    def run(
        self,
        seed: int | None = None,
        *,
        options: Mapping[str, str] | None = None,
        switches: Sequence[tuple[int, str]] | None = None,
        waits: bool = False,
        deep: bool = True,
    ) -> Outcome:
        """One interleaving, whose outcome is checked; of one with faults, mended too.

        Args:
            options: besides the case's own, such as a lock provider.
            switches, waits: as of `simulate`.
            deep: verify with all data.

        Raises:
            Violation: the outcome is not right, or an error says that something is broken, and not that another was
                first.
        """
        clock = SimulatedTime()
        with clock.thread("case"), on_this_thread():
            return self._run(clock, seed, options, switches, waits=waits, deep=deep)

    def _run(
        self,
        clock: SimulatedTime,
        seed: int | None,
        options: Mapping[str, str] | None,
        switches: Sequence[tuple[int, str]] | None,
        *,
        waits: bool,
        deep: bool,
    ) -> Outcome:
        numbers = iter(range(1, 100))
        actors = {
            name: [a if isinstance(a, Act) else ACTS[a](next(numbers)) for a in acts]
            for name, acts in self.actors.items()
        }
        made, initial = made_table(self.table_type, self.index), dict(INITIAL)
        if self.before:
            made = made.copy_of()
            clock.go_after(made.newest_ms())
        for act in (ACTS[name](number) for number, name in enumerate(self.before, 100)):
            act.call(HudiTable.open(made, options=self.options))
            initial = act.effect(dict(initial)) or {}
        outcome = simulate(
            self.seed if seed is None else seed, made, actors,
            options={**self.options, **(options or {})}, faults=self.faults, clocks=self.clocks, switches=switches,
            waits=waits,
        )  # fmt: skip
        _check_all(outcome, initial, deep=deep)
        for done in outcome.done:
            if isinstance(done.error, _BROKEN) and not done.struck and not _came_late(done):
                raise violation(outcome, f"{done}: {done.error}")
        if any(self.faults.values()):
            before = _memory_of(outcome).state()
            _mend(outcome)
            # Where nothing was to mend, this state has been checked.
            if _memory_of(outcome).state() != before:
                _check_all(outcome, initial, deep=deep)
        return outcome


def _memory_of(outcome: Outcome) -> MemoryStorage:
    storage = outcome.storage
    if not isinstance(storage, MemoryStorage):
        raise TypeError(f"not a table in memory: {storage!r}")
    return storage


# Rows of the states that were found right last, by what all their files hold and the options that read them: time and
# chance being simulated, most orders of calls lead to few states.
_right: dict[tuple[bytes, str], Rows] = {}
_MOST_RIGHT = 500


def _check_all(outcome: Outcome, initial: Rows, *, deep: bool) -> None:
    """Check an outcome, reading its rows once for what the calls left and what filters find."""
    state = (_memory_of(outcome).digest(), f"{deep} {sorted(outcome.options.items())}")
    if (rows := _right.get(state)) is not None:
        check_serializable(outcome, initial, rows)
        return
    there: list[tuple[HudiTable, pa.Table]] = []

    def read(table: HudiTable) -> Rows:
        there.append((table, table.read().to_arrow()))
        return modelled(there[0][1])

    check(outcome, read, initial, deep=deep, keys_once=True)
    _check_filters(outcome, *there[0])
    while len(_right) >= _MOST_RIGHT:
        del _right[next(iter(_right))]
    _right[state] = modelled(there[0][1])


def _check_filters(outcome: Outcome, table: HudiTable, rows: pa.Table) -> None:
    """Check that statistics and indexes, also of columns with another name, type or place now, hide no row."""
    if not table.config.metadata_partitions and table.schema.equals(SCHEMA):
        return
    with on_this_thread():
        keys = sorted(rows["id"].to_pylist())
        wanted = modelled(rows)
        found = {"keys": (modelled(table.get(keys, meta_columns=False, options=_ASKED)), wanted)}
        for name in (c for c in rows.column_names if c not in ("id", "p")):
            value = pc.max(rows[name])
            if value.is_valid:
                is_it = pc.field(name) == value
                got = table.read(filter=is_it, options=_ASKED).to_arrow()
                found[f"{name} = {value}"] = (modelled(got), modelled(rows.filter(is_it)))
    for what, (got, right) in found.items():
        if got != right:
            raise violation(outcome, f"the rows with {what} are {right}, and {got} is read")


def _mend(outcome: Outcome) -> None:
    """What a user does after a crash, as the errors say."""
    table = outcome.table()
    if table.table_version < _VERSION:
        table.upgrade()
    if table.timeline.pending(RESTORE):
        table.restore(savepoint_of(table.name))
        rows = rows_of(outcome.table())
        if rows != SAVED:
            raise violation(outcome, f"a restore that is run again leaves {rows}")
    table.rollback()


def _came_late(done: Done) -> bool:
    """Whether an error says no more than that files were cleaned or rolled back before."""
    restored = done.act.name.startswith("restore") and isinstance(done.error, MissingFileError)
    return restored or isinstance(done.error, StaleSnapshotError)


def drawn(seed: int) -> Case:
    """Case that a seed chooses: two or three actors, some with a fault, a wrong clock or a stop.

    It is another one once there are other acts: what a failure says repeats it, not the number alone.
    """
    draw = random.Random(f"case {seed}")
    table_type, index = draw.choice(TABLES[_PLAIN:] if draw.random() < _BUCKETS else TABLES[:_PLAIN])
    names = acts_on(table_type, index)
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
    return Case(actors, table_type, BY_KEYS, faults, clocks, seed=seed, index=index)
