"""`verify` finds columns that a write took out of the schema because it did not know of them, and no others."""

import json
import os
import threading
from pathlib import Path

import pytest
from rival_writers import DROP, LAZY, NULLS, RIVALS, Between, make, rows, state, with_schema

from hudi_timeline import HudiTable
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.transaction.write_basis import Basis, Changes
from hudi_timeline.verify.findings import KINDS

LOST = "schema-column-lost"


@pytest.fixture
def path(tmp_path):
    made = str(tmp_path / "t")
    make(made)
    return made


@pytest.fixture
def forgetful(monkeypatch):
    """Writers that do not look again, as they were once."""

    def forget(on=True):
        monkeypatch.setattr(Basis, "changes", (lambda *a: Changes()) if on else changes)

    changes = Basis.changes
    return forget


def found(path):
    return [f for f in HudiTable.open(path).verify(deep=True) if f.code == LOST]


def lose(path, monkeypatch, forgetful, rival, moment, write):
    forgetful()
    between = Between(monkeypatch, path, RIVALS[rival], moment)
    write(HudiTable.open(path))
    assert between.ran
    forgetful(False)
    return between


@pytest.mark.req("NEW-09", "SE-02")
@pytest.mark.parametrize(
    ("rival", "columns"),
    [("adds a column", ["note"]), ("adds a member", ["s.b"]), ("widens", ["v"]), ("widens to text", ["v"])],
)
def test_a_write_that_was_planned_before_a_column_was_added(path, monkeypatch, forgetful, rival, columns):
    lose(path, monkeypatch, forgetful, rival, "before the instant", lambda t: t.upsert(rows("by", ts=9)))
    (lost,) = found(path)
    first, _, added, last = HudiTable.open(path).timeline.completed_writes()
    assert (lost.instant, lost.path) == (last.time, last.path)
    assert lost.details["columns"] == columns
    assert lost.details["added"] == added.time
    assert lost.severity == "error"
    assert added.time in lost.message
    assert first.time not in lost.message


@pytest.mark.req("NEW-09", "SE-02")
def test_writes_that_overlapped(path, monkeypatch, forgetful):
    """The one that was begun last, and ends last, does not know the other one's column."""
    go_on, begun = threading.Event(), threading.Event()
    inflight = Transaction.inflight

    def announced(transaction, profile):
        inflight(transaction, profile)
        if threading.current_thread() is first:
            begun.set()
            assert go_on.wait(30)
        else:
            go_on.set()
            first.join(30)

    def brings_note():
        HudiTable.open(path).bulk_insert(rows("nx", note="kept"), options=LAZY)

    forgetful()
    monkeypatch.setattr(Transaction, "inflight", announced)
    first = threading.Thread(target=brings_note)
    first.start()
    assert begun.wait(30)
    HudiTable.open(path).bulk_insert(rows("my"), options=LAZY)
    monkeypatch.setattr(Transaction, "inflight", inflight)
    forgetful(False)
    assert "note" not in state(path)[1].names
    (lost,) = found(path)
    assert "was not completed when" in lost.message
    assert lost.details["columns"] == ["note"]
    # Also where nothing says who wrote, or another commit follows.
    HudiTable.open(path).bulk_insert(rows("oq"))
    assert [f.instant for f in found(path)] == [lost.instant]


@pytest.mark.req("NEW-09", "SE-02")
def test_the_remedy_brings_column_and_values_back(path, monkeypatch, forgetful):
    between = lose(
        path,
        monkeypatch,
        forgetful,
        "adds a column to our rows",
        "before the instant",
        lambda t: t.upsert(rows("ax")),
    )
    (lost,) = found(path)
    assert "as_of" in lost.remedy
    table = HudiTable.open(path)
    before = table.read(as_of=lost.details["added"], filter="note = 'kept'", meta_columns=False).to_arrow()
    table.upsert(before)
    assert found(path) == []
    assert state(path)[0]["a", "x"] == between.state[0]["a", "x"]


@pytest.mark.req("NEW-09")
@pytest.mark.parametrize("times", [1, 3])
def test_columns_dropped_on_purpose_are_not_lost(path, times):
    for _ in range(times):
        HudiTable.open(path).upsert(rows("by", note="n"))
        HudiTable.open(path).upsert(rows("ax"), options=DROP)
    assert "note" not in state(path)[1].names
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("NEW-09")
def test_columns_dropped_by_another_program_one_after_the_other_are_not_lost(path):
    """Nothing says why, and it may have been its options."""
    HudiTable.open(path).upsert(rows("by", note="n"))
    with_schema(path, lambda schema: schema.remove(schema.get_field_index("note")))
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("NEW-09")
def test_a_column_that_is_there_again_is_not_lost(path, monkeypatch, forgetful):
    lose(
        path,
        monkeypatch,
        forgetful,
        "adds a column",
        "before the instant",
        lambda t: t.upsert(rows("ax", ts=9)),
    )
    assert len(found(path)) == 1
    HudiTable.open(path).upsert(rows("nx", note="again"))
    assert found(path) == []


@pytest.mark.req("NEW-09")
def test_a_table_that_was_copied_says_nothing_by_the_times_of_its_files(path):
    """All of them are those of the copy, in any order."""
    HudiTable.open(path).upsert(rows("by", note="n"))
    HudiTable.open(path).upsert(rows("ax"), options=DROP)
    last = HudiTable.open(path).timeline.completed_writes()[-1]
    content = json.loads((Path(path) / last.path).read_text())
    del content["extraMetadata"]["hudi.schema.dropped"]
    moved = f"{int(last.time) + 10**9:017d}"  # as if days lay between them
    for file in sorted(Path(path).rglob(f"*{last.time}*")):
        file.rename(file.with_name(file.name.replace(last.time, moved)))
    text = json.dumps(content).replace(last.time, moved)
    (Path(path) / last.path.replace(last.time, moved)).write_text(text)
    for n, file in enumerate(sorted((Path(path) / ".hoodie").glob("2*"), reverse=True)):
        os.utime(file, (1_800_000_000 + n, 1_800_000_000 + n))
    assert [f.message for f in found(path) if "not completed when" in f.message] == []


def test_nulls_for_a_new_column_are_no_loss(path):
    HudiTable.open(path).upsert(rows("by", note="n"))
    HudiTable.open(path).upsert(rows("ax"), options=NULLS)
    assert found(path) == []
    assert KINDS[LOST].severity == "error"
