"""Non-blocking concurrency control: writers that append to one file slice side by side.

In a merge-on-read table with a simple bucket index each write adds a log file of its own to the slice of its bucket.
Readers merge them by the ordering field, so that who committed first makes no difference; that the table's merge is
such a one is tried on made-up records before a write.  What does make a difference is a conflict, as under optimistic
concurrency control, and is mended by running the write again at once where its rows depend on nothing in the table:

    inserts and updates beside each other               no conflict
    a deletion, an overwrite, rows read from the table  conflict: what is there decides
    a compaction that was planned meanwhile             conflict: it began another slice, and would not see the log
    two first file groups of one bucket                 conflict: only one of them can be it

Source: RFC-22 of Apache Hudi, "Lock free multi writing"; its release 1.x, where files belong to slices by the time of
completion, which table version 6 does not have.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.merge.laws import ASSOCIATIVE, COMMUTATIVE, IDEMPOTENT, check_laws
from hudi_format.merge.payloads import MergeRule
from hudi_timeline.file_system_view.file_slices import MERGE_ON_READ
from hudi_timeline.options.transaction_options import CONCURRENCY_MODE, NON_BLOCKING, OPTIMISTIC
from hudi_timeline.writing.planning.write_plan import Plan, drops_duplicates, fails_on_known_keys
from hudi_timeline.writing.row_conflicts import ReadRows

_BLIND = ("upsert", "insert")
_CASES = 500
_FEATURE = "non-blocking concurrency control"
_LAWS = {
    COMMUTATIVE: "of two records the order of their writes decides",
    ASSOCIATIVE: "a compaction in between changes what comes out",
    IDEMPOTENT: "a record that is written twice is not as one",
}


def refuse_if_order_matters(plan: Plan) -> None:
    """Refuse the mode where what comes out would depend on the order of commits.

    Raises:
        UnsupportedError: the reason; nothing is written.
    """
    if plan.config.transaction.mode != NON_BLOCKING:
        return
    why = _unsafe(plan)
    if why:
        raise UnsupportedError(
            f"{CONCURRENCY_MODE}={NON_BLOCKING} is not safe here: {why}",
            table=plan.storage.uri,
            remedy=f"set {CONCURRENCY_MODE}={OPTIMISTIC} in all writers, which is safe for any table.",
            feature=_FEATURE,
            option=CONCURRENCY_MODE,
        )


def _unsafe(plan: Plan) -> str:
    """Why writers beside each other would not come to the same in any order; "" where they do."""
    table, spec, ordering, rule = plan.table, plan.key_spec, plan.ordering_field, plan.rule
    given = plan.config if table is None else table
    if given.table_type != MERGE_ON_READ:
        return "a copy-on-write table has no logs, and of two writes of one file one would be lost"
    if plan.bucket is None or plan.bucket.by_partition:
        return (
            "only by the index BUCKET with a fixed number of buckets a key has the same file group in two writers that "
            "do not see each other"
        )
    if given.cdc_enabled:
        return "the table captures changes, and their images depend on the order of commits"
    if plan.operation not in _BLIND:  # it waits for its turn, as under optimistic concurrency control
        return ""
    if ordering is not None and "." in ordering:
        return f"records of a log are not ordered by a nested field, {ordering!r}"
    if not rule.custom:
        rule = replace(
            rule,
            fixed=tuple(sorted({n.partition(".")[0] for n in (*spec.key_fields, *spec.partition_fields)})),
        )
    broken = _broken(rule, plan.schema, ordering)
    if not broken:
        return ""
    name = f"{rule.custom or rule.name}, " + (
        f"ordering field {ordering}" if ordering else "no ordering field"
    )
    laws = "; ".join(f"{law} is broken: {_LAWS[law]}" for law in broken)
    return f"by the table's merge ({name}) the order of writes makes a difference ({laws})"


@lru_cache(maxsize=64)
def _broken(rule: MergeRule, schema: pa.Schema, ordering: str | None) -> tuple[str, ...]:
    """Laws that a merge breaks, of those that count.

    Of records with equal ordering values the names of the log files decide, which are the same for all readers.
    """
    broken = check_laws(rule, schema, ordering=ordering, cases=_CASES).broken
    return tuple(law for law in _LAWS if law in broken)


def is_blind(plan: Plan, read_from: ReadRows | None) -> bool:
    """Whether rows depend on nothing in the table, under this mode.

    Args:
        read_from: the rows of the table that its rows were made of.
    """
    return (
        plan.config.transaction.mode == NON_BLOCKING
        and plan.operation in _BLIND
        and read_from is None
        and not plan.config.prepped
        and not drops_duplicates(plan)
        and not fails_on_known_keys(plan)
    )
