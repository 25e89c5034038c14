"""Storage that fails in mid-write: a typed error, the table as it was, and a next write that works."""

import pyarrow as pa
import pytest

from hudi_format.errors import StorageError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.testing import FAIL, Fault, Faults
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(n, v=0):
    # Incompressible enough that bytes reach the file before it is closed.
    return pa.table(
        {
            "id": [f"k{i}" for i in range(n)],
            "p": [f"p{i % 2}" for i in range(n)],
            "ts": [v] * n,
            "text": [str(hash((i, v))) * 20 for i in range(n)],
        }
    )


class FullDisk(LocalStorage):
    """A disk without space: data files are made, and take no byte."""

    def open_output(self, path):
        super().open_output(path).close()
        return pa.OSFile("/dev/full", "wb")


class NoPermission(LocalStorage):
    """A folder in which nothing may be made once the write has begun."""

    def open_output(self, path):
        raise StorageError("the storage refused: Permission denied", table=self.uri, file=path)


@pytest.mark.req("NEW-36", "RC-02")
@pytest.mark.parametrize("broken", [FullDisk, NoPermission])
@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert", "delete", "insert_overwrite"])
@pytest.mark.sampled(6)
def test_a_storage_that_fails_in_mid_write_leaves_the_table_as_it_was(tmp_path, broken, operation):
    path = str(tmp_path / "t")
    execute(LocalEngine(2), LocalStorage(path), rows(50), OPTIONS)
    before = HudiTable.open(path).read().to_arrow().sort_by("id")
    data = rows(30, v=1) if operation != "delete" else rows(30).select(["id", "p"])
    with pytest.raises(StorageError) as caught:
        execute(
            LocalEngine(2), broken(path), data, {**OPTIONS, "hoodie.datasource.write.operation": operation}
        )
    assert caught.value.code == "HUDI-E0701"
    assert caught.value.file
    table = HudiTable.open(path)
    assert table.read().to_arrow().sort_by("id").equals(before)
    assert not table.timeline.pending_writes()
    known = set(table.inspect.files()["path"].to_pylist())
    there = {str(p.relative_to(path)) for p in (tmp_path / "t").rglob("*.parquet")}
    assert there == known, "no file of the failed write is left"
    execute(LocalEngine(2), LocalStorage(path), rows(60, v=2), OPTIONS)
    assert HudiTable.open(path).read().to_arrow().num_rows == 60


@pytest.mark.req("NEW-36", "RC-02")
@pytest.mark.parametrize("partitioned", [True, False])
def test_a_first_write_that_fails_leaves_a_path_that_can_be_written_to(tmp_path, partitioned):
    options = dict(OPTIONS)
    if not partitioned:
        del options["hoodie.datasource.write.partitionpath.field"]
    path = str(tmp_path / "t")
    for operation in ("create", "close_output"):
        faults = Faults(
            Fault(FAIL, operation=operation, path="*.parquet" if "out" in operation else "*.commit")
        )
        with pytest.raises(StorageError):
            execute(LocalEngine(1), faults.wrap(LocalStorage(path)), rows(6), options)
        assert LocalStorage(path).list("") == []
    execute(LocalEngine(1), LocalStorage(path), rows(6), options)
    assert HudiTable.open(path).read().to_arrow().num_rows == 6
