"""What we write, Apache Hudi 0.15.0 and 1.0.2 and hudi-rs read, row for row.

For each shape of table (key generator, partition paths, types) one table goes through all operations; its
state after each is read by every engine, newest state and time travel.
"""

from datetime import UTC, datetime

import pandas as pd
import pytest

from hudi_timeline import HudiTable, write_hudi
from interop import history, ours
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES


def write_to(shape):
    def write(path, operation, rows, partitions):
        if not path.exists():
            ours.create(path, shape)
        ours.write(path, operation, rows, partitions=partitions)

    return write


@pytest.fixture(scope="session")
def states(tmp_path_factory):
    made = {}

    def get(name):
        if name not in made:
            made[name] = history.states(SHAPES[name], tmp_path_factory.mktemp(name), write_to(SHAPES[name]))
        return made[name]

    return get


CASES = [(name, step) for name, shape in SHAPES.items() for step in history.possible(shape)]


@pytest.mark.parametrize(("shape", "step"), CASES)
def test_we_read_what_we_wrote(states, shape, step):
    state = states(shape)[step]
    assert_same_rows(without_meta(ours.read(state.path)), state.want, ["uuid"], ordered_columns=False)


@pytest.mark.sampled(12)
@pytest.mark.req("QR-17", "TL-04")
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
    got = HudiTable.open(str(path)).read_incremental(begin, end, meta_columns=True).to_arrow()
    assert_same_rows(got, apache.read(path, **options), ["uuid"])


@pytest.mark.req("QR-17")
def test_times_of_pandas_without_a_zone_are_read_as_utc(tmp_path, reader):
    hours = pd.to_datetime(["2024-01-01 10:00", "2024-07-01 10:00", None])
    frame = pd.DataFrame({"id": ["a", "b", "c"], "at": hours, "several": [[hours[0]], [], None]})
    for _ in range(2):
        result = write_hudi(tmp_path / "t", frame, key="id")
        assert any("taken for UTC" in w for w in result.warnings)
    found = {r["id"]: r for r in without_meta(reader.read(tmp_path / "t")).to_pylist()}
    first = datetime(2024, 1, 1, 10, tzinfo=UTC)
    assert [found[k]["at"] for k in "abc"] == [first, datetime(2024, 7, 1, 10, tzinfo=UTC), None]
    assert [found[k]["several"] for k in "abc"] == [[first], [], None]
