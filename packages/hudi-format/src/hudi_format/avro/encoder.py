"""Encoder from Arrow batches to Avro binary records, byte for byte as Java's writer.

The writer's schema is compiled once; each call then runs over its rows without the GIL and without a Python
object per value, and may be made from several threads at once.

Source: Avro 1.11 specification, "Binary Encoding"; bytes agree with fastavro and with Apache Hudi's log blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_format.arrow.sizes import size_of
from hudi_format.avro import _encode
from hudi_format.avro.defaults import default_bytes, has_default
from hudi_format.avro.types import AvroField, AvroType, parse
from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError, UnsupportedError
from hudi_format.schema.avro import MEMBER, is_union
from hudi_format.schema.casts import convert, is_any_list, promotes, refusal, stored_leaf, unwrapped

_WORDS = ("boolean", "int", "long", "float", "double", "fixed")


@dataclass(slots=True, eq=False)
class _Step:
    """One type of the writer's schema, and the Arrow type of its values."""

    op: str
    path: str
    arrow: pa.DataType
    kids: list[_Step] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of a record's kids in the struct; -1 for none
    null_branch: int = -1
    value_branch: int = -1
    size: int = 0
    digits: int = 0
    text: bytes = b""
    spans: list[int] = field(default_factory=list)


class Encoder:
    """Encodes batches of one Arrow schema as records of one Avro schema.

    Args:
        writer_schema: of the bytes.
        arrow_schema: of the batches.  Columns are matched by name, in any order; types may be those that
            `hudi_format.schema.casts.promotes` to the writer's.  A union of several types takes a column of one of
            them, or a struct with a field for each, `member0` and so on, of which one has a value.  A field that
            the batches do not have gets its default, null where it is nullable and has none.

    Raises:
        CorruptFileError: a text that is no Avro schema.
        MissingColumnError: a field without column and default.
        SchemaError: a column that the writer's schema does not have, or whose type does not fit; names it.
        UnsupportedError: a field that is a union of several types, none of which is the column's.
    """

    def __init__(self, writer_schema: str | Mapping[str, Any], arrow_schema: pa.Schema) -> None:
        writer = parse(writer_schema)
        if len(set(arrow_schema.names)) < len(arrow_schema.names):
            raise SchemaError("a column is duplicated")
        try:
            self._root = _record(writer, pa.struct(list(arrow_schema)), "")
        except RecursionError as e:
            raise CorruptFileError("an Avro schema nested too deeply") from e
        self._schema = arrow_schema
        self._order: list[_Step] = [self._root]
        for step in self._order:  # grows while it is walked
            self._order += step.kids
        numbers = {id(s): i for i, s in enumerate(self._order)}
        self._program = _encode.Program([_compiled(s, numbers) for s in self._order])

    def encode(self, batch: pa.RecordBatch) -> tuple[pa.Buffer, npt.NDArray[np.int64]]:
        """The concatenated records and their n + 1 offsets in bytes, the last one the end.

        Raises:
            SchemaError: the batch has another schema, or a value does not fit: null in a field that must not
                be null, more digits than a decimal has, no symbol of an enumeration; `details` has
                `column` and `row`.
        """
        if batch.schema.names != self._schema.names or batch.schema.types != self._schema.types:
            raise SchemaError("the batch's schema differs from the encoder's")
        arrays = {id(self._root): batch}
        sources = []
        keep: list[pa.Array] = []  # arrays whose addresses the sources hold
        for step in self._order:
            array = arrays[id(step)]
            kids, source = _source(step, array)
            arrays.update(zip(map(id, step.kids), kids, strict=True))
            keep.append(array)
            sources.append(source)
        offsets = np.empty(batch.num_rows + 1, np.int64)
        stop, row, number, data = self._program.run(sources, batch.num_rows, offsets, _guess(batch))
        if data is None:
            path = self._order[number].path
            raise SchemaError(f"{_encode.UNFIT[stop]} (column {path}, row {row})", column=path, row=row)
        return pa.py_buffer(data), offsets


def _guess(batch: pa.RecordBatch) -> int:
    """Estimated size of the encoded records, to avoid growing the buffer."""
    rows: int = batch.num_rows
    columns: int = batch.num_columns
    return size_of(batch) + rows * max(columns, 1)


def _compiled(
    step: _Step, numbers: dict[int, int]
) -> tuple[str, int, int, int, int, int, bytes, list[int], list[int]]:
    width = step.arrow.bit_width // 8 if pt.is_decimal(step.arrow) else 0
    kids = [numbers[id(k)] for k in step.kids]
    return (
        step.op, step.null_branch, step.value_branch, step.size, width, step.digits, step.text, step.spans, kids,
    )  # fmt: skip


# --- from schemas to steps ---


def _record(writer: AvroType, arrow: pa.StructType, path: str) -> _Step:
    places = {arrow.field(i).name: i for i in range(arrow.num_fields)}
    unknown = [n for n in places if n not in {f.name for f in writer.fields}]
    if unknown:
        name = f"{path}.{unknown[0]}" if path else unknown[0]
        raise SchemaError(f"column {name} is not in the schema of the records to write", column=name)
    kids, fields = [], list(arrow)
    for f in writer.fields:
        inner = f"{path}.{f.name}" if path else f.name
        if f.name not in places:
            kids.append(_constant(f, inner))
            continue
        kid = _value(f.type, arrow.field(places[f.name]).type, inner)
        fields[places[f.name]] = fields[places[f.name]].with_type(kid.arrow)
        kids.append(kid)
    listed = [places.get(f.name, -1) for f in writer.fields]
    return _Step("record", path, pa.struct(fields), kids, listed)


def _constant(f: AvroField, path: str) -> _Step:
    if not has_default(f):
        raise MissingColumnError(
            f"column {path} is missing in the batch, must not be null and has no default", column=path
        )
    return _Step("constant", path, pa.null(), text=default_bytes(f, path))


def _value(writer: AvroType, arrow: pa.DataType, path: str) -> _Step:
    if writer.kind != "union":
        return _one(writer, arrow, path)
    nulls = [i for i, b in enumerate(writer.branches) if b.kind == "null"]
    others = [i for i, b in enumerate(writer.branches) if b.kind != "null"]
    if pt.is_null(arrow) and nulls:
        return _Step("constant", path, arrow, text=default_bytes(AvroField("", writer, (), None), path))
    if len(others) > 1 and pt.is_struct(arrow) and is_union([f.name for f in arrow]):
        return _union(writer, arrow, path, others, nulls)
    refused: SchemaError | None = None
    # Of several types, the column's own goes before those it can become.
    for exact in (True, False):
        for place in others:
            try:
                step = _one(writer.branches[place], arrow, path)
            except SchemaError as e:
                refused = refused or e
                continue
            if exact and len(others) > 1 and step.arrow != arrow:
                continue
            step.value_branch = place
            step.null_branch = nulls[0] if nulls else -1
            return step
    if len(others) > 1:
        raise UnsupportedError(
            f"column {path} is a union of {len(others)} types, none of which is {arrow}",
            remedy="cast the column to one of them.",
            column=path,
        ) from refused
    raise refused or SchemaError(f"column {path} has Avro's type null", column=path)


def _union(writer: AvroType, arrow: pa.StructType, path: str, others: list[int], nulls: list[int]) -> _Step:
    """Step for a union that is stored as a struct with one field per type (see `from_avro`)."""
    if [f.name for f in arrow] != [f"{MEMBER}{n}" for n in range(len(others))]:
        raise SchemaError(
            f"column {path} has the members {', '.join(f.name for f in arrow)}, where the union has {len(others)} "
            "types",
            column=path,
        )
    kids, fields = [], []
    for member, place in zip(arrow, others, strict=True):
        kid = _one(writer.branches[place], member.type, f"{path}.{member.name}")
        kid.value_branch = place
        kids.append(kid)
        fields.append(member.with_type(kid.arrow))
    null = nulls[0] if nulls else -1
    return _Step("union", path, pa.struct(fields), kids, list(range(len(kids))), null_branch=null)


def _one(writer: AvroType, arrow: pa.DataType, path: str) -> _Step:
    """Step for a type that is not a union."""
    arrow = unwrapped(arrow)
    if writer.kind == "null":
        if pt.is_null(arrow):
            return _Step("constant", path, arrow)
        raise SchemaError(f"column {path} has Avro's type null", column=path)
    if writer.kind == "record" and pt.is_struct(arrow):
        return _record(writer, arrow, path)
    if writer.kind == "array" and is_any_list(arrow):
        kid = _value(writer.inside, arrow.value_type, f"{path}.element")
        return _Step("array", path, pa.list_(arrow.value_field.with_type(kid.arrow)), [kid])
    if writer.kind == "map" and pt.is_map(arrow):
        key = _one(AvroType("string", {"type": "string"}), arrow.key_type, f"{path}.key")
        item = _value(writer.inside, arrow.item_type, f"{path}.value")
        kind = pa.map_(arrow.key_field.with_type(key.arrow), arrow.item_field.with_type(item.arrow))
        return _Step("map", path, kind, [key, item])
    if writer.kind in ("array", "map", "record"):
        raise SchemaError(
            f"column {path} has type {arrow} and cannot become Avro's {writer.kind}", column=path
        )
    return _leaf(writer, arrow, path)


def _leaf(writer: AvroType, arrow: pa.DataType, path: str) -> _Step:
    target = writer.arrow(path)
    if arrow != target:
        stored = stored_leaf(arrow)
        if stored is None or not promotes(stored, target):
            raise refusal(path, arrow, target)
    step = _Step("text", path, target)
    if pt.is_decimal(target):
        step.op = "decimal" if writer.kind == "bytes" else "fixed_decimal"
        step.digits = target.precision
    elif writer.kind in _WORDS:
        step.op = writer.kind
    elif writer.kind == "enum":
        step.op, step.size = "enum", len(writer.symbols)
        for symbol in writer.symbols:
            raw = symbol.encode()
            step.spans += [len(step.text), len(raw)]
            step.text += raw
    if writer.kind == "fixed":
        step.size = writer.node["size"]
    return step


# --- from arrays to addresses ---

_Source: TypeAlias = tuple[int, int, int, int]
_NONE: _Source = (0, 0, 0, 0)


def _source(step: _Step, array: pa.Array | pa.RecordBatch | None) -> tuple[list[pa.Array | None], _Source]:
    """The child arrays of a step, and the addresses of its own buffers."""
    if array is None or step.op == "constant":
        return [], _NONE
    if isinstance(array, pa.RecordBatch):
        return [_column(array.column(p), k) if p >= 0 else None
                for p, k in zip(step.places, step.kids, strict=True)], _NONE  # fmt: skip
    buffers = array.buffers()
    valid = _address(buffers[0]) if array.null_count else 0
    if step.op in ("record", "union"):
        kids = [array.field(p) if p >= 0 else None for p in step.places]
        return kids, (valid, 0, 0, 0 if not valid else array.offset)
    if step.op in ("array", "map"):
        kids = [array.values] if step.op == "array" else [array.keys, array.items]
        return kids, (valid, 0, _address(buffers[1]), array.offset)
    if step.op in ("text", "enum"):
        return [], (valid, _address(buffers[2]), _address(buffers[1]), array.offset)
    return [], (valid, _address(buffers[1]), 0, array.offset)


def _column(array: pa.Array, step: _Step) -> pa.Array:
    """The column converted to the step's type."""
    return convert(array, step.arrow, step.path) if step.op != "constant" else array


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.address)
