"""One table, two writers: this project and Apache Hudi 0.15.0 in turn, each going on where the other stopped.

After every step both read the table, and a plain model says what it must hold.
"""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop import hudi_rs, ours
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES, Model, Rows

OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"

# Lists that Apache Hudi 0.15.0 wrote by bulk_insert's row writer are null after its own next upsert of that file.
WRITER_BUG = {"hoodie.datasource.write.row.writer.enable": "false"}

# (writer, operation); the first makes the table.
STARTED_BY_US = (
    ("ours", "bulk_insert"),
    ("apache", "upsert"),
    ("apache", "delete"),
    ("ours", "upsert"),
    ("apache", "insert"),
    ("ours", "delete"),
    ("apache", "insert_overwrite"),
    ("ours", "insert"),
    ("apache", "upsert"),
    ("ours", "insert_overwrite"),
    ("apache", "delete_partition"),
    ("ours", "upsert"),
)
STARTED_BY_APACHE = (
    ("apache", "insert"),
    ("ours", "upsert"),
    ("ours", "delete"),
    ("apache", "upsert"),
    ("ours", "delete_partition"),
    ("apache", "delete"),
    ("apache", "bulk_insert"),
    ("ours", "bulk_insert"),
    ("apache", "upsert"),
    ("ours", "insert_overwrite_table"),
    ("apache", "upsert"),
)


class Turns:
    """A table under two writers, and the model of it."""

    def __init__(self, path, shape, apache, options=None):
        self.path, self.shape, self.apache = path, shape, apache
        self.rows, self.model = Rows(shape), Model(shape)
        self.options = options or {}
        self.step = 0

    def take(self, writer, operation):
        given, partitions = self._given(operation)
        table = pa.Table.from_pylist(given, schema=self.shape.schema)
        self.step += 1
        result = None
        if writer == "ours":
            if not self.path.exists():
                ours.create(self.path, self.shape)
            result = ours.write(self.path, operation, table, partitions=partitions, options=self.options)
        else:
            options = {**self.shape.write_options(), **self.options, OPERATION: operation, **WRITER_BUG}
            if partitions:
                options[PARTITIONS] = ",".join(partitions)
            self.apache.write(self.path, table, options)
        self.model.apply(operation, given, partitions)
        return result

    def check(self, what):
        want = self.model.table()
        mine, theirs = ours.read(self.path), self.apache.read(self.path)
        try:
            assert_same_rows(without_meta(theirs), want, ["uuid"], ordered_columns=False)
            assert_same_rows(mine, theirs, ["uuid"])
        except AssertionError as e:
            e.add_note(f"after step {self.step}: {what}")
            raise

    def _given(self, operation):
        current = list(self.model.rows.values())
        match operation:
            case "upsert":
                return self.rows.changed(current, min(8, len(current))) + self.rows.new(6), []
            case "delete":
                return self.rows.some(current, 5), []
            case "insert_overwrite":
                return [r | {"city": current[0]["city"]} for r in self.rows.new(5)], []
            case "delete_partition":
                # The metadata table of Apache Hudi 0.15 wants the partition to be there.
                return [], [self.shape.path_of(current[0])]
            case _:
                return self.rows.new(20), []


def _possible(shape, steps):
    return [s for s in steps if shape.partitions or s[1] != "delete_partition"]


# A test takes half a minute: .ci/run does one that each of both begins.
IN_CI = {("us", "url_encoded"), ("apache", "simple")}
STARTS = {"us": STARTED_BY_US, "apache": STARTED_BY_APACHE}


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        pytest.param(
            steps,
            shape,
            id=f"started-by-{who}-{shape}",
            marks=[pytest.mark.in_ci] if (who, shape) in IN_CI else [],
        )
        for who, steps in STARTS.items()
        for shape in SHAPES
    ],
)
def test_two_writers_in_turn(tmp_path, apache, shape, steps):
    turns = Turns(tmp_path / "t", SHAPES[shape], apache)
    for writer, operation in _possible(turns.shape, steps):
        turns.take(writer, operation)
        turns.check(f"{operation} by {writer}")
    assert_same_rows(
        without_meta(hudi_rs.read(turns.path)), turns.model.table(), ["uuid"], ordered_columns=False
    )


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_the_indexes_of_apache_hudi_find_our_records(tmp_path, apache, index):
    """BLOOM believes the filters and key ranges in our footers: a key missed there would stand twice."""
    turns = Turns(tmp_path / "t", SHAPES["simple"], apache)
    turns.take("ours", "bulk_insert")
    turns.take("ours", "upsert")
    turns.options = {"hoodie.index.type": index, "hoodie.metadata.enable": "false"}
    turns.take("apache", "upsert")
    turns.check(f"upsert by apache, {index}")
    turns.take("apache", "delete")
    turns.check(f"delete by apache, {index}")


@pytest.mark.slow
def test_apache_hudi_cleans_and_archives_over_our_commits(tmp_path, apache):
    turns = Turns(tmp_path / "t", SHAPES["simple"], apache)
    turns.take("ours", "insert")
    for _ in range(4):
        turns.take("ours", "upsert")
    turns.options = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.metadata.enable": "false",
    }
    turns.take("apache", "upsert")
    turns.take("apache", "upsert")
    turns.check("upserts by apache that clean and archive")
    actions = {action for _, action, _ in apache.timeline(turns.path)}
    assert "clean" in actions
    assert len(HudiTable.open(str(turns.path)).timeline.completed_writes()) <= 4
    turns.options = {}
    turns.take("ours", "upsert")
    turns.check("upsert by ours over an archived timeline")


@pytest.mark.slow
def test_apache_hudi_rolls_back_our_commit(tmp_path, apache):
    turns = Turns(tmp_path / "t", SHAPES["simple"], apache)
    turns.take("ours", "insert")
    before = turns.model.table()
    result = turns.take("ours", "upsert")
    apache.sql(f"create table rolled_back using hudi location '{turns.path}'")
    apache.sql(f"call rollback_to_instant(table => 'rolled_back', instant_time => '{result.instant}')")
    apache.sql("drop table rolled_back")
    assert_same_rows(without_meta(apache.read(turns.path)), before, ["uuid"], ordered_columns=False)
    assert_same_rows(ours.read(turns.path), apache.read(turns.path), ["uuid"])
    turns.model = Model(turns.shape)
    turns.model.apply("insert", before.to_pylist())
    turns.take("ours", "upsert")
    turns.check("upsert by ours after a rollback by Apache Hudi")
