"""Partitions and files by listing."""

import pytest

from hudi_format.errors import StorageError
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import FileInfo
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import (
    list_files,
    list_partition_files,
    list_partitions,
    list_table,
    walk,
)

META = ".hoodie_partition_metadata"


class Counting:
    """A storage that remembers which folders were listed."""

    is_local = True

    def __init__(self, inner: LocalStorage) -> None:
        self.inner = inner
        self.listed: list[str] = []

    def list(self, path: str) -> list[FileInfo]:
        self.listed.append(path)
        return self.inner.list(path)

    def info(self, path: str) -> FileInfo | None:
        return self.inner.info(path)


class Wanted:
    """A filter that keeps paths with a text in them."""

    def __init__(self, part: str, below: str = "") -> None:
        self.part, self.below = part, below

    def keep(self, partitions):
        return [self.part in p for p in partitions]

    def keep_below(self, folders):
        return [self.below in f for f in folders]

    def keep_inside(self, partitions):
        return [self.part.startswith(f"{p}/") for p in partitions]


@pytest.fixture
def table(tmp_path):
    storage = LocalStorage(str(tmp_path))
    config = table_config.create(storage, {"hoodie.table.name": "t", "hoodie.table.partition.fields": "a,b"})
    for partition in ("x/1", "x/2", "y/1"):
        folder = tmp_path / partition
        folder.mkdir(parents=True)
        (folder / META).write_text("")
        (folder / "f_0_1.parquet").write_text("rows")
    return storage, config


def test_a_folder_is_a_partition_only_if_it_has_the_metadata_file(table, tmp_path):
    storage, config = table
    (tmp_path / "stray" / "deep").mkdir(parents=True)
    (tmp_path / "stray" / "deep" / "f_0_1.parquet").write_text("rows")
    assert list_partitions(storage, config) == ["x/1", "x/2", "y/1"]


@pytest.mark.parametrize("name", [META + ".parquet", META + ".orc"])
def test_the_metadata_file_may_be_one_of_the_base_format(table, tmp_path, name):
    storage, config = table
    (tmp_path / "z" / "1").mkdir(parents=True)
    (tmp_path / "z" / "1" / name).write_text("")
    assert "z/1" in list_partitions(storage, config)


@pytest.mark.req("TL-05")
def test_partitions_inside_of_a_partition_are_found(table, tmp_path):
    storage, config = table
    for folder in ("x/1/below", "x/1/no/deep", ".y/_z", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / META).write_text("")
    inner = [".y/_z", "__HIVE_DEFAULT_PARTITION__", "x/1", "x/1/below", "x/1/no/deep", "x/2", "y/1"]
    assert list_partitions(storage, config) == inner
    found = list_table(storage, config, wanted=Wanted("x/1/below"))
    assert list(found.files) == ["x/1/below"]


@pytest.mark.req("TL-01")
def test_the_folder_of_the_tables_metadata_is_no_partition(table, tmp_path):
    storage, config = table
    for folder in (".hoodie", ".hoodie/metadata/files", ".hoodie/x"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / META).write_text("")
        (tmp_path / folder / "g_0_1.parquet").write_text("rows")
    assert list_partitions(storage, config) == ["x/1", "x/2", "y/1"]
    assert sorted(list_table(storage, config).files) == ["x/1", "x/2", "y/1"]


def test_a_table_below_a_table_is_not_looked_at(table, tmp_path):
    storage, config = table
    for folder in ("x/1/other", "other"):  # in a partition, and beside partitions
        for inner in (".hoodie", "p"):
            (tmp_path / folder / inner).mkdir(parents=True)
        (tmp_path / folder / "p" / META).write_text("")
        (tmp_path / folder / "p" / "g_0_1.parquet").write_text("rows")
    (tmp_path / "x" / "1" / "other" / META).write_text("")
    assert list_partitions(storage, config) == ["x/1", "x/2", "y/1"]
    assert not any("other" in folder for folder in walk(storage))


def test_each_folder_is_listed_once(table, tmp_path):
    storage, config = table
    (tmp_path / "x" / "1" / "below").mkdir()
    counting = Counting(storage)
    list_table(counting, config)
    assert sorted(counting.listed) == ["", "x", "x/1", "x/1/below", "x/2", "y", "y/1"]


def test_the_root_is_the_partition_of_a_table_without_partitions(tmp_path):
    storage = LocalStorage(str(tmp_path))
    config = table_config.create(storage, {"hoodie.table.name": "t"})
    assert list_partitions(storage, config) == []
    (tmp_path / META).write_text("")
    assert list_partitions(storage, config) == [""]


def test_files_of_an_unwanted_partition_are_not_listed(table):
    storage, config = table
    counting = Counting(storage)
    found = list_table(counting, config, wanted=Wanted("x/2"))
    assert list(found.files) == ["x/2"]
    assert sorted(found.dropped) == ["x/1", "y/1"]
    assert sorted(counting.listed) == ["", "x", "x/2", "y"]  # a folder's entries come in any order


def test_a_folder_with_nothing_wanted_below_is_not_entered(table):
    storage, config = table
    counting = Counting(storage)
    found = list_table(counting, config, wanted=Wanted("x", below="x"))
    assert sorted(found.files) == ["x/1", "x/2"]
    assert found.dropped_folders == ("y",)
    assert "y" not in counting.listed


def test_a_folder_that_looks_unwanted_and_is_no_partition_is_entered(table, tmp_path):
    storage, config = table
    (tmp_path / "2024" / "03" / "05").mkdir(parents=True)
    (tmp_path / "2024" / "03" / "05" / META).write_text("")
    found = list_table(storage, config, wanted=Wanted("2024/03/05"))
    assert list(found.files) == ["2024/03/05"]


def test_partitions_that_commits_name_are_listed_even_without_the_metadata_file(table, tmp_path):
    storage, config = table
    (tmp_path / "z" / "9").mkdir(parents=True)
    (tmp_path / "z" / "9" / "f").write_text("")
    found = list_table(storage, config, also=["z/9", "gone/1"])
    assert [f.name for f in found.files["z/9"]] == ["f"]
    assert found.files["gone/1"] == []


def test_files_of_given_partitions(table):
    storage, _ = table
    assert sorted(f.name for f in list_files(storage, "x/1")) == [META, "f_0_1.parquet"]
    assert list_files(storage, "nowhere") == []
    assert sorted(list_partition_files(storage, ["x/2", "x/1", "x/2"])) == ["x/1", "x/2"]


def test_a_remote_store_is_listed_on_threads_with_the_same_result(tmp_path):
    storage = open_storage("memory://listing-table")
    config = table_config.create(storage, {"hoodie.table.name": "t", "hoodie.table.partition.fields": "p"})
    for n in range(40):
        storage.touch(f"p{n:02d}/{META}")
        storage.touch(f"p{n:02d}/f_0_1.parquet", b"rows")
    found = list_table(storage, config)
    assert sorted(found.files) == [f"p{n:02d}" for n in range(40)]
    assert all(any(f.size == 4 for f in files) for files in found.files.values())


def test_links_that_lead_back_into_the_table_are_left_out(table, tmp_path):
    """Each of two of them doubles the paths at every depth, up to forty: the walk would not end."""
    storage, config = table
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(".")
        (tmp_path / "x" / name).symlink_to("..")
    (tmp_path / "stray").mkdir()
    for name in ("a", "b"):
        (tmp_path / "stray" / name).symlink_to(tmp_path)
    (tmp_path / "newest").symlink_to("x/2")  # its files are those of x/2, and not twice
    assert list_partitions(storage, config) == ["x/1", "x/2", "y/1"]
    # The same table by way of a link to it.
    other = tmp_path.parent / f"{tmp_path.name}-link"
    other.symlink_to(tmp_path)
    assert list_partitions(LocalStorage(str(other)), config) == ["x/1", "x/2", "y/1"]
    # Links to files are files.
    (tmp_path / "x/1/g_0_1.parquet").symlink_to("f_0_1.parquet")
    assert "g_0_1.parquet" in {f.name for f in list_files(storage, "x/1")}


def test_links_that_lead_to_each_other_outside_of_the_table_end(tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    (outside / "p").mkdir(parents=True)
    (outside / "q").mkdir()
    for name in ("a", "b"):
        (outside / "p" / name).symlink_to(outside / "q")
        (outside / "q" / name).symlink_to(outside / "p")
        (outside / "p" / f"self{name}").symlink_to(outside)
    storage = LocalStorage(str(tmp_path / "t"))
    config = table_config.create(storage, {"hoodie.table.name": "t", "hoodie.table.partition.fields": "a,b"})
    (tmp_path / "t" / "out").symlink_to(outside)
    (tmp_path / "t" / "again").symlink_to(outside / "p")
    with pytest.raises(StorageError, match="leads out"):
        list_partitions(storage, config)
    monkeypatch.setenv("HUDI_FOLLOW_LINKS", "read")
    assert list_partitions(storage, config) == []
