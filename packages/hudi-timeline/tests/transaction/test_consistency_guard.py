"""Before a commit its files are looked for, where that is asked for."""

import pytest
from bad_input import content, make, rows

from hudi_format.errors import MissingFileError, StorageError
from hudi_format.model import WriteStat
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.transaction import consistency_guard
from hudi_timeline.transaction.consistency_guard import may_be_there, wait_for_files

pytestmark = pytest.mark.req("SS-08")
PREFIX = "hoodie.consistency.check."
LOOKS = {PREFIX + "enabled": "true", PREFIX + "initial_interval_ms": "1", PREFIX + "max_checks": "3"}


def stat(path, size):
    return WriteStat("f", path, "", "null", total_write_bytes=size, file_size_in_bytes=size)


def test_files_that_show_up_late_are_waited_for_longer_each_time(tmp_path):
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            (tmp_path / "a").write_bytes(b"12")
        elif len(pauses) == 4:
            (tmp_path / "a").write_bytes(b"123")

    config = TransactionConfig(consistency_checks=9, consistency_first_ms=100, consistency_most_ms=300)
    wait_for_files(open_storage(str(tmp_path)), [stat("a", 3)], config, pause=pause)
    assert pauses == [0.1, 0.2, 0.3, 0.3]


@pytest.mark.parametrize("written", [None, b"12"])
def test_files_that_never_show_up_are_an_error_that_names_one(tmp_path, written):
    (tmp_path / "b").write_bytes(b"1")
    if written:
        (tmp_path / "a").write_bytes(written)
    with pytest.raises(MissingFileError, match="1 of the 2 files") as e:
        wait_for_files(
            open_storage(str(tmp_path)),
            [stat("b", 1), stat("a", 3)],
            TransactionConfig(consistency_checks=2),
            pause=lambda s: None,
        )
    assert e.value.file == "a"


def test_a_write_whose_files_are_gone_is_rolled_back(tmp_path, monkeypatch):
    make(tmp_path / "t")
    table = HudiTable.open(str(tmp_path / "t"))
    before = content(tmp_path / "t")

    def lost(storage, stats, looks):
        for found in stats:
            storage.delete(found.path)
        wait_for_files(storage, stats, looks)

    monkeypatch.setattr(consistency_guard, "wait_for_files", lost)
    with pytest.raises(MissingFileError) as e:
        table.upsert(rows("a"), options=LOOKS)
    assert PREFIX in e.value.remedy
    after = content(tmp_path / "t")
    assert {f: after[f] for f in before} == before
    assert all(".rollback" in f for f in after if f not in before)
    assert HudiTable.open(str(tmp_path / "t")).upsert(rows("a")).updated == 1  # not asked for: not looked at
    monkeypatch.undo()
    assert HudiTable.open(str(tmp_path / "t")).upsert(rows("a"), options=LOOKS).updated == 1


def test_a_file_of_which_nothing_can_be_told_may_be_there(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path))
    storage.publish("there", b"")
    assert may_be_there(storage, "there")
    assert not may_be_there(storage, "elsewhere")

    def fails(_):
        raise StorageError("no answer", table=storage.uri)

    monkeypatch.setattr(type(storage), "info", lambda _, path: fails(path))
    assert may_be_there(storage, "elsewhere")
