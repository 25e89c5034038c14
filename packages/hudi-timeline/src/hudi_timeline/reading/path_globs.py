"""Hadoop path patterns: of incremental queries, and in the paths of a read.

In `hoodie.datasource.read.incr.path.glob`:

`*` and `?` stand for any text and any character, a slash among them; `[ab]`, `[a-c]`, `[^a]` for one of some
characters, `{x,y}` for one of some texts; a backslash takes the next character as it is.

Source: org.apache.hadoop.fs.GlobPattern, which IncrementalRelation of Apache Hudi 0.15 uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.errors import InvalidOptionError
from hudi_format.model import join_path
from hudi_format.storage.open import normalised_path


def file_filter(glob: str, option: str) -> Callable[[str], bool]:
    """Matcher of full file paths against `*<glob>`.

    Raises:
        InvalidOptionError: brackets or braces that do not close, or a range in the wrong order.
    """
    try:
        pattern = re.compile(_regex("*" + glob) + r"\Z", re.DOTALL)
    except (ValueError, re.error) as e:
        raise InvalidOptionError(
            f"{option}={glob!r} is not a path pattern: {e}",
            remedy="see that its brackets and braces close.",
            option=option,
        ) from None
    return lambda path: pattern.match(path) is not None


def _regex(glob: str) -> str:
    out: list[str] = []
    depth = 0
    at = 0
    while at < len(glob):
        c = glob[at]
        at += 1
        if c == "\\":
            if at == len(glob):
                raise ValueError("a backslash with nothing after it")
            out.append(re.escape(glob[at]))
            at += 1
        elif c == "*":
            out.append(".*")
        elif c == "?":
            out.append(".")
        elif c == "{":
            depth += 1
            out.append("(?:")
        elif c == "}" and depth:
            depth -= 1
            out.append(")")
        elif c == "," and depth:
            out.append("|")
        elif c == "[":
            end = glob.find("]", at + 1)
            if end < 0:
                raise ValueError("a bracket that is not closed")
            inner = glob[at:end]
            negated = inner[:1] in ("!", "^")
            body = (
                (inner[1:] if negated else inner).replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
            )
            out.append(f"[{'^' if negated else ''}{body}]")
            at = end + 1
        else:
            out.append(re.escape(c))
    if depth:
        raise ValueError("a brace that is not closed")
    return "".join(out)


def base_of(path: str, is_table: Callable[[str], bool]) -> str | None:
    """Base path of the table at or above a path or pattern.

    Args:
        is_table: whether a folder is a table.
    """
    scheme, mark, rest = path.partition("://")
    if not mark:
        scheme, rest = "", path
    parts = rest.rstrip("/").split("/")
    # The table's own path may look like a pattern, so every folder is looked at as it is.
    for n in range(len(parts), 0, -1):
        folder = scheme + mark + "/".join(parts[:n])
        if folder and not folder.endswith(":") and is_table(folder):
            return folder
    return None


@dataclass(frozen=True, slots=True)
class PathSelection:
    """Files below some paths or patterns; `*` and `?` do not match slashes.

    Attributes:
        patterns: each a tuple of patterns, one for each folder from the table on.
        given: the paths as they were given.
        option: what they were given by.
    """

    patterns: tuple[tuple[re.Pattern[str], ...], ...]
    given: tuple[str, ...] = ()
    option: str = ""

    @classmethod
    def of(cls, paths: Sequence[str], base: str, option: str) -> PathSelection:
        """The selection of some paths.

        Args:
            base: the table's normalised base path.

        Raises:
            InvalidOptionError: a path that is not below the table, or no pattern.
        """
        patterns = []
        for path in paths:
            given = normalised_path(path)
            if given != base and not given.startswith(f"{base}/"):
                raise InvalidOptionError(
                    f"{option} names {path!r}, which is not below the table",
                    table=base,
                    remedy="give paths of one table.",
                    option=option,
                )
            parts = [p for p in given[len(base) :].split("/") if p]
            try:
                patterns.append(tuple(re.compile(_regex(p) + r"\Z", re.DOTALL) for p in parts))
            except (ValueError, re.error) as e:
                raise InvalidOptionError(
                    f"{option} names {path!r}, which is not a path pattern: {e}",
                    remedy="write it as Hadoop does: * and ? within a folder's name, [ab] and {a,b} for some.",
                    option=option,
                ) from None
        return cls(tuple(patterns), tuple(paths), option)

    def __contains__(self, path: object) -> bool:
        """Whether a file's relative path, or a folder above it, matches."""
        parts = str(path).split("/")
        return any(
            len(pattern) <= len(parts) and all(p.match(s) for p, s in zip(pattern, parts, strict=False))
            for pattern in self.patterns
        )

    def keep(self, files: pa.Table) -> pa.Table:
        """Rows whose `path` matches."""
        taken = [p in self for p in files.column("path").to_pylist()]
        return files.filter(pa.array(taken, pa.bool_()))

    def refuse_if_nothing(self, table: str, files: Mapping[str, Iterable[str]]) -> None:
        """Refuse paths below which the table has neither a partition nor a file.

        Args:
            files: names of the files of each of its partitions.

        Raises:
            InvalidOptionError: the paths, and a partition that there is.
        """
        folders = [f"{p}/" if p else "" for p in files]
        if not folders or any(f"{f}_" in self for f in folders):
            return
        if any(f"{f}{n}" in self for f, of in zip(folders, files.values(), strict=True) for n in of):
            return
        first = min(files)
        example = f", or one of a partition, such as {join_path(table, first)}" if first else ""
        raise InvalidOptionError(
            f"the table has no partition and no file at {', '.join(self.given)}",
            table=table,
            remedy=f"give the table's own path{example}.",
            option=self.option,
        )
