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
    [("nonsense",), ("restore",), ("files", "x", "-o", "xml"), ("show", "x", "--storage-option", "bad")],
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


def test_the_command_starts_without_what_only_single_commands_need():
    """Not timed: what takes the time are these imports."""
    script = """
import sys
sys.argv = ["hudi", "--help"]
from hudi_timeline.cli.main import main
try:
    main()
finally:
    heavy = ("pyarrow", "numpy", "rich.console", "fastavro", "fsspec", "hudi_timeline.table", "pandas", "polars")
    print("imported:", [m for m in heavy if m in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "imported: []" in run.stdout
    assert "history" in run.stdout


def test_repairs_of_the_command_are_those_that_there_are():
    from hudi_timeline.cli.verify import TABLE_REPAIR_NAMES
    from hudi_timeline.verify.repairs import TABLE_REPAIRS

    assert {name: repair.summary for name, repair in TABLE_REPAIRS.items()} == TABLE_REPAIR_NAMES


def test_history_fits_a_terminal_and_json_has_all(hudi, path):
    code, out, _ = hudi("history", path)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for words in ("instant", "operation", "inserted", "UPSERT", at(2)):
        assert words in out
    assert out.index(at(2)) < out.index(at(1))
    rows = [json.loads(line) for line in hudi("history", path, "-o", "ndjson", "-n", "1")[1].splitlines()]
    assert [r["instant"] for r in rows] == [at(2)]
    assert {"rows_inserted", "state", "extra"} <= set(rows[0])
    assert "file_groups_replaced" in hudi("commits", path, "--wide")[1]
    assert "file_groups_replaced" not in hudi("commits", path)[1]


def test_rows_are_counted(hudi, path):
    assert hudi("count", path) == (0, "3\n", "")
    assert json.loads(hudi("count", path, "-w", "v >= 2", "-o", "json")[1]) == {"rows": 2}
    assert hudi("count", path, "--as-of", at(1))[1] == "2\n"


def test_the_table_is_that_of_the_current_folder_or_of_the_environment(hudi, path, monkeypatch, tmp_path):
    monkeypatch.delenv("HUDI_TABLE", raising=False)
    monkeypatch.chdir(path)
    assert hudi("count")[1] == "3\n"
    monkeypatch.chdir(tmp_path)
    code, _, err = hudi("count")
    assert (code, err.count("\n")) == (1, 1)
    monkeypatch.setenv("HUDI_TABLE", path)
    assert hudi("count")[1] == "3\n"


def test_options_are_found_by_their_words(hudi):
    found = json.loads(hudi("config", "search", "cleaner", "retained", "-o", "json")[1])
    assert "hoodie.cleaner.commits.retained" in [f["key"] for f in found]
    assert all("retained" in f"{f['key']} {f['note']}".lower() for f in found)
    assert [f["taken_as"] for f in found] == sorted(
        (f["taken_as"] for f in found), key=lambda t: t != "meaning"
    )
    assert json.loads(hudi("config", "search", "no such words", "-o", "json")[1]) == []
