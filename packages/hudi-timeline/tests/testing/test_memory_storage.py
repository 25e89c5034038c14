"""The store in memory keeps the promises of `Storage`, and tables that are copied in it are independent."""

import threading

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.storage.open import open_beside
from hudi_timeline import HudiTable
from hudi_timeline.testing import MemoryStorage

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


def names(storage, path=""):
    return sorted((e.name, e.is_dir, e.size) for e in storage.list(path))


def test_files_and_folders():
    storage = MemoryStorage()
    storage.touch("x/y/one", b"1")
    storage.create("x/two", b"22")
    assert names(storage) == [("x", True, -1)]
    assert names(storage, "x") == [("two", False, 2), ("y", True, -1)]
    assert storage.info("x/y").is_dir
    assert storage.info("x/two").size == 2
    assert storage.info("nothing") is None
    assert storage.list("nothing") == []
    assert (storage.read("x/two"), storage.read_range("x/two", 1, 5)) == (b"22", b"2")
    with storage.open_input("x/two") as file:
        assert file.read() == b"22"
    assert storage.delete("x/y/one")
    assert not storage.delete("x/y/one")
    assert names(storage, "x") == [("two", False, 2)]
    storage.delete_dir("x")
    assert storage.list("") == []
    with pytest.raises(FileNotFoundError):
        storage.read("x/two")


def test_a_file_is_made_once_and_replaced_by_its_version():
    storage = MemoryStorage()
    storage.create("f", b"1")
    with pytest.raises(FileExistsError):
        storage.create("f", b"2")
    content, version = storage.read_version("f")
    assert content == b"1"
    assert storage.replace("f", b"3", version)
    assert not storage.replace("f", b"4", version)
    assert not storage.replace("g", b"4", version)
    assert storage.read_version("g") is None
    assert storage.read("f") == b"3"


def test_a_state_is_another_after_each_change_alone():
    storage = MemoryStorage()
    storage.touch("f", b"1")
    before = storage.state()
    assert storage.read("f") == b"1"
    assert storage.state() == before
    storage.touch("f", b"1")  # written anew
    written = storage.state()
    assert written != before
    storage.touch("g", b"2")
    assert storage.state() != written
    storage.delete("g")
    assert storage.state() == written


def test_a_stream_is_there_from_its_end_on():
    storage = MemoryStorage()
    with storage.open_output("p/f") as out:
        out.write(b"12")
        assert storage.info("p/f") is None
    assert storage.read("p/f") == b"12"


def test_moves_and_copies():
    storage = MemoryStorage()
    storage.touch("a/b/f", b"1")
    storage.rename("a", "c")
    assert (storage.list("a"), storage.read("c/b/f")) == ([], b"1")
    storage.copy("c/b/f", "d")
    storage.rename("d", "e")
    assert names(storage) == [("c", True, -1), ("e", False, 1)]
    with pytest.raises(FileNotFoundError):
        storage.copy("nothing", "f")


def test_nothing_leads_out():
    with pytest.raises(CorruptFileError):
        MemoryStorage().touch("../f")


def test_a_copy_of_a_table_is_a_table_of_its_own():
    made = MemoryStorage()
    HudiTable.create(made, ROWS.schema, name="t", record_keys="id").upsert(ROWS)
    other = made.copy_of()
    HudiTable.open(other).upsert(pa.table({"id": ["c"], "v": [3]}))
    assert (HudiTable.open(made).count(), HudiTable.open(other).count()) == (2, 3)
    beside = open_beside(other, f"{other.uri}/.hoodie")
    assert beside.read("hoodie.properties") == other.read(".hoodie/hoodie.properties")


def test_threads_lose_no_name():
    storage = MemoryStorage()

    def change(number):
        for n in range(200):
            storage.touch(f"f/{number}-{n}")
            if n % 2:
                storage.delete(f"f/{number}-{n}")

    threads = [threading.Thread(target=change, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(storage.list("f")) == 400


def test_files_that_were_found_sound_are_so_until_they_change_in_copies_too():
    made = MemoryStorage()
    for name in ("p/one", "p/two", "p/three"):
        made.touch(name, b"1")
    made.keep_sound({"p/one", "p/two", "p/nothing"})
    other = made.copy_of()
    assert made.still_sound() == other.still_sound() == {"p/one", "p/two"}
    other.touch("p/one", b"1")  # the same content, but nobody has looked at it
    other.delete("p/two")
    assert other.still_sound() == set()
    assert made.still_sound() == {"p/one", "p/two"}


def test_a_file_of_a_copy_never_gets_a_version_that_it_had():
    made = MemoryStorage()
    for name in ("one", "two"):
        made.touch(name, b"1")
    other = made.copy_of()
    known = other.read_version("two")[1]
    other.touch("two", b"2")
    assert not other.replace("two", b"3", known)
