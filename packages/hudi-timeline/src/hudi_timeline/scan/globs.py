"""Path patterns as Hadoop reads them: of `hoodie.datasource.read.incr.path.glob`.

`*` and `?` stand for any text and any character, a slash among them; `[ab]`, `[a-c]`, `[^a]` for one of some
characters, `{x,y}` for one of some texts; a backslash takes the next character as it is.

Source: org.apache.hadoop.fs.GlobPattern, which IncrementalRelation of Apache Hudi 0.15 uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hudi_format.errors import InvalidOptionError


def file_filter(glob: str, option: str) -> Callable[[str], bool]:
    """Whether a file's full path ends as the pattern says: matched as `*<glob>`.

    Raises:
        InvalidOptionError: brackets or braces that do not close, or a range in the wrong order.
    """
    try:
        pattern = re.compile(_regex("*" + glob) + r"\Z", re.DOTALL)
    except (ValueError, re.error) as e:
        raise InvalidOptionError(
            f"{option}={glob!r} is no path pattern: {e}",
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
