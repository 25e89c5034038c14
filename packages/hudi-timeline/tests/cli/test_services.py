"""Table services from a shell."""

import json

import pyarrow as pa
import pytest
from made_tables import at

from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])


@pytest.mark.req("NEW-08")
def test_services_run_from_a_shell(hudi, tmp_path):
    path = str(tmp_path / "s")
    table = HudiTable.create(path, SCHEMA, name="s", record_keys=["id"], partition_fields=["p"])
    off = {"hoodie.table.services.enabled": "false"}
    for step in range(9):
        table.upsert([{"id": "1", "p": "a", "v": step}], options=off)
    keep = ("--option", "hoodie.cleaner.commits.retained=2")
    plan = json.loads(hudi("clean", path, *keep, "--dry-run", "-o", "json")[1])
    assert (plan["files_planned"], plan["files_deleted"], plan["instant"]) == (6, 0, "")
    saved = hudi("savepoint", "create", path, "--comment", "here")[1].strip()
    assert hudi("savepoint", "list", path)[1].split() == [saved]
    assert json.loads(hudi("savepoint", "list", path, "-o", "json")[1]) == [{"instant": saved}]
    assert json.loads(hudi("clean", path, *keep, "-o", "json")[1])["files_deleted"] == 6
    short = ("--option", "hoodie.keep.min.commits=2", "--option", "hoodie.keep.max.commits=3")
    done = json.loads(hudi("archive", path, *short, "-o", "json")[1])
    assert (done["instants"], done["file"]) == (7, ".hoodie/archived/.commits_.archive.1_1-0-1")
    assert json.loads(hudi("restore", path, saved, "--dry-run", "-o", "json")[1])["undone"] == []
    assert hudi("savepoint", "delete", path, saved)[0] == 0
    code, out, err = hudi("savepoint", "delete", path, saved)
    assert (code, out) == (1, "")
    assert "does not exist" in err


def test_rollback_prints_its_plan_and_then_undoes_the_newest_commit(hudi, path):
    planned = json.loads(hudi("rollback", path, at(2), "--plan", "-o", "json")[1])
    assert (planned["undone"], planned["instants"]) == ([at(2)], [])
    assert len(planned["delete"]) == planned["files"] > 0
    done = json.loads(hudi("rollback", path, at(2), "-o", "json")[1])
    assert done["files"] == planned["files"]
    assert len(done["instants"]) == 1
    (row,) = json.loads(hudi("timeline", path, "--rollbacks", "-o", "json")[1])
    assert (row["undone"], row["files_deleted"], row["state"]) == ([at(2)], planned["files"], "COMPLETED")
    assert json.loads(hudi("timeline", path, "--incomplete", "-o", "json")[1]) == []
    code, _, error = hudi("rollback", path, at(2))
    assert (code, "no instant" in error) == (1, True)
