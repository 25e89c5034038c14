"""Cleaning and archival over many commits, and the switch that turns services off."""

import pyarrow as pa
import pytest

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import (
    COMMIT,
)

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


def write(table, steps, options=OFF):
    return [table.upsert(rows(s), options=options).instant for s in steps]


def files(path):
    return sorted(str(f.relative_to(path)) for f in path.rglob("*.parquet"))


@pytest.mark.req("TS-19", "TS-20", "TS-31")
@pytest.mark.parametrize("commits", [50, pytest.param(300, marks=pytest.mark.slow)])
def test_many_commits_leave_a_bounded_table(table, path, commits):
    for step in range(commits):
        result = table.upsert(rows(step))
        assert result.warnings == ()
    assert len(files(path)) <= 2 * 12
    assert len(list((path / ".hoodie").glob("*.commit"))) <= 31
    assert len(list((path / ".hoodie").iterdir())) < 200
    archived = archived_instants(LocalStorage(str(path)), table.config)
    gone = [i for i in archived if i.action == COMMIT]
    assert len(gone) + len(list((path / ".hoodie").glob("*.commit"))) == commits
    assert all(i.completed for i in archived)
    assert table.read().to_arrow().column("v").to_pylist() == [commits - 1] * 6


@pytest.mark.req("TS-26")
def test_one_switch_turns_the_services_off(table, path):
    write(table, range(14), {"hoodie.table.services.enabled": "false"})
    assert len(files(path)) == 28
    assert not list((path / ".hoodie").glob("*.clean"))
