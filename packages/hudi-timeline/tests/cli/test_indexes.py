"""Indexes of the metadata table from a shell."""

import json

import pytest
from listed_tables import made, rows, table, write

from hudi_format.storage.open import open_storage


@pytest.fixture
def storage(tmp_path):
    found = open_storage(str(tmp_path / "t"))
    made(found)
    return found


def test_an_index_of_ones_own_is_rebuilt(hudi, storage, tmp_path):
    named = (
        "--option",
        "hoodie.index.class=sqlite",
        "--option",
        f"hudi.index.argument.path={tmp_path}/i.sqlite",
    )
    code, out, error = hudi("index", "rebuild", storage.uri, *named, "-o", "json")
    assert (code, error) == (0, "")
    assert json.loads(out)["file_groups"] == table(storage).inspect.file_slices().num_rows
    code, _, error = hudi("index", "rebuild", storage.uri)
    assert code != 0
    assert "names no custom index" in error


def test_indexes_are_planned_built_and_dropped(hudi, storage):
    def ran(*arguments, code=0):
        got, out, error = hudi("index", *arguments, "-o", "json")
        assert got == code, error
        return json.loads(out)

    dry = ran("schedule", storage.uri, "column_stats", "--dry-run")
    assert (dry["instant"], dry["planned"]) == ("", ["column_stats"])
    planned = ran("schedule", storage.uri, "column_stats")["instant"]
    assert planned
    write(storage, rows(4, v=1))
    assert ran("run", storage.uri)["executed"] == [planned]
    assert ran("run", storage.uri, "record_index", "column_stats")["built"] == ["record_index"]
    assert table(storage).config.metadata_partitions == ("column_stats", "files", "record_index")
    assert table(storage).verify(deep=True) == []
    assert ran("drop", storage.uri, "column_stats")["dropped"] == ["column_stats"]
    write(storage, rows(1).set_column(2, "p", [["p1"]]), "insert")  # a key that has two places
    refused = ran("run", storage.uri, "record_index", code=1)["refused"]
    assert "'k0' is in several file groups" in refused[0]
