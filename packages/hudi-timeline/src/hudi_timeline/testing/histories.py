"""Whether what several writers left is right: some serial order of their calls explains it.

The order has to keep what was observed: an actor's calls follow each other, and a call that ended before another one
began comes before it.  A call that raised had no effect; one of a process that was killed may have had it or not, and
one that is on the timeline by then may have it at any time after that.  A read beside a restore, which goes back
commit by commit, may show any of the states between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_timeline import metadata_config
from hudi_timeline.options.read_options import START_ORDER
from hudi_timeline.table import HudiTable
from hudi_timeline.table_config import load
from hudi_timeline.testing.interleavings import Done, Outcome, Rows, on_this_thread
from hudi_timeline.testing.memory_storage import MemoryStorage
from hudi_timeline.verify.verify import verify

_SHOWN = 20


class Violation(AssertionError):
    """An invariant that does not hold; the text has the seed and the calls."""


def check(
    outcome: Outcome,
    rows_of: Callable[[HudiTable], Rows],
    initial: Mapping[Any, Any] | None = None,
    *,
    deep: bool = True,
    keys_once: bool = False,
) -> None:
    """Check an outcome: serializable, each key once, nothing dangling.

    Args:
        rows_of: the table's rows by key, as the acts' effects have them; see `by_key`.
        initial: these rows before the acts.
        deep: the verification reads all data too.
        keys_once: `rows_of` raises for keys that are there twice, as `by_key` does: the verification does not read the
            rows again for that.

    Raises:
        Violation: which of it does not hold.
    """
    with on_this_thread():
        _check(outcome, rows_of, dict(initial or {}), deep=deep, keys_once=keys_once)


def _check(
    outcome: Outcome, rows_of: Callable[[HudiTable], Rows], initial: Rows, *, deep: bool, keys_once: bool
) -> None:
    table, storage = outcome.table(), outcome.storage
    try:
        found = rows_of(table)
    except AssertionError as e:
        raise violation(outcome, str(e)) from e
    check_serializable(outcome, initial, found)
    # The data of a file that is as it was when it was found sound, mostly of the table that was there before.
    sound = storage.still_sound() if isinstance(storage, MemoryStorage) else set()
    scan_of = None if keys_once and not metadata_config.built(load(storage)) else table.read
    every = verify(storage, deep=deep, workers=1, scan_of=scan_of, sound=sound)
    findings = [f for f in every if f.severity == "error"]
    if findings:
        raise violation(outcome, f"verify says {'; '.join(map(str, findings[:3]))}")
    if isinstance(storage, MemoryStorage):
        storage.keep_sound(sound)


def check_serializable(outcome: Outcome, initial: Rows, found: Rows) -> None:
    """Check that some serial order of the calls leads from the rows before to those found.

    Raises:
        Violation: none does.
    """
    if not is_serializable(outcome.done, initial, found):
        raise violation(outcome, f"no serial order of the calls gives {_short(found)}")


def by_key(*columns: str, key: str = RECORD_KEY) -> Callable[[HudiTable], Rows]:
    """Reader of a table's rows: the given columns by key.

    Raises:
        Violation: by the reader, for a key that is there twice.
    """

    def read(table: HudiTable) -> Rows:
        there = table.read([key, *columns]).to_arrow().to_pylist()
        rows = {r[key]: tuple(r[c] for c in columns) for r in there}
        if len(rows) != len(there):
            twice = sorted({r[key] for r in there if sum(o[key] == r[key] for o in there) > 1})
            raise Violation(f"keys are there more than once: {_short(twice)}")
        return rows

    return read


def is_serializable(done: Sequence[Done], initial: Rows, found: Rows) -> bool:
    """Whether some serial order of the calls that had an effect leads from `initial` to `found`.

    Reference implementation: all orders are tried that keep what was observed.
    """
    acts = [d for d in done if d.error is None or not d.is_certain]
    before = {
        n: {m for m, other in enumerate(acts) if m != n and _precedes(other, act)}
        for n, act in enumerate(acts)
    }
    seen: set[tuple[frozenset[int], str]] = set()

    def reaches(rows: Rows, past: frozenset[int], had: tuple[Rows, ...]) -> bool:
        if len(past) == len(acts):
            return rows == found
        state = (past, repr((_ordered(rows), sorted(map(repr, map(_ordered, had))))))
        if state in seen:
            return False
        seen.add(state)
        had = had if rows in had else (*had, rows)
        for n, act in enumerate(acts):
            if n in past or not before[n] <= past:
                continue
            after = _after(act, rows)
            if after is None and _saw_one_of(had, act, acts):
                after = rows
            if after is not None and reaches(after, past | {n}, had):
                return True
            if act.is_certain:
                continue
            if reaches(rows, past | {n}, had):
                return True
            if act.act.goes_back and any(reaches(r, p, had) for r in had for p in (past, past | {n})):
                return True
        return False

    return reaches(initial, frozenset(), ())


def _ordered(rows: Rows) -> list[tuple[Any, Any]]:
    return sorted(rows.items(), key=repr)


def _after(done: Done, rows: Rows) -> Rows | None:
    """Rows after a call; None if it cannot have come where these are."""
    sees = done.act.sees
    if sees is not None and done.error is None and sees(done.result) != rows:
        return None
    return done.act.effect(dict(rows))


def _saw_one_of(had: Sequence[Rows], done: Done, acts: Sequence[Done]) -> bool:
    """Whether a read beside a call that goes back by steps shows the rows as they were before one of them."""
    if done.act.sees is None or done.error is not None:
        return False
    beside = (o for o in acts if o.act.goes_back and o.began <= done.ended and done.began <= o.ended)
    return any(beside) and done.act.sees(done.result) in had


def _precedes(first: Done, second: Done) -> bool:
    if first.act.lasts and not first.is_certain:
        return False
    return first.ended < second.began or (first.actor == second.actor and first.ended <= second.began)


@dataclass
class Follower:
    """An incremental reader, whose `poll` is the call of an act at any time.

    Each change arrives once, but in the order `start`: what is read past a commit that is still open lies after the
    checkpoint, and arrives again; at or before the checkpoint it does not.

    Attributes:
        order: as of `HudiTable.read_incremental`.
        seen: keys with the commit that wrote them, in the order in which they arrived.
        settled: those that are not to arrive again.
        again: those that did all the same.
    """

    order: str = "stable"
    checkpoint: str = "000"
    seen: list[tuple[str, str]] = field(default_factory=list)
    settled: set[tuple[str, str]] = field(default_factory=set)
    again: set[tuple[str, str]] = field(default_factory=set)

    def poll(self, table: HudiTable) -> None:
        """Read what is new."""
        scan = table.read_incremental(self.checkpoint, columns=[RECORD_KEY, COMMIT_TIME], order=self.order)
        rows = scan.to_arrow()
        self.checkpoint = scan.checkpoint
        found = list(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))
        self.again |= self.settled & set(found) | {change for change in found if found.count(change) > 1}
        self.settled |= {c for c in found if self.order != START_ORDER or c[1] <= self.checkpoint}
        self.seen += found

    def check(self, outcome: Outcome) -> None:
        """Check that each change arrived, and none again that is settled.

        Of tables from which nothing is deleted.

        Raises:
            Violation: a change that arrived again, or a row of the table that never did.
        """
        self.poll(outcome.table())
        if self.again:
            raise violation(outcome, f"changes arrived more than once: {_short(sorted(self.again))}")
        rows = outcome.table().read([RECORD_KEY, COMMIT_TIME]).to_arrow()
        there = set(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))
        missed = sorted(there - set(self.seen))
        if missed:
            raise violation(outcome, f"changes never arrived: {_short(missed)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def violation(outcome: Outcome, why: str) -> Violation:
    """Error about an outcome, with its calls and what repeats it."""
    calls = "; ".join(map(str, outcome.done[:_SHOWN]))
    return Violation(f"seed {outcome.seed}: {why}. Calls: {calls}. Switches: {list(outcome.switches)}")
