"""Rows of a base file with some record keys.

The key column is read first, and of the others only pages with rows that were found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_slice.base_file import OtherBaseFile, open_other
from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.pages import PagedFile, Rows, gap_of, places_in, rows_at
from hudi_format.parquet.text_column import ReadAt
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.protocol import Storage

# A file of so few rows for each key is read whole: what is read of the other columns is most of them.
ROWS_PER_KEY = 4
# Of a file with more column chunks than this a footer takes longer than what it saves.
_MOST_CHUNKS = 20_000


@dataclass(slots=True)
class WantedKeys:
    """Record keys whose rows are wanted, and layouts of files that were looked through.

    Attributes:
        keys: texts, each once, without nulls.
        layouts: by path; files are read again where they have another size.
    """

    keys: pa.Array
    layouts: dict[str, PagedFile] = field(default_factory=dict)
    _sorted: list[bytes] | None = None

    @property
    def sorted(self) -> list[bytes]:
        """The keys as bytes, in ascending order."""
        if self._sorted is None:
            self._sorted = sorted(k.encode() for k in self.keys.to_pylist())
        return self._sorted


class KeyedFile:
    """The rows of a Parquet file with some record keys (`OtherBaseFile`)."""

    def __init__(self, names: Sequence[str], parts: Sequence[pa.Table]) -> None:
        self.names = names
        self._parts = parts

    @property
    def rows(self) -> int:
        return sum(p.num_rows for p in self._parts)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows, in the file's order."""
        for part in self._parts:
            yield from part.select(columns).to_batches(max_chunksize=batch_rows)

    def close(self) -> None:
        """Nothing: the file is closed already."""


def open_keyed(storage: Storage, path: str, wanted: WantedKeys, schema: pa.Schema) -> OtherBaseFile | None:
    """Rows of a base file with some record keys; None for Parquet that is to be read whole.

    Args:
        schema: the columns that are wanted; those that the file lacks are left out.

    Raises:
        FileNotFoundError, StorageError: as `Storage.open_input`.
        OSError: the system refuses.
    """
    if not path.endswith(".parquet"):
        return open_other(storage, path, schema)
    with storage.open_input(path) as source:
        try:
            layout = wanted.layouts.get(path)
            if layout is None or layout.size != source.size():
                layout = PagedFile(footer_bytes(source), source.size())
                if layout.num_chunks > _MOST_CHUNKS:
                    return None
                wanted.layouts[path] = layout
            return _found(
                layout, lambda at, n: source.read_at(n, at), gap_of(is_local=storage.is_local), wanted, schema
            )
        except (CorruptFileError, UnsupportedError, pa.ArrowException, ValueError):
            return None  # the reader of whole files says what is wrong with it, if anything is
        except OSError as e:
            if e.errno:
                raise
            return None  # Arrow's, about the file's bytes


def _found(
    layout: PagedFile, read: ReadAt, gap: int, wanted: WantedKeys, schema: pa.Schema
) -> KeyedFile | None:
    rows = sum(layout.rows(n) for n in range(layout.num_row_groups))
    if not layout.is_flat_bytes(RECORD_KEY) or len(wanted.keys) * ROWS_PER_KEY > rows:
        return None
    names = [n for n in layout.names if n in schema.names or n == RECORD_KEY]
    parts = []
    for group in range(layout.num_row_groups):
        layout.load(read, group, names, RECORD_KEY, gap)
        part = _of_group(layout, read, gap, group, names, wanted)
        if part is not None:
            parts.append(part)
    return KeyedFile(names, parts)


def _of_group(
    layout: PagedFile, read: ReadAt, gap: int, group: int, names: Sequence[str], wanted: WantedKeys
) -> pa.Table | None:
    """The rows of a row group; None for none."""
    runs = layout.pages_with(group, RECORD_KEY, wanted.sorted)
    if not len(runs[0]):
        return None
    keys, checked = layout.decode(read, group, [RECORD_KEY], runs, gap)
    places = _places(keys.column(0), wanted.keys)
    if not len(places):
        return None
    columns = {RECORD_KEY: checked(keys.take(pa.array(places))).column(0)}
    rows = rows_at(runs, places)
    # Columns whose pages end at the same rows are decoded together.
    alike: dict[bytes, tuple[list[str], tuple[Rows, Rows]]] = {}
    for name in names:
        if name != RECORD_KEY:
            cover = layout.covering(group, name, rows)
            alike.setdefault(cover[0].tobytes() + b"|" + cover[1].tobytes(), ([], cover))[0].append(name)
    for some, cover in alike.values():
        table, check = layout.decode(read, group, some, cover, gap)
        table = check(table.take(pa.array(places_in(cover, rows))))
        columns.update(zip(table.column_names, table.columns, strict=True))
    return pa.table([columns[n] for n in names], names=list(names))


def _places(keys: pa.ChunkedArray, wanted: pa.Array) -> Rows:
    mask = (
        pc.equal(keys.cast(wanted.type), wanted[0])
        if len(wanted) == 1
        else pc.is_in(keys.cast(wanted.type), wanted)
    )
    return np.asarray(pc.indices_nonzero(mask), np.int64)
