"""Decoder from Avro binary records to Arrow columns.

The pair of schemas is compiled once (`hudi_format.avro.resolver`); each call then runs over its records without
the GIL and without a Python object per value, and may be made from several threads at once.

Source: Avro 1.11 specification, "Binary Encoding" and "Schema Resolution".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_format.avro import _decode
from hudi_format.avro.resolver import DecodeStep, Program, Sink, resolve
from hudi_format.avro.types import AvroType, parse
from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError, UnsupportedError
from hudi_format.schema.avro import to_avro
from hudi_format.schema.casts import convert
from hudi_format.schema.extension_types import is_small_vector, is_vector

Schema: TypeAlias = str | Mapping[str, Any]
_Buffers: TypeAlias = tuple[
    int, int, "_decode.Memory | None", "_decode.Memory | None", "_decode.Memory | None"
]


# Compiled pairs of schemas are kept: a table's log blocks and commits have the same few.
_KEPT, _MOST_KEPT = 64, 65_536


def known_decoder(
    writer_schema: str,
    reader_schema: str | None = None,
    columns: Sequence[str] | None = None,
    arrow_schema: pa.Schema | None = None,
) -> Decoder:
    """A `Decoder`, which several callers may share; arguments and errors as there."""
    if len(writer_schema) > _MOST_KEPT:
        return Decoder(writer_schema, reader_schema, columns, arrow_schema)
    wanted = None if arrow_schema is None else _ByBytes(arrow_schema)
    return _known(writer_schema, reader_schema, None if columns is None else tuple(columns), wanted)


class _ByBytes:
    """An Arrow schema that equals those with the same bytes.

    Arrow's own equality leaves out the metadata, with defaults of fields; and a schema that is read from its bytes may
    have other types: those that fields' metadata name.
    """

    __slots__ = ("_bytes", "schema")

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._bytes = schema.serialize().to_pybytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByBytes) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)


# Without a lock of its own, which a child of fork() could find held for ever.
@lru_cache(maxsize=_KEPT)
def _known(
    writer_schema: str, reader_schema: str | None, columns: tuple[str, ...] | None, wanted: _ByBytes | None
) -> Decoder:
    return Decoder(writer_schema, reader_schema, columns, None if wanted is None else wanted.schema)


class Decoder:
    """Decodes records of a writer's Avro schema into the columns of a reader's schema.

    Args:
        writer_schema: of the bytes, as a log block's header or an HFile has it.
        reader_schema: of the columns; the writer's by default.  Fields are matched by name, then by the
            reader's aliases; names of records are not compared.  Columns that the writer does not have get
            their default, null where they are nullable and have none.
        columns: names of the wanted columns of the reader's schema, in the order wanted; all by default.
        arrow_schema: names and types of the result.  Without a reader's schema the records are read for
            these columns.  By default types are those of `hudi_format.schema.avro.from_avro`, and times of day,
            nanoseconds and decimals of up to 76 digits in Arrow's types for them.

    Raises:
        CorruptFileError: a text that is no Avro schema.
        MissingColumnError: a column that is not there, must not be null and has no default.
        SchemaError: a column that cannot become what is wanted; names it.
        UnsupportedError: a schema of too many types.
    """

    def __init__(
        self,
        writer_schema: Schema,
        reader_schema: Schema | None = None,
        columns: Sequence[str] | None = None,
        arrow_schema: pa.Schema | None = None,
    ) -> None:
        writer = parse(writer_schema)
        if reader_schema is not None:
            reader = parse(reader_schema)
        else:
            reader = writer
            if arrow_schema is not None:
                reader = parse(to_avro(_vectors_as_stored(writer, arrow_schema), "r"))
        if arrow_schema is not None:
            columns = arrow_schema.names if columns is None else columns
            unknown = [c for c in columns if c not in arrow_schema.names]
            if unknown:
                raise MissingColumnError(f"the schema has no column {unknown[0]}", column=unknown[0])
        program = resolve(writer, reader, columns)
        self._columns = program.columns
        self._absent = program.absent
        if arrow_schema is None:
            fields = [pa.field(name, sink.arrow(True), sink.nullable) for name, sink in program.columns]
            self._schema = pa.schema(fields)
        else:
            fields = [arrow_schema.field(name) for name, _ in program.columns]
            self._schema = pa.schema(fields, metadata=arrow_schema.metadata)
        self._filled: dict[int, pa.DataType] = {}
        for sink in reversed(program.sinks):  # a parent comes before its kids
            inner = [self._filled[k.number] for k in sink.kids]
            self._filled[sink.number] = sink.arrow_of(inner, False)
        self._program, self._paths = _compile(program)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the decoded batches."""
        return self._schema

    def decode(self, data: object, offsets: npt.ArrayLike, lengths: npt.ArrayLike) -> pa.RecordBatch:
        """The records at `offsets`, one row each, in that order.

        Args:
            data: anything with contiguous bytes; it is not kept.
            offsets: where each record begins in `data`, in bytes.
            lengths: bytes of each record; a record that does not fill them is corrupt, unless columns at its
                end are not wanted.

        Raises:
            CorruptFileError: bytes that are no record; `details` has `record` (from 0), `offset` (of the
                value at fault, from the start of `data`) and `column`.
            SchemaError: a value that the wanted column cannot hold.
            UnsupportedError: text of one column of 2 GiB or more, or a thousand times more of nulls and defaults
                than there are bytes.
        """
        begins = np.ascontiguousarray(offsets, np.int64)
        spans = np.ascontiguousarray(lengths, np.int64)
        return self._run(data, begins, spans, 0, 0)[0]

    def decode_stream(self, data: object, start: int, count: int) -> tuple[pa.RecordBatch, int]:
        """`count` consecutive records from `start` on, and the end of the last one.

        Raises:
            as `decode`.
        """
        return self._run(data, None, None, start, count)

    def _run(
        self,
        data: object,
        offsets: npt.NDArray[np.int64] | None,
        lengths: npt.NDArray[np.int64] | None,
        start: int,
        count: int,
    ) -> tuple[pa.RecordBatch, int]:
        raw = np.frombuffer(memoryview(data), np.uint8)  # type: ignore[arg-type]
        stop, rows, at, step, sinks = self._program.run(raw, offsets, lengths, start, count)
        if sinks is None:
            raise self._error(stop, rows, at, self._paths[step])
        arrays = [self._column(name, sink, sinks, rows) for name, sink in self._columns]
        if not arrays:  # a batch without columns takes its rows from a struct
            empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
            return pa.RecordBatch.from_struct_array(empty), at
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema), at

    def _column(self, name: str, sink: Sink, sinks: list[_Buffers], rows: int) -> pa.Array:
        target = self._schema.field(name).type
        if sink.number in self._absent:
            return pa.nulls(rows, target)
        array = self._array(sink, sinks)
        try:
            return convert(array, target, sink.path)
        except pa.ArrowException as e:
            raise SchemaError(f"column {sink.path} cannot become {target}: {e}", column=sink.path) from e

    def _array(self, sink: Sink, sinks: list[_Buffers]) -> pa.Array:
        rows, nulls, valid, offsets, values = sinks[sink.number]
        kids = [self._array(k, sinks) for k in sink.kids]
        buffers = [_buffer(valid)]
        layout = sink.layout
        if layout == "list":
            buffers.append(_buffer(offsets))
            if len(kids) == 2:
                entry = self._filled[sink.number]
                pair = pa.struct([entry.key_field, entry.item_field])
                kids = [pa.Array.from_buffers(pair, len(kids[0]), [None], 0, children=kids)]
        elif layout in ("utf8", "bytes"):
            buffers += [_buffer(offsets), _buffer(values)]
        elif layout != "struct":
            buffers.append(_buffer(values))
        return pa.Array.from_buffers(self._filled[sink.number], rows, buffers, nulls, children=kids)

    def _error(self, stop: int, record: int, offset: int, path: str) -> Exception:
        place = f"record {record}" + (f", column {path}" if path else "")
        if stop in _decode.CORRUPT:
            return CorruptFileError(
                f"{_decode.CORRUPT[stop]} ({place}, byte {offset})", record=record, offset=offset, column=path
            )
        if stop in _decode.UNFIT:
            return SchemaError(f"{_decode.UNFIT[stop]} ({place})", record=record, offset=offset, column=path)
        if stop == _decode.TOO_MUCH_FOR_INPUT:
            return UnsupportedError(
                f"nulls, defaults or symbols of column {path} take more than a thousand times the bytes of the "
                f"records ({place})",
                remedy="read fewer columns; if the table is not sparse, its schema is damaged.",
                column=path,
            )
        return UnsupportedError(
            f"column {path} has more than 2 GiB in these records",
            remedy="decode fewer records at once.",
            column=path,
        )


def _buffer(memory: _decode.Memory | None) -> pa.Buffer | None:
    return None if memory is None else pa.foreign_buffer(memory.address, memory.size, memory)


def _vectors_as_stored(writer: AvroType, wanted: pa.Schema) -> pa.Schema:
    """The wanted columns, with bytes in place of vectors."""
    stored = {f.name: f.type.branches or [f.type] for f in writer.fields}
    fields = []
    for field in wanted:
        branches = stored.get(field.name)
        if branches is None and is_small_vector(field.type):
            field = field.with_type(pa.binary())  # any type that Avro has
        for branch in branches or ():
            if branch.kind == "fixed" and is_vector(pa.binary(branch.node["size"]), field.type):
                field = field.with_type(pa.binary(branch.node["size"]))
        fields.append(field)
    return pa.schema(fields)


def _compile(program: Program) -> tuple[_decode.Program, list[str]]:
    """The compiled program, and the column path of each step."""
    root = DecodeStep("record", kids=program.steps)
    order: list[DecodeStep] = [root]
    places = {id(root): 0}
    for step in order:  # grows while it is walked
        for kid in step.kids:
            if id(kid) not in places:
                places[id(kid)] = len(order)
                order.append(kid)
    nodes = [
        (s.op, s.sink, s.null_branch, s.size, s.digits, s.text, s.spans, [places[id(k)] for k in s.kids])
        for s in order
    ]
    flat = {s.number for _, s in program.columns}
    for sink in program.sinks:  # a parent comes before its kids
        if sink.number in flat and sink.layout == "struct":
            flat.update(k.number for k in sink.kids)
    sinks = [
        (s.layout, s.nullable, s.layout == "utf8", s.width, [k.number for k in s.kids], s.number in flat)
        for s in program.sinks
    ]
    return _decode.Program(nodes, sinks, program.least), [s.path for s in order]
