"""The manual page of the command `hudi`, made of its own help: `python tools/pages/man.py` writes it.

It is kept in packages/hudi-timeline/share/man and installed with the package, where `man hudi` finds it: beside the
folder of commands that is on PATH.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_timeline.cli.command_group import GROUPS, OTHERS
from hudi_timeline.cli.main import app
from pages.commands import ABOUT_PATH, EXIT_CODES

PAGE = Path(__file__).resolve().parents[2] / "packages/hudi-timeline/share/man/man1/hudi.1"
ENVIRONMENT = {
    "HUDI_TABLE": "The table of commands that are given no PATH.",
    "HUDI_TRACEBACK": "If it is set, where in the code an error arose is printed too.",
    "NO_COLOR": "If it is set, nothing is bold or coloured.",
}


def page() -> str:
    """The page, as input of troff with the macros of man."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("hudi", [], resilient_parsing=True)
    lines = [
        '.TH HUDI 1 "" "hudi\\-timeline" "Apache Hudi tables without a JVM"',
        ".SH NAME",
        f"hudi \\- {_plain(root.help)[0].lower()}{_plain(root.help)[1:].rstrip('.')}",
        ".SH SYNOPSIS",
        ".B hudi",
        ".I COMMAND",
        "[\\fIOPTIONS\\fR] [\\fIPATH\\fR] ...",
        ".SH DESCRIPTION",
        _plain(ABOUT_PATH),
    ]
    named = {name for names in GROUPS.values() for name in names}
    others = tuple(name for name in root.list_commands(context) if name not in named)
    for title, names in {**GROUPS, OTHERS: others}.items():
        found = [root.commands[name] for name in names if not root.commands[name].hidden]
        if found:
            lines.append(f".SH {title.upper()}")
        for command in found:
            lines += _command(command, context)
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _plain(meaning)]
    lines.append(".SH ENVIRONMENT")
    for name, meaning in ENVIRONMENT.items():
        lines += [".TP", f".B {name}", _plain(meaning)]
    lines += [".SH EXAMPLES", ".nf"]
    lines += [_plain(line) for line in root.epilog.replace("\b\n", "").splitlines()[1:]]
    return "\n".join([*lines, ".fi"]) + "\n"


def _command(command: Any, parent: Any) -> Iterator[str]:
    """Section of a command, and of those below it."""
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    yield f".SS {_plain(context.command_path)} {_plain(' '.join(command.collect_usage_pieces(context)))}"
    for paragraph in inspect.cleandoc(command.help or "").replace("\b", "").split("\n\n"):
        yield from (_plain(" ".join(paragraph.split())), ".PP")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[0] != "--help":
            yield from (".TP", f".B {_plain(record[0])}", _plain(" ".join(record[1].split())))
    for inner in getattr(command, "commands", {}).values():
        if not inner.hidden:
            yield from _command(inner, context)


def _plain(text: str) -> str:
    """Text that troff prints as it is: no escapes, no requests, hyphens that can be copied."""
    text = text.replace("`", "").replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
