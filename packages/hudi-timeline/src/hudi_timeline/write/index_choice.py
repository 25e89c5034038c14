"""Which index a write uses, and what the table remembers of it.

A table whose keys are unique over all partitions stays so only if every upsert looks in all of them.  So a write
with a global index leaves its name in the commit, and the next one goes on with it, or is refused if it names
an index that looks within partitions only.

Source: FAQ, "Can I switch from one index type to another"; apache/hudi#13241 for what silence about it costs.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_format.config import WriteConfig
from hudi_format.errors import ConflictingOptionError
from hudi_timeline.engine.lookup import GLOBAL_BLOOM, GLOBAL_SIMPLE, SIMPLE

INDEX_TYPE = "hoodie.index.type"
INDEX_SWITCH = "hudi.index.allow.switch"
# In the commit's extraMetadata.
RECORDED = "hudi.index.type"

_GLOBAL = (GLOBAL_SIMPLE, GLOBAL_BLOOM)
_LOOKS_UP = ("upsert", "delete")


def recorded_index(extra: Mapping[str, str]) -> str | None:
    """The global index that a commit was written with, None where it does not say."""
    found = extra.get(RECORDED)
    return found if found in _GLOBAL else None


def choose_index(
    config: WriteConfig, recorded: str | None, *, new_table: bool, table: str
) -> tuple[str, tuple[str, ...]]:
    """The index of a write, and what to say about it.

    Args:
        recorded: what `recorded_index` says of the newest commit.
        table: for messages.

    Raises:
        ConflictingOptionError: an index within partitions is named for a table of a global one.
    """
    named = config.index_type
    if recorded is None:
        kind = named or SIMPLE
        if kind in _GLOBAL and not new_table and config.operation in _LOOKS_UP:
            return kind, (
                f"the last commit was not written with a global index: a key that stands in several partitions is "
                f"changed in each of them by {kind}",
            )
        return kind, ()
    if named is None:
        return recorded, ()
    if named in _GLOBAL or config.operation not in _LOOKS_UP:
        return named, ()
    if not config.index_switch:
        raise ConflictingOptionError(
            f"the table is written with {recorded}, whose keys are unique over all partitions; {named} would not "
            "find a key in another partition and write it a second time",
            table=table,
            remedy=f"set {INDEX_TYPE}={recorded} or leave it out; to give up unique keys, set {INDEX_SWITCH}=true.",
            option=INDEX_TYPE,
        )
    return named, (
        f"keys were unique over all partitions with {recorded}; with {named} they no longer need be",
    )


def to_record(kind: str, recorded: str | None, operation: str) -> dict[str, str]:
    """What a commit says of its index: global ones only, also where the operation looks nothing up."""
    keeps = kind if operation in _LOOKS_UP or kind in _GLOBAL else recorded
    return {RECORDED: keeps} if keeps in _GLOBAL else {}
