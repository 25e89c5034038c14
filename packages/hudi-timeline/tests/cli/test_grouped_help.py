"""Groups of the help: every command stands in one of them, once."""

from collections import Counter

import typer

from hudi_timeline.cli.grouped_help import GROUPS, OTHERS
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


def test_a_group_within_is_listed_as_before(hudi):
    code, out, _ = hudi("config", "--help")
    assert code == 0
    assert "explain" in out
