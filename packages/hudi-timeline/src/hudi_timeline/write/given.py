"""Options as callers give them, as text."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_format.config.heeded import MERGE
from hudi_format.errors import OptionError
from hudi_format.storage import hadoop_options


def as_options(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as text: True and False as Java writes them, a merge given as a function or mapping by its name.

    Raises:
        InvalidOptionError: a merge function that nobody else can import.
    """
    return {k: _as_text(k, v) for k, v in (options or {}).items()}


def _as_text(key: str, value: object) -> str:
    if key == MERGE and (callable(value) or isinstance(value, Mapping)):
        from hudi_format.merge.custom import merge_text

        return merge_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def call_options(table: Mapping[str, str], options: Mapping[str, object] | None, uri: str) -> dict[str, str]:
    """The options of one call, over those of the table's object.

    Raises:
        OptionError: options of the store, which is open already.
    """
    given = as_options(options)
    if hadoop_options(given):
        raise OptionError(
            f"{min(hadoop_options(given))} is an option of the store, which is open already",
            table=uri,
            remedy="give it to HudiTable.open() or HudiTable.create().",
        )
    return {**table, **given}
