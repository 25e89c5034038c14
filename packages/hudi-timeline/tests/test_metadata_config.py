"""The metadata table beside our writes: dropped, or kept and refused."""

import pytest
from commit_steps import start, write

from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    LockError,
    NotAHudiTableError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_index.metadata_table import keys
from hudi_timeline import HudiTable, metadata_config, read_hudi, table_config, write_hudi
from hudi_timeline.concurrency.locks.provider import InProcessLock, hold
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.reading.metadata_listing import differences


def test_partitions_have_the_names_of_their_records():
    assert metadata_config.KEPT == (keys.FILES, keys.BLOOM_FILTERS, keys.COLUMN_STATS, keys.RECORD_INDEX)


def test_a_metadata_table_of_files_is_removed_with_one_warning(storage):
    table_config.update(storage, {"hoodie.table.metadata.partitions": "files"})
    storage.publish(".hoodie/metadata/.hoodie/hoodie.properties", b"x")
    tx = write(storage, 1)
    assert len(tx.warnings) == 1
    assert "files" in tx.warnings[0]
    assert storage.info(metadata_config.FOLDER) is None
    config = table_config.load(storage)
    assert metadata_config.built(config) == ()
    assert tx.config == config
    assert write(storage, 2).warnings == []


@pytest.mark.parametrize("what", ["all of it", "a partition"])
def test_who_lost_the_lock_takes_no_metadata_table_away_that_was_made_anew(tmp_path, monkeypatch, what):
    options = {"hoodie.metadata.enable": "true"}
    write_hudi(tmp_path / "t", [{"id": "a"}], key="id", options=options)
    table = HudiTable.open(tmp_path / "t")
    table.build_index("column_stats", options=options)
    storage = open_storage(str(tmp_path / "t"))
    lock, config = InProcessLock(storage.uri), table_config.load(storage)

    def stalled(of, entries):
        """Longer than its lease: others take the lock, and make what the properties do not name any more."""
        monkeypatch.undo()
        done = table_config.update(of, entries)
        lock.release()
        table.build_index("column_stats", options=options)
        return done

    monkeypatch.setattr(table_config, "update", stalled)
    drop = {
        "all of it": lambda: metadata_config.drop(storage, config),
        "a partition": lambda: metadata_config.drop_partitions(
            storage, config, ["column_stats"], why="asked"
        ),
    }
    with pytest.raises(LockError), hold(lock):
        drop[what]()
    assert set(metadata_config.built(table_config.load(storage))) == {"files", "column_stats"}
    assert table.verify(deep=True) == []


def test_a_metadata_table_that_is_dropped_behind_a_savepoint_says_the_way_out(storage):
    first = write(storage, 1)
    storage.publish(f".hoodie/{first.instant}.savepoint", b"x")
    table_config.update(storage, {"hoodie.table.metadata.partitions": "files"})
    storage.publish(".hoodie/metadata/.hoodie/hoodie.properties", b"x")
    (warning,) = write(storage, 2).warnings
    assert first.instant in warning
    assert "delete .hoodie/metadata and run it again" in warning


def test_the_folder_left_by_a_crash_after_the_properties_is_removed(storage):
    storage.publish(".hoodie/metadata/.hoodie/hoodie.properties", b"x")
    tx = write(storage, 1)
    assert storage.info(metadata_config.FOLDER) is None
    assert len(tx.warnings) == 1


def test_a_metadata_table_with_other_indexes_stays_unless_the_user_gave_it_up(storage):
    table_config.update(storage, {"hoodie.table.metadata.partitions": "files,partition_stats"})
    storage.publish(".hoodie/metadata/x", b"x")
    with pytest.raises(UnsupportedError, match="partition_stats"):
        write(storage, 1)
    assert storage.info(".hoodie/metadata/x") is not None
    tx = write(storage, 1, options=TransactionConfig(metadata_enable=False))
    assert tx.committed
    assert storage.info(metadata_config.FOLDER) is None


def test_a_live_writer_is_refused_before_the_metadata_table_is_touched(storage):
    with start(storage) as tx:
        tx.inflight({})
        table_config.update(storage, {"hoodie.table.metadata.partitions": "files"})
        storage.publish(".hoodie/metadata/x", b"x")
        with pytest.raises(ConcurrentWriterError):
            start(storage)
        assert storage.info(".hoodie/metadata/x") is not None


def test_damage_to_a_metadata_table_says_how_the_table_is_read(tmp_path):
    through = {"hoodie.metadata.enable": "true"}
    write_hudi(tmp_path / "t", [{"id": 1, "v": 1}], key="id", options=through)
    assert differences(HudiTable.open(tmp_path / "t").storage) == []
    for file in (tmp_path / "t/.hoodie/metadata/files").glob("*.hfile"):
        file.write_bytes(b"x" * 100)
    with pytest.raises(CorruptFileError) as e:
        read_hudi(tmp_path / "t", options=through).to_arrow()
    assert "Without hoodie.metadata.enable=true" in e.value.remedy
    assert read_hudi(tmp_path / "t").count() == 1


def test_a_table_without_a_metadata_table_has_none_to_compare(tmp_path):
    write_hudi(tmp_path / "t", [{"id": 1, "v": 1}], key="id")
    with pytest.raises(UnsupportedError, match="has no metadata table"):
        differences(open_storage(tmp_path / "t"))
    with pytest.raises(NotAHudiTableError):
        differences(open_storage(tmp_path / "nothing"))
