"""The `hudi` command."""

import json
import subprocess
import sys

import pytest
from made_tables import at

cli = sys.modules["hudi_timeline.cli.main"]


def test_show_says_what_the_table_is(hudi, path):
    code, out, err = hudi("show", path)
    assert (code, err) == (0, "")
    for words in ("made", "COPY_ON_WRITE", "partitioned by", f"{at(2)} UPSERT"):
        assert words in out
    facts = json.loads(hudi("show", path, "-o", "json")[1])
    assert (facts["version"], facts["files"], facts["partitions"], facts["pending"]) == (6, 2, 2, [])


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


def test_ctrl_c_is_one_line_and_the_exit_code_of_shells(hudi, path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "open_table", interrupted)
    assert hudi("files", path) == (130, "", "interrupted.\n")
