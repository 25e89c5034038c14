"""What is done to a table that was deleted since it was opened: it says so, and makes no other table."""

import os
import shutil

import pytest
from resized_tables import IDS, KINDS, make, rows

from hudi_format.errors import NotAHudiTableError
from hudi_timeline import HudiTable

NAMED = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
WRITES = {
    "insert": lambda t, **o: t.insert(rows(IDS), **o),
    "upsert": lambda t, **o: t.upsert(rows(IDS), **o),
    "upsert of records": lambda t, **o: t.upsert(rows(IDS).to_pylist(), **o),
    "upsert of other columns": lambda t, **o: t.upsert([{"x": 1}], **o),
    "bulk_insert": lambda t, **o: t.bulk_insert(rows(IDS), **o),
    "insert_overwrite": lambda t, **o: t.insert_overwrite(rows(IDS), **o),
    "insert_overwrite_table": lambda t, **o: t.insert_overwrite_table(rows(IDS), **o),
    "delete": lambda t, **o: t.delete(rows(IDS), **o),
    "delete_partitions": lambda t, **o: t.delete_partitions("a", missing_ok=True, **o),
    "schema_changes": lambda t, **o: t.schema_changes(rows(IDS), **o),
    "upsert, dry": lambda t, **o: t.upsert(rows(IDS), dry_run=True, **o),
}
OTHERS = {
    "update": lambda t: t.update({"ts": 1}),
    "merge": lambda t: t.merge(rows(IDS)).when_matched_update().execute(),
    "delete by a filter": lambda t: t.delete("ts < 3"),
    "delete_partitions that are there": lambda t: t.delete_partitions("a"),
    "read": lambda t: t.read(),
    "clean": lambda t: t.clean(),
}


@pytest.fixture(params=["everything", "the timeline"])
def gone(request, tmp_path):
    """A table that was opened, and then deleted."""
    make(tmp_path / "t", KINDS[1])
    table = HudiTable.open(str(tmp_path / "t"))
    shutil.rmtree(tmp_path / "t" if request.param == "everything" else tmp_path / "t" / ".hoodie")
    return table


@pytest.mark.parametrize("options", [None, NAMED], ids=["without a name", "with one"])
def test_a_deleted_table_is_not_there_any_more(gone, options):
    for name, act in WRITES.items():
        with pytest.raises(NotAHudiTableError, match="not there any more") as e:
            act(gone, options=options)
        assert e.value.table == gone.uri, name
    for name, act in OTHERS.items():
        with pytest.raises(NotAHudiTableError) as e:
            act(gone)
        assert e.value.table == gone.uri, name
    assert not os.path.exists(f"{gone.uri}/.hoodie")


def test_a_table_that_was_put_back_is_written_to_again(tmp_path):
    make(tmp_path / "t")
    table = HudiTable.open(str(tmp_path / "t"))
    os.rename(tmp_path / "t", tmp_path / "moved")
    with pytest.raises(NotAHudiTableError, match="not there any more"):
        table.upsert(rows(IDS))
    os.rename(tmp_path / "moved", tmp_path / "t")
    table.upsert(rows(IDS, ts=5))
    assert table.count("ts = 5") == len(IDS)
