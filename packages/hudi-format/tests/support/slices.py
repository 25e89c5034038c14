"""File slices written to a folder: a base file and log files of data and delete blocks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.encoder import Encoder
from hudi_format.log.writer import LogWriter
from hudi_format.model import BaseFile, FileSlice
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import META_COLUMNS, with_meta

DATA = pa.schema(
    [
        ("ts", pa.int64()),
        ("text", pa.string()),
        ("list", pa.list_(pa.int64())),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
SCHEMA = pa.schema([f.with_nullable(True) for f in with_meta(DATA)])


def rows_of(records, instant, schema=SCHEMA):
    """Rows with meta columns, of (key, values) pairs."""
    out = []
    for number, (key, values) in enumerate(records):
        meta = [instant, f"{instant}_0_{number}", key, "", "f-0"]
        out.append(dict(zip(META_COLUMNS, meta, strict=True)) | values)
    return pa.Table.from_pylist(out, schema=schema)


def write_slice(storage, base, logs, *, row_group_rows=1000, schema=SCHEMA, files=1):
    """A slice of a base file (None for none) and of log files.

    Args:
        logs: per block a table of rows, or a pair of keys and ordering values to delete.
        files: log files to spread the blocks over.
    """
    base_file = None
    if base is not None:
        base_file = BaseFile("", "f-0_0-1-1_1.parquet", "f-0", "1", "0-1-1")
        with storage.open_output(base_file.path) as out:
            pq.write_table(base, out, row_group_size=row_group_rows)
    avro = to_avro(schema, "r")
    encoder = Encoder(avro, schema)
    written = []
    step = -(-len(logs) // files) if logs else 1
    for number, start in enumerate(range(0, len(logs), step)):
        instant = str(100 + number)
        with LogWriter(
            storage, "", "f-0", "1", instant=instant, schema=avro, write_token="0-2-2", version=number + 1
        ) as log:
            for part in logs[start : start + step]:
                if isinstance(part, tuple):
                    log.append_deletes(part[0], None, part[1])
                    continue
                for batch in part.combine_chunks().to_batches():
                    log.append_avro(*encoder.encode(batch))
            written += [w.file for w in log.close()]
    return FileSlice("", "f-0", "1", base_file, tuple(written))
