"""The README's snippets, run as they stand, each with the table of the first one."""

import re
import shlex
import sys
import types
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hudi_timeline import HudiTable
from hudi_timeline.cli.main import app

README = Path(__file__).parents[2] / "README.md"
ROOT_README = Path(__file__).parents[4] / "README.md"


def blocks(language, readme=README):
    return re.findall(rf"^```{language}\n(.*?)^```", readme.read_text(), re.MULTILINE | re.DOTALL)


PYTHON = blocks("python")
COMMANDS = [
    line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ hudi ")
]


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the first snippet leaves, and the few names that the README supposes."""
    monkeypatch.chdir(tmp_path)
    jobs = types.ModuleType("my_jobs")
    jobs.moved = lambda committed: None
    monkeypatch.setitem(sys.modules, "my_jobs", jobs)
    found = {}
    exec(compile(PYTHON[0], "README.md", "exec"), found)
    trips = found["trips"]
    found["data"] = [{"id": 7, "city": "oslo", "fare": 4.0, "ts": 9}]
    found["commit"] = trips.timeline.completed_writes()[-1].time
    found["rows"] = pa.table({"id": [str(n) for n in range(10)]})
    found["my_job"] = lambda table: table.upsert(found["rows"])
    found["tmp_path"] = tmp_path
    yield found
    sys.modules.pop("mymerges", None)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_snippet_runs_as_it_stands_and_runs_again(names, number, monkeypatch, tmp_path):
    text = PYTHON[number]
    if text.startswith("# mymerges.py"):
        compile(text, "README.md", "exec")
        return  # what the next one imports
    if "import mymerges" in text:
        (tmp_path / "mymerges.py").write_text(PYTHON[number - 1])
        monkeypatch.syspath_prepend(str(tmp_path))
    exec(compile(text, "README.md", "exec"), dict(names))
    # A script that is run again, on the tables that its first run left.
    exec(compile(text, "README.md", "exec"), names)
    if "test_my_job_can_be_killed_anywhere" in names:
        (tmp_path / "job").mkdir()
        names["test_my_job_can_be_killed_anywhere"](tmp_path / "job")


def test_there_are_snippets_and_commands():
    assert len(PYTHON) >= 7
    assert len(COMMANDS) >= 8


def test_the_commands_run_as_they_stand(names, tmp_path):
    for command in COMMANDS:
        words = shlex.split(command.partition(" # ")[0])[1:]
        result = CliRunner().invoke(app, words)
        assert result.exception is None or result.exit_code in (0, 1), (command, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            command,
            result.exception,
        )
    assert HudiTable.open("rebuilt").timeline.completed_writes()


def test_the_first_page_s_snippet_without_spark_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, text = blocks("python", ROOT_README)
    found = {}
    for _ in range(2):  # a script that is run again
        exec(compile(text, "README.md", "exec"), found)
    assert found["trips"].read(["uuid"]).to_arrow().column("uuid").to_pylist() == ["a"]
