"""An overwrite of Apache Hudi 0.15.0 that it archived before what was replaced was cleaned: what either then reads.

Apache Hudi takes an instant and shows it seconds later.  A cleaning in between is past it; so nothing keeps it from
being archived, and nothing of Apache Hudi cleans what it replaced.
"""

import os
import time

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable

FRAME = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",  # so that there is something to clean
}
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"


class Shown:
    """A table of Apache Hudi whose overwrite is shown late."""

    def __init__(self, path, apache, table_type):
        self.path, self.apache, self.table_type = path, apache, table_type
        self.turn = 0

    def write(self, operation, key, partition):
        self.turn += 1
        rows = pa.table({"id": [key], "p": [partition], "ts": [self.turn]})
        more = {
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.compact.inline": str(self.table_type == MERGE_ON_READ).lower(),
        }
        self.apache.write(self.path, rows, {**FRAME, **more})

    def files_of(self, instant):
        return [f for f in self.path.rglob("*") if instant in f.name and f.is_file()]

    def theirs(self):
        return sorted(self.apache.read(self.path)["id"].to_pylist())

    def ours(self):
        return sorted(HudiTable.open(str(self.path)).read(["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("table_type", [COPY_ON_WRITE, MERGE_ON_READ])
def test_rows_of_an_overwrite_that_apache_hudi_archived_too_early_stay_away(apache, tmp_path, table_type):
    table = Shown(tmp_path / "t", apache, table_type)
    table.write("insert", "old", "a")
    table.write("insert_overwrite", "new", "a")
    overwrite = max(i.name.partition(".")[0] for i in (table.path / ".hoodie").glob("*.replacecommit"))
    late = tmp_path / "late"
    late.mkdir()
    hidden = {late / f.name: f for f in table.files_of(overwrite)}
    for there, here in hidden.items():
        here.rename(there)
    while not any((table.path / ".hoodie").glob("*.clean")):
        table.write("upsert", "other", "b")
        assert table.turn < 10
    for there, here in hidden.items():  # now it is shown
        there.rename(here)
        os.utime(here)
    time.sleep(0.01)
    while list((table.path / ".hoodie").glob("*.replacecommit")):
        table.write("upsert", "other", "b")
        assert table.turn < 20
    assert table.theirs() == ["new", "old", "other"], "what Apache Hudi answers"
    assert table.ours() == ["new", "other"]
    # A cleaning of ours takes the files; then both see the same.
    assert HudiTable.open(str(table.path)).clean(options={"hoodie.cleaner.commits.retained": "1"}).deleted
    assert table.ours() == ["new", "other"]
    assert table.theirs() == ["new", "other"]
    table.write("upsert", "other", "b")  # Apache Hudi's archival goes on beside the mark
    assert table.theirs() == table.ours() == ["new", "other"]
