"""A serial history of what several writers wrote at one time: batches, and the rows that their commits stand for.

A writer names its batch in the extra metadata of its commit, so that the table itself says which ones it took, whatever
became of their writers.  Two writes that change one key conflict, so the order of their instants is that of their
commits, and the rows are those of all batches in that order.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_timeline import HudiTable
from hudi_timeline.timeline.archived_timeline import archived_actions
from hudi_timeline.timeline.commit_metadata import COMPACT, CommitMetadata, read_commit
from hudi_timeline.timeline.instant import WRITE_ACTIONS

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
NOTE = "_batch"  # an option below Apache Hudi's prefix of what goes into the commit's metadata
SHARED_PARTITIONS = ("p0", "p1", "p2")
OVERWRITTEN = "whole"
"""The partition that is only ever overwritten, so that its rows are all of one batch."""
SHARED_KEYS, OVERWRITTEN_KEYS = 24, 8
FIRST = "first"

Row = tuple[str, str, str]  # key, partition, value


@dataclass(frozen=True, slots=True)
class Batch:
    """What one write gives, under a name that no other has."""

    name: str
    operation: str
    rows: tuple[Row, ...]

    def to_arrow(self) -> pa.Table:
        ids, partitions, values = ([row[n] for row in self.rows] for n in range(3))
        return pa.table([ids, partitions, [0] * len(ids), values], schema=SCHEMA)


def first_batch() -> Batch:
    """The rows of a new table."""
    shared = [(f"shared-{p}-{n}", p, FIRST) for p in SHARED_PARTITIONS for n in range(SHARED_KEYS)]
    whole = [(f"whole-{FIRST}-{n}", OVERWRITTEN, FIRST) for n in range(OVERWRITTEN_KEYS)]
    return Batch(FIRST, "insert", (*shared, *whole))


class Batches:
    """The batches of one writer: all change the same rows, and rows of its own beside those of others.

    A key is only made and deleted by one writer: two that insert one key are no conflict of file groups.
    """

    def __init__(self, writer: str, seed: int) -> None:
        self._writer = writer
        self._rng = random.Random(f"{seed} {writer}")
        self._number = 0
        self._own: dict[str, str] = {}  # key to partition, of those that are there for sure

    def next(self) -> Batch:
        rng, self._number = self._rng, self._number + 1
        name = f"{self._writer}-{self._number}"
        operation = rng.choices(("upsert", "insert", "delete", "insert_overwrite"), (60, 15, 15, 10))[0]
        if operation == "delete" and not self._own:
            operation = "insert"
        if operation == "insert_overwrite":
            rows = [(f"whole-{name}-{n}", OVERWRITTEN, name) for n in range(OVERWRITTEN_KEYS)]
        elif operation == "delete":
            gone = rng.sample(sorted(self._own), min(5, len(self._own)))
            rows = [
                (key, self._own.pop(key), name) for key in gone
            ]  # even where it fails, they are let alone
        else:
            rows = [(f"{name}-{n}", rng.choice(SHARED_PARTITIONS), name) for n in range(5)]
            if operation == "upsert":
                for partition in rng.sample(SHARED_PARTITIONS, rng.choice((1, 1, 2))):
                    numbers = rng.sample(range(SHARED_KEYS), 5)
                    rows += [(f"shared-{partition}-{n}", partition, name) for n in numbers]
                known = rng.sample(sorted(self._own), min(3, len(self._own)))
                rows += [(key, self._own[key], name) for key in known]
        return Batch(name, operation, tuple(rows))

    def done(self, batch: Batch) -> None:
        """Note that a batch is in the table: its rows may be changed and deleted."""
        if batch.operation in ("upsert", "insert"):
            own = ((key, p) for key, p, _ in batch.rows if key.startswith(f"{self._writer}-"))
            self._own.update(own)


@dataclass
class History:
    """What writers began, what they heard of it, and what the table says.

    Attributes:
        begun: batches by name.
        done: names of those whose writers were told that they are committed.
    """

    begun: dict[str, Batch] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin(self, batch: Batch) -> None:
        with self._lock:
            assert batch.name not in self.begun, batch.name
            self.begun[batch.name] = batch

    def end(self, batch: Batch) -> None:
        with self._lock:
            self.done.add(batch.name)

    def problems(self, committed: Sequence[str], rows: Iterable[Row]) -> list[str]:
        """What is wrong with a table's rows; none where the committed batches, in order, explain them.

        Args:
            committed: names of batches in the order of their instants.
        """
        found = []
        times = Counter(committed)
        found += [f"{name} was committed {n} times" for name, n in sorted(times.items()) if n > 1]
        found += [
            f"{name} is committed, and nobody began it" for name in sorted(times) if name not in self.begun
        ]
        lost = sorted(self.done - set(committed))
        found += [f"{name} was said to be committed, and no commit has it" for name in lost]
        wanted = replayed(self.begun[name] for name in committed if name in self.begun)
        there: dict[str, list[Row]] = {}
        for row in rows:
            there.setdefault(row[0], []).append(row)
        found += [f"{key} stands {len(of)} times: {of}" for key, of in sorted(there.items()) if len(of) > 1]
        for key in sorted(wanted.keys() | there.keys()):
            got, want = there.get(key, [None])[0], wanted.get(key)
            if got != want:
                found.append(f"{key} is {got}, and would be {want}")
        return found


def replayed(batches: Iterable[Batch]) -> dict[str, Row]:
    """Rows by key after batches, one after the other."""
    state: dict[str, Row] = {}
    for batch in batches:
        if batch.operation == "delete":
            for key, _, _ in batch.rows:
                state.pop(key, None)
            continue
        if batch.operation == "insert_overwrite":
            partitions = {p for _, p, _ in batch.rows}
            state = {key: row for key, row in state.items() if row[1] not in partitions}
        state.update((row[0], row) for row in batch.rows)
    return state


def committed_batches(table: HudiTable) -> list[str]:
    """Names of the batches in a table's commits, active and archived, in the order of their instants."""
    notes: dict[str, str] = {}
    for instant, commit in archived_actions(table.storage, table.config, frozenset(WRITE_ACTIONS)):
        if isinstance(commit, CommitMetadata):
            _note(notes, instant.time, commit)
    for instant in table.timeline.completed_writes():
        _note(notes, instant.time, read_commit(table.storage, instant))
    return [notes[time] for time in sorted(notes)]


def _note(notes: dict[str, str], time: str, commit: CommitMetadata) -> None:
    if (
        NOTE in commit.extra and commit.operation != COMPACT
    ):  # Apache Hudi's inline one has the write's entries
        notes[time] = commit.extra[NOTE]


def rows_of(table: pa.Table) -> list[Row]:
    columns = [table.column(name).to_pylist() for name in ("id", "p", "v")]
    return list(zip(*columns, strict=True))


def wrong_in_snapshot(rows: Sequence[Row]) -> list[str]:
    """What no state of the table has, whichever batches it holds: a key twice, or part of an overwriting batch."""
    keys = Counter(row[0] for row in rows)
    found = [f"{key} stands {n} times" for key, n in sorted(keys.items()) if n > 1]
    whole = Counter(v for _, p, v in rows if p == OVERWRITTEN)
    if len(whole) != 1 or set(whole.values()) != {OVERWRITTEN_KEYS}:
        found.append(f"the overwritten partition has rows of {dict(whole)}")
    shared = {key for key in keys if key.startswith("shared-")}
    if len(shared) != len(SHARED_PARTITIONS) * SHARED_KEYS:
        found.append(f"{len(shared)} of the shared keys are there")
    return found
