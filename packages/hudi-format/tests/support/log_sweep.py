"""Truncations and one-byte changes of log files, and what became of each.

Outcomes: `error` (typed, with the file), `equal` (the same rows), `one record` (as many rows, one of them other),
`schema` (the damage is in the text of a SCHEMA header: other names or types for the block's rows), `parquet` (several
values of a Parquet content, whose pages Apache Hudi writes without checksums), `other` (anything else, which must
not be).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.log.block import BlockType, HeaderKey, LogBlock
from hudi_format.log.corruption import CommittedRange, check_file
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.reader import LogFileReader
from hudi_format.log.scanner import BlockScope, order_blocks
from hudi_format.model import VisibleInstants

Rows = list[tuple[Any, ...]]


def committed(data: bytes) -> list[CommittedRange]:
    """What the commits of an intact file's instants say: a range for each run of blocks of one instant."""
    out: list[CommittedRange] = []
    for b in LogFileReader(data).blocks:
        if out and out[-1].instant == b.instant:
            out[-1] = CommittedRange(b.instant, out[-1].start, b.end)
        else:
            out.append(CommittedRange(b.instant, b.offset, b.end))
    return out


# Rows of blocks by all that they are made from: other blocks of a file with one changed byte are as they were.
Known = dict[tuple[Any, ...], Rows]


def rows_of(
    data: bytes, said: list[CommittedRange], *, cdc: bool, part: bool, known: Known | None = None
) -> Rows:
    """Everything that a reader takes from the file: deletes and records, in the order of their blocks.

    `part`: as a read of some instants takes it, so that what a log compaction replaced need not be in the file.
    """
    visible = VisibleInstants(frozenset(s.instant for s in said))
    with LogFileReader(data, file="f") as log:
        check_file(log.blocks, file="f", size=log.size, visible=visible, committed=said)
        if cdc:
            blocks: tuple[LogBlock, ...] = log.blocks
            if any(b.type is not BlockType.CDC_DATA for b in blocks):
                raise CorruptFileError("another block among those of changes", file="f", offset=0)
        else:
            asked = frozenset(s.instant for s in said) if part else None
            blocks = order_blocks(log.blocks, BlockScope(visible=visible, instants=asked)).blocks
            if any(b.type is BlockType.CDC_DATA for b in blocks):
                raise AssertionError("a CDC block among data blocks")
        return [row for b in blocks for row in _rows_once(b, log.content(b), known)]


def _rows_once(b: LogBlock, content: pa.Buffer, known: Known | None) -> Rows:
    if known is None:
        return list(_block_rows(b, content))
    key = (b.type, b.content_offset, tuple(b.header.items()), content.to_pybytes())
    rows = known.get(key)
    if rows is None:
        rows = list(_block_rows(b, content))
        if len(known) < 100:  # the intact ones come first
            known[key] = rows
    return rows


def _block_rows(b: LogBlock, content: pa.Buffer) -> Iterator[tuple[Any, ...]]:
    if b.type is BlockType.DELETE:
        deletes = read_deletes(b, content)
        ordering = {
            row: (part.type, value)
            for part in deletes.ordering
            for row, value in zip(part.rows.tolist(), _plain(part.values), strict=True)
        }
        pairs = zip(deletes.keys.to_pylist(), deletes.partitions.to_pylist(), strict=True)
        yield from (("delete", key, part, ordering.get(i)) for i, (key, part) in enumerate(pairs))
    elif b.type is BlockType.HFILE_DATA:
        # Its values are unions that no column holds; the bytes say as much.
        file = HFileReader.from_buffer(memoryview(content).cast("B"), path=b.file, offset=b.content_offset)
        table = file.scan()
        yield from zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    else:
        for batch in BlockDecoder().batches(b, content):
            names = tuple(batch.schema.names)
            columns = [_as_numbers(c).to_pylist() for c in batch.columns]
            yield from (("row", names, repr(row)) for row in zip(*columns, strict=True))


def _plain(values: Any) -> list[Any]:
    """Ordering values; where there are several fields, each is a list of them."""
    return values if isinstance(values, list) else list(pa.array(values).to_pylist())


def _as_numbers(column: pa.Array) -> pa.Array:
    to = _numbers(column.type)
    # Arrow refuses to cast a struct whose required fields have nulls below its own, to the same type even.
    return column if to == column.type else column.cast(to)


def _numbers(kind: pa.DataType) -> pa.DataType:
    """The type with numbers for times: a damaged one may be of a year that Python has not."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_numbers(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_numbers(kind.key_type)),
                       kind.item_field.with_type(_numbers(kind.item_type)))  # fmt: skip
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers(kind.value_type)))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_temporal(kind) and kind.bit_width == 64:
        return pa.int64()
    return kind


def outcome(
    data: bytes,
    intact: Rows,
    said: list[CommittedRange],
    *,
    cdc: bool,
    part: bool = False,
    within: str = "",
    known: Known | None = None,
) -> str:
    """`within`: `schema` or `parquet` where that is what was damaged."""
    try:
        rows = rows_of(data, said, cdc=cdc, part=part, known=known)
    except (CorruptFileError, UnsupportedError) as e:
        return "error" if e.file == "f" else "other"
    except HudiError:
        return "schema" if within == "schema" else "other"
    if rows == intact:
        return "equal"
    if within == "schema":
        return "schema"
    if len(rows) == len(intact):
        if sum(a != b for a, b in zip(rows, intact, strict=True)) == 1:
            return "one record"
        return within or "other"
    return "other"


def boundaries(data: bytes) -> list[int]:
    """Offsets where one part of a block ends and the next begins."""
    out = [0]
    for b in LogFileReader(data).blocks:
        ends = (b.offset, b.offset + 6, b.offset + 14, b.offset + 22, b.content_offset - 8, b.content_offset)
        out += [*ends, b.content_offset + b.content_length, b.end - 8, b.end]
    return out


def cuts(data: bytes, random_cuts: int, seed: int) -> list[int]:
    """Every length of a file up to 4 KB; else 16 bytes around each boundary, and some at random."""
    if len(data) <= 4096:
        return list(range(len(data)))
    around = {c for at in boundaries(data) for c in range(at - 16, at + 17)}
    draw = random.Random(seed)
    around |= {draw.randrange(len(data)) for _ in range(random_cuts)}
    return sorted(c for c in around if 0 <= c < len(data))


def sweep(
    data: bytes, *, cdc: bool, random_cuts: int, changes: int, seed: int
) -> tuple[Counter[str], Counter[str]]:
    """Outcomes of cutting a file, and of changing one byte of it."""
    said = committed(data)
    part = any(b.compacted_instants for b in LogFileReader(data).blocks)
    known: Known = {}
    intact = rows_of(data, said, cdc=cdc, part=part, known=known)
    cut = Counter(
        outcome(data[:c], intact, said, cdc=cdc, part=part, known=known)
        for c in cuts(data, random_cuts, seed)
    )
    draw = random.Random(seed)
    spans = _spans(data)
    changed: Counter[str] = Counter()
    for _ in range(changes):
        at = draw.randrange(len(data))
        byte = data[at] ^ draw.randrange(1, 256)
        bad = data[:at] + bytes([byte]) + data[at + 1 :]
        within = next((what for a, b, what in spans if a <= at < b), "")
        changed[outcome(bad, intact, said, cdc=cdc, part=part, within=within, known=known)] += 1
    return cut, changed


def _spans(data: bytes) -> list[tuple[int, int, str]]:
    """Where texts of schemas and Parquet contents are."""
    out = []
    for b in LogFileReader(data).blocks:
        text = b.header.get(HeaderKey.SCHEMA, "").encode()
        at = data.find(text, b.offset) if text else -1
        if at >= 0:
            out.append((at, at + len(text), "schema"))
        if b.type is BlockType.PARQUET_DATA:
            out.append((b.content_offset, b.content_offset + b.content_length, "parquet"))
    return out
