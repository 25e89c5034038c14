"""Savepoints: what they keep, and commits that cannot have one."""

import pytest
from serviced_tables import KEEP_2, OFF, SCHEMA, SHORT, files, rows, write

from hudi_format.errors import (
    InstantNotFoundError,
    OptionError,
)
from hudi_timeline import HudiTable


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


@pytest.mark.parametrize("undo", ["restore", "rollback"])
def test_the_newest_commit_can_be_savepointed_whatever_was_undone_after_it(table, undo):
    """The cleaning of what was undone said that it kept files of later commits only."""
    (first,) = write(table, range(1))
    if undo == "restore":
        table.savepoint(first)
    later = write(table, range(1, 5 if undo == "restore" else 2))
    before = {r["k"]: r["v"] for r in table.read(as_of=first).to_arrow().to_pylist()}
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    if undo == "restore":
        table.restore(first)
        table.delete_savepoint(first)
    else:
        table.rollback(later[-1])
    assert table.savepoint(dry_run=True) == table.savepoint() == first
    write(table, range(5, 9))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert {r["k"]: r["v"] for r in table.read(as_of=first).to_arrow().to_pylist()} == before
    table.restore(first)
    assert {r["k"]: r["v"] for r in table.read().to_arrow().to_pylist()} == before


@pytest.mark.req("RC-06", "RC-08")
def test_a_savepoint_keeps_its_files_and_its_instants(table, path):
    write(table, range(2))
    table.upsert(rows(2, "a"), options=OFF)  # the savepoint's commit did not touch partition b
    saved = table.savepoint(user="me", comment="as it was")
    assert table.savepoints == [saved]
    kept = set(table.inspect.files().column("path").to_pylist())
    write(table, range(3, 15), SHORT)
    assert kept <= set(files(path))
    assert (path / ".hoodie" / f"{saved}.commit").exists()
    with pytest.raises(OptionError, match="savepointed already"):
        table.savepoint(saved)
    table.delete_savepoint(saved)
    assert table.savepoints == []
    write(table, range(15, 16), SHORT)
    assert not kept & set(files(path))
    with pytest.raises(InstantNotFoundError, match="does not exist"):
        table.delete_savepoint(saved)


def test_a_commit_that_the_cleaner_has_passed_cannot_be_savepointed(table):
    instants = write(table, range(6))
    table.clean(options=KEEP_2)
    with pytest.raises(OptionError, match="may be cleaned away"):
        table.savepoint(instants[1])
    with pytest.raises(InstantNotFoundError):
        table.savepoint("20200101000000000")
