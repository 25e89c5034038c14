"""Filters of pyarrow datasets of tables: the rows that they find in memory, whatever statistics say."""

import datetime
import itertools
import pickle
from decimal import Decimal as D

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_timeline import read_hudi, write_hudi

NAN, INF = float("nan"), float("inf")
FLOATS = [
    [NAN, 1.0], [NAN], [-0.0], [0.0], [0.0, -0.0, None], [1.0], [None, NAN], [INF, NAN], [-INF], [None], [0.1]
]  # fmt: skip
DAY, SOON = datetime.date(1969, 12, 31), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, datetime.UTC)
TYPED = {
    "double": (pa.float64(), FLOATS, [NAN, 0.0, -0.0, 1.0, 0.1]),
    "float": (pa.float32(), FLOATS, [NAN, 0.0, -0.0, 1.0, 0.1]),
    "decimal": (
        pa.decimal128(20, 2),
        [[D("1.00"), D("2.00")], [D("-0.50")], [None]],
        [D("1.00"), D("-0.50")],
    ),
    "date": (
        pa.date32(),
        [[DAY, None], [datetime.date(9999, 12, 31)], [None]],
        [DAY, datetime.date(2000, 1, 1)],
    ),
    "timestamp": (pa.timestamp("ms", "UTC"), [[SOON], [None]], [SOON, SOON.replace(year=2000)]),
    "text": (
        pa.string(),
        [["a", "b"], [""], ["\ue000"], ["\U0001f600", None]],
        ["a", "", "\ue000", "\U0001f600"],
    ),
    "bytes": (
        pa.binary(),
        [[b"a", b"b"], [b""], [b"\xff\0"], [b"\x7f", None]],
        [b"a", b"", b"\xff\0", b"\x80"],
    ),
    "boolean": (pa.bool_(), [[True, False], [True], [None, False]], [True, False]),
    "long": (pa.int64(), [[1, 2], [-(2**63)], [2**53 + 1], [None]], [1, -(2**63), 2**53, 2**53 + 1]),
}


def conditions_on(x, kind, values):
    """Conditions of each kind, and what is not so."""
    typed = [pc.scalar(pa.scalar(v, kind)) for v in values]
    for one, other in itertools.product(typed, typed):
        yield from (
            x == one,
            x != one,
            x < one,
            x <= one,
            x > one,
            x >= one,
            one < x,
            x.is_null() | (x > one),
        )
        yield from ((x >= one) & (x <= other), (x < one) | (x > other), (x != one) & x.is_valid())
    for some in ([v] for v in values), itertools.combinations(values, 2):
        for them in some:
            yield from (x.isin(pa.array(them, kind)), x.isin(pa.array([*them, None], kind)))
            if pa.types.is_floating(kind):
                yield x.isin(list(them))  # as doubles
    yield from (x.is_null(), x.is_valid(), x.is_null(nan_is_null=True))
    if pa.types.is_floating(kind):
        yield from (pc.is_nan(x), pc.is_inf(x), pc.is_finite(x))


# Floats are filtered as doubles are, at the same cost: the long form has them.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "float" else n for n in TYPED]
)
def test_a_datasets_filter_finds_the_rows_that_it_finds_in_memory(tmp_path, name):
    kind, groups, values = TYPED[name]
    parts = {"id": [], "p": [], "x": [], "s": []}
    for number, group in enumerate(groups):
        parts["id"] += range(10 * number, 10 * number + len(group))
        parts["p"] += [f"{number} é%:"] * len(group)
        parts["x"] += group
    inner = pa.array(parts["x"], kind)
    rows = pa.table({**parts, "x": inner, "s": pa.StructArray.from_arrays([inner], ["x"])})
    write_hudi(tmp_path, rows, key="id", partition_by="p")
    whole = read_hudi(tmp_path).to_arrow()
    dataset = read_hudi(tmp_path).to_pyarrow_dataset()
    nested = list(conditions_on(pc.field("s", "x"), kind, values))[:: 9 if name == "double" else 99]
    for condition in [*conditions_on(pc.field("x"), kind, values), *nested]:
        for filter in condition, ~condition:
            want = sorted(whole.filter(filter)["id"].to_pylist())
            assert sorted(dataset.to_table(["id"], filter=filter)["id"].to_pylist()) == want, filter
    sent = pickle.loads(pickle.dumps(dataset))
    assert sent.count_rows(filter=filter) == len(want)
    odd = pc.field("x") != pc.scalar(pa.scalar(values[-1], kind))
    assert sent.to_table(filter=odd).num_rows == whole.filter(odd).num_rows


def test_a_dataset_leaves_row_groups_out_by_other_columns_than_floats(tmp_path, monkeypatch):
    rows = pa.table({"id": range(4), "p": list("aabb"), "x": [1.0, NAN, 2.0, 3.0]})
    write_hudi(tmp_path, rows, key="id", partition_by="p")
    dataset = read_hudi(tmp_path).to_pyarrow_dataset()
    opened = []
    monkeypatch.setattr(dataset.scan.storage, "open_input", opened.append)
    assert dataset.to_table(filter=(pc.field("id") > 9) & (pc.field("x") != 1.0)).num_rows == 0
    assert not opened
