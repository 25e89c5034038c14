"""This project on Spark beside Apache Hudi: what either writes, the other reads, and goes on writing."""

import functools

import pyarrow as pa
import pytest

from interop import history, ours
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES, Model, Rows

SHAPE_NAMES = ("all_types", "url_encoded", "nonpartitioned")
OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"


def write_to(shape, process):
    def write(path, operation, rows, partitions):
        options = {**shape.write_options(), OPERATION: operation}
        if partitions:
            options[PARTITIONS] = ",".join(partitions)
        process.write(path, rows, options)

    return write


@pytest.fixture(scope="session")
def states(pool, tmp_path_factory):
    """Of a shape, written by our Spark when it is first asked for."""

    @functools.cache
    def of(name):
        write = write_to(SHAPES[name], pool.ours())
        return history.states(SHAPES[name], tmp_path_factory.mktemp(f"spark-{name}"), write)

    return of


# Each shape takes half a minute of writes: .ci/run does the one with all types, of which each reader reads two states.
IN_CI = {("all_types", "upsert again"), ("all_types", "delete_partition")}
CASES = [
    pytest.param(name, step, marks=[pytest.mark.in_ci] if (name, step) in IN_CI else [])
    for name in SHAPE_NAMES
    for step in history.possible(SHAPES[name])
]


@pytest.mark.parametrize(("shape", "step"), CASES)
def test_others_read_what_we_wrote_on_spark(states, reader, shape, step):
    state = states(shape)[step]
    got = reader.read(state.path)
    assert_same_rows(without_meta(got), state.want, ["uuid"], ordered_columns=False)
    assert_same_rows(got, ours.read(state.path), ["uuid"], ordered_columns=reader.keeps_order)


@pytest.mark.slow
def test_spark_reads_its_own_tables_as_apache_hudi_does(states, pool):
    last = {name: list(states(name).values())[-1].path for name in SHAPE_NAMES}
    instants = {name: [s.instant for s in states(name).values()] for name in SHAPE_NAMES}
    questions = [
        (name, options)
        for name in SHAPE_NAMES
        for options in (
            {},
            {"as.of.instant": instants[name][2]},
            {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": instants[name][0],
                "hoodie.datasource.read.end.instanttime": instants[name][3],
            },
        )
    ]
    mine = [pool.ours().read(last[name], **options) for name, options in questions]
    for (name, options), got in zip(questions, mine, strict=True):
        want = pool.get("0.15.0").read(last[name], **options)
        try:
            assert_same_rows(got, want, ["uuid"])
        except AssertionError as e:
            e.add_note(f"{name}, {options}")
            raise


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.in_ci] if n == "url_encoded" else []) for n in SHAPE_NAMES]
)
def test_spark_reads_and_goes_on_writing_what_apache_hudi_wrote(pool, tmp_path, name):
    """Three turns: Apache Hudi makes a table, our Spark reads and changes it, Apache Hudi reads and changes it."""
    apache, spark = pool.get("0.15.0"), pool.ours()
    shape, path = SHAPES[name], tmp_path / "t"
    rows, model = Rows(shape), Model(shape)
    write = write_to(shape, apache)
    for operation, given in (("insert", rows.new(20)), ("upsert", rows.new(5))):
        write(path, operation, pa.Table.from_pylist(given, schema=shape.schema), [])
        model.apply(operation, given)
    assert_same_rows(spark.read(path), apache.read(path), ["uuid"])
    _change(write_to(shape, spark), path, rows, model)
    for one in (spark, apache):
        assert_same_rows(without_meta(one.read(path)), model.table(), ["uuid"], ordered_columns=False)
    _change(write, path, rows, model)
    assert_same_rows(without_meta(ours.read(path)), model.table(), ["uuid"], ordered_columns=False)


def _change(write, path, rows, model):
    """An upsert and a delete."""
    current = list(model.rows.values())
    changed, gone = rows.changed(current, 8) + rows.new(5), rows.some(current, 4)
    for operation, given in (("upsert", changed), ("delete", gone)):
        write(path, operation, pa.Table.from_pylist(given, schema=model.shape.schema), [])
        model.apply(operation, given)
