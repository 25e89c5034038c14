"""What becomes of a metadata table: kept, made, or taken away with a reason."""

import shutil
from pathlib import Path

import pytest
from listed_tables import KEPT, made, names, rows, table, write

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.reading.metadata_listing import differences


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


def partitions(storage):
    return table_config.load(storage).metadata_partitions


def test_a_table_gets_one_only_where_it_is_asked_for(storage):
    write(storage, rows(3))
    assert storage.info(FOLDER) is None
    write(storage, rows(3, v=1), **KEPT)
    assert partitions(storage) == ("files",)
    assert differences(storage) == []
    first = table(storage).timeline.completed_writes()[0].time
    assert f"{first}010.deltacommit" in names(storage)


def test_one_that_is_there_is_kept_without_being_asked_for(storage):
    made(storage)
    assert write(storage, rows(3, v=1)).warnings == ()
    assert partitions(storage) == ("files",)
    assert differences(storage) == []


def test_one_that_the_user_gives_up_is_dropped(storage):
    made(storage)
    (warning,) = write(storage, rows(3, v=1), **{"hoodie.metadata.enable": "false"}).warnings
    assert "because hoodie.metadata.enable=false" in warning
    assert storage.info(FOLDER) is None
    assert partitions(storage) == ()


def test_one_that_another_writer_left_behind_is_dropped_and_made_anew_where_it_is_asked_for(
    storage, tmp_path
):
    made(storage)
    shutil.copytree(Path(storage.uri) / FOLDER, tmp_path / "old")
    write(storage, rows(3, v=1))
    lost = table(storage).timeline.completed_writes()[-1].time
    shutil.rmtree(Path(storage.uri) / FOLDER)
    shutil.copytree(tmp_path / "old", Path(storage.uri) / FOLDER)
    (warning,) = write(storage, rows(3, v=2), **KEPT).warnings
    assert f"the commit {lost} is missing in it" in warning
    assert differences(storage) == []


def test_one_that_cannot_be_read_is_dropped(storage):
    made(storage)
    (Path(storage.uri) / FOLDER / ".hoodie/hoodie.properties").write_bytes(b"x")
    (warning,) = write(storage, rows(3, v=1)).warnings
    assert "it cannot be read" in warning
    assert storage.info(FOLDER) is None


def test_none_is_made_while_something_is_pending(storage):
    write(storage, rows(6), **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    write(storage, rows(4, v=1))
    table(storage).compact(mode="schedule")
    (warning,) = write(storage, rows(4, 10), **KEPT).warnings
    assert "finds nothing pending" in warning
    assert storage.info(FOLDER) is None


def test_the_folder_that_a_cut_initialisation_left_is_no_metadata_table(storage):
    write(storage, rows(3))
    storage.publish(f"{FOLDER}/.hoodie/hoodie.properties", b"half")
    write(storage, rows(3, v=1), **KEPT)
    assert differences(storage) == []


def test_a_table_of_files_of_many_partitions_is_listed_whole(storage):
    for n in range(3):
        write(storage, rows(4, n * 4).set_column(2, "p", [[f"a{n}/b"] * 4]))
    write(storage, rows(1, 90), **KEPT)
    assert differences(storage) == []
    assert HudiTable._of(storage).verify() == []


def test_a_service_keeps_it(storage):
    made(storage)
    write(storage, rows(3, v=1))
    done = table(storage)
    done.savepoint()
    done.clean()
    done.archive()
    assert partitions(storage) == ("files",)
    assert differences(storage) == []
