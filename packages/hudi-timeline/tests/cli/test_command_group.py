"""Groups of the help: every command stands in one of them, once.  What a command is given, as Typer has it."""

import subprocess
import sys
from collections import Counter

import pytest
import typer

from hudi_timeline.cli import command_group
from hudi_timeline.cli.command_group import GROUPS, OTHERS, CommandsOnDemand
from hudi_timeline.cli.main import app


def commands():
    return set(typer.main.get_command(app).commands)


def test_every_command_has_a_group_and_every_name_is_a_command():
    named = Counter(n for names in GROUPS.values() for n in names)
    assert set(named) == commands()
    assert max(named.values()) == 1


def test_the_help_lists_all_commands_below_their_titles(hudi, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = hudi("--help")
    assert code == 0
    lines = out.splitlines()
    titles = [t for t in GROUPS if f"{t}:" in lines]
    assert titles == list(GROUPS)
    assert f"{OTHERS}:" not in lines
    for name in commands():
        assert any(line.startswith(f"  {name} ") for line in lines), name
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("no_color", ["", "1"])
def test_titles_are_bold_at_a_terminal(hudi, monkeypatch, no_color):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, out, _ = hudi("--help")
    for title in GROUPS:
        assert (f"\x1b[1m{title}\x1b[0m:" in out) == (not no_color)


def test_a_group_within_is_listed_as_before(hudi):
    code, out, _ = hudi("config", "--help")
    assert code == 0
    assert "explain" in out


def test_commands_made_on_demand_are_those_of_the_whole_application(monkeypatch):
    whole, on_demand = typer.main.get_command(app).commands, CommandsOnDemand(app)
    assert list(on_demand) == list(whole)
    assert len(on_demand) == len(whole)
    for name, command in whole.items():
        made, listed = on_demand[name], on_demand.listed(name)
        assert on_demand[name] is made
        assert type(made) is type(command)
        for line in (made, listed):
            assert (line.name, line.help, line.hidden) == (command.name, command.help, command.hidden), name
            assert line.get_short_help_str(60) == command.get_short_help_str(60), name
        assert [(p.name, p.opts, p.required) for p in made.params] == [
            (p.name, p.opts, p.required) for p in command.params
        ]
        assert list(getattr(made, "commands", ())) == list(getattr(command, "commands", ()))
    assert "no such command" not in on_demand
    assert on_demand.get("no such command") is None


def test_a_call_makes_only_its_own_command(hudi, path):
    from hudi_timeline.cli import main

    main._command.cache_clear()
    assert hudi("--help")[0] == 0
    assert main._command().commands._made == {}
    assert hudi("count", path)[0] == 0
    assert list(main._command().commands._made) == ["count"]


RUN = "import sys; from hudi_timeline.cli.main import main; sys.argv = ['hudi', *{}]\ntry: main()\nfinally: print({})"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("show", "{}"),
        ("count", "{}", "-w", "v > 1", "-o", "json"),
        ("files", "{}", "--output", "csv"),
    ],
)
def test_what_is_right_as_it_is_given_is_taken_without_pydantic(path, arguments):
    called = [a.format(path) for a in arguments]
    there = "'pydantic' in sys.modules or 'pydantic_core' in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(called, there)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_values_are_those_that_typer_makes_of_them(path, monkeypatch):
    typed = {n: dict(c) for n, c in (("typer", {}), ("ours", {}))}
    for whose, found in typed.items():
        if whose == "typer":
            monkeypatch.setattr(command_group, "_take_as_given", lambda command: None)
        else:
            monkeypatch.undo()
        for name, arguments in (
            ("show", [path]),
            ("show", [path, "-o", "ndjson", "--storage-option", "a=b", "--storage-option", "c=d"]),
            ("head", [path, "-n", "3", "-c", "id", "-c", "v", "--meta"]),
            ("clean", [path, "--dry-run"]),
            ("sql", [path, "select 1"]),
        ):
            command = CommandsOnDemand(app)[name]
            with command.make_context(name, list(arguments)) as context:
                found[name, tuple(arguments)] = dict(context.params)
    assert typed["ours"] == typed["typer"]
    assert [type(v) for c in typed["ours"].values() for v in c.values()] == [
        type(v) for c in typed["typer"].values() for v in c.values()
    ]


@pytest.mark.parametrize("arguments", [("-o", "jsno"), ("-o", ""), ("-n", "many"), ("-n", "-1"), ("-n", "")])
def test_a_wrong_value_is_still_said(hudi, path, arguments):
    code, out, err = hudi("head", path, *arguments)
    assert (code, out) == (2, "")
    assert "Invalid value for" in err
    assert f"'{arguments[0]}'" in err
