"""Commands of `hudi`: made when they are asked for, listed by what they are for."""

from __future__ import annotations

import copy
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

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


class CommandsOnDemand(Mapping[str, Any]):
    """Commands of an application by name, each made when it is asked for.

    To make all of them takes as long as to read a small table: Typer evaluates the annotations of each function.

    Args:
        app: the application with all commands and groups.
    """

    def __init__(self, app: typer.Typer) -> None:
        self._commands = {
            info.name or typer.main.get_command_name(info.callback.__name__): info
            for info in app.registered_commands
            if info.callback is not None
        }
        self._groups = {str(info.name): info for info in app.registered_groups}
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._commands
        yield from self._groups

    def __len__(self) -> int:
        return len(self._commands) + len(self._groups)

    def __contains__(self, name: object) -> bool:
        return name in self._commands or name in self._groups

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            if name in self._commands:
                alone.registered_commands.append(self._commands[name])
            else:
                alone.registered_groups.append(self._groups[name])
            self._made[name] = made = typer.main.get_group(alone).commands[name]
            for command in (made, *getattr(made, "commands", {}).values()):
                _take_as_given(command)
        return self._made[name]

    def listed(self, name: str) -> TyperCommand:
        """Line of a command in the help: its name and what it does, without parameters."""
        info: Any = self._commands.get(name) or typer.main.solve_typer_info_defaults(self._groups[name])
        return TyperCommand(
            name, help=info.help or inspect.getdoc(info.callback), short_help=info.short_help, hidden=info.hidden,
            deprecated=info.deprecated, rich_markup_mode=None,
        )  # fmt: skip


class _AsGiven:
    """Coercion of flags, texts and choices that are right as they are given; Typer's own says what is wrong.

    For each parameter that a command has, also where it is not given, Typer's own imports pydantic, which takes as
    long as to import Arrow.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a parameter; None where none is given."""
        kind, many = self._kind, param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        if type(value) is kind:
            return value
        if kind == list[str] and isinstance(value, (list, tuple)) and all(type(v) is str for v in value):
            return list(value)
        if isinstance(kind, type) and issubclass(kind, Enum):
            for choice in kind:
                if choice.value == value:
                    return choice
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _take_as_given(command: Any) -> None:
    """Set what coerces the parameters of a command, in a Typer that has pydantic do it."""
    made = command.get_params

    def get_params(ctx: Any) -> Any:
        params = made(ctx)
        for param in params:
            if vars(param).get("_runtime_param", param) is not None:
                continue
            if param.type_descriptor.parameter_info.parser is None:
                param._runtime_param = _AsGiven(param.type_descriptor.annotation)
        return params

    command.get_params = get_params


def made_on_demand(app: typer.Typer) -> Any:
    """The command of an application whose commands are made when they are asked for."""
    root = copy.copy(app)
    root.registered_commands, root.registered_groups = [], []
    command = typer.main.get_command(root)
    command.commands = CommandsOnDemand(app)  # type: ignore[attr-defined]
    _take_as_given(command)
    return command


class CommandGroup(TyperGroup):
    """Group of commands whose help lists them below titles."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands' names, in the order in which they were added."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each below its title."""
        all_of_them: Any = self.commands
        listed = all_of_them.listed if isinstance(all_of_them, CommandsOnDemand) else all_of_them.get
        commands = {n: c for n in self.list_commands(ctx) if not (c := listed(n)).hidden}
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
