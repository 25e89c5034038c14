"""Tables on the local file system: files, folders, refusals, and Hadoop's checksum files."""

import errno
import os
import pickle
import shutil
import uuid

import pytest

from hudi_format.errors import ConcurrentWriterError, StorageError
from hudi_format.storage import local
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage
from hudi_format.storage.remote import FsspecStorage


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    return open_storage(str(tmp_path) if request.param == "local" else f"memory://{uuid.uuid4().hex}")


def test_create_makes_a_file_once(storage):
    storage.create("a/b", b"1")
    with pytest.raises(FileExistsError):
        storage.create("a/b", b"2")
    assert storage.read("a/b") == b"1"
    assert [e.name for e in storage.list("a")] == ["b"], "no temporary file is left"


def test_a_publication_replaces_the_file(storage):
    storage.publish("x/f", b"1")
    storage.publish("x/f", b"22")
    assert storage.read("x/f") == b"22"
    assert storage.info("x/f").size == 2


def test_what_is_not_there(storage):
    assert storage.info("no") is None
    assert storage.list("no") == []
    assert storage.delete("no") is False
    storage.delete_dir("no")
    with pytest.raises(FileNotFoundError):
        storage.read("no")
    long = "x" * 300
    assert (storage.info(long), storage.list(f"{long}/y")) == (None, [])


def test_listing_tells_files_from_folders(storage):
    storage.publish("d/f", b"123")
    storage.publish("d/sub/g", b"")
    entries = {e.name: e for e in storage.list("d")}
    assert set(entries) == {"f", "sub"}
    assert entries["sub"].is_dir
    assert (entries["f"].is_dir, entries["f"].size) == (False, 3)


def test_streams_and_random_access(storage):
    with storage.open_output("p/q") as out:
        out.write(b"hello world")
    with storage.open_input("p/q") as f:
        assert f.read_at(5, 6) == b"world"


def test_a_range_is_read_up_to_the_end(storage):
    storage.publish("p/q", b"hello world")
    assert storage.read_range("p/q", 6, 3) == b"wor"
    assert storage.read_range("p/q", 6, 100) == b"world"
    assert storage.read_range("p/q", 6, 0) == b""
    with pytest.raises(FileNotFoundError):
        storage.read_range("p/none", 0, 1)


def test_rename_moves_folders(storage):
    storage.publish("from/a", b"1")
    storage.rename("from", "to")
    assert storage.read("to/a") == b"1"
    assert storage.info("from/a") is None


def test_storage_crosses_processes(storage):
    storage.publish("f", b"1")
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.uri == storage.uri
    assert type(copy) is type(storage)


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize(("number", "word"), [(errno.ENOSPC, "space"), (errno.EACCES, "access")])
def test_a_refusal_of_the_system_names_file_and_remedy(tmp_path, monkeypatch, number, word):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    storage = LocalStorage(str(tmp_path))
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError) as caught:
        storage.create("f", b"1")
    assert caught.value.file == "f"
    assert word in caught.value.remedy
    assert os.listdir(tmp_path) == []


WRITES = {
    "create": lambda storage, path: storage.create(path, b"1"),
    "publish": lambda storage, path: storage.publish(path, b"1"),
    "make_dir": lambda storage, path: storage.make_dir(path),
    "open_output": lambda storage, path: storage.open_output(path),
}


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_folder_whose_name_a_file_has_is_not_taken_for_the_file(tmp_path, write):
    (tmp_path / "p").write_bytes(b"mine")
    with pytest.raises(StorageError, match=r"a file has the name of the folder|Not a directory"):
        write(LocalStorage(str(tmp_path)), "p" if write is WRITES["make_dir"] else "p/f")
    assert (tmp_path / "p").read_bytes() == b"mine"


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_where_no_folder_can_be_made_is_not_taken_for_an_absent_file(write):
    with pytest.raises(StorageError, match="no folder can be made here") as caught:
        write(LocalStorage("/proc/no-such-process/t"), "p/f")
    assert "path" in caught.value.remedy


def test_a_parent_that_another_process_removes_is_made_again(tmp_path, monkeypatch):
    real, removed = os.mkdir, []

    def raced(path, mode=0o777):
        if not removed and str(path).endswith("/p/q"):
            removed.append(path)
            os.rmdir(tmp_path / "p")
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", raced)
    LocalStorage(str(tmp_path)).create("p/q/f", b"1")
    assert removed
    assert (tmp_path / "p/q/f").read_bytes() == b"1"


@pytest.mark.parametrize("error", [FileExistsError, FileNotFoundError])
def test_folders_that_other_processes_make_and_remove_meanwhile_are_made(tmp_path, monkeypatch, error):
    """Found there by the system, and gone when it is looked at; or gone with one above it."""
    real, raced = os.mkdir, []

    def meanwhile(path, mode=0o777):
        if len(raced) < 3 and str(path).endswith("/p/q"):
            raced.append(path)
            raise error(path)
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", meanwhile)
    LocalStorage(str(tmp_path)).create("p/q/f", b"1")
    assert len(raced) == 3
    assert (tmp_path / "p/q/f").read_bytes() == b"1"


@pytest.mark.parametrize("taken", ["file", "folder", "folder before the file"])
@pytest.mark.parametrize("way", ["create", "publish"])
def test_what_others_removed_before_it_had_its_name_is_an_error_of_its_own(tmp_path, monkeypatch, way, taken):
    """A process that was stopped there, and whose temporary files a holder of its lock has removed since."""
    storage, folder = LocalStorage(str(tmp_path)), tmp_path / "f"
    storage.create("f/other", b"")

    def stopped(before):
        real = getattr(os, before)

        def call(*given):
            if taken == "file":
                for path in folder.glob(".*.tmp"):
                    path.unlink()
            else:
                shutil.rmtree(folder, ignore_errors=True)
            return real(*given)

        return call

    if taken == "folder before the file":
        made = local._make_folders
        monkeypatch.setattr(local, "_make_folders", lambda path: (made(path), shutil.rmtree(path)))
    else:
        for name in ("link", "replace"):
            monkeypatch.setattr(os, name, stopped(name))
    with pytest.raises(ConcurrentWriterError, match="removed what was written here") as e:
        getattr(storage, way)("f/x", b"1")
    assert e.value.file == "f/x"
    monkeypatch.undo()
    assert storage.info("f/x") is None
    assert not list(tmp_path.rglob("*.tmp"))


def test_schemes_are_normalised(tmp_path):
    assert isinstance(open_storage(f"file://{tmp_path}/a%20b"), LocalStorage)
    assert open_storage(f"file://{tmp_path}/a%20b").uri == f"{tmp_path}/a b"
    assert isinstance(open_storage("memory://x/"), FsspecStorage)
    assert open_storage("memory://x/").uri == "memory://x"


def write_with_arrow(storage, path):
    with storage.open_output(path) as out:
        out.write(b"new")


WAYS = {
    "publish": lambda s, p: s.publish(p, b"new"),
    "touch": lambda s, p: s.touch(p, b"new"),
    "open_output": write_with_arrow,
    "delete and create": lambda s, p: (s.delete(p), s.create(p, b"new")),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_the_checksum_of_the_old_content_goes_with_it(tmp_path, way):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_bytes(b"old")
    (tmp_path / "d/.f.crc").write_bytes(b"crc\x00")
    WAYS[way](storage, "d/f")
    assert storage.read("d/f") == b"new"
    assert not (tmp_path / "d/.f.crc").exists()


def test_a_refused_creation_leaves_file_and_checksum_alone(tmp_path):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / ".f.crc").write_bytes(b"crc\x00")
    with pytest.raises(FileExistsError):
        storage.create("f", b"new")
    assert (tmp_path / ".f.crc").exists()
    assert storage.read("f") == b"old"


def test_a_stale_checksum_without_its_file_goes_when_the_file_comes(tmp_path):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / ".f.crc").write_bytes(b"crc\x00")
    storage.create("f", b"new")
    assert not (tmp_path / ".f.crc").exists()


@pytest.mark.parametrize("beside", ["makes a file", "removes a file"])
def test_a_folder_goes_although_another_process_is_at_it(tmp_path, monkeypatch, beside):
    storage = LocalStorage(str(tmp_path))
    for name in ("d/a/one", "d/b/two", "d/b/three"):
        storage.create(name, b"x")
    call, done = getattr(os, "rmdir" if beside == "makes a file" else "unlink"), []

    def at_the_first(path, **more):
        if not done:
            done.append(path)
            if beside == "makes a file":
                (tmp_path / "d" / "a" / "late").write_bytes(b"")
                (tmp_path / "d" / "b" / "late").write_bytes(b"")
            else:
                call(path, **more)
        return call(path, **more)

    monkeypatch.setattr(os, call.__name__, at_the_first)
    storage.delete_dir("d")
    assert done
    assert not (tmp_path / "d").exists()


def test_a_folder_that_is_filled_for_ever_is_an_error(tmp_path, monkeypatch):
    storage = LocalStorage(str(tmp_path))
    storage.create("d/one", b"x")
    rmdir = os.rmdir

    def filled(path, **more):
        (tmp_path / "d" / "late").write_bytes(b"")
        rmdir(path, **more)

    monkeypatch.setattr(os, "rmdir", filled)
    with pytest.raises(StorageError, match="not empty"):
        storage.delete_dir("d")


def test_a_folder_whose_files_seem_gone_and_stay_is_an_error(tmp_path, monkeypatch):
    storage = LocalStorage(str(tmp_path))
    storage.create("d/one", b"x")

    def as_of_a_stale_listing(path, **more):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    monkeypatch.setattr(os, "unlink", as_of_a_stale_listing)
    with pytest.raises(StorageError, match="not empty"):
        storage.delete_dir("d")
    assert (tmp_path / "d" / "one").exists()


@pytest.fixture
def flushed(monkeypatch):
    """Paths that were flushed, since it was emptied."""
    found, right = [], os.fsync

    def fsync(file):
        found.append(os.readlink(f"/proc/self/fd/{file}"))
        right(file)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def flushes(storage, flushed, *paths, **how):
    """What a flush of files flushes, below the table's folder."""
    for path in paths:
        storage.touch(path, b"x")
    flushed.clear()
    storage.flush(paths, **how)
    return [os.path.relpath(p, storage.uri) for p in flushed]


def test_a_flush_is_of_files_and_of_all_folders_that_are_new(tmp_path, flushed):
    storage = LocalStorage(str(tmp_path))
    assert flushes(storage, flushed, "a/b/f") == ["a/b/f", "a/b", "a", "."]
    assert flushes(storage, flushed, "a/b/g") == ["a/b/g", "a/b"]
    assert flushes(storage, flushed, "a/b/g", written=False) == ["a/b"]
    both = flushes(storage, flushed, "a/c/f", "a/b/f")
    assert (both[:2], set(both[2:4]), both[4:]) == (["a/c/f", "a/b/f"], {"a/b", "a/c"}, ["a"])
    assert flushes(storage, flushed, "a/f") == ["a/f", "a"]
    assert flushes(storage, flushed, "f") == ["f", "."]
    assert flushes(LocalStorage(str(tmp_path)), flushed, "a/b/f") == ["a/b/f", "a/b", "a", "."]


def test_a_folder_that_was_made_anew_is_flushed_anew(tmp_path, flushed):
    storage = LocalStorage(str(tmp_path))
    anew = ["a/b/f", "a/b", "a", "."]
    assert flushes(storage, flushed, "a/b/f") == anew
    storage.delete_dir("a")
    assert flushes(storage, flushed, "a/b/f") == anew
    os.rename(tmp_path / "a", tmp_path / "other")  # by somebody else
    assert flushes(storage, flushed, "a/b/f") == anew
    storage.rename("a", "again")
    assert flushes(storage, flushed, "a/b/f") == anew
    os.rename(tmp_path / "a/b", tmp_path / "a/other")
    assert flushes(storage, flushed, "a/b/f") == anew[:3]


def test_what_could_not_be_flushed_is_flushed_again(tmp_path, flushed, monkeypatch):
    storage = LocalStorage(str(tmp_path))
    right = os.fsync

    def refuses(file):
        if os.readlink(f"/proc/self/fd/{file}") == str(tmp_path):
            raise OSError(errno.EIO, "no")
        right(file)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuses)
        with pytest.raises(StorageError):
            flushes(storage, flushed, "a/f")
    assert flushes(storage, flushed, "a/f") == ["a/f", "a", "."]


def test_a_flush_of_a_file_that_another_process_removed_says_so(tmp_path):
    """So it is with a process that was stopped for so long that others took it for dead."""
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(
        ConcurrentWriterError, match=r"another process removed .* before it was on the disk"
    ) as e:
        storage.flush(["a/gone"])
    assert e.value.file == "a/gone"
    storage.flush(["a/gone"], written=False)  # that its name is gone


def test_a_flush_of_a_table_is_of_the_folders_above_it(tmp_path, flushed):
    storage = LocalStorage(str(tmp_path / "new/table"))
    storage.make_dir("")
    storage.flush([""])
    assert flushed[-1] == "/"
    assert str(tmp_path / "new") in flushed
    assert str(tmp_path) in flushed
