"""Quarantine writer: rejected rows of a write, committed before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_format.errors import NotAHudiTableError
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.validation import quarantine
from hudi_timeline.validation.row_rules import RowRule, Screened, Screening
from hudi_timeline.writing.engine import Engine
from hudi_timeline.writing.planning.write_plan import Plan, prepare_task


@dataclass
class QuarantineWriter:
    """Rejected rows of a write: destination and counts.

    Attributes:
        storage: of the quarantine; None: bad rows fail the write.
    """

    plan: Plan
    engine: Engine[Any, Any]
    storage: Storage | None
    _screened: Screened | None = field(default=None)

    @classmethod
    def of(cls, plan: Plan, engine: Engine[Any, Any]) -> QuarantineWriter:
        """Quarantine writer of a plan.

        Raises InvalidOptionError for a path that is the table's own.
        """
        return cls(plan, engine, quarantine.open_quarantine(plan.storage, plan.config))

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of rejected rows by rule; final after evaluation of the valid ones."""
        return {} if self._screened is None else self._screened.counts

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def uri(self) -> str:
        """URI of the quarantine, or ""."""
        return self.storage.uri if self.storage is not None else ""

    def screened(self, data: Any, rules: Sequence[RowRule]) -> Any:
        """Rows without invalid ones; unchanged without rules."""
        if not rules and self.storage is None:
            return data
        plan = self.plan
        screening = Screening(
            tuple(rules),
            prepare_task(plan),
            keep_bad=self.storage is not None,
            most=plan.config.quarantine_max_rows,
            operation=plan.operation,
        )
        self._screened = self.engine.screen(data, screening)
        return self._screened.data

    def extra(self) -> dict[str, str]:
        """Commit metadata entries."""
        return quarantine.extra_of(self.uri, self.counts)

    def settle(self, transaction: Transaction) -> None:
        """Remove quarantined rows of dead writes."""
        if self.storage is None:
            return
        dead = quarantine.abandoned(transaction.storage, transaction.snapshot.timeline, self.storage)
        if dead:
            self._remove(transaction.config.name, dead)

    def store(self, transaction: Transaction, name: str) -> None:
        """Commit the rejected rows under their write's instant; a rollback removes them."""
        assert self._screened is not None
        assert self.storage is not None
        transaction.when_undone(lambda: self._remove(name, [transaction.instant]))
        options = quarantine.write_options(self.plan.config, name, self._screened.tasks())
        storage, screened = self.storage, self._screened

        def once() -> None:
            engine, rows = self.engine.another(screened.bad_rows(transaction.instant))  # a stream is used up
            _execute(engine, storage, rows, options)

        quarantine.patiently(once)

    def _remove(self, name: str, instants: Sequence[str]) -> None:
        assert self.storage is not None
        try:
            table_config.load(self.storage)
        except NotAHudiTableError:
            return  # it failed before there was a quarantine
        storage = self.storage
        engine, _ = self.engine.another(None)
        options = quarantine.removal_options(self.plan.config, name, instants)
        quarantine.patiently(lambda: _execute(engine, storage, None, options))


def _execute(engine: Engine[Any, Any], storage: Storage, rows: Any, options: Mapping[str, str]) -> None:
    from hudi_timeline.writing.operation import execute  # which imports this: a write within a write

    execute(engine, storage, rows, options)
