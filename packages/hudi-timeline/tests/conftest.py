"""Tables that the timeline's tests work on."""

import shutil
import tarfile
from pathlib import Path

import pytest
from rival_writers import make

from hudi_format.storage import stable_reads
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.timeline import lsm_timeline

DATA = Path(__file__).parent / "data"
# Python knows the argument since 3.11.4.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@pytest.fixture(scope="session")
def golden_timelines(tmp_path_factory):
    """A folder with `v6/<table>/.hoodie/...` and `v5/...`: timelines that Apache Hudi 0.15.0 wrote."""
    folder = tmp_path_factory.mktemp("timelines")
    with tarfile.open(DATA / "timelines.tar.xz") as archive:
        archive.extractall(folder, **SAFELY)
    return folder


@pytest.fixture(scope="session")
def golden_timelines_2(tmp_path_factory):
    """A folder with `v8/<table>/.hoodie/...` and `v9/...`: timelines that Apache Hudi 1.0.2 and 1.2.0 wrote."""
    folder = tmp_path_factory.mktemp("timelines2")
    with tarfile.open(DATA / "timelines2.tar.xz") as archive:
        archive.extractall(folder, **SAFELY)
    return folder


@pytest.fixture(scope="session")
def _table_with_rivals(tmp_path_factory):
    path = tmp_path_factory.mktemp("rivals") / "t"
    make(str(path))
    return path


@pytest.fixture
def shared_table(_table_with_rivals, tmp_path):
    """Path of a copy of the table of `rival_writers.make`, for writers that meet."""
    shutil.copytree(_table_with_rivals, tmp_path / "t")
    return str(tmp_path / "t")


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch):
    """Nobody fills the damaged files that tests make, and who does it on purpose needs less time."""
    monkeypatch.setattr(stable_reads, "PATIENCE_S", 0.1)
    monkeypatch.setattr(lsm_timeline, "LOOK_AGAIN_S", (0.001,))


@pytest.fixture
def storage(tmp_path):
    """An empty copy-on-write table, keyed by `id` and partitioned by `p`."""
    made = LocalStorage(str(tmp_path / "table"))
    table_config.create(
        made,
        {
            "hoodie.table.name": "t",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": "p",
            "hoodie.table.precombine.field": "ts",
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.table.timeline.timezone": "UTC",
        },
    )
    return made
