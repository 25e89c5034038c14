"""`hudi verify`: findings as JSON, and an exit code."""

import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hudi_timeline import HudiTable
from hudi_timeline.cli.main import app

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


@pytest.fixture
def table(path):
    return HudiTable.create(str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


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
