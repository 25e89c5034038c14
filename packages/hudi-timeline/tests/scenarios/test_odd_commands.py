"""Every command with inputs that no one would mean to give: one line and an exit code, and never a traceback."""

import os
import sys

import pyarrow as pa
import pytest
import typer
from click import UsageError
from click.testing import CliRunner

from hudi_format.errors import HudiError, SchemaError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.bug_capsule import make_capsule
from hudi_timeline.cli import main as cli
from hudi_timeline.cli.main import app
from hudi_timeline.testing.table_builder import TableBuilder

COMMAND = typer.main.get_command(app)


def commands(group, prefix=()):
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):  # click's group, or typer's own copy of it
            yield from commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


COMMANDS = dict(commands(COMMAND))


def test_commands_of_groups_are_among_them():
    names = {" ".join(name) for name in COMMANDS}
    assert {"show", "compact run", "index rebuild", "config list", "alter add", "repair findings"} <= names


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Places and files of every wrong kind, by name."""
    root = tmp_path_factory.mktemp("odd")
    built = TableBuilder(LocalStorage(str(root / "table")))
    built.commit("first", built.base("first", {"k1": 1}))
    made = TableBuilder(LocalStorage(str(root / "garbled")))
    made.commit("first", made.base("first", {"k1": 1}))
    for file in (root / "garbled").rglob("*"):
        if file.is_file() and file.name != "hoodie.properties":
            file.write_bytes(b"\x00\xff" * 50)
    (root / "empty").mkdir()
    (root / "strange" / ".hoodie").mkdir(parents=True)
    (root / "strange" / ".hoodie" / "hoodie.properties").write_bytes(bytes(range(256)) * 9)
    (root / "bare" / ".hoodie").mkdir(parents=True)
    (root / "bytes").write_bytes(os.urandom(3000))
    (root / "nothing").write_bytes(b"")
    (root / "text").write_text("hoodie.table.name=x\nno equals\n\\u12")
    (root / "zip").write_bytes(b"PK\x03\x04" + bytes(100))
    return root


PLACES = (
    "table", "garbled", "empty", "strange", "bare", "bytes", "nothing", "text", "zip", "missing", "missing/below",
    "bytes/below", "", "no-such-scheme://x/y", "s3:/x", "file://host/x",
)  # fmt: skip


def words_of(command, value):
    """Arguments and required options of a command, all with the same text."""
    words = []
    for parameter in command.params:
        if not parameter.required:
            continue
        if parameter.param_type_name == "option":
            words.append(parameter.opts[0])
        words.append(value)
    return words


def run(words):
    result = CliRunner().invoke(COMMAND, [str(w) for w in words])
    error = result.exception
    assert error is None or isinstance(error, (HudiError, UsageError, SystemExit, OSError)), (words, error)
    if isinstance(error, OSError):  # `main` makes a line of it
        assert cli.line_of(error), (words, error)
    return result


@pytest.mark.parametrize("name", COMMANDS, ids="-".join)
@pytest.mark.sampled(4)
def test_no_command_ends_in_a_traceback(odd, name):
    command = COMMANDS[name]
    for place in PLACES:
        value = place if not place or ":" in place else str(odd / place)
        run([*name, *words_of(command, value)])


FILES = ("bytes", "nothing", "text", "zip", "missing", "empty", "")


@pytest.mark.parametrize(
    "words",
    [
        ("repair", "overwrite-hoodie-props", "{table}", "--new-props-file", "{file}"),
        ("capsule", "open", "{file}", "{new}"),
        ("capsule", "{table}", "--out", "{file}"),
        ("capsule", "{table}", "--out", "{file}/below"),
        ("import", "{file}", "{new}", "--key", "id"),
        ("import", "{table}", "{file}", "--key", "id"),
        ("head", "{table}", "--where", "{file}"),
        ("head", "{table}", "--as-of", "{file}"),
        ("head", "{table}", "--columns", "{file}"),
        ("check-merge", "{table}", "--merge", "{file}"),
        ("check-merge", "{table}", "--payload", "{file}"),
        ("restore", "{table}", "{file}", "--dry-run"),
        ("rollback", "{table}", "{file}", "--plan"),
        ("savepoint", "create", "{table}", "{file}"),
        ("savepoint", "delete", "{table}", "{file}"),
        ("commit", "showfiles", "{table}", "{file}"),
        ("commit", "record-size", "{table}", "{file}"),
        ("repair", "{table}", "--only", "{file}"),
        ("repair", "{table}", "--option", "{file}"),
        ("repair", "deduplicate", "{table}", "--partition", "{file}", "--dry-run"),
        ("repair", "deduplicate", "{table}", "--option", "{file}", "--dry-run"),
        ("clean", "{table}", "--option", "{file}", "--dry-run"),
        ("clean", "{table}", "--option", "hoodie.cleaner.commits.retained={file}", "--dry-run"),
        ("archive", "{table}", "--option", "hoodie.keep.min.commits={file}", "--dry-run"),
        ("show", "{table}", "--storage-option", "{file}"),
        ("show", "{table}", "--storage-option", "anything={file}"),
        ("config", "explain", "{file}"),
        ("--allow-function", "{file}", "show", "{table}"),
    ],
    ids=lambda w: "-".join(x for x in w if x[:1].isalpha() or x[:2] == "--"),
)
def test_files_and_values_of_any_kind_are_refused_in_a_line(odd, tmp_path, words):
    for name in FILES:
        file = name if not name else str(odd / name)
        if (
            words[0] == "capsule"
            and words[-1] == "{file}"
            and name in ("bytes", "nothing", "text", "zip", "missing")
        ):
            continue  # these would be made, or made anew
        given = {
            "table": str(odd / "table"),
            "file": file,
            "new": str(tmp_path / (name or "none")),
        }
        run([w.format(**given) for w in words])


def test_a_wrong_file_of_properties_is_named_with_an_exit_code(odd, monkeypatch, capsys):
    for name, said in (
        ("missing", "there is no such file"),
        ("empty", "Is a directory"),
        ("bytes", "properties"),
    ):
        file = str(odd / name)
        words = ["hudi", "repair", "overwrite-hoodie-props", str(odd / "table"), "--new-props-file", file]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 1
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1, printed
        assert said in printed
        assert name in printed


def test_what_the_system_refuses_is_a_line_too(odd, monkeypatch, capsys):
    words = ["hudi", "capsule", str(odd / "table"), "--out", str(odd / "missing" / "x.zip")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_capsule_of_keys_that_changed_their_type_is_made(tmp_path):
    """Keys that are numbers in one file and text in another have no order among each other."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = HudiTable.create(str(tmp_path / "t"), schema, name="t", record_keys=["id"])
    table.upsert([{"id": 1, "v": 1}])
    other = HudiTable.create(
        str(tmp_path / "o"), pa.schema([("id", pa.string()), ("v", pa.int64())]), name="t", record_keys=["id"]
    )
    other.upsert([{"id": "x", "v": 1}])
    for file in (tmp_path / "o").iterdir():  # as a commit of a later type leaves it
        if file.suffix == ".parquet":
            file.rename(tmp_path / "t" / file.name)
    for file in (tmp_path / "o" / ".hoodie").glob("[0-9]*"):
        file.rename(tmp_path / "t" / ".hoodie" / file.name)
    made = make_capsule(table.storage, tmp_path / "c.zip")
    assert made.files


def test_laws_are_not_checked_with_values_that_paths_have_in_another_form(tmp_path):
    schema = pa.schema([("id", pa.string()), ("at", pa.int64()), ("ts", pa.int64())])
    keygen = "hoodie.deltastreamer.keygen.timebased."
    options = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        keygen + "timestamp.type": "EPOCHMILLISECONDS",
        keygen + "output.dateformat": "yyyy/MM/dd",
        keygen + "timezone": "UTC",
    }
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], partition_fields=["at"],
        ordering_fields=["ts"], options=options,
    )  # fmt: skip
    table.upsert([{"id": "a", "at": 1_600_000_000_000, "ts": 1}], options=options)
    result = run(["check-merge", str(tmp_path / "t")])
    assert isinstance(result.exception, SchemaError)
    assert "--made-up" in result.exception.remedy
    assert run(["check-merge", str(tmp_path / "t"), "--made-up", "--cases", "50"]).exit_code in (0, 1)
