"""Where rows go: what a dry run of a write says."""

import re
from pathlib import Path

import pytest

from hudi_format.errors import SchemaError
from hudi_timeline import HudiTable, write_hudi

ROWS = [{"id": 1, "city": "oslo", "fare": 1.5}, {"id": 2, "city": "pune", "fare": None}]


def files_of(path):
    return {str(f): f.read_bytes() for f in Path(path).rglob("*") if f.is_file()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trips"


OPERATIONS = {
    "upsert": (1, 1, 0),
    "insert": (2, 0, 0),
    "bulk_insert": (2, 0, 0),
    "insert_overwrite": (2, 0, 0),
    "insert_overwrite_table": (2, 0, 0),
    "delete": (0, 0, 1),
}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_dry_run_says_what_the_write_then_does_and_changes_nothing(path, operation, table_type):
    write_hudi(path, ROWS, key="id", partition_by="city", table_type=table_type)
    table = HudiTable.open(path)
    rows = [{**ROWS[0], "fare": 9.0}, {"id": 3, "city": "oslo", "fare": 3.0}]
    before = files_of(path)
    said = getattr(table, operation)(rows, dry_run=True)
    assert files_of(path) == before
    assert (said.dry_run, said.instant) == (True, "")
    assert (said.inserted, said.updated, said.deleted) == OPERATIONS[operation]
    assert repr(said).startswith(f"CommitResult(dry run of {operation}: ")
    assert "dry run" in said._repr_html_()
    done = getattr(table, operation)(rows)
    assert (said.inserted, said.updated) == (done.inserted, done.updated)
    assert (said.files_written, said.files_rewritten, said.log_files_written, said.partitions) == (
        done.files_written,
        done.files_rewritten,
        done.log_files_written,
        done.partitions,
    )
    assert {p: len(g) for p, g in said.replaced.items()} == {p: len(g) for p, g in done.replaced.items()}
    again = {s.file_id for s in done.write_stats if s.prev_commit != "null" and "logVersion" not in s.extra}
    bases = {
        Path(f).name.partition("_")[0]: len(data) for f, data in before.items() if f.endswith(".parquet")
    }
    assert (said.rewritten_bytes, done.rewritten_bytes) == (sum(bases[g] for g in again), None)


def test_a_dry_run_reports_schema_changes_deletions_and_refusals(path):
    assert write_hudi(path, ROWS, key="id", dry_run=True).inserted == 2
    assert not path.exists()
    write_hudi(path, ROWS, key="id", partition_by="city")
    table = HudiTable.open(path)
    before = files_of(path)
    said = table.upsert([{**ROWS[0], "tip": 1.0}], dry_run=True)
    assert list(map(str, said.schema_changes)) == ["tip added as double"]
    assert table.delete("fare > 1", dry_run=True).deleted == 1
    gone = table.delete_partitions("osl*", dry_run=True)
    assert (gone.dropped_rows, set(gone.replaced)) == (1, {"oslo"})
    assert re.search("1 row in 1 file group", repr(gone))
    with pytest.raises(SchemaError, match=r"fare .*'x' in row 0"):
        table.upsert([{**ROWS[0], "fare": "x"}], dry_run=True)
    assert files_of(path) == before
