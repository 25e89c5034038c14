"""A table full of names that a bug capsule must not keep."""

import pyarrow as pa
import pytest

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.testing import CRASH, Fault, Faults
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "name",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


def people(v):
    return pa.table({
        "name": ["Smith", "Miller", "Jones"], "city": ["Oslofjord", "Paris", "Oslofjord"],
        "pay": pa.array([4815162342 + v, 5, 6], pa.int64()), "note": ["salary-note", None, "b"],
        "ts": pa.array([v] * 3, pa.int64()),
    })  # fmt: skip


def write(storage, v):
    more = {"hoodie.clean.automatic": "false", "_checkpoint": "SALARY", "_file": "/in/Smith.Miller"}
    more["hoodie.datasource.write.commitmeta.key.prefix"] = "_"
    return execute(LocalEngine(1), storage, people(v), {**OPTIONS, **more})


@pytest.fixture
def table(tmp_path):
    storage = LocalStorage(str(tmp_path / "original"))
    for v in range(3):
        write(storage, v)
    HudiTable._of(storage).savepoint(user="Smith", comment="before Oslofjord")
    storage.touch("Oslofjord report.Smith", b"Miller")
    storage.touch(".hoodie/.repair_backup_1/Oslofjord", b"Miller")
    faults = Faults(Fault(CRASH, operation="create", path="*.commit"))
    with faults.process():
        write(faults.wrap(storage), 4)
    return HudiTable._of(storage)
