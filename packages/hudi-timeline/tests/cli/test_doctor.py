"""What the doctor says of a machine and of tables."""

import json
from importlib import metadata

import pytest

from hudi_timeline.cli import doctor


def found(hudi, *arguments):
    code, out, _ = hudi("doctor", *arguments, "-o", "json")
    return code, {r["check"]: r for r in json.loads(out)}


def test_a_sound_machine_and_table(hudi, path, monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "pyspark" else "1.0")
    code, rows = found(hudi, path)
    assert code == 0
    assert {rows[n]["state"] for n in ("python", "packages", "table", "reading", "lock", "pending")} == {"ok"}
    assert "java" not in rows


def test_packages_of_several_versions_and_a_table_that_is_none(hudi, tmp_path, monkeypatch):
    versions = {"hudi-format": "1.0", "hudi-index": "2.0"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    code, rows = found(hudi, str(tmp_path))
    assert code == 1
    assert (rows["packages"]["state"], rows["table"]["state"], rows["duckdb"]["state"]) == (
        "bad",
        "bad",
        "note",
    )
    assert "HUDI-E0101" in rows["table"]["note"]


@pytest.mark.parametrize(("python", "state"), [("", "note"), ("/no/python", "bad")])
def test_the_python_of_sparks_workers(monkeypatch, python, state):
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    monkeypatch.setenv("PATH", "/nowhere")
    assert doctor._workers()[1] == state
