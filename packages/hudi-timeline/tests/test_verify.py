"""`verify` on tables that our own writer and services leave behind: nothing is found, and nothing is changed."""

import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hudi_timeline import HudiTable
from hudi_timeline.cli.main import app

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
SHORT = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


@pytest.fixture
def table(path):
    return HudiTable.create(str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.req("NEW-09")
def test_nothing_is_found_after_sixty_commits_with_cleaning_archival_savepoint_and_restore(table, path):
    for step in range(58):
        table.upsert(rows(step), options=SHORT)
        if step % 20 == 7:
            table.delete(rows(0, "a")[:1], options=SHORT)
    saved = table.savepoint()
    table.insert_overwrite(rows(58, "b"), options=SHORT)
    table.delete_partitions(["a"], options=SHORT)
    assert table.verify(deep=True) == []
    table.restore(saved)
    table.delete_savepoint(saved)
    before = tree(path)
    assert table.verify(deep=True) == []
    assert tree(path) == before
    table.upsert(rows(60), options=SHORT)
    assert table.verify(deep=True) == []


@pytest.mark.req("NEW-09")
def test_the_command_prints_json_and_fails_where_something_is_wrong(table, path):
    table.upsert(rows(0))
    run = CliRunner().invoke(app, ["verify", str(path), "--deep", "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout) == {
        "table": str(path), "state": "sound", "counts": {"error": 0, "warning": 0, "info": 0}, "findings": [],
    }  # fmt: skip
    file = next(path.glob("a/*.parquet"))
    file.unlink()
    run = CliRunner().invoke(app, ["verify", str(path), "--json"])
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert found["state"] == "damaged"
    (finding,) = found["findings"]
    assert (finding["code"], finding["path"]) == ("file-missing", f"a/{file.name}")
    assert finding["instant"] in file.name
    assert finding["remedy"]
    assert "file-missing" in CliRunner().invoke(app, ["verify", str(path)]).stdout


@pytest.mark.req("NEW-09")
def test_a_table_that_cannot_be_opened_is_looked_at_all_the_same(table, path):
    table.upsert(rows(0))
    (path / ".hoodie/hoodie.properties").unlink()
    run = CliRunner().invoke(app, ["verify", str(path), "--json"])
    assert run.exit_code == 1
    assert [f["code"] for f in json.loads(run.stdout)["findings"]] == ["properties-unreadable"]
