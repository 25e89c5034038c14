"""What we write, Apache Hudi 0.15.0 and 1.0.2 and hudi-rs read, row for row.

For each shape of table (key generator, partition paths, types) one table goes through all operations; its
state after each is read by every engine, newest state and time travel.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop import ours
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES, Model, Rows

# Operation after operation; each row of a state's table was written by one of those before it.
STEPS = (
    "bulk_insert",
    "insert",
    "upsert",
    "delete",
    "insert_overwrite",
    "delete_partition",
    "upsert again",
    "insert_overwrite_table",
)


@dataclass(frozen=True)
class State:
    """A copy of a table, what it must hold, and the instant of its last commit."""

    path: Path
    want: pa.Table
    instant: str


def _states(shape, folder):
    rows, model = Rows(shape, null_elements=True), Model(shape)
    path = folder / "table"
    ours.create(path, shape)
    out = {}
    for step in STEPS:
        operation, partitions = step.partition(" ")[0], []
        current = list(model.rows.values())
        match operation:
            case "upsert":
                given = rows.changed(current, min(7, len(current))) + rows.new(5)
            case "delete":
                given = rows.some(current, 6)
            case "insert_overwrite":
                given = [r | {"city": current[0]["city"]} for r in rows.new(4)]
            case "delete_partition":
                given, partitions = [], [shape.path_of(current[-1])]
            case _:
                given = rows.new(18)
        if operation == "delete_partition" and not shape.partitions:
            continue
        result = ours.write(
            path, operation, pa.Table.from_pylist(given, schema=shape.schema), partitions=partitions
        )
        model.apply(operation, given, partitions)
        copy = folder / step.replace(" ", "_")
        shutil.copytree(path, copy)
        out[step] = State(copy, model.table(), result.instant)
    return out


@pytest.fixture(scope="session")
def states(tmp_path_factory):
    made = {}

    def get(name):
        if name not in made:
            made[name] = _states(SHAPES[name], tmp_path_factory.mktemp(name))
        return made[name]

    return get


CASES = [
    (shape, step)
    for shape in SHAPES
    for step in STEPS
    if not (step == "delete_partition" and not SHAPES[shape].partitions)
]


@pytest.mark.parametrize(("shape", "step"), CASES)
def test_we_read_what_we_wrote(states, shape, step):
    state = states(shape)[step]
    assert_same_rows(without_meta(ours.read(state.path)), state.want, ["uuid"], ordered_columns=False)


@pytest.mark.parametrize(("shape", "step"), CASES)
def test_others_read_what_we_wrote(states, reader, shape, step):
    state = states(shape)[step]
    got = reader.read(state.path)
    assert_same_rows(without_meta(got), state.want, ["uuid"], ordered_columns=False)
    # Meta columns too, and where the other engine has Apache Hudi 0.15's order of columns, that.
    assert_same_rows(got, ours.read(state.path), ["uuid"], ordered_columns=reader.keeps_order)


@pytest.mark.parametrize("shape", ["simple", "nonpartitioned"])
def test_others_travel_in_time_over_our_commits(states, reader, shape):
    last = list(states(shape).values())[-1].path
    for step in ("bulk_insert", "delete", "insert_overwrite"):
        state = states(shape)[step]
        got = without_meta(reader.read(last, as_of=state.instant))
        assert_same_rows(got, state.want, ["uuid"], ordered_columns=False)


@pytest.mark.parametrize("shape", ["simple", "url_encoded"])
def test_apache_hudi_sees_our_timeline(states, apache, shape):
    path = list(states(shape).values())[-1].path
    want = {"insert_overwrite": "replacecommit", "delete_partition": "replacecommit",
            "insert_overwrite_table": "replacecommit"}  # fmt: skip
    assert apache.timeline(path) == [
        (state.instant, want.get(step, "commit"), "COMPLETED") for step, state in states(shape).items()
    ]


@pytest.mark.parametrize("shape", ["simple", "complex"])
def test_incremental_queries_agree_with_apache_hudi(states, apache, shape):
    path = list(states(shape).values())[-1].path
    begin, end = states(shape)["bulk_insert"].instant, states(shape)["delete"].instant
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": begin,
        "hoodie.datasource.read.end.instanttime": end,
    }
    got = HudiTable.open(str(path)).read_incremental(begin, end).to_arrow()
    assert_same_rows(got, apache.read(path, **options), ["uuid"])
