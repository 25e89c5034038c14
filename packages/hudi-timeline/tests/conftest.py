"""Tables that the timeline's tests work on."""

import tarfile
from pathlib import Path

import pytest

from hudi_format.storage import LocalStorage
from hudi_timeline import table_config

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def golden_timelines(tmp_path_factory):
    """A folder with `v6/<table>/.hoodie/...` and `v5/...`: timelines that Apache Hudi 0.15.0 wrote."""
    folder = tmp_path_factory.mktemp("timelines")
    with tarfile.open(DATA / "timelines.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def golden_timelines_2(tmp_path_factory):
    """A folder with `v8/<table>/.hoodie/...` and `v9/...`: timelines that Apache Hudi 1.0.2 and 1.2.0 wrote."""
    folder = tmp_path_factory.mktemp("timelines2")
    with tarfile.open(DATA / "timelines2.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


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
