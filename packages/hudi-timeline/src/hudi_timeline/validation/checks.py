"""All checks of a write, and when each runs.

Before the transaction: rules and queries are read, and refused where they cannot be understood.  While rows are
evaluated: rules.  After the data files are written and before the commit: functions and queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import HudiError, InvalidOptionError
from hudi_format.schema.meta_fields import with_meta
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.write_options import RULES, WRITES_NO_ROWS
from hudi_timeline.reading.scan import Scan
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.validation.precommit import Validator, change_of, named, run_function
from hudi_timeline.validation.row_rules import RowRule, rules_of
from hudi_timeline.validation.sql_validators import Queries, SqlCheck, check_queries, run_queries, sql_checks


class SqlEngine(Protocol):
    """Engine interface of the SQL validators."""

    def queries(self, before: Scan | pa.Table, after: Scan | pa.Table) -> AbstractContextManager[Queries]:
        """SQL over the two states; tables stand for their schema only."""
        ...

    def frame_of(self, scan: Scan) -> Any:
        """A scan in the engine's native form."""
        ...


@dataclass(frozen=True)
class Checks:
    """Checks of one write."""

    functions: tuple[Validator, ...] = ()
    queries: tuple[SqlCheck, ...] = ()
    rules: tuple[RowRule, ...] = ()

    @classmethod
    def of(
        cls,
        config: WriteConfig,
        validators: Sequence[Validator] = (),
        rules: Mapping[str, str | pc.Expression] | None = None,
    ) -> Checks:
        """Checks from the options and the call.

        Raises:
            InvalidOptionError: one that cannot be understood.
        """
        if callable(validators) or not isinstance(validators, Iterable):
            raise InvalidOptionError(
                f"validators are a list of functions, and this is {validators!r:.80}",
                remedy="give [function], of one argument, the change.",
            )
        for validator in validators:
            if not callable(validator):
                raise InvalidOptionError(
                    f"a validator is a function, not {validator!r}",
                    remedy="give functions of one argument, the change; or their names in "
                    "hoodie.precommit.validators, as module:function.",
                )
        found = rules_of(config.rules, rules)
        if config.operation in WRITES_NO_ROWS:
            if rules:
                raise InvalidOptionError(
                    f"{config.operation} writes no rows to which rules could apply",
                    remedy="check deletes with a validator: change.deleted().",
                    option=RULES,
                )
            found = ()  # options may be those of all writes of a job
        return cls((*named(config.validators), *validators), sql_checks(config), found)

    def understood(self, engine: SqlEngine, schema: pa.Schema, *, populate_meta_fields: bool = True) -> None:
        """Refuse queries that the engine cannot parse.

        Args:
            schema: the table's columns after the write.

        Raises:
            InvalidOptionError, UnsupportedError: naming the query, or the package that is missing.
        """
        if not self.queries:
            return
        empty = (with_meta(schema) if populate_meta_fields else schema).empty_table()
        with engine.queries(empty, empty) as queries:
            check_queries(self.queries, queries)

    def run(
        self, engine: SqlEngine, transaction: Transaction, table: TableConfig, metadata: CommitMetadata
    ) -> None:
        """Run functions and queries on the pending commit.

        Raises:
            ValidationError: the write must not be committed.
        """
        change = change_of(transaction, table, metadata, engine.frame_of)
        try:
            for function in self.functions:
                run_function(function, change)
            if self.queries:
                with engine.queries(*change.changed_partitions()) as queries:
                    run_queries(self.queries, queries)
        except HudiError as e:
            raise e.at(table=transaction.storage.uri, instant=transaction.instant) from e.__cause__
