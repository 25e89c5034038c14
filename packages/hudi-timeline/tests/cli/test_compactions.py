"""Compaction from a shell."""

import json

import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline import avro_files


@pytest.fixture
def logged(tmp_path):
    made = TableBuilder(open_storage(str(tmp_path / "t")), table_type="MERGE_ON_READ")
    made.commit("first", made.base("first", {"a": 1}), made.base("first", {"b": 2}, group=2))
    made.commit("second", made.log("second", {"a": 10}), made.log("second", {"b": 20}, group=2))
    return made


@pytest.mark.req("TS-01", "OP-06", "NEW-03")
def test_a_plan_is_made_shown_checked_narrowed_and_executed(hudi, logged):
    path = logged.uri

    def ran(*arguments):
        code, out, error = hudi("compact", *arguments, "-o", "json")
        assert code == 0, error
        return json.loads(out)

    assert "not due" in ran("schedule", path, "--if-due")["skipped"]
    dry = ran("schedule", path, "--dry-run")
    assert (dry["instant"], dry["slices"]) == ("", 2)
    made = ran("schedule", path)
    assert made["planned"] == dry["planned"]
    instant = made["instant"]
    assert {r["file_id"] for r in ran("show", path)} == {logged.group(1), logged.group(2)}
    assert [r["error"] for r in ran("validate", path, instant)] == [None, None]
    one = ("--file-id", logged.group(2), "--partition", "p0")
    narrowed = ran("unschedule", path, instant, *one)
    assert (narrowed["withdrawn"], narrowed["plan"]) == ([f"p0/{logged.group(2)}"], "narrowed")
    assert ran("run", path, instant, "--dry-run")["planned"] == [f"p0/{logged.group(1)}"]
    everything = ran("run", path, "--dry-run")
    assert everything["planned"] == [f"p0/{logged.group(n)}" for n in (1, 2)]
    done = ran("run", path, instant)
    assert (done["executed"], done["files"], done["rows"]) == ([instant], 1, 1)
    assert ran("show", path) == []
    assert len(ran("run", path)["executed"]) == 1
    code, _, error = hudi("compact", "run", path, instant)
    assert (code, "is pending" in error) == (1, True)


def test_validation_fails_for_a_plan_that_cannot_be_executed(hudi, logged):
    path = logged.uri
    instant = json.loads(hudi("compact", "schedule", path, "-o", "json")[1])["instant"]
    name = json.loads(hudi("compact", "show", path, "-o", "json")[1])[0]["base_file"]
    logged.storage.delete(f"p0/{name}")
    code, out, _ = hudi("compact", "validate", path, instant, "-o", "json")
    assert code == 1
    assert [bool(r["error"]) for r in json.loads(out)].count(True) == 1


@pytest.mark.parametrize("size", [float("nan"), float("inf"), -1.0, 1e30])
def test_a_plan_with_metrics_that_are_no_size_is_shown(hudi, logged, size):
    path = logged.uri
    instant = json.loads(hudi("compact", "schedule", path, "-o", "json")[1])["instant"]
    name = logged.path_of(instant, "compaction", "REQUESTED")
    record = avro_files.parse("HoodieCompactionPlan", logged.storage.read(name))
    record["operations"][0]["metrics"]["TOTAL_LOG_FILES_SIZE"] = size
    logged.storage.publish(name, avro_files.render("HoodieCompactionPlan", record))
    for command in (("show", path), ("validate", path, instant)):
        code, out, error = hudi("compact", *command, "-o", "json")
        assert code == 0, error
        assert [r["log_bytes"] is None for r in json.loads(out)].count(True) == 1


def test_a_plan_that_is_not_there_and_half_a_file_group_are_errors(hudi, logged):
    code, _, error = hudi("compact", "show", logged.uri, "20200101000000000")
    assert (code, "no compaction plan 20200101000000000" in error) == (1, True)
    code, _, error = hudi("compact", "unschedule", logged.uri, "20200101000000000", "--partition", "p0")
    assert (code, "--file-id" in error) == (2, True)


@pytest.mark.req("TS-27")
def test_status_says_what_waits_and_a_plan_is_repaired(hudi, logged):
    path = logged.uri

    def ran(*arguments):
        code, out, error = hudi("compact", *arguments, "-o", "json")
        assert code == 0, error
        return json.loads(out)

    found = ran("status", path, "--option", "hoodie.compact.inline.max.delta.commits=2")
    assert (found["slices"], found["log_files"], found["due"]) == (2, 2, True)
    assert found["oldest_instant"] == logged.at("second")
    assert found["lag_seconds"] > 0
    instant = ran("schedule", path)["instant"]
    assert ran("status", path)["pending"] == [instant]
    assert ran("repair", path, instant)["plan"] == "unchanged"
    name = logged.path_of(instant, "compaction", "REQUESTED")
    record = avro_files.parse("HoodieCompactionPlan", logged.storage.read(name))
    record["operations"][0]["dataFilePath"] = None
    logged.storage.publish(name, avro_files.render("HoodieCompactionPlan", record))
    assert hudi("compact", "run", path, instant)[0] == 1
    assert len(ran("repair", path, instant, "--dry-run")["planned_anew"]) == 1
    assert ran("repair", path, instant)["plan"] == "repaired"
    assert ran("run", path, instant)["executed"] == [instant]
    assert ran("status", path)["slices"] == 0


def test_log_blocks_are_merged_from_a_shell(hudi, logged):
    path, two = logged.uri, ("--option", "hoodie.log.compaction.blocks.threshold=2")
    logged.commit("third", logged.log("third", {"a": 11}))

    def ran(*arguments):
        code, out, error = hudi("compact", "log", *arguments, "-o", "json")
        assert code == 0, error
        return json.loads(out)

    assert ran(path, "--dry-run", *two)["planned"] == [f"p0/{logged.group(1)}"]
    planned = ran(path, "--schedule-only", *two)["scheduled"]
    done = ran(path, planned)
    assert (done["executed"], done["records"], done["deletes"]) == ([planned], 1, 0)
    assert ran(path)["skipped"] == "no file slice has 5 log blocks"
    assert hudi("compact", "log", path, "1", "--schedule-only")[0] == 2
