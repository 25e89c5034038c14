"""The reference of the command `hudi`, made of its own help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from hudi_timeline.cli.main import app

COLUMNS = "80"
ABOUT_PATH = (
    "`PATH` is a table's folder or address; most commands take the environment variable `HUDI_TABLE`, or the current "
    "folder, where it is not given. Errors are one line on standard error."
)
EXIT_CODES = {
    0: "done",
    1: "the table or the request is at fault, or `verify` has findings",
    2: "the command line is at fault",
    70: "the command itself failed, which is a fault to report",
    130: "interrupted",
}


def commands() -> Iterator[tuple[str, ...]]:
    """The words of each command, groups too."""
    yield from _below(typer.main.get_command(app), ())


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield (*words, name)
            yield from _below(inner, (*words, name))


def help_of(words: tuple[str, ...]) -> str:
    """What `hudi WORDS --help` prints at 80 columns."""
    result = CliRunner().invoke(
        app, [*words, "--help"], prog_name="hudi", env={"COLUMNS": COLUMNS, "TERMINAL_WIDTH": COLUMNS}
    )
    if result.exit_code:
        raise RuntimeError(f"hudi {' '.join(words)} --help: exit code {result.exit_code}: {result.output}")
    return "\n".join(
        line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", result.output).strip().splitlines()
    )


def reference() -> str:
    """The page of all commands."""
    parts = [
        "# Command line",
        f"`hudi` comes with the package hudi-timeline and needs no Spark and no JVM. {ABOUT_PATH}",
        "\n".join(
            ["| exit code | meaning |", "|---|---|", *(f"| {c} | {m} |" for c, m in EXIT_CODES.items())]
        ),
        f"```text\n{help_of(())}\n```",
    ]
    for words in commands():
        parts += [f"{'#' * (len(words) + 1)} hudi {' '.join(words)}", f"```text\n{help_of(words)}\n```"]
    return "\n\n".join(parts) + "\n"
