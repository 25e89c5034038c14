"""The `hudi` command."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id

from hudi_timeline import HudiTable
from hudi_timeline.cli.main import main

cli = sys.modules["hudi_timeline.cli.main"]
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


def test_show_says_what_the_table_is(hudi, path):
    code, out, err = hudi("show", path)
    assert (code, err) == (0, "")
    for words in ("made", "COPY_ON_WRITE", "partitioned by", f"{at(2)} UPSERT"):
        assert words in out
    facts = json.loads(hudi("show", path, "-o", "json")[1])
    assert (facts["version"], facts["files"], facts["partitions"], facts["pending"]) == (6, 2, 2, [])


@pytest.mark.parametrize("command", ["timeline", "commits", "partitions", "files", "schema", "head"])
def test_every_listing_comes_as_table_json_and_csv(hudi, path, command):
    code, text, _ = hudi(command, path)
    assert code == 0
    rows = json.loads(hudi(command, path, "-o", "json")[1])
    table = list(csv.DictReader(io.StringIO(hudi(command, path, "--output", "csv")[1])))
    assert len(rows) == len(table) > 0
    assert set(table[0]) <= set(rows[0])
    for name in table[0]:
        assert name in text


def test_the_newest_commit_comes_first_and_limits_hold(hudi, path):
    rows = json.loads(hudi("timeline", path, "-o", "json", "-n", "1")[1])
    assert [r["instant"] for r in rows] == [at(2)]


def test_all_files_are_shown_when_asked(hudi, path):
    rows = json.loads(hudi("files", path, "--all", "-o", "json")[1])
    assert {r["latest"] for r in rows} == {True}


def test_head_filters_and_travels(hudi, path):
    out = hudi("head", path, "-c", "id,v", "-w", "v >= 2", "-o", "json")[1]
    assert json.loads(out) == [{"id": "2", "v": 2}, {"id": "3", "v": 3}]
    assert len(json.loads(hudi("head", path, "--as-of", at(1), "-o", "json")[1])) == 2
    assert json.loads(hudi("head", path, "--limit", "1", "--columns", "id", "-o", "json")[1]) == [{"id": "1"}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "/nowhere/at/all"), "HUDI-E0101"),
        (("head", "{path}", "-w", "w = 1"), "HUDI-E0502"),
        (("head", "{path}", "-w", "v ="), "HUDI-E0302"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(hudi, path, arguments, words):
    code, out, err = hudi(*(a.format(path=path) for a in arguments))
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("show",), ("files", "x", "-o", "xml"), ("show", "x", "--storage-option", "bad")],
)
def test_a_wrong_command_line_is_exit_code_2(hudi, arguments):
    code, out, err = hudi(*arguments)
    assert (code, out) == (2, "")
    assert err


def test_options_are_explained(hudi):
    out = hudi("config", "explain", "hoodie.table.name", "hoodie.cleaner.comits.retained", "-o", "json")[1]
    known, unknown = json.loads(out)
    assert known["taken_as"] == "meaning"
    assert unknown["taken_as"] == "unknown"
    assert "hoodie.cleaner.commits.retained" in unknown["note"]


def test_help_and_version(hudi):
    code, out, _ = hudi("--help")
    assert code == 0
    assert "timeline" in out
    assert hudi("--version")[1].startswith("hudi-timeline ")


def test_the_command_runs_in_a_process_of_its_own(path):
    run = subprocess.run(
        [sys.executable, "-c", "from hudi_timeline.cli.main import main; main()", "files", path, "-o", "csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines()[0].startswith("path,partition,file_id,instant")


@pytest.mark.req("NEW-08")
def test_services_run_from_a_shell(hudi, tmp_path):
    path = str(tmp_path / "s")
    table = HudiTable.create(path, SCHEMA, name="s", record_keys=["id"], partition_fields=["p"])
    off = {"hoodie.table.services.enabled": "false"}
    for step in range(9):
        table.upsert([{"id": "1", "p": "a", "v": step}], options=off)
    keep = ("--option", "hoodie.cleaner.commits.retained=2")
    plan = json.loads(hudi("clean", path, *keep, "--dry-run", "-o", "json")[1])
    assert (plan["files planned"], plan["files deleted"], plan["instant"]) == (6, 0, "")
    saved = hudi("savepoint", "create", path, "--comment", "here")[1].strip()
    assert hudi("savepoint", "list", path)[1].split() == [saved]
    assert json.loads(hudi("clean", path, *keep, "-o", "json")[1])["files deleted"] == 6
    short = ("--option", "hoodie.keep.min.commits=2", "--option", "hoodie.keep.max.commits=3")
    done = json.loads(hudi("archive", path, *short, "-o", "json")[1])
    assert (done["instants"], done["file"]) == (7, ".hoodie/archived/.commits_.archive.1_1-0-1")
    assert json.loads(hudi("restore", path, saved, "--dry-run", "-o", "json")[1])["undone"] == []
    assert hudi("savepoint", "delete", path, saved)[0] == 0
    code, out, err = hudi("savepoint", "delete", path, saved)
    assert (code, out) == (1, "")
    assert "no savepoint" in err


def test_commands_of_one_commit_and_of_conversions(hudi, path, tmp_path):
    (row,) = json.loads(hudi("commit", "showpartitions", path, at(2), "-o", "json")[1])[:1]
    assert row["bytes_written"] > 0
    assert json.loads(hudi("commit", "showfiles", path, at(2), "-o", "json")[1])
    assert json.loads(hudi("commit", "record-size", path, "-o", "json")[1])["bytes per row"] > 0
    assert hudi("commit", "showfiles", path, at(9))[0] == 1
    properties = tmp_path / "new.properties"
    text = (Path(path) / ".hoodie/hoodie.properties").read_text().replace("COPY_ON_WRITE", "MERGE_ON_READ")
    properties.write_text(text)
    convert = ("repair", "overwrite-hoodie-props", path, "--new-props-file", str(properties))
    assert "+ hoodie.table.type=MERGE_ON_READ" in hudi(*convert, "--dry-run")[1]
    assert HudiTable.open(path).table_type == "COPY_ON_WRITE"
    assert hudi(*convert)[0] == 0
    assert HudiTable.open(path).table_type == "MERGE_ON_READ"
    for name in ("addpartitionmeta", "corrupted-clean-files", "migrate-partition-meta"):
        assert hudi("repair", name, path, "--dry-run")[0] == 0
    assert json.loads(hudi("repair", "show-empty-commit-metadata", path, "-o", "json")[1]) == []
    assert json.loads(hudi("downgrade", path, "-o", "json")[1])["executed"]
    assert "hoodie.table.version=6" in hudi("upgrade", path)[1]


def test_rollback_prints_its_plan_and_then_undoes_the_newest_commit(hudi, path):
    planned = json.loads(hudi("rollback", path, at(2), "--plan", "-o", "json")[1])
    assert (planned["undone"], planned["instants"]) == ([at(2)], [])
    assert len(planned["delete"]) == planned["files"] > 0
    done = json.loads(hudi("rollback", path, at(2), "-o", "json")[1])
    assert done["files"] == planned["files"]
    assert len(done["instants"]) == 1
    (row,) = json.loads(hudi("timeline", path, "--rollbacks", "-o", "json")[1])
    assert (row["undone"], row["files_deleted"], row["state"]) == ([at(2)], planned["files"], "COMPLETED")
    assert json.loads(hudi("timeline", path, "--incomplete", "-o", "json")[1]) == []
    code, _, error = hudi("rollback", path, at(2))
    assert (code, "no instant" in error) == (1, True)


def test_ctrl_c_is_one_line_and_the_exit_code_of_shells(hudi, path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "open_table", interrupted)
    assert hudi("files", path) == (130, "", "interrupted.\n")
