"""User code locations in Spark's error texts of Python worker failures."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BEGIN = "Traceback (most recent call last):"
# Notebooks name their cells in angle brackets, with and without quotes.
_FRAME = re.compile(
    r'^[ |]*File (?:"(?P<quoted>[^"\n]*)"|(?P<bare><[^>\n]*>)), line (?P<line>\d+)(?:, in (?P<function>.+))?$',
    re.MULTILINE,
)
_SPARK = re.compile(r"[/\\](?:pyspark|py4j)(?:[/\\]|[-.\w]*\.zip[/\\])")
_OURS = re.compile(r"[/\\](?:hudi_(?:format|index|timeline|spark)|pyspark_hudi)[/\\]")
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]|\.pyx\Z|^<frozen ")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|\Z)")


@dataclass(frozen=True, slots=True)
class PythonFailure:
    """Failure in a Python worker.

    Attributes:
        exception: class and text, as Python writes them; all lines.
        source: the file of the innermost frame of the user's own code, "" where no such frame is told.
        line, function: in it.
    """

    exception: str
    source: str = ""
    line: int = 0
    function: str = ""

    @property
    def place(self) -> str:
        """Function, file and line for a message, or ""."""
        return f"in {self.function or 'the module'} ({self.source}, line {self.line})" if self.source else ""

    def details(self) -> dict[str, object]:
        """Values for the error's `details`."""
        out: dict[str, object] = {"exception": self.exception}
        if self.source:
            out |= {"source": self.source, "line": self.line, "function": self.function}
        return out


def python_failure(text: str) -> PythonFailure | None:
    """The last Python worker exception in a text; None where there is none.

    A frame of the user's own is the innermost one that is neither Spark's nor ours, and of these one outside of
    installed libraries where there is any.
    """
    begin = text.rfind(_BEGIN)
    if begin < 0:
        return None
    exception = _exception(text[begin + len(_BEGIN) :])
    if not exception:
        return None
    names = [(m["quoted"] or m["bare"] or "", m) for m in _FRAME.finditer(text)]
    names = [(name, m) for name, m in names if not _SPARK.search(name)]
    foreign = [(name, m) for name, m in names if not _OURS.search(name)]
    own = [(name, m) for name, m in foreign if not _LIBRARY.search(name)]
    # Below a frame of ours, a library was called by us.
    chosen = own or (foreign if len(foreign) == len(names) else [])
    if not chosen:
        return PythonFailure(exception)
    source, match = chosen[-1]
    return PythonFailure(exception, source, int(match["line"]), (match["function"] or "").strip())


def _exception(after: str) -> str:
    """The exception's own lines below the traceback's frames."""
    lines: list[str] = []
    for line in after.splitlines():
        if not lines:
            if line[:1].isspace() or not line or not _EXCEPTION.match(line):
                continue
        elif not line.strip() or re.match(r"\s+at \S|Driver stacktrace|Caused by: ", line):
            break
        lines.append(line.rstrip())
    return "\n".join(lines)
