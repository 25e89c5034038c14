"""The `hudi` command."""

import io
import json
import os
import shlex
import subprocess
import sys

import pytest
import typer
from made_tables import at

from hudi_timeline import HudiTable

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
    heavy = ("pyarrow", "numpy", "rich.console", "fastavro", "fsspec", "hudi_timeline.table", "pandas", "polars",
             "importlib.metadata", "email.message")
    print("imported:", [m for m in heavy if m in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "imported: []" in run.stdout
    assert "history" in run.stdout


def test_repairs_of_the_command_are_those_that_there_are():
    from hudi_timeline.cli.verify import TABLE_REPAIR_NAMES
    from hudi_timeline.verify.repairs import TABLE_REPAIRS

    assert list(TABLE_REPAIRS) == list(TABLE_REPAIR_NAMES)


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


def commands(group, before=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


ALL = dict(commands(typer.main.get_command(cli.app)))


def arguments_of(command, path):
    """One value for each argument that a command must have."""
    given = {
        "path": path,
        "source": path,
        "words": path,
        "instant": at(2),
        "before": at(1),
        "query": "select 1",
    }
    return [given.get(p.name, "x") for p in command.params if p.param_type_name == "argument" and p.required]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ALL, ids=" ".join)
def test_every_command_ends_in_output_or_in_one_line(hudi, path, tmp_path, name, monkeypatch):
    command = ALL[name]
    monkeypatch.chdir(tmp_path)
    calls = [
        arguments_of(command, path),
        arguments_of(command, str(tmp_path / "none")),
        [*arguments_of(command, path), "--no-such-option"],
        [*arguments_of(command, path), "too", "many", "arguments"],
        ["--help"],
    ]
    if any("-o" in p.opts and p.name == "output" for p in command.params):
        calls += [[*arguments_of(command, path), "-o", o] for o in ("json", "ndjson", "csv", "xml")]
    for arguments in calls:
        code, out, err = hudi(*name, *arguments)
        assert code in (0, 1, 2), err
        assert "Traceback" not in err
        if code == 1 and not out:
            assert err.count("\n") == 1, err
            assert "HUDI-E" in err or "refused" in err or "Aborted" in err, err
        form = arguments[-1] if arguments else ""
        if code == 0 and form in ("json", "ndjson"):
            found = json.loads(out) if form == "json" else [json.loads(x) for x in out.splitlines()]
            for row in found if isinstance(found, list) else [found]:
                assert all(key == key.lower() and " " not in key for key in row), row


def test_a_fault_of_the_command_is_one_line_too(hudi, path, monkeypatch):
    monkeypatch.setattr(cli, "open_table", lambda *a: 1 / 0)
    code, out, err = hudi("show", path)
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert "ZeroDivisionError" in err
    monkeypatch.setenv("HUDI_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        hudi("show", path)


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0)])
def test_what_cannot_be_undone_is_asked_at_a_terminal(hudi, path, monkeypatch, answer, code):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    done, _, err = hudi("restore", path, at(1), "-o", "json")
    assert done == code
    assert f"1 commits after {at(1)} are undone for good: {at(2)}. Go on?" in err
    assert len(json.loads(hudi("commits", path, "-o", "json")[1])) == (2 if code else 1)


def test_with_yes_and_from_a_script_nothing_is_asked(hudi, path):
    assert hudi("restore", path, at(1), "--yes", "-o", "json")[0] == 0
    assert hudi("rollback", path, at(1), "-o", "json")[0] == 0


def test_history_is_followed(hudi, path, monkeypatch):
    table = HudiTable.open(path)
    looks = []

    def wait(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt
        if len(looks) == 2:
            table.upsert([{"id": "9", "p": "a", "v": 9}])

    monkeypatch.setattr(cli, "sleep", wait)
    code, out, err = hudi("history", path, "--follow", "--every", "0.5", "-o", "ndjson", "-n", "1")
    assert (code, err) == (130, "interrupted.\n")
    assert looks == [0.5, 0.5, 0.5]
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["instant"] == at(2)
    assert second["rows_inserted"] == 1


def test_a_commit_beside_the_first_look_is_followed_too(hudi, path, monkeypatch):
    looks, show = [], cli._show_commits

    def shown(rows, *how):
        show(rows, *how)
        if not looks:
            HudiTable.open(path).upsert([{"id": "9", "p": "a", "v": 9}])

    def wait(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_show_commits", shown)
    monkeypatch.setattr(cli, "sleep", wait)
    _, out, _ = hudi("history", path, "--follow", "-o", "ndjson")
    assert [json.loads(line)["rows_inserted"] for line in out.splitlines()] == [2, 1, 1]


def test_the_package_runs_as_the_command(path):
    run = subprocess.run(
        [sys.executable, "-m", "hudi_timeline", "count", path], capture_output=True, text=True, check=True
    )
    assert run.stdout == "3\n"


@pytest.mark.parametrize("module", ["typer", "hudi_timeline.cli.data"])
def test_an_interrupt_while_libraries_are_imported_is_one_line(module):
    code = f"""
import sys

class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from hudi_timeline.__main__ import main
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "interrupted.\n")


def test_a_full_disk_is_no_wrong_path(path):
    done = _in_shell('hudi files "$T" -o csv > /dev/full', path)
    assert done.returncode == 1
    assert "free space" in done.stderr
    assert "correct the path" not in done.stderr


def test_options_with_a_meaning_are_listed(hudi):
    rows = json.loads(hudi("config", "list", "-o", "json")[1])
    assert {r["taken_as"] for r in rows} == {"meaning"}
    assert "hoodie.datasource.write.recordkey.field" in {r["key"] for r in rows}
    assert len(json.loads(hudi("config", "list", "--all", "-o", "json")[1])) > len(rows)


@pytest.mark.sampled(2, values=False)
@pytest.mark.parametrize("output", ["table", "json", "ndjson", "csv"])
def test_a_closed_standard_output_takes_nothing_and_harms_nothing(path, output):
    done = _in_shell(f'hudi files "$T" -o {output} >&-', path)
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_do_not_go_among_the_rows_where_standard_error_is_closed(path):
    done = _in_shell('hudi count "$T/none" 2>&-', path)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_closed_standard_input_is_no_terminal(path):
    done = _in_shell('hudi restore "$T" 20200101000000000 <&- 2>&1', path)
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert "HUDI-E0901" in done.stdout


def _in_shell(line, table):
    hudi = f"{shlex.quote(sys.executable)} -c 'from hudi_timeline.cli.main import main; main()'"
    text = line.replace("hudi ", hudi + " ", 1)
    return subprocess.run(
        ["sh", "-c", text],
        env={**os.environ, "T": table},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("words", [("head", "-c"), ("count", "-w"), ("sql",)], ids=lambda w: w[0])
def test_an_argument_in_another_encoding_is_refused_in_one_line(hudi, path, words):
    code, out, err = hudi(words[0], path, *words[1:], "zo\udcc3\udca9 = 1")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "HUDI-E" in err
    assert "Remedy" in err
