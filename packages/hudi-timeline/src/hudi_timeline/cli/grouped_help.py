"""Help of the command `hudi`, with its commands in groups by what they are for."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

GROUPS: dict[str, tuple[str, ...]] = {
    "Look at a table": (
        "show", "schema", "history", "commits", "timeline", "partitions", "files", "commit",
    ),
    "Read rows": ("head", "count", "sql", "export", "diff", "key-history", "duplicates"),
    "Bring data in, change columns": ("import", "alter"),
    "Keep it fast": ("compact", "clean", "archive", "buckets", "index"),
    "Go back": ("savepoint", "rollback", "restore"),
    "Find and mend faults": (
        "doctor", "verify", "repair", "deduplicate", "lock", "check-merge", "capsule", "forget",
    ),
    "Versions and options": ("upgrade", "downgrade", "config"),
}  # fmt: skip
OTHERS = "More"
_LEAST = 45  # characters of a command's help, on however narrow a terminal


def _titled(title: str) -> str:
    """The title, in bold at a terminal, unless NO_COLOR asks for none."""
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return typer.style(title, bold=True) if bold else title


class GroupedHelp(TyperGroup):
    """Group of commands whose help lists them below titles."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each below its title."""
        commands = {n: c for n in self.list_commands(ctx) if (c := self.get_command(ctx, n)) and not c.hidden}
        named = {n for names in GROUPS.values() for n in names}
        others = tuple(n for n in commands if n not in named)
        width = max((len(n) for n in commands), default=0)
        limit = max(_LEAST, formatter.width - width - 6)
        for title, names in {**GROUPS, OTHERS: others}.items():
            # One column for all groups.
            rows = [(n.ljust(width), commands[n].get_short_help_str(limit)) for n in names if n in commands]
            if rows:
                with formatter.section(_titled(title)):
                    formatter.write_dl(rows)
