"""Base files that a read does not take as they are: text that stays in dictionaries until the logs' values are put in,
and row groups that a filter leaves out by what the footer says of them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.avro.encoder import Encoder
from hudi_format.file_slice.reader import LogRecords, SliceMerge
from hudi_format.log.writer import LogWriter
from hudi_format.merge.overlay import overlay, written_out
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import FileSlice, LogFile
from hudi_format.parquet.footer import open_parquet
from hudi_format.parquet.reader import iter_batches, iter_row_groups
from hudi_format.parquet.row_group_filter import RowGroupFilter
from hudi_format.parquet.row_groups import ColumnChunk, read_row_groups, repeating
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from targets import golden
from targets.base_file import folder, storage
from targets.target import Target

_DATA = pa.schema([("one", pa.string()), ("two", pa.string()), ("n", pa.int64())])
_ROWS = pa.schema([f.with_nullable(True) for f in with_meta(_DATA)])
_TEXT = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "one", "two")
_MERGE = SliceMerge(payload_rule(None), "n")


def _rows(keys: list[str], one: list[str | None], two: list[str | None]) -> pa.Table:
    n = len(keys)
    meta = [["1"] * n, [f"1_0_{i}" for i in range(n)], keys, ["x"] * n, ["f-0"] * n]
    return pa.table([*meta, one, two, list(range(n))], schema=_ROWS)


@cache
def _slice() -> FileSlice:
    """A slice whose logs change some rows, delete one and add one."""
    rows = _rows(["k01", "k07", "k08", "new"], ["longer than before", None, "", "é"], [None, "b", "bb", "b"])
    avro = to_avro(_ROWS, "r")
    with LogWriter(storage(), "", "f-0", "1", instant="2", schema=avro, write_token="0-2-2") as log:
        (batch,) = rows.combine_chunks().to_batches()
        log.append_avro(*Encoder(avro, _ROWS).encode(batch))
        log.append_deletes(pa.array(["k03"]), None, pa.array([9], pa.int64()))
        written: tuple[LogFile, ...] = tuple(w.file for w in log.close())
    return FileSlice("", "f-0", "1", None, written)


def run_repeated(data: bytes) -> None:
    """Rows that are read as dictionaries become the same as those that are not, with other values in them or not."""
    (folder() / "m.parquet").write_bytes(data)
    wanted = repeating(read_row_groups(storage(), "m.parquet", _TEXT), _TEXT, 1000)
    assert set(wanted) <= set(_TEXT)
    groups = list(iter_row_groups(storage(), "m.parquet", schema=_ROWS))
    plain = pa.concat_tables([_ROWS.empty_table(), *groups]).combine_chunks()  # there may be none
    plain.validate(full=True)
    for part in iter_row_groups(storage(), "m.parquet", schema=_ROWS, dictionary_columns=_TEXT):
        same, plain = plain.slice(0, part.num_rows), plain.slice(part.num_rows)
        out = written_out(part)
        out.validate(full=True)
        assert out.equals(same)
        at = np.arange(1, part.num_rows, 3, dtype=np.int64)
        new = pa.array(["", None, "ü" * 40])
        for name in _TEXT:
            for old, other in zip(
                part.column(name).chunks, [same.column(name).combine_chunks()], strict=False
            ):
                if len(old) == part.num_rows and isinstance(other, pa.Array):
                    found = overlay(old, new, at, at % 3)
                    found.validate(full=True)
                    assert found.equals(overlay(other, new, at, at % 3))
        merged = []
        for rows in (part, same):
            with LogRecords(storage(), _slice().log_files, _MERGE, _ROWS) as records:
                merged.append(pa.concat_tables([records.merged(rows), *records.rest()]))
        merged[0].validate(full=True)
        assert merged[0].equals(merged[1])
    assert not plain.num_rows


_STATED = pa.schema([("i", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("d", pa.decimal128(9, 2)),
                     ("t", pa.timestamp("us", "UTC")), ("g", pa.float64())])  # fmt: skip
_FILTERS = [
    pc.field("i") > 5, pc.field("i") == 3, pc.field("i").is_null(), ~(pc.field("i") <= 6), pc.field("i") != 4,
    pc.field("s") >= "m", pc.field("s").isin(["b", "q"]), pc.field("s").is_null() | (pc.field("i") < 2),
    pc.field("f") < 1.5, ~(pc.field("f") <= 2.0), pc.field("f") >= 0.0, pc.field("f") != 2.0,
    pc.field("d") > Decimal("2.50"), pc.field("t") >= pa.scalar(5_000_000, pa.timestamp("us", "UTC")),
    pc.field("g") > 1.05, (pc.field("g") <= 0.3) & pc.field("s").is_valid(),
]  # fmt: skip


def run_statistics(data: bytes) -> None:
    """The first byte chooses a filter: no row that passes is left out but by statistics that are not the rows'."""
    if not data:
        return
    chosen = _FILTERS[data[0] % len(_FILTERS)]
    (folder() / "s.parquet").write_bytes(data[1:])
    groups = list(iter_row_groups(storage(), "s.parquet", schema=_STATED))
    wanted = pa.concat_tables([_STATED.empty_table(), *groups]).filter(chosen)
    kept = list(iter_batches(storage(), "s.parquet", schema=_STATED, filter=RowGroupFilter(chosen, _STATED)))
    found = pa.Table.from_batches(kept, _STATED).filter(chosen)
    if found.num_rows < wanted.num_rows:
        own = list(iter_row_groups(storage(), "s.parquet"))
        with open_parquet(storage(), "s.parquet") as file:
            stored = file.schema_arrow
        stated = read_row_groups(storage(), "s.parquet")
        lies = any(
            _contradicts(group.columns[name], rows.column(name), stored.field(name).type)
            for group, rows in zip(stated, own, strict=True)
            for name in rows.column_names
            if name in group.columns
        )
        assert lies, f"{chosen}: {found.num_rows} of {wanted.num_rows} rows"
    else:
        assert found.num_rows == wanted.num_rows


def _contradicts(chunk: ColumnChunk, column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Whether the footer says of a column what its rows are not."""
    if chunk.num_values != len(column) or chunk.nulls not in (None, column.null_count):
        return True
    bounds = chunk.bounds(kind)
    if bounds is None:
        return False
    values = column.drop_null()
    inside = pc.and_(pc.greater_equal(values, bounds[0]), pc.less_equal(values, bounds[1]))
    if pa.types.is_floating(kind):  # bounds say nothing of NaN
        inside = pc.or_(inside, pc.is_nan(values))
    return not pc.all(inside, min_count=0).as_py()


def _repeated_seeds() -> Iterator[bytes]:
    keys = [f"k{n:02d}" for n in range(12)]
    ones: list[list[str | None]] = [["always"] * 12, [None] * 6 + ["é"] * 6, ["", "a", None, "a"] * 3]
    for one in ones:
        rows = _rows(keys, one, ["b"] * 12)
        for more in ({}, {"row_group_size": 5}, {"data_page_version": "2.0"}, {"use_dictionary": False}):
            yield _written(rows, **more)
    # Bytes that are no text, in a word that is used and in one that is not.
    rows = _rows(keys, ["always"] * 12, ["b"] * 12)
    yield _written(rows).replace(b"always", b"alw\xffys")
    yield _written(rows).replace(b"always", b"alway\xc3")


def _written(rows: pa.Table, **more: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **{"compression": "none", "write_page_checksum": False, **more})
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _statistics_seeds() -> Iterator[bytes]:
    nan = float("nan")
    rows = pa.table({
        "i": pa.array([1, 2, 3, 4, 5, 6, 7, None, None], pa.int32()),
        "s": ["a", "b", None, "m", "m", "q", "x", "y", "z"],
        "f": [0.5, nan, 2.0, 2.0, nan, -0.0, 1.0, None, nan],
        "d": pa.array([Decimal(n).scaleb(-1) for n in range(20, 29)], pa.decimal128(7, 2)),
        "t": pa.array([n * 1000 for n in range(9)], pa.timestamp("ms", "UTC")),
        "g": pa.array([0.1, 0.3, 1.1, None, 5.5, 5.5, nan, 1.05, 7.0], pa.float32()),
    })  # fmt: skip
    for n in range(len(_FILTERS)):
        yield bytes([n]) + _written(rows, row_group_size=(3, 2, 9)[n % 3])
    yield from (bytes([0]) + d for _, d in list(golden.named(".parquet", most=6000))[:4])


TARGETS = (
    Target("repeated_text", run_repeated, _repeated_seeds),
    Target("statistics", run_statistics, _statistics_seeds),
)
