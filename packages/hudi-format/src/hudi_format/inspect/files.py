"""Inspection of one file: detects its kind from its bytes and reports its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.file_names import parse_data_file
from hudi_format.hfile import trailer as t
from hudi_format.hfile.reader import HFileReader
from hudi_format.inspect.report import FileReport, schemas_of
from hudi_format.log.block import MAGIC, BlockType, HeaderKey, LogBlock
from hudi_format.log.data_block import BlockDecoder, read_avro
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.parquet_block import unreadable
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile
from hudi_format.parquet.footer import Footer, read_footer, reading
from hudi_format.parquet.row_groups import RowGroup, read_row_groups
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.open import folder_and_name, normalised_path, open_storage
from hudi_format.storage.protocol import Storage

# A look into a base file: row groups or stripes, schema, and what Apache Hudi wrote into the footer.

_LONG = 200  # characters of an entry of a footer, or of an HFile's file info, that are shown
_SCHEMAS = ("parquet.avro.schema", "orc.avro.schema")


def _facts(path: str) -> dict[str, Any]:
    """The path, and what the file's name says."""
    file = parse_data_file("", path.rpartition("/")[2])
    facts: dict[str, Any] = {"file": path}
    if file is not None:
        facts |= {"file id": file.file_id, "instant of the name": file.instant}
        if isinstance(file, LogFile):
            facts["version"] = file.version
        if file.write_token:
            facts["write token"] = file.write_token
    return facts


def _entries(entries: Mapping[str, str]) -> dict[str, str]:
    """Footer entries, without the schema, which is shown separately."""
    return {
        n: v if len(v) <= _LONG else f"{len(v)} characters" for n, v in entries.items() if n not in _SCHEMAS
    }


def inspect_parquet(storage: Storage, path: str) -> FileReport:
    """Row groups, columns and footer entries of a Parquet base file.

    Raises:
        MissingFileError, CorruptFileError, StorageError: as `read_footer`.
    """
    with reading(storage, path):  # texts of the footer are decoded when they are asked for
        return _parquet(path, read_footer(storage, path), read_row_groups(storage, path))


def _parquet(path: str, footer: Footer, groups: list[RowGroup]) -> FileReport:
    metadata = footer.metadata
    facts = _facts(path) | {
        "bytes": footer.size,
        "rows": footer.num_rows,
        "columns": [f"{f.name}: {f.type}" for f in footer.schema],
        "written by": metadata.created_by,
        **_entries(footer.entries),
    }
    rows = []
    for i, group in enumerate(groups[: footer.num_row_groups]):
        chunks = group.columns.values()
        packed, codecs = sum(c.packed for c in chunks), sorted({c.codec for c in chunks})
        rows.append((i, group.num_rows, packed, metadata.row_group(i).total_byte_size, " ".join(codecs)))
    columns = ("row group", "rows", "bytes", "bytes unpacked", "codec")
    return FileReport("base file (Parquet)", facts, columns, tuple(rows), schemas_of(footer.avro_schema))


def inspect_orc(storage: Storage, path: str) -> FileReport:
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
            raise CorruptFileError(f"an unreadable ORC file: {e}", file=path, offset=0) from e
    schema = next((entries[n] for n in _SCHEMAS if n in entries), "")
    return FileReport(
        "base file (ORC)", facts | _entries(entries), ("stripe", "rows"), rows, schemas_of(schema)
    )


# A look into an HFile: its data blocks, what its trailer and its file info say, its meta blocks.

_NUMBERS = (t.KEY_VALUE_VERSION, t.MAX_MEMSTORE_TS, t.AVG_KEY_LENGTH, t.AVG_VALUE_LENGTH, t.CREATE_TIME)
_COLUMNS = ("data block at byte", "bytes", "bytes unpacked", "entries", "first key", "last key")


def inspect_hfile(storage: Storage, path: str) -> FileReport:
    """Data blocks of an HFile with their keys, its trailer, file info and meta blocks.

    All blocks are read; damage in them is a problem of the report.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError: as `HFileReader.open`.
    """
    reader = HFileReader.open(storage, path)
    trailer = reader.trailer
    facts: dict[str, Any] = {
        "file": path,
        "bytes": reader.size,
        "version": f"3.{trailer.minor_version}",
        "entries": reader.entry_count,
        "compression": trailer.codec.name,
        "index levels": trailer.index_levels,
        "comparator": trailer.comparator,
    }
    for name, value in reader.file_info.items():
        if name != t.SCHEMA:
            facts[_key(name)] = _value(name, value)
    rows: list[tuple[Any, ...]] = []
    problems: list[str] = []
    try:
        for meta in reader.meta_blocks:
            facts[f"meta block {meta}"] = f"{len(reader.meta_block(meta) or b'')} bytes"
        for b in reader.data_blocks():
            rows.append((b.offset, b.size, b.content_size, b.entries, _key(b.first_key), _key(b.last_key)))
    except CorruptFileError as e:
        problems.append(str(e))
    return FileReport("HFile", facts, _COLUMNS, tuple(rows), schemas_of(reader.schema), tuple(problems))


def _value(name: bytes, value: bytes) -> str | int:
    """Numbers and text unchanged, other bytes in hex; the schema is shown separately."""
    if name in _NUMBERS:
        return int.from_bytes(value)
    if name == t.LAST_KEY:
        return _key(value[2 : 2 + int.from_bytes(value[:2])])
    text = str(value, "utf-8", "replace")
    shown = text if text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text else value.hex()
    return shown if len(shown) <= _LONG else f"{len(value)} bytes"


def _key(key: bytes) -> str:
    return str(key, "utf-8", "backslashreplace")


# A look into a log file: its blocks.

COLUMNS = ("offset", "bytes", "type", "instant", "records", "first key", "last key", "notes")
_KEYS = frozenset(HeaderKey)


def inspect_log(storage: Storage, path: str) -> FileReport:
    """Blocks of a log file: instant, number of records, smallest and largest key.

    Damage does not stop it: a stretch that is no block is a row, and a content that cannot be read a problem.

    Raises:
        MissingFileError: there is no such file.
        StorageError: the storage refused.
    """
    facts = _facts(path)
    problems: list[str] = []
    rows: list[tuple[Any, ...]] = []
    more: list[dict[str, Any]] = []
    schemas: dict[str, int] = {}
    with LogFileReader.open(storage, path) as log:
        blocks = log.blocks
        facts |= {"bytes": log.size, "blocks": len(blocks)}
        for block in blocks:
            count, first, last = None, None, None
            if block.type is BlockType.CORRUPT:
                problems.append(f"byte {block.offset}: {block.damage.text}, {block.size} bytes")
            else:
                try:
                    count, first, last = _contents(block, log.content(block))
                except HudiError as e:
                    problems.append(e.message)
            schema = schemas.setdefault(block.schema, len(schemas) + 1) if block.schema else None
            more.append({"header": _header(block), "schema": schema})
            row = (
                block.offset,
                block.size,
                block.type.name,
                block.instant or None,
                count,
                first,
                last,
                _notes(block, schema),
            )
            rows.append(row)
    counts = Counter(b.type.name for b in blocks)
    facts |= {"types": [f"{n} {t}" for t, n in sorted(counts.items())]}
    facts |= {"instants": sorted({b.instant for b in blocks if b.instant})}
    return FileReport("log file", facts, COLUMNS, tuple(rows), tuple(schemas), tuple(problems), tuple(more))


def _contents(block: LogBlock, content: pa.Buffer) -> tuple[int | None, str | None, str | None]:
    """Number of records, smallest and largest key; None where a block has none."""
    if block.type is BlockType.COMMAND:
        return None, None, None
    if block.type is BlockType.DELETE:
        deletes = read_deletes(block, content)
        return len(deletes), *_least_and_greatest([deletes.keys])
    if block.type is BlockType.HFILE_DATA:
        reader = HFileReader.from_buffer(
            memoryview(content).cast("B"), path=block.file, offset=block.content_offset
        )
        keys = [b.column(0).cast(pa.string(), safe=False) for b in reader.batches()]
        return reader.entry_count, *_least_and_greatest(keys)
    if block.type is BlockType.PARQUET_DATA:
        try:
            rows = pq.ParquetFile(pa.BufferReader(content)).metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
            raise unreadable(block, e) from e
    else:
        rows = len(read_avro(block, content))
    if f'"{RECORD_KEY}"' not in block.schema:
        return rows, None, None
    batches = BlockDecoder(columns=[RECORD_KEY]).batches(block, content)
    return rows, *_least_and_greatest([b.column(0) for b in batches])


def _least_and_greatest(arrays: list[pa.Array]) -> tuple[str | None, str | None]:
    found = [pc.min_max(a).as_py() for a in arrays if len(a)]
    least = [f["min"] for f in found if f["min"] is not None]
    greatest = [f["max"] for f in found if f["max"] is not None]
    return min(least, default=None), max(greatest, default=None)


def _header(block: LogBlock) -> dict[str, str]:
    """Header entries by name, or by number where it is unknown."""
    return {
        HeaderKey(key).name if key in _KEYS else str(int(key)): text
        for key, text in sorted(block.header.items())
        if key != HeaderKey.SCHEMA
    }


def _notes(block: LogBlock, schema: int | None) -> str:
    notes = []
    if unknown := [str(int(key)) for key in sorted(block.header) if key not in _KEYS]:
        notes.append(f"unknown header entries {' '.join(unknown)}")
    if block.type is BlockType.CORRUPT:
        notes.append(block.damage.text)
    if block.target_instant:
        notes.append(f"rolls back {block.target_instant}")
    if block.is_partial:
        notes.append("partial update")
    if block.compacted_instants:
        notes.append(f"compacted from {' '.join(block.compacted_instants)}")
    if block.positions_base_instant:
        notes.append(f"positions in {block.positions_base_instant}")
    if schema is not None and schema > 1:
        notes.append(f"schema {schema}")
    return "; ".join(notes)


_INSPECTORS = {"log": inspect_log, "parquet": inspect_parquet, "orc": inspect_orc, "hfile": inspect_hfile}


def inspect_file(uri: str) -> FileReport:
    """Report on one log file, HFile or base file.

    Args:
        uri: a local path, or any address that fsspec knows.

    Raises:
        MissingFileError: there is no such file.
        UnsupportedError: a file of another kind.
        CorruptFileError: damage that leaves nothing to show.
    """
    folder, name = folder_and_name(normalised_path(uri))
    if folder.endswith(("/", ":")) and "://" in uri:  # a bucket or a host is never a file
        folder = uri
    storage = open_storage(folder)
    info = storage.info(name)
    if info is None or info.is_dir:
        what = "the file does not exist" if info is None else "the path is a folder, not a file"
        raise MissingFileError(what, table=storage.uri, file=name, remedy="correct the path.")
    return _INSPECTORS[_kind(storage, name, info.size)](storage, name)


def _kind(storage: Storage, name: str, size: int) -> str:
    if isinstance(parse_data_file("", name), LogFile):
        return "log"
    head = tail = b""
    if size > 0:
        with storage.open_input(name) as source:
            head = bytes(source.read(min(size, 8)))
            source.seek(max(0, size - t.TRAILER_SIZE))
            tail = bytes(source.read())
    if head.startswith(MAGIC):
        return "log"
    if head.startswith(b"PAR1") or tail.endswith(b"PAR1") or name.endswith(".parquet"):
        return "parquet"
    if head.startswith(b"ORC") or name.endswith(".orc"):
        return "orc"
    if t.MAGIC in tail or name.endswith(".hfile"):
        return "hfile"
    raise UnsupportedError(
        "not a log file, HFile or base file",
        table=storage.uri,
        file=name,
        remedy="give one of those; `hudi timeline` shows timeline files.",
    )
