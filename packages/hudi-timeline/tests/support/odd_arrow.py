"""Arrow data as no writer of ours makes it, written to tables: `python odd_arrow.py FIRST COUNT`.

Arrays are put together from buffers: of no bytes or absent, with offsets that begin late, as slices, in every layout
and encoding, and, one in five, with a fault.  Sound ones come back as they were; the others are refused with a
typed error and nothing is written; none ends the process.
"""

from __future__ import annotations

import faulthandler
import math
import os
import random
import shutil
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.arrow.input import checked_table
from hudi_format.arrow.sizes import size_of
from hudi_format.errors import HudiError, SchemaError
from hudi_timeline import HudiTable

OPERATIONS = ("upsert", "insert", "bulk_insert", "delete")
TEXTS = (b"", b"a", "é".encode(), b"oslo", b"x" * 13, "\U0001f600".encode() * 5, b"__null__", b"1")
FLAT: tuple[pa.DataType, ...] = (
    pa.bool_(), pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.time32("ms"), pa.duration("us"),
    pa.decimal128(9, 2), pa.binary(3), pa.null(),
)  # fmt: skip
TEXT = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
VIEWS = (pa.string_view(), pa.binary_view())


class Maker:
    """Arrays by the choices of `draw(n)`, a number below n."""

    def __init__(self, draw: Callable[[int], int], *, faulty: bool) -> None:
        self.draw = draw
        self.faulty = faulty

    def kind(self, depth: int = 0) -> pa.DataType:
        n = self.draw(20 if depth < 3 else 8)
        if n < 3:
            return FLAT[self.draw(len(FLAT))]
        if n < 7:
            return TEXT[self.draw(len(TEXT))]
        if n == 7:
            return VIEWS[self.draw(2)]
        inner = self.kind(depth + 1)
        if n < 11:
            return pa.list_(inner)
        if n < 14:
            return pa.map_(pa.string(), inner)
        if n == 14:
            return (pa.large_list(inner), pa.list_view(inner), pa.large_list_view(inner))[self.draw(3)]
        if n == 15:
            return pa.list_(inner, self.draw(3))
        if n == 16:
            return pa.struct([pa.field(f"f{k}", self.kind(depth + 1)) for k in range(self.draw(3))])
        if n == 17:
            value = (*TEXT[:2], pa.int64(), pa.string_view())[self.draw(4)]
            return pa.dictionary((pa.int8(), pa.int32(), pa.uint16())[self.draw(3)], value)
        if n == 18:
            return pa.run_end_encoded((pa.int16(), pa.int32())[self.draw(2)], self.kind(3))
        fields = [pa.field("a", pa.int32()), pa.field("b", pa.string())]
        return (
            pa.sparse_union(fields), pa.dense_union(fields), pa.uuid(), pa.json_(), pa.bool8(),
        )[self.draw(5)]  # fmt: skip

    def _wrong(self) -> bool:
        return self.faulty and not self.draw(4)

    def _validity(self, rows: int) -> pa.Buffer | None:
        how = self.draw(4)
        if how < 2:
            return None
        size = rows // 8 + 1 + self.draw(3)
        return pa.py_buffer(b"\xff" * size if how == 2 else bytes(self.draw(256) for _ in range(size)))

    def _nothing(self) -> pa.Buffer | None:
        """An absent buffer, one of no bytes at no address, or one of no bytes."""
        return (None, pa.foreign_buffer(4096, 0), pa.py_buffer(b""))[self.draw(3)]

    def _offsets(self, rows: int, most: int, form: str) -> tuple[pa.Buffer | None, int]:
        """Offsets of so many rows and the length of the child that they need."""
        if not rows and self.draw(2):
            return self._nothing(), self.draw(2)
        at = self.draw(3)
        values = [at]
        for _ in range(rows):
            at += self.draw(most + 1)
            values.append(at)
        if self._wrong():
            values[self.draw(len(values))] = (-1, 10**6, 2**31 - 1, -(2**31))[self.draw(4)]
        return pa.py_buffer(struct.pack(f"<{len(values)}{form}", *values)), at + self.draw(2)

    def array(self, kind: pa.DataType, rows: int) -> pa.Array:
        """An array of `rows` rows; a slice of a longer one, mostly."""
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(kind, self.array(kind.storage_type, rows))
        if pt.is_dictionary(kind):
            return self._dictionary(kind, rows)
        if pt.is_run_end_encoded(kind):
            return self._runs(kind, rows)
        if pt.is_union(kind):
            return self._union(kind, rows)
        before = self.draw(3) if self.draw(2) else 0
        total = rows + before
        if pt.is_null(kind):
            return pa.nulls(rows)
        children: list[pa.Array] = []
        own: list[pa.Buffer | None] = [self._validity(total)]
        if pt.is_struct(kind):
            children = [self.array(f.type, total) for f in kind]
        elif pt.is_fixed_size_list(kind):
            children = [self.array(kind.value_type, total * kind.list_size)]
        elif pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind):
            empty = not self.draw(3)
            offsets, length = self._offsets(total, 0 if empty else 3, "q" if pt.is_large_list(kind) else "i")
            if empty and offsets is not None and not self.faulty and length:
                offsets, length = pa.py_buffer(bytes((total + 1) * 8)), 0
            own.append(offsets)
            if pt.is_map(kind):
                keys = pa.array([f"k{n}" for n in range(length)], kind.key_type)
                if not length:
                    # Without nulls: before Arrow 26 a map with such keys ends the process where it is made.
                    keys = pa.Array.from_buffers(pa.string(), 0, [None, *self._texts(pa.string(), 0)])
                pair = [keys, self.array(kind.item_type, length)]
                children = [pa.StructArray.from_arrays(pair, fields=[kind.key_field, kind.item_field])]
            else:
                children = [self.array(kind.value_type, length)]
        elif pt.is_list_view(kind) or pt.is_large_list_view(kind):
            form, length = "q" if pt.is_large_list_view(kind) else "i", self.draw(5)
            starts = [self.draw(length + 1) for _ in range(total)]
            sizes = [self.draw(length - s + 1) for s in starts]
            if self._wrong() and total:
                sizes[self.draw(total)] = (-1, 10**6)[self.draw(2)]
            own += [pa.py_buffer(struct.pack(f"<{total}{form}", *v)) for v in (starts, sizes)]
            children = [self.array(kind.value_type, length)]
        elif kind in VIEWS:
            return self._views(kind, rows, before)
        elif kind in TEXT:
            own += self._texts(kind, total)
        else:
            own.append(self._numbers(kind, total))
        return pa.Array.from_buffers(kind, rows, own, offset=before, children=children)

    def _numbers(self, kind: pa.DataType, rows: int) -> pa.Buffer | None:
        if not rows and self.draw(2):
            return self._nothing()
        wide = -(-kind.bit_width // 8)
        value = 1 if pt.is_decimal(kind) or pt.is_time(kind) else 127 if self.faulty else 100
        each = [self.draw(value + 1).to_bytes(1, "little").ljust(wide, b"\0") for _ in range(rows)]
        if pt.is_floating(kind):
            form = {16: "e", 32: "f", 64: "d"}[kind.bit_width]
            each = [struct.pack(f"<{form}", (0.0, -1.5, 3.25, math.nan)[self.draw(4)]) for _ in range(rows)]
        if self._wrong() and rows and not pt.is_floating(kind):
            each[-1] = b"\xff" * wide
        return pa.py_buffer(b"".join(each))

    def _texts(self, kind: pa.DataType, rows: int) -> list[pa.Buffer | None]:
        form = "q" if pt.is_large_string(kind) or pt.is_large_binary(kind) else "i"
        if not rows and self.draw(2):
            return [self._nothing(), pa.foreign_buffer(4096, 0)]
        data = b"junk"[: self.draw(5)]
        values = [len(data)]
        for _ in range(rows):
            data += b"\xff\xc3(" if self._wrong() else TEXTS[self.draw(len(TEXTS))]
            values.append(len(data))
        if self._wrong():
            values[self.draw(len(values))] = (-5, 10**7, 2**31 - 1)[self.draw(3)]
        return [
            pa.py_buffer(struct.pack(f"<{len(values)}{form}", *values)),
            pa.py_buffer(data) if data else pa.foreign_buffer(4096, 0),
        ]

    def _views(self, kind: pa.DataType, rows: int, before: int) -> pa.Array:
        data, views = b"", b""
        for _ in range(rows + before):
            text = TEXTS[self.draw(len(TEXTS))]
            if len(text) <= 12:
                views += struct.pack("<i12s", len(text), text)
                continue
            at = 10**6 if self._wrong() else len(data)
            views += struct.pack("<i4sii", len(text), text[:4], 9 if self._wrong() else 0, at)
            data += text
        own = [self._validity(rows + before), pa.py_buffer(views), pa.py_buffer(data)]
        return pa.Array.from_buffers(kind, rows, own, offset=before)

    def _dictionary(self, kind: pa.DataType, rows: int) -> pa.Array:
        size = self.draw(4)
        values = self.array(kind.value_type, size)
        numbers = [
            None if not size or not self.draw(4) else self.draw(size) + (90 if self._wrong() else 0)
            for _ in range(rows + 2)
        ]
        indices = pa.array(numbers, kind.index_type).slice(self.draw(2), rows)
        return pa.DictionaryArray.from_arrays(indices, values, safe=False)

    def _runs(self, kind: pa.DataType, rows: int) -> pa.Array:
        ends, at = [], 0
        while at < rows + 1:
            at += 1 + self.draw(3)
            ends.append(at)
        if self._wrong():
            ends[self.draw(len(ends))] = self.draw(2)
        values = self.array(kind.value_type, len(ends))
        run_ends = pa.array(ends, kind.run_end_type)
        return pa.Array.from_buffers(
            kind, rows, [None], null_count=0, offset=self.draw(at - rows + 1), children=[run_ends, values]
        )

    def _union(self, kind: pa.DataType, rows: int) -> pa.Array:
        codes = [self.draw(2) + (7 if self._wrong() else 0) for _ in range(rows)]
        types = pa.array(codes, pa.int8())
        if kind.mode == "sparse":
            return pa.UnionArray.from_sparse(types, [self.array(f.type, rows) for f in kind], ["a", "b"])
        offsets = pa.array([10**6 if self._wrong() else n for n in range(rows)], pa.int32())
        return pa.UnionArray.from_dense(types, offsets, [self.array(f.type, rows) for f in kind], ["a", "b"])


class Stream:
    """A stream of batches that fails after some, raises, or was used before."""

    def __init__(self, table: pa.Table, how: int) -> None:
        self._table, self._how = table, how

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self._how == 1:
            capsule = self._table.__arrow_c_stream__()
            pa.RecordBatchReader._import_from_c_capsule(capsule)
            return capsule  # released already

        def batches() -> Any:
            yield from self._table.to_batches()
            if self._how == 2:
                raise OSError("the source went away")
            if self._how == 3:
                yield pa.record_batch({"other": [1]})

        return pa.RecordBatchReader.from_batches(self._table.schema, batches()).__arrow_c_stream__()


def table_of(maker: Maker) -> pa.Table:
    """A table of a few chunks: a key, a number, and columns of any type."""
    kinds = [maker.kind() for _ in range(1 + maker.draw(2))]
    sizes = [maker.draw(5) for _ in range(maker.draw(4))]
    columns = [pa.chunked_array([maker.array(kind, n) for n in sizes], type=kind) for kind in kinds]
    rows = sum(sizes)
    keys = pa.array([f"k{n}" for n in range(rows)], pa.string())
    names = ["id", "ts", *(f"c{n}" for n in range(len(columns)))]
    return pa.table([keys, pa.array(range(rows), pa.int64()), *columns], names=names)


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def write(draw: Callable[[int], int], folder: str) -> str:
    """Make a table's rows and write them; what came of it in a word.

    Raises:
        AssertionError, or any error that is not ours: a finding.
    """
    maker = Maker(draw, faulty=not draw(5))
    try:
        rows = table_of(maker)
    except (pa.ArrowException, OSError):
        return "not made"
    operation = OPERATIONS[draw(len(OPERATIONS))]
    form = draw(8)
    size_of(rows)
    if form == 1:  # which leaves out chunks without rows
        rows = pa.Table.from_batches(rows.to_batches(), rows.schema)
    try:
        rows.validate(full=True)
        sound = True
    except (pa.ArrowException, OSError):
        sound = False
    path = os.path.join(folder, "t")
    shutil.rmtree(path, ignore_errors=True)
    try:
        table = HudiTable.create(path, rows.schema, name="t", record_keys=["id"], ordering_fields=["ts"])
    except SchemaError:  # types that no table has: the write refuses them too
        plain_schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
        table = HudiTable.create(path, plain_schema, name="t", record_keys=["id"], ordering_fields=["ts"])
    given: object = rows
    if form == 1:
        given = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    elif form >= 4 and sound:
        given = Stream(checked_table(rows), form - 4)
    try:
        getattr(table, operation)(given)
    except HudiError as e:
        assert not table.read().to_arrow().num_rows, "rows of a write that failed"
        return f"refused {type(e).__name__}"
    assert sound, f"invalid data were written: {rows.schema}"
    assert form not in (5, 6, 7) or given is rows, f"a broken stream of kind {form - 4} was taken for whole"
    got = HudiTable.open(path).read(meta_columns=False).to_arrow()
    got.validate(full=True)
    if operation == "delete":
        assert not got.num_rows
        return "deleted"
    got = got.sort_by("ts")
    for name in rows.schema.names:
        if name not in got.schema.names:  # a new column without a type is none
            assert pt.is_null(rows.schema.field(name).type), name
            continue
        want, have = plain(rows.column(name).to_pylist()), plain(got.column(name).to_pylist())
        if got.column(name).type == rows.column(name).type:
            assert have == want, f"{operation} of {rows.schema.field(name)}: {have} where {want} was written"
    return operation


def main(first: int, count: int) -> int:
    faulthandler.enable()
    seen: dict[str, int] = {}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            print(f"\r{seed}", end="", file=sys.stderr, flush=True)  # of a process that dies, the last one
            try:
                came = write(random.Random(seed).randrange, folder)
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                failed += 1
                print(f"\nseed {seed}:", file=sys.stderr)
                traceback.print_exc(limit=-9)
            else:
                seen[came] = seen.get(came, 0) + 1
    print(dict(sorted(seen.items())), "failed", failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
