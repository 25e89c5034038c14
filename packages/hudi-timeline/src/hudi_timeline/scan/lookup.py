"""Rows by record key: files that cannot hold a key are told by their footers and not read.

Source: spec "Base files", section 3: a file can be left out if a key is outside its key range or its bloom
filter says no.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import HudiError
from hudi_format.keys import record_keys
from hudi_format.parquet.entries import read_entries
from hudi_format.schema.evolve import as_stored, conform
from hudi_format.schema.meta_columns import RECORD_KEY
from hudi_format.storage import Storage
from hudi_index.bloom.index import MAYBE, BloomIndex
from hudi_timeline.scan.result import Scan
from hudi_timeline.scan.task import ReadTask, read_whole
from hudi_timeline.table_config import TableConfig

Keys: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch

THREADS = 8


def look_up(
    scan_of: Callable[..., Scan], storage: Storage, config: TableConfig, schema: pa.Schema, keys: Keys
) -> pa.Table:
    """The newest rows with these record keys.

    Args:
        scan_of: `HudiTable.read`.
        schema: the table's, without meta columns.
        keys: record keys, or rows with the key columns.

    Raises:
        MissingColumnError, RecordKeyError: `keys` are rows without key columns, or with a null in one.
    """
    wanted = _key_texts(keys, config, schema)
    if not config.populate_meta_fields:
        every = scan_of().to_arrow()
        return every.filter(pc.is_in(record_keys(every, config.record_key_spec()), wanted))
    scan = scan_of(filter=pc.field(RECORD_KEY).isin(wanted))
    tasks = scan.plan_files()
    index = BloomIndex(wanted.drop_null())

    def rows(task: ReadTask) -> pa.Table | None:
        # The footer says nothing about the keys in a slice's logs.
        asks = task.logs is not None or _may_hold(storage, task.path, index)
        return read_whole(task) if asks else None

    with ThreadPoolExecutor(THREADS, thread_name_prefix="hudi-get") as pool:
        found = [t for t in pool.map(rows, tasks) if t is not None]
    return pa.concat_tables(found) if found else scan.schema.empty_table()


def _as_in_table(rows: pa.Table | pa.RecordBatch, config: TableConfig, schema: pa.Schema) -> pa.Table:
    """The key columns in the table's types: 1.5 is 1.50 in a table that keeps two digits."""
    roots = dict.fromkeys(name.partition(".")[0] for name in config.record_key_fields)
    there = [n for n in roots if n in rows.schema.names]
    wanted = pa.schema([as_stored(rows.schema.field(n), schema) for n in there])
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    return conform(table.select(there), wanted)


def _key_texts(keys: Keys, config: TableConfig, schema: pa.Schema) -> pa.Array:
    if isinstance(keys, (pa.Table, pa.RecordBatch)):
        made = record_keys(_as_in_table(keys, config, schema), config.record_key_spec())
    elif isinstance(keys, str):
        raise TypeError("keys must be a list of record keys, not one text")
    else:
        made = keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(list(keys), pa.string())
    return pc.unique(made.cast(pa.string()))


def _may_hold(storage: Storage, path: str, index: BloomIndex) -> bool:
    """Whether a file's footer leaves it open that one of the keys is in it."""
    if not index.probe.rows:
        return False
    try:
        return index.candidates(read_entries(storage, path)).verdict == MAYBE
    except HudiError as e:
        raise e.at(table=storage.uri, file=path) from None
