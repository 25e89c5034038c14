"""Odd questions and odd tables: a defined answer, or a typed error that says what to do."""

import errno
import io
import logging
import os
from dataclasses import replace

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids, states

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    HollowCommitError,
    HudiError,
    InstantNotFoundError,
    InvalidOptionError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from hudi_format.parquet.footer import corrupt
from hudi_format.storage.local import LocalStorage
from hudi_timeline.reading.task import ReadTask

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
LATER = at(9000)


def row(id, written):
    return {"id": id, "p": "a", "v": written, "_hoodie_commit_time": at(written)}


@pytest.fixture
def made(tmp_path):
    """Commits 10, 20 and 30; each rewrites the one file group."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    for n in (10, 20, 30):
        table.commit(at(n), {("a", file_id(0)): [row(str(m), m) for m in range(10, n + 1, 10)]})
    return table


def remove(table, instant):
    next((table.path / "a").glob(f"*_{at(instant)}.parquet")).unlink()


QUESTIONS = {
    "snapshot": lambda t: t.read(meta_columns=True),
    "as of": lambda t: t.read(as_of=at(20), meta_columns=True),
    "incremental": lambda t: t.read_incremental(at(10), meta_columns=True),
    "changes": lambda t: t.read_changes(at(10)),
    "keys": lambda t: t.get(["10"], meta_columns=True),
}


def answer(question, table):
    found = QUESTIONS[question](table.open())
    return found if isinstance(found, pa.Table) else found.to_arrow()


class BadDisk(LocalStorage):
    """A disk that fails below one file."""

    def open_input(self, path):
        return pa.PythonFile(BadFile(self.full(path)), mode="r")


class BadFile(io.FileIO):
    """Its footer can be read, its columns cannot."""

    def read(self, size=-1):
        if self.tell() < 100:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


def test_a_disk_that_fails_is_no_damage(made):
    (task,) = made.open().read().plan_files()
    for read in (task.to_table, lambda: list(task.to_batches())):
        assert read()
    for read in (ReadTask.to_table, lambda t: list(t.to_batches())):
        with pytest.raises(StorageError, match="Input/output error") as e:
            read(replace(task, storage=BadDisk(task.storage.uri)))
        assert (e.value.file, e.value.instant) == (task.path, task.instant)


def test_memory_that_runs_out_is_not_called_damage_alone(tmp_path):
    storage = LocalStorage(str(tmp_path))
    for reason in (pa.ArrowMemoryError("malloc of size 64 failed"), OSError("Unknown error: std::bad_alloc")):
        error = corrupt(storage, "f.orc", reason, "ORC")
        assert "out of memory" in error.message
        assert error.remedy.startswith("read it with more memory first")


@pytest.mark.req("IN-01", "QR-03")
def test_bounds_that_are_no_instants_are_times(made):
    table = made.open()
    assert ids(table.read_incremental(at(15), at(25), meta_columns=True).to_arrow()) == ["20"]
    assert table.read_changes(at(15), at(25)).to_arrow().column("op").to_pylist() == ["i"]
    assert table.read_incremental(LATER).count() == 0
    assert table.read_changes(LATER).count() == 0
    assert ids(table.read(as_of=at(25), meta_columns=True).to_arrow()) == ["10", "20"]
    for before_the_first in (
        lambda: table.read(as_of=at(5)).count(),
        lambda: table.get(["10"], as_of=at(5), meta_columns=True),
    ):
        with pytest.raises(InstantNotFoundError, match="first commit"):
            before_the_first()


@pytest.mark.parametrize("question", ["as of", "incremental", "changes"])
@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "", "2026-01-01T00", "12:30"])
def test_a_time_that_is_none_is_refused(made, question, text):
    call = {
        "as of": lambda t: t.read(as_of=text, meta_columns=True),
        "incremental": lambda t: t.read_incremental(text, meta_columns=True),
        "changes": lambda t: t.read_changes(text),
    }[question]
    with pytest.raises((HudiError, ValueError)) as e:
        call(made.open()).to_arrow()
    assert str(e.value)


@pytest.mark.req("IN-17")
@pytest.mark.parametrize("question", ["incremental", "changes"])
def test_a_begin_before_archived_commits_is_refused(made, question):
    made.archive(1, *states(at(5)), *states(at(7)))
    call = {"incremental": lambda: made.open().read_incremental(at(6), meta_columns=True),
            "changes": lambda: made.open().read_changes(at(6))}[question]  # fmt: skip
    with pytest.raises(InstantNotFoundError) as e:
        call().to_arrow()
    assert at(7) in e.value.remedy
    scan = (
        made.open().read_changes("000")
        if question == "changes"
        else made.open().read_incremental("000", meta_columns=True)
    )
    with pytest.warns(UserWarning, match="archived"):
        assert scan.count() == 3
    assert not scan.complete


def test_the_whole_table_tells_no_changes(made):
    with pytest.raises(ConflictingOptionError):
        made.open().read_changes("000", on_missing="full_scan")
    with pytest.raises(ConflictingOptionError):
        made.open().read(on_missing="full_scan")
    with pytest.raises(InvalidOptionError):
        made.open().read_changes("000", images="xml")


@pytest.mark.parametrize(
    ("question", "gone"),
    [("snapshot", 30), ("as of", 20), ("incremental", 30), ("changes", 20), ("keys", 30)],
)
def test_a_base_file_that_is_gone_is_an_error_with_a_remedy(made, question, gone):
    remove(made, gone)
    with pytest.raises(MissingFileError) as e:
        answer(question, made)
    assert e.value.remedy
    assert e.value.table


def test_what_is_left_can_be_asked_for(made):
    remove(made, 30)
    scan = made.open().read(on_missing="skip", meta_columns=True)
    with pytest.warns(UserWarning, match="rows are missing"):
        assert ids(scan.to_arrow()) == ["10", "20"]
    assert not scan.complete


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_instant_file_without_bytes_is_an_error_that_names_it(made, question):
    made.instant_file(f"{at(20)}.commit", b"")
    with pytest.raises(CorruptFileError) as e:
        answer(question, made)
    assert e.value.file == f".hoodie/{at(20)}.commit"
    assert e.value.remedy


def test_a_completed_file_that_is_being_written_is_waited_for(made, monkeypatch):
    """Apache Hudi 0.15 on a local file system makes the file first and fills it then."""
    file = made.path / ".hoodie" / f"{at(30)}.commit"
    whole = file.read_bytes()
    file.write_bytes(b"")
    # What the other writer does while we wait.
    monkeypatch.setattr(
        "hudi_format.storage.stable_reads.time.sleep", lambda seconds: file.write_bytes(whole)
    )
    assert made.open().read().count() == 3


@pytest.mark.req("IN-02", "QR-04")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_hole_in_the_timeline(made, question):
    made.instant_file(f"{at(15)}.commit.requested")
    if question in ("snapshot", "keys"):
        assert answer(question, made).num_rows
        return
    with pytest.raises(HollowCommitError) as e:
        answer(question, made)
    assert at(15) in str(e.value)
    assert e.value.remedy


@pytest.mark.parametrize(
    "name", [f"{at(25)}.mystery", f"{at(25)}.mystery.requested", f"{at(25)}_{at(26)}.mystery"]
)
def test_an_unknown_action_is_passed_over_with_a_word(made, name, caplog):
    want = {q: answer(q, made).num_rows for q in QUESTIONS}
    made.instant_file(name, b"{}")
    with caplog.at_level(logging.WARNING, "hudi"):
        assert {q: answer(q, made).num_rows for q in QUESTIONS} == want
    assert name in caplog.text


def test_changes_without_a_log_or_meta_columns_are_refused(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA, properties={"hoodie.populate.meta.fields": "false"})
    table.commit(at(10), {("a", file_id(0)): [row("1", 10)]})
    with pytest.raises(UnsupportedError):
        table.open().read_incremental("000")


def test_keys_columns_and_partitions_that_are_no_texts_are_told_by_name(made):
    table = made.open()
    for ask, said in (
        (lambda: table.get(10), "keys must be a list of texts, not int"),
        (lambda: table.read(columns=["id", 1]), r"columns\[1\] must be a text"),
        (lambda: table.read(columns=b"id"), "columns must be a list"),
    ):
        with pytest.raises(TypeError, match=said):
            ask()
    assert (
        ids(table.get(["10", None], meta_columns=True))
        == ids(table.get(pa.array(["10"]), meta_columns=True))
        == ["10"]
    )
    assert ids(table.get([10], meta_columns=True)) == ["10"]  # a number has one text
