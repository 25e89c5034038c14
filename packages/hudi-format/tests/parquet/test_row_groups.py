"""Row groups by our own walk over the footer: what Arrow says of sound ones, and no crash on damaged ones."""

from __future__ import annotations

import datetime as dt
import io
import os
import random
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_tables import ROOT

from hudi_format.errors import HudiError
from hudi_format.parquet import _chunks
from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.row_groups import RowGroup, repeating, row_groups

# Of the bytes of a footer, how many until the next is changed.
STEP = 1 if os.environ.get("HUDI_SOAK") else 30
DAY, TIME = dt.date(2020, 5, 17), dt.datetime(2020, 5, 17, 1, 2, 3, 456789)
KINDS = {
    "i8": (pa.int8(), [-5, 100]),
    "i32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "f": (pa.float32(), [-1.5, 2.25]),
    "d": (pa.float64(), [-1e300, 1e-300]),
    "b": (pa.bool_(), [False, True]),
    "s": (pa.string(), ["", "Zürich"]),
    "x": (pa.binary(), [b"\x01", b"\xff\x00"]),
    "day": (pa.date32(), [DAY, DAY + dt.timedelta(1)]),
    "ms": (pa.timestamp("ms"), [TIME.replace(microsecond=0), TIME.replace(microsecond=5000)]),
    "us": (pa.timestamp("us", "UTC"), [TIME.replace(tzinfo=dt.UTC)] * 2),
    "time": (pa.time64("us"), [dt.time(1, 2, 3, 4), dt.time(23, 59)]),
    "small": (pa.decimal128(9, 2), [Decimal("-1.25"), Decimal("1234567.89")]),
    "big": (pa.decimal128(38, 10), [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0E-10")]),
}


def _file(**more: object) -> tuple[pa.Table, bytes]:
    table = pa.table({n: pa.array([*v, None, v[0]], t) for n, (t, v) in KINDS.items()})
    table = table.append_column("l", pa.array([[1], None, [2, 3], []])).append_column(
        "none", pa.nulls(4, pa.int64())
    )
    table = table.append_column("nest", pa.array([{"a": {"s": "q"}}] * 4))
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2, store_decimal_as_integer=True, **more)
    return table, sink.getvalue()


def _footer(data: bytes) -> memoryview:
    return footer_bytes(pa.BufferReader(data))


@pytest.mark.req("QR-10")
def test_bounds_are_those_of_the_values() -> None:
    _, data = _file(compression={"s": "gzip", "i8": "zstd", "d": "snappy"})
    groups = row_groups(_footer(data))
    assert [g.num_rows for g in groups] == [2, 2]
    for name, (kind, (low, high)) in KINDS.items():
        first, second = (g.columns[name] for g in groups)
        bounds = first.bounds(kind)
        assert bounds is not None, name
        assert [b.type for b in bounds] == [kind, kind]
        assert [b.as_py() for b in bounds] == [low, high], name
        assert (first.nulls, second.nulls, first.num_values) == (0, 1, 2)
        assert [b.as_py() for b in second.bounds(kind) or ()] == [low, low], name
    first = groups[0].columns
    assert (first["s"].codec, first["i8"].codec, first["d"].codec) == ("GZIP", "ZSTD", "SNAPPY")
    assert first["none"].nulls == 2
    assert first["none"].bounds(pa.int64()) is None
    assert {"l.list.element", "nest.a.s"} <= set(first)
    # A bound is not taken for one of another type.
    assert first["s"].bounds(pa.int64()) is None
    assert first["d"].bounds(pa.decimal128(9, 2)) is None
    assert first["i64"].bounds(pa.uint64()) is None
    assert first["ms"].bounds(pa.timestamp("s")) is None


def test_nan_is_no_bound_and_only_wanted_columns_are_given() -> None:
    _, data = _file(write_statistics=["s"])
    (group, _) = row_groups(_footer(data), {"i64", "nest.a.s", "nowhere"})
    assert set(group.columns) == {"i64", "nest.a.s"}
    assert (group.columns["i64"].low, group.columns["i64"].nulls) == (None, None)


def _base_files(version: str) -> Iterator[tuple[str, bytes]]:
    for archive in sorted((ROOT / version).glob("*.zip")):
        with zipfile.ZipFile(archive) as z:
            yield from ((n, z.read(n)) for n in z.namelist() if n.endswith(".parquet"))


@pytest.mark.parametrize("version", ["v5", "v6", "v8", "v9"])
def test_arrow_says_the_same_of_every_golden_base_file(version: str) -> None:
    compared = 0
    for path, data in _base_files(version):
        metadata = pq.read_metadata(pa.BufferReader(data))
        for group, ours in enumerate(row_groups(_footer(data))):
            theirs = metadata.row_group(group)
            for n in range(theirs.num_columns):
                chunk = theirs.column(n)
                mine = ours.columns[chunk.path_in_schema]
                assert (mine.codec, mine.num_values, mine.unpacked, mine.packed, mine.dictionary) == (
                    chunk.compression, chunk.num_values, chunk.total_uncompressed_size,
                    chunk.total_compressed_size, chunk.has_dictionary_page,
                )  # fmt: skip
                said = chunk.statistics
                if said is None:
                    assert (mine.low, mine.high, mine.nulls) == (None, None, None)
                    continue
                assert mine.nulls == (said.null_count if said.has_null_count else None)
                # What Arrow decodes of INT96 has no order.
                if said.has_min_max and chunk.physical_type != "INT96":
                    raw = [v.encode() if isinstance(v, str) else v for v in (said.min_raw, said.max_raw)]
                    assert [mine.low, mine.high] == raw, (path, chunk.path_in_schema)
                    compared += 1
    assert compared > 50


def test_a_chunk_holds_one_value_only_where_nulls_and_bounds_say_so() -> None:
    columns = {
        "one": pa.array([7, 7]), "two": pa.array([7, 8]), "null": pa.nulls(2, pa.int64()), "some": pa.array([7, None]),
        "text": pa.array(["a", "a"]),
    }  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    (group,) = row_groups(_footer(sink.getvalue()))

    def holds(name: str, value: object) -> bool:
        return group.columns[name].holds_only(pa.scalar(value, columns[name].type), group.num_rows)

    assert holds("one", 7)
    assert holds("null", None)
    assert holds("text", "a")
    for name, value in [
        ("one", 8),
        ("one", None),
        ("two", 7),
        ("null", 7),
        ("some", 7),
        ("some", None),
        ("text", "b"),
    ]:
        assert not holds(name, value), (name, value)
    assert not replace(group.columns["one"], nulls=None).holds_only(pa.scalar(7), 2)


def test_text_in_long_runs_is_worth_a_dictionary() -> None:
    n = 40_000
    rows = pa.table(
        {
            "one": ["x" * 50] * n,
            "two": ["a"] * (n // 2) + [None] * (n // 2),
            "turns": ["a", "b", "c"] * (n // 3) + ["a"] * (n % 3),
            "long": ["x" * 1800] * n,
            "plain": ["x"] * n,
            "no.name": ["x"] * n,
        }
    )
    out = io.BytesIO()
    pq.write_table(
        rows, out, row_group_size=n // 2, use_dictionary=[c for c in rows.column_names if c != "plain"]
    )
    groups = row_groups(_footer(out.getvalue()))
    names = [*rows.column_names, "nowhere"]
    assert repeating(groups, names, 1 << 17) == ["one", "two"]
    assert repeating(groups[:1], ["two", "one"], 1 << 17) == ["two", "one"]
    assert repeating([], names, 1 << 17) == []
    # What is written out must fit into an array of 32-bit offsets.
    group = RowGroup(1 << 40, {"one": replace(groups[0].columns["one"], num_values=1 << 40)})
    assert repeating([group], ["one"], 1 << 20) == ["one"]
    assert repeating([group], ["one"], 1 << 30) == []


@pytest.mark.req("NEW-37")
def test_a_damaged_footer_is_an_error_or_says_less() -> None:
    """Arrow ends the process on some of these where it is asked for a column chunk."""
    _, data = _file()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    good = refused = 0
    for at in range(start, len(data) - 8, STEP):
        for value in (0x00, 0x15, 0x24, 0xFF, data[at] ^ 0x10):
            damaged = data[:at] + bytes([value]) + data[at + 1 :]
            try:
                groups = row_groups(_footer(damaged))
            except HudiError:
                refused += 1
                continue
            good += 1
            for group in groups:
                for chunk in group.columns.values():
                    chunk.bounds(pa.decimal128(9, 2)), chunk.bounds(pa.string()), chunk.bounds(pa.date32())
    assert good > 100
    assert refused > 100


def test_any_bytes_are_walked_over_without_going_past_them() -> None:
    _, data = _file()
    footer = bytes(_footer(data))
    whole, ordered = _chunks.row_groups(footer)
    assert (len(whole), len(ordered)) == (2, len(whole[0][1]))
    for cut in range(len(footer)):
        with pytest.raises(ValueError, match="cut off"):
            _chunks.row_groups(footer[:cut])
    dice = random.Random(5)
    for _ in range(3000):
        changed = bytearray(footer)
        for _ in range(dice.randint(1, 4)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        with suppress(ValueError):
            _chunks.row_groups(bytes(changed))
