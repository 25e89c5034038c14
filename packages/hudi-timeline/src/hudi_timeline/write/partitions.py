"""Which partitions a write replaces or deletes, by the names, patterns and rows that it was given.

Source: Apache Hudi 0.15.0, tried: only `*` (also written `%2A`) is a wildcard; given names count, and the rows
only where no names are given; a name that is not there is no error, and stands in the commit with no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from hudi_format.errors import UnknownPartitionError


@dataclass(frozen=True, slots=True)
class Chosen:
    """Partitions to delete.

    Attributes:
        found: partitions of the table, sorted.
        unknown: names and patterns that no partition of the table answers to, as given.
    """

    found: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def listed(self) -> tuple[str, ...]:
        """What Apache Hudi lists in the commit: also plain names that are not there."""
        return tuple(sorted({*self.found, *(n for n in self.unknown if "*" not in n)}))

    def warnings(self) -> tuple[str, ...]:
        if not self.unknown:
            return ()
        names = ", ".join(self.unknown[:5]) + (" ..." if len(self.unknown) > 5 else "")
        verb = "is no partition" if len(self.unknown) == 1 else "are no partitions"
        return (f"{names} {verb} of the table: nothing was deleted there",)


def choose(names: Sequence[str], of_rows: Iterable[str], existing: Iterable[str]) -> Chosen:
    """The partitions that are meant.

    Args:
        names: names and patterns of the user's.
        of_rows: partitions that the rows fall into; they count where no names are given.
        existing: the table's.
    """
    there = sorted(existing)
    found: set[str] = set()
    unknown: list[str] = []
    for name in names or of_rows:
        pattern = name.replace("%2A", "*").strip("/") if names else name
        if names and "*" in pattern:
            # Only "*" is a wildcard; brackets and question marks stand for themselves.
            literal = pattern.replace("[", "[[]").replace("?", "[?]")
            hits = [p for p in there if fnmatchcase(p, literal)]
        else:
            hits = [p for p in there if p == pattern]
        found.update(hits)
        if not hits:
            unknown.append(pattern)
    return Chosen(tuple(sorted(found)), tuple(unknown))


def require_all(chosen: Chosen, existing: Iterable[str], *, table: str) -> None:
    """Refuse names that are no partitions.

    Raises:
        UnknownPartitionError: the names, and those that were probably meant.
    """
    if not chosen.unknown:
        return
    near = get_close_matches(chosen.unknown[0], sorted(existing), n=3, cutoff=0.5)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise UnknownPartitionError(
        f"{', '.join(chosen.unknown[:5])}: no such partition in the table",
        table=table,
        remedy=f"{meant}inspect.partitions() lists them; missing_ok=True passes over unknown names.",
        partitions=list(chosen.unknown),
    )
