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


def test_findings_have_the_forms_of_every_other_list(table, path):
    table.upsert(rows(0))
    run = CliRunner().invoke(app, ["verify", str(path), "-o", "ndjson"])
    assert (run.exit_code, run.stdout) == (0, "")
    next(path.glob("a/*.parquet")).unlink()
    as_json = CliRunner().invoke(app, ["verify", str(path), "-o", "json"])
    assert as_json.stdout == CliRunner().invoke(app, ["verify", str(path), "--json"]).stdout
    (line,) = CliRunner().invoke(app, ["verify", str(path), "-o", "ndjson"]).stdout.splitlines()
    (as_object,) = json.loads(as_json.stdout)["findings"]
    assert (json.loads(line), as_object["code"]) == (as_object, "file-missing")
    head, row = CliRunner().invoke(app, ["verify", str(path), "-o", "csv"]).stdout.splitlines()
    assert (head.split(",")[:2], row.split(",")[:2]) == (["severity", "code"], ["error", "file-missing"])
    plan = CliRunner().invoke(app, ["repair", str(path), "-o", "json"])
    assert json.loads(plan.stdout)["executed"] is False
    assert CliRunner().invoke(app, ["repair", str(path), "-o", "csv"]).exit_code == 2
    assert CliRunner().invoke(app, ["repair", str(path), "--option", "hoodie.write.lock"]).exit_code == 2
