"""A table, and the command run on it."""

import sys

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id

from hudi_timeline.cli.main import main

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])


@pytest.fixture
def path(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA)
    table.commit(at(1), {("a", file_id(0)): [{"id": "1", "p": "a", "v": 1}, {"id": "2", "p": "a", "v": 2}]})
    table.commit(at(2), {("b", file_id(1)): [{"id": "3", "p": "b", "v": 3}]})
    return str(table.path)


@pytest.fixture
def hudi(monkeypatch, capsys):
    """Runs the command; gives exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hudi", *arguments])
        with pytest.raises(SystemExit) as e:
            main()
        captured = capsys.readouterr()
        return e.value.code or 0, captured.out, captured.err

    return run
