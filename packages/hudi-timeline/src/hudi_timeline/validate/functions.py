"""Validators in Python: functions that take a `Change` and say whether it may be committed.

    def no_free_rides(change):
        return change.rows(["id", "fare"], "fare <= 0").to_arrow()      # the bad rows; none is good

A function gives back None or True for good, False for bad, rows (Arrow) that are bad, none of them for good, or a text
that says what is bad, empty for good.  Anything that it raises stops the commit too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_format.arrow_input import checked_table
from hudi_format.config.heeded import VALIDATORS
from hudi_format.errors import HudiError, ValidationError
from hudi_format.references import imported
from hudi_format.schema.meta_columns import RECORD_KEY
from hudi_timeline.validate.change import Change

Validator: TypeAlias = Callable[[Change], Any]
SHOWN = 5


def named(names: Sequence[str]) -> tuple[Validator, ...]:
    """The functions that `module:name` names among the validators of an option mean.

    Raises:
        InvalidOptionError: one that cannot be imported.
    """
    return tuple(imported(n, VALIDATORS) for n in names if ":" in n)


def name_of(validator: Validator) -> str:
    return str(getattr(validator, "__name__", None) or type(validator).__name__)


def run_function(validator: Validator, change: Change) -> None:
    """Ask one function.

    Raises:
        ValidationError: it says no, or fails; its name is the rule.
    """
    rule = name_of(validator)
    try:
        answer = validator(change)
    except HudiError:
        raise
    except Exception as e:
        raise ValidationError(
            f"validator {rule} failed: {type(e).__name__}: {e}",
            remedy="correct the validator or the rows; nothing was committed.",
            rule=rule,
        ) from e
    if answer is None or answer is True or (isinstance(answer, str) and not answer):
        return
    if answer is False or isinstance(answer, str):
        why = f": {answer}" if answer else ""
        raise ValidationError(
            f"validator {rule} refused the write{why}",
            remedy="correct the rows; nothing was committed.",
            rule=rule,
        )
    rows = _rows(answer, rule)
    if rows.num_rows:
        keys = RECORD_KEY if RECORD_KEY in rows.column_names else (rows.column_names or [""])[0]
        sample = [str(v) for v in rows.column(keys).slice(0, SHOWN).to_pylist()] if keys else []
        raise refused(rule, rows.num_rows, sample, what=f"validator {rule} found")


def _rows(answer: object, rule: str) -> pa.Table:
    if isinstance(answer, pa.Table):
        return checked_table(answer)
    if isinstance(answer, pa.RecordBatch):
        return checked_table(pa.Table.from_batches([answer]))
    if hasattr(answer, "__arrow_c_stream__"):
        return checked_table(pa.RecordBatchReader.from_stream(answer).read_all())
    raise ValidationError(
        f"validator {rule} gave a {type(answer).__name__}, which is no answer",
        remedy="give None or True for good, False, a text, or the bad rows as an Arrow table.",
        rule=rule,
    )


def refused(rule: str, rows: int, sample: Sequence[str], *, what: str) -> ValidationError:
    """The error for bad rows: rule, count, and some of their keys."""
    shown = ", ".join(sample) + (", ..." if rows > len(sample) else "")
    return ValidationError(
        f"{what} {rows:,} bad rows" + (f", with keys {shown}" if sample else ""),
        remedy="correct or leave out these rows; nothing was committed.",
        rule=rule,
        rows=rows,
        sample=list(sample),
    )
