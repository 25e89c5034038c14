"""Check that a path stays below its root: no access outside the table.

Names come from values of partition columns, and from files that anybody may have written: properties, commits, plans,
markers, the metadata table.  Every `Storage` asks `check_below` before it reads, writes or deletes; who reads such a
file asks earlier, so that the error says which file names the path.
"""

from __future__ import annotations

import os
import re

from hudi_format.errors import CorruptFileError

# `..`, also between the separators of Windows, and as some web servers decode it.
_UP = re.compile(r"(?:^|[/\\])(?:\.|%2[eE]){2}(?:[/\\]|$)").search
_OF_WINDOWS = re.compile(r"[\\:]").search


def leads_out(path: str) -> bool:
    """Whether a path may lead out of its root: `..`, NUL or an unpaired surrogate."""
    # Nearly every path has none of these; a search through all of it takes many times as long.
    if (
        not (".." in path or "%2" in path or "\0" in path or "\\" in path)
        and path.isascii()
        and os.name != "nt"
    ):
        return False
    if "\0" in path or _UP(path) is not None or (os.name == "nt" and _OF_WINDOWS(path) is not None):
        return True
    try:
        path.encode("utf-8", "surrogateescape")  # names of files that are no UTF-8 are these in Python
    except UnicodeEncodeError:
        return True
    return False


def is_plain(path: str) -> bool:
    """Whether a path is safe and normalised: no empty segment and no `.`."""
    return not (
        "//" in path
        or path[:1] == "/"
        or path[-1:] == "/"
        or path == "."
        or path[:2] == "./"
        or path[-2:] == "/."
        or "/./" in path
        or leads_out(path)
    )


def check_below(path: str, root: str, *, changes: bool = False) -> str:
    """The path, after a check that it stays below the root.

    Args:
        changes: it is to be written or deleted, and has to be plain then: `.` would be the table itself.

    Raises:
        CorruptFileError: it leads out, or cannot be asked for.
    """
    if leads_out(path) or (changes and not is_plain(path)):
        raise CorruptFileError(
            f"the path {path[:200]!r} is not below the table's folder",
            table=root,
            file=path[:200].encode("utf-8", "backslashreplace").decode().replace("\0", "\\0"),
            remedy="find out which writer put this name into the table's metadata; nothing outside of "
            "the table was touched.",
        )
    return path
