"""Commands that look at a table of a real S3 server: what they say of a local copy, and never a traceback."""

import os
import re
import sys

import pytest
from golden_tables import golden
from test_golden_commands import COMMANDS, NEVER, WHOLE, WRONG, calls_of, name_of

from hudi_timeline.cli import main as cli
from hudi_timeline.table import HudiTable
from s3_server import KEY, REGION, SECRET

TABLES = golden("v6", "cow_partitioned")
OF_NO_TABLE = {("config", "list"), ("config", "search"), ("config", "explain")}
# What says when files were changed, what locks there are, or how much was read.
OF_THE_STORE = {"timeline", "history", "commits", "doctor", "lock", "capsule", "forget"}
CHANGES = ("clean", "--dry-run")  # the first call of those that change the table
FRAME = re.compile(r"[\s─-╿]+")


def takes_a_store(name):
    command = WHOLE
    for word in name:
        command = command.commands[word]
    return any("--storage-option" in p.opts for p in command.params)


def test_each_command_on_a_table_takes_options_of_its_store():
    assert {name for name in COMMANDS if not takes_a_store(name)} == OF_NO_TABLE


def few(calls):
    """Of the calls that look at the table those with wrong arguments, and one of each command."""
    called = set()
    for words in calls:
        if (words[0], words[-1]) == CHANGES:
            return
        name = name_of(words)
        if takes_a_store(name) and (name not in called or {WRONG, NEVER} & set(words)):
            yield tuple("2" if w == "20" else w for w in words)  # cases of `check-merge`
        called.add(name)


def said(text, places, known):
    """Text without what differs from call to call: where the table is, widths of columns, and new instants."""
    for place, name in places.items():
        text = text.replace(place, name)
    text = re.sub(r"\b\d{17}\b", lambda found: found[0] if found[0] in known else "NEW", text)
    return re.sub(r"(lag_seconds|lag seconds)\W+[\d,.]+", "A WHILE", FRAME.sub(" ", text))


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_commands_say_of_a_table_on_s3_what_they_say_of_a_local_copy(
    s3_server, table, tmp_path, monkeypatch, capsys
):
    def end(_):
        raise KeyboardInterrupt  # as a person ends `history --follow`

    monkeypatch.setattr(cli, "sleep", end)
    monkeypatch.delenv(cli.TRACEBACK, raising=False)
    path, bucket = table.unpack(tmp_path), s3_server.new_bucket()
    for file in sorted(f for f in path.rglob("*") if f.is_file()):
        key = f"w/{file.relative_to(path)}"
        s3_server.client.upload_file(str(file), bucket, key)
        # When a commit was completed is when its file was changed.
        changed = s3_server.client.head_object(Bucket=bucket, Key=key)["LastModified"].timestamp()
        os.utime(file, (changed, changed))
    near, far = tmp_path / "near", tmp_path / "far"
    for folder in (near, far):
        folder.mkdir()
        (folder / "props").write_bytes((path / ".hoodie" / "hoodie.properties").read_bytes())
    given = {"key": KEY, "secret": SECRET, "endpoint_url": s3_server.url, "AWS_REGION": REGION}
    options = [word for name, value in given.items() for word in ("--storage-option", f"{name}={value}")]
    opened = HudiTable.open(str(path))
    known = {*opened.history().column("instant").to_pylist(), WRONG}
    places = {f"s3a://{bucket}/w": "TABLE", f"s3://{bucket}/w": "TABLE", opened.uri: "TABLE"}
    places |= {str(near): "FOLDER", str(far): "FOLDER"}

    def call(words):
        monkeypatch.setattr(sys, "argv", ["hudi", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err, words
        return ended.value.code or 0, said(out, places, known), said(err, places, known)

    for words in few(calls_of(opened, near)):
        here = call(words)
        there = [w.replace(opened.uri, f"s3a://{bucket}/w").replace(str(near), str(far)) for w in words]
        code, out, err = call([*there, *options])
        assert code == here[0], (words, err, here[2])
        if words[0] not in OF_THE_STORE:
            assert (out, err) == here[1:], words
