"""Validation and repair of Arrow data from users and from Spark.

What Arrow's own code and our kernels take for granted is made sure of here, once, so that no input can end the
process.  Arrays of no values get the one offset that Arrow's format wants and that some writers leave out (Spark's
below empty lists): Arrow reads it when it writes a stream, and so reads what is not there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format.arrow.sizes import offset_width
from hudi_format.errors import HudiError, SchemaError

_REMEDY = "correct the code that produces the data; `validate(full=True)` of pyarrow reports "
"the same error."


def checked_table(table: pa.Table) -> pa.Table:
    """The table, after a check that its values conform to their types.

    Raises:
        SchemaError: a column that is not: offsets that go beyond the values, text that is not UTF-8 ...
    """
    for number, column in enumerate(table.columns):
        field = table.schema.field(number)
        given = column.chunks
        chunks = [_whole(_checked(chunk, field.name)) for chunk in given]
        if any(c is not chunk for c, chunk in zip(chunks, given, strict=True)):
            table = table.set_column(number, field, pa.chunked_array(chunks, type=field.type))
    return table


def reader_of(scanner: pa.dataset.Scanner) -> pa.RecordBatchReader:
    """A scanner's batches as a stream, which begins without Python's lock.

    `to_reader` of pyarrow (26 and before) keeps Python's lock while it begins to read.  Where Python code opens the
    files, a thread of Arrow's that opens the next one waits for it, with a lock for which the beginning waits.
    """
    if type(scanner).__module__ != "pyarrow._dataset":  # other libraries' know no `scan_batches`
        return scanner.to_reader()
    batches = scanner.scan_batches()  # it begins here, so that errors are raised here
    return pa.RecordBatchReader.from_batches(scanner.projected_schema, (b.record_batch for b in batches))


def checked_reader(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The stream, with each batch checked as it arrives; errors as of `checked_table`.

    A stream that fails, or that gives other columns than it says, is a SchemaError too, when it is read.
    """
    schema = reader.schema

    def batches() -> Iterator[pa.RecordBatch]:
        number = 0
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except (MemoryError, HudiError):
                raise
            except Exception as e:  # also of the caller's own code, which a stream may run
                raise source_failed(f"the stream of rows after {number:,} batches", e) from e
            if batch.schema.names != schema.names or batch.schema.types != schema.types:
                raise other_columns(number, batch.schema, schema)
            number += 1
            yield _with_columns(batch, lambda column, name: _whole(_checked(column, name)))

    return pa.RecordBatchReader.from_batches(schema, batches())


def source_failed(what: str, error: Exception) -> SchemaError:
    """Error for a source of rows that raised one of its own, which is to be its cause."""
    kind = "" if isinstance(error, (pa.ArrowException, OSError)) else f"{type(error).__name__}: "
    return SchemaError(
        f"reading {what} failed: {kind}{first_line(error)}",
        remedy="check the source of the rows; nothing was written.",
    )


def refuse_closed(values: object, what: str) -> None:
    """Refuse a generator that was read to its end, or closed: it would give nothing.

    Other iterators and readers of Arrow do not say whether they were read, or never had a row.

    Args:
        what: its place in the call, for the error.

    Raises:
        SchemaError: it can give nothing any more.
    """
    if inspect.isgenerator(values) and inspect.getgeneratorstate(values) == inspect.GEN_CLOSED:
        raise SchemaError(
            f"the generator given for {what} was read to its end, or closed, before",
            remedy="make it anew for each call, or give a list of what it gives.",
        )


def other_columns(number: int, given: pa.Schema, expected: pa.Schema) -> SchemaError:
    """Error for a batch of other columns or types than those before it."""
    differing = next((pair for pair in zip(given, expected, strict=False) if pair[0] != pair[1]), None)
    if differing is None or differing[0].name != differing[1].name:
        what = f"the columns {', '.join(given.names)}, and not {', '.join(expected.names)}"
    else:
        what = f"column {differing[0].name} as {differing[0].type}, and not as {differing[1].type}"
    return SchemaError(
        f"batch {number:,} of the rows (counted from 0) has {what}",
        remedy="give all batches of one write the same columns and types.",
    )


def whole_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with missing offset buffers of empty arrays added, at every depth."""
    return _with_columns(batch, lambda column, name: _whole(column))


def _with_columns(batch: pa.RecordBatch, make: Callable[[pa.Array, str], pa.Array]) -> pa.RecordBatch:
    given = batch.columns
    columns = [make(c, name) for c, name in zip(given, batch.schema.names, strict=True)]
    if all(c is before for c, before in zip(columns, given, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def no_rows(schema: pa.Schema) -> pa.Table:
    """A table without rows, also for types where Arrow before 26 cannot make one."""
    return pa.Table.from_arrays([_none(f.type) for f in schema], schema=schema)


def _checked(column: pa.Array, name: str) -> pa.Array:
    """The column, if it is valid, or is once the codes below null structs are null too."""
    try:
        column.validate(full=True)
    except (pa.ArrowException, OSError) as e:
        known = _without_hidden_codes(column)
        if known is None:
            raise SchemaError(
                f"column {name} is not valid Arrow data: {first_line(e)}", remedy=_REMEDY, column=name
            ) from None
        return known
    return column


def _without_hidden_codes(column: pa.Array) -> pa.Array | None:
    """A column of structs with nulls for codes below null structs; None where it is not valid then either.

    Arrow's own builders leave the code 0 there, also of dictionaries without a value.
    """
    if not pt.is_struct(column.type) or not column.null_count:
        return None
    try:
        column.validate()  # buffers are as long as what is read of them here
        known = _hidden(column, column.is_null())
        known.validate(full=True)
    except (pa.ArrowException, OSError):
        return None
    return known


def _hidden(array: pa.Array, gone: pa.BooleanArray) -> pa.Array:
    kind = array.type
    if pt.is_dictionary(kind):
        codes = pc.if_else(gone, pa.scalar(None, kind.index_type), array.indices)
        return pa.DictionaryArray.from_arrays(codes, array.dictionary, ordered=kind.ordered, safe=False)
    if not pt.is_struct(kind):
        return array
    gone = pc.or_(gone, array.is_null())
    children = [_hidden(array.field(n), gone) for n in range(kind.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=gone)


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _children(array: pa.Array) -> list[pa.Array]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return [array.storage]
    if pt.is_dictionary(kind):
        return [array.dictionary]
    if pt.is_map(kind):
        return [array.keys, array.items]
    if pt.is_struct(kind):
        return [array.field(n) for n in range(kind.num_fields)]
    if pt.is_union(kind):  # of no use in a table: refused by its type
        return []
    return [array.values] if pt.is_nested(kind) or pt.is_run_end_encoded(kind) else []


def _needs(array: pa.Array) -> bool:
    """Whether an array, or one below it, is empty and lacks its offset buffer."""
    if isinstance(array, pa.ExtensionArray) or len(array):
        return any(_needs(child) for child in _children(array))
    # Arrow slices the buffers of what begins late, which need not be there.
    return array.offset > 0 or _lacks_offset(array) or any(_needs(child) for child in _children(array))


def _lacks_offset(array: pa.Array) -> bool:
    wide = offset_width(array.type)
    if not wide:
        return False
    offsets = array.buffers()[1]
    return offsets is None or offsets.size < (array.offset + 1) * wide


def _whole(array: pa.Array) -> pa.Array:
    """The array with its missing offset buffers; the same where none is missing."""
    kind, rows = array.type, len(array)
    if not _needs(array):
        return array
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _whole(array.storage))
    if not rows:
        return _none(kind)
    if pt.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, _whole(array.dictionary), ordered=kind.ordered)
    if pt.is_struct(kind):
        gone = array.is_null() if array.null_count else None
        children = [_whole(child) for child in _children(array)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=gone)
    if pt.is_run_end_encoded(kind):
        own, children = [None], [array.run_ends, _whole(array.values)]
    elif pt.is_map(kind):
        own, pair = array.buffers()[:2], [_whole(array.keys), _whole(array.items)]
        children = [pa.StructArray.from_arrays(pair, fields=[kind.key_field, kind.item_field])]
    else:
        count = 1 if pt.is_fixed_size_list(kind) else 3 if _is_view(kind) else 2
        own, children = array.buffers()[:count], [_whole(array.values)]
    return pa.Array.from_buffers(
        kind, rows, own, null_count=array.null_count, offset=array.offset, children=children
    )


def _none(kind: pa.DataType) -> pa.Array:
    """An empty array with all of its buffers.

    Arrow's own empty arrays are invalid for encodings below other types.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _none(kind.storage_type))
    if pt.is_dictionary(kind):
        indices = pa.array([], kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, _none(kind.value_type), ordered=kind.ordered)
    offset = pa.py_buffer(bytes(8))
    if pt.is_run_end_encoded(kind):
        own, inner = [None], [kind.run_end_type, kind.value_type]
    elif pt.is_struct(kind):
        own, inner = [None], [f.type for f in kind]
    elif pt.is_map(kind):
        own, inner = [None, offset], [pa.struct([kind.key_field, kind.item_field])]
    elif pt.is_fixed_size_list(kind):
        own, inner = [None], [kind.value_type]
    elif pt.is_union(kind):
        return pa.nulls(0, kind)
    elif pt.is_nested(kind):
        own = [None, offset, offset] if _is_view(kind) else [None, offset]
        inner = [kind.value_type]
    else:
        return pa.nulls(0, kind)
    return pa.Array.from_buffers(kind, 0, own, null_count=0, children=[_none(k) for k in inner])


def _is_view(kind: pa.DataType) -> bool:
    return bool(pt.is_list_view(kind) or pt.is_large_list_view(kind))
