"""A look into a base file: row groups or stripes, schema, and what Apache Hudi wrote into the footer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.orc as orc

from hudi_format.errors import CorruptFileError
from hudi_format.inspect.report import Report, schemas_of
from hudi_format.names import parse_base_file
from hudi_format.parquet.chunks import RowGroup, read_row_groups
from hudi_format.parquet.footer import Footer, read_footer, reading
from hudi_format.storage import Storage

_LONG = 200  # characters of a footer entry that are shown
_SCHEMAS = ("parquet.avro.schema", "orc.avro.schema")


def _facts(path: str) -> dict[str, Any]:
    file = parse_base_file("", path.rpartition("/")[2])
    facts: dict[str, Any] = {"file": path}
    if file is not None:
        facts |= {
            "file id": file.file_id,
            "instant of the name": file.instant,
            "write token": file.write_token,
        }
    return facts


def inspect_parquet(storage: Storage, path: str) -> Report:
    """Row groups, columns and footer entries of a Parquet base file.

    Raises:
        MissingFileError, CorruptFileError, StorageError: as `read_footer`.
    """
    with reading(storage, path):  # texts of the footer are decoded when they are asked for
        return _parquet(path, read_footer(storage, path), read_row_groups(storage, path))


def _parquet(path: str, footer: Footer, groups: list[RowGroup]) -> Report:
    metadata = footer.metadata
    facts = _facts(path) | {
        "bytes": footer.size,
        "rows": footer.num_rows,
        "columns": [f"{f.name}: {f.type}" for f in footer.schema],
        "written by": metadata.created_by,
    }
    for name, value in footer.entries.items():
        if name not in _SCHEMAS:
            facts[name] = value if len(value) <= _LONG else f"{len(value)} characters"
    rows = []
    for i, group in enumerate(groups[: footer.num_row_groups]):
        chunks = group.columns.values()
        packed, codecs = sum(c.packed for c in chunks), sorted({c.codec for c in chunks})
        rows.append((i, group.num_rows, packed, metadata.row_group(i).total_byte_size, " ".join(codecs)))
    columns = ("row group", "rows", "bytes", "bytes unpacked", "codec")
    return Report("base file (Parquet)", facts, columns, tuple(rows), schemas_of(footer.avro_schema))


def inspect_orc(storage: Storage, path: str) -> Report:
    """Stripes, columns and footer entries of an ORC base file.

    Raises:
        CorruptFileError: no ORC file.
    """
    with storage.open_input(path) as source:
        try:
            file = orc.ORCFile(source)
            entries = {k.decode(): v.decode(errors="replace") for k, v in dict(file.metadata or {}).items()}
            facts = _facts(path) | {
                "bytes": file.file_length,
                "rows": file.nrows,
                "columns": [f"{f.name}: {f.type}" for f in file.schema],
                "codec": file.compression,
                "written by": f"{file.writer} {file.software_version}".strip(),
            }
            rows = tuple(
                (i, file.read_stripe(i, columns=file.schema.names[:1]).num_rows) for i in range(file.nstripes)
            )
        except (pa.ArrowException, OSError, ValueError) as e:
            raise CorruptFileError(f"an ORC file that cannot be read: {e}", file=path, offset=0) from e
    schema = next((entries[n] for n in _SCHEMAS if n in entries), "")
    for name, value in entries.items():
        if name not in _SCHEMAS:
            facts[name] = value if len(value) <= _LONG else f"{len(value)} characters"
    return Report("base file (ORC)", facts, ("stripe", "rows"), rows, schemas_of(schema))
