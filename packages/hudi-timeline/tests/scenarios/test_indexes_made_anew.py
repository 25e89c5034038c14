"""Metadata partitions made anew at an older instant than the last writes to them, as Apache Hudi 1.2 does it.

After a restore its writer drops the record index, and makes it again at the time of the commit before.
"""

from __future__ import annotations

import pytest

from hudi_format.errors import MissingFileError
from hudi_format.model import WriteStat
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_table.reader import partition_slices
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.verify.check_files import check_files
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import gather

INDEX = "record_index"
OLD, NEW = (f"record-index-0000-{n}" for n in (0, 1))


def at(number: int) -> str:
    return f"2026010100000{number}000"


class OwnTable:
    """A metadata table of version 9; of its files only the names count here."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        table_config.create(
            storage,
            {
                "hoodie.table.name": "t_metadata",
                "hoodie.table.type": "MERGE_ON_READ",
                "hoodie.table.version": "9",
                "hoodie.timeline.layout.version": "2",
                "hoodie.table.base.file.format": "HFILE",
                "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
            },
        )
        storage.make_dir(".hoodie/timeline")

    def commit(self, time: str, completed: str, *names: str, there: bool = True) -> None:
        stats = []
        for name in names:
            path = f"{INDEX}/{name}"
            file_id = name.lstrip(".").partition("_")[0]
            stats.append(WriteStat(file_id=file_id, path=path, partition=INDEX, file_size_in_bytes=1))
            if there:
                self.storage.touch(path, b"x")
        stem = f".hoodie/timeline/{time}"
        for state in ("requested", "inflight"):
            self.storage.touch(f"{stem}.deltacommit.{state}")
        self.storage.touch(f"{stem}_{completed}.deltacommit", CommitMetadata({INDEX: tuple(stats)}).to_json())

    def slices(self) -> list[tuple[str, int]]:
        found = partition_slices(open_snapshot(self.storage), INDEX)
        return [(s.file_id, len(s.log_files)) for s in found]

    def missing(self) -> list[str]:
        config = table_config.load(self.storage)
        report = VerifyReport()
        facts = gather(self.storage, config, report, workers=1)
        assert facts is not None
        assert facts.is_metadata
        check_files(facts, report)
        return [f.path for f in report.findings() if f.code == "file-missing"]


def base(file_id: str, time: str) -> str:
    return f"{file_id}_0-0-0_{time}.hfile"


def log(file_id: str, time: str) -> str:
    return f".{file_id}_{time}.log.1_0-0-0"


@pytest.fixture
def own() -> OwnTable:
    return OwnTable(open_storage("memory://hudi-made-anew/t"))


@pytest.fixture(autouse=True)
def _emptied() -> None:
    open_storage("memory://hudi-made-anew").delete_dir("t")


def test_files_of_the_index_before_it_was_made_anew_are_not_missed(own: OwnTable) -> None:
    own.commit(at(2), at(3), base(OLD, at(2)), log(OLD, at(2)), there=False)
    own.commit(at(1), at(5), base(NEW, at(1)))
    own.commit(at(6), at(7), log(NEW, at(6)))
    assert own.slices() == [(NEW, 1)]
    assert own.missing() == []


def test_what_writers_logged_beside_an_indexing_counts(own: OwnTable) -> None:
    own.commit(at(2), at(3), log(NEW, at(2)))
    own.commit(at(1), at(5), base(NEW, at(1)))
    assert own.slices() == [(NEW, 1)]


def test_files_since_then_are_missed(own: OwnTable) -> None:
    own.commit(at(1), at(5), base(NEW, at(1)))
    own.commit(at(2), at(6), log(NEW, at(2)), there=False)
    assert own.missing() == [f"{INDEX}/{log(NEW, at(2))}"]
    with pytest.raises(MissingFileError):
        own.slices()
