"""Filters and selections, made at random, give the rows of the whole answer that pass, as SQL's three values say."""

from __future__ import annotations

import datetime as dt
import decimal
import operator
import random
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_timeline import HudiTable

pytestmark = pytest.mark.req("QR-01", "QR-02", "QR-08", "IN-01")

# Every type of column, kind of log, and way in which a column gets its values.
TABLES = [
    *golden(
        "v6", "all_types_cow", "all_types_mor", "bootstrap_metadata_only", "cow_timestamp_keygen", "custom_keygen",
        "drop_partition_columns", "cow_complex_keys_hive_style_urlencoded", "mor_custom_keygen", "mor_hfile_logs",
        "mor_parquet_logs", "mor_timestamp_keygen", "orc_cow", "payload_EventTimeAvroPayload", "schema_history_mor",
        "schema_on_read", "single_commit_large_row_groups", "virtual_keys",
    ),
    *golden(
        "v9", "all_types_mor", "cow_partitioned", "mdt_all_indexes", "mor_partial_updates",
        "soft_and_flagged_deletes",
    ),
]  # fmt: skip
COMPARE = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Row = dict[str, Any]
Filter = tuple[str, Callable[[Row], bool | None]]


class Filters:
    """Random filters as text, and what each says of a row."""

    def __init__(self, seed: str, table: pa.Table) -> None:
        self.random = random.Random(seed)
        self.rows: list[Row] = table.to_pylist()
        self.columns = list(_columns(table.schema))

    def any(self, depth: int) -> Filter:
        kind = self.random.random()
        if not depth or kind < 0.4:
            return self.leaf()
        left, of_left = self.any(depth - 1)
        if kind < 0.55:
            return f"not ({left})", lambda row: _not(of_left(row))
        right, of_right = self.any(depth - 1)
        if kind < 0.78:
            return f"({left}) and {right}", lambda row: _both(of_left(row), of_right(row))
        return f"({left} or ({right}))", lambda row: _not(_both(_not(of_left(row)), _not(of_right(row))))

    def leaf(self) -> Filter:
        chosen = self.random.choice
        path, kind = chosen(self.columns)
        name = ".".join(f"`{n}`" for n in path)
        values = [v for v in (_value(row, path) for row in self.rows) if v is not None and v == v]
        form = self.random.random()
        negated = chosen((False, True))
        no = "not " if negated else ""
        if form < 0.15 or not values or _text(values[0], kind) is None:
            return f"{name} is {no}null", lambda row: (_value(row, path) is None) != negated
        near = [_near(chosen(values), self.random) for _ in range(3)]
        texts = [_text(v, kind) for v in near]
        if form < 0.35:
            return f"{name} {no}in ({', '.join(map(str, texts))})", _of(
                path, lambda v: (v in near) != negated
            )
        if form < 0.5:
            low, high = near[:2]
            within = f"{name} {no}between {texts[0]} and {texts[1]}"
            return within, _of(path, lambda v: (low <= v <= high) != negated)
        sign = chosen(list(COMPARE))
        return f"{name} {sign} {texts[0]}", _of(path, lambda v: COMPARE[sign](v, near[0]))


def _of(path: tuple[str, ...], says: Callable[[Any], bool]) -> Callable[[Row], bool | None]:
    return lambda row: None if _value(row, path) is None else says(_value(row, path))


def _columns(schema: Any, above: tuple[str, ...] = ()) -> Any:
    for field in schema:
        yield (*above, field.name), field.type
        if pa.types.is_struct(field.type):
            yield from _columns(list(field.type), (*above, field.name))


def _value(row: Row | None, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


def _near(value: Any, chance: random.Random) -> Any:
    """The value, or one beside it."""
    step = chance.choice((0, 0, 1, -1))
    if isinstance(value, bool):
        return value != bool(step)
    if isinstance(value, (int, float, decimal.Decimal)):
        return value + step
    if isinstance(value, str):
        return (value, value + "a", value[:-1])[step]
    unit = dt.timedelta(microseconds=1) if isinstance(value, dt.datetime) else dt.timedelta(days=1)
    return value + step * unit if isinstance(value, dt.date) else value


def _text(value: Any, kind: pa.DataType) -> str | None:
    """A literal; None where filters have none of the type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, (int, float)):
        return None if pa.types.is_time(kind) else repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"'{value:%Y-%m-%d %H:%M:%S.%f}'"
    return f"'{value.isoformat()}'" if isinstance(value, dt.date) else None


def _not(said: bool | None) -> bool | None:
    return None if said is None else not said


def _both(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


@pytest.mark.sampled(6)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_filter_gives_the_rows_that_pass(table, tmp_path):
    opened = HudiTable.open(str(table.unpack(tmp_path)))
    reads = {
        "snapshot": opened.read,
        "read optimized": lambda **k: opened.read(query="read_optimized", **k),
        "incremental": lambda **k: opened.read_incremental("000", on_missing="full_scan", **k),
    }
    if table.name == "virtual_keys":
        del reads["incremental"]  # has no commit times to go by
    for what, read in reads.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            whole = read().to_arrow()
            filters = Filters(f"{table} {what}", whole)
            for n in range(8):
                text, says = filters.any(n % 4)
                names = filters.random.sample(whole.column_names, n % 3) if n % 2 else whole.column_names
                passing = [i for i, row in enumerate(filters.rows) if says(row)]
                scan = read(filter=text, columns=names)
                found = scan.to_arrow()
                assert (found.num_rows, scan.count()) == (len(passing), len(passing)), (what, text)
                wanted = [{c: filters.rows[i][c] for c in names} for i in passing]
                assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted)) or not names, (
                    what,
                    text,
                )
