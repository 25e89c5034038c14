"""Plans and results on the timeline: Avro object containers with one record each.

Read from any writer's container by the schema in its header, in full (every field is known by name,
appended ones are kept).  Written as Apache Hudi 0.15 does: no codec, one metadata key, its schemas.
"""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Mapping
from typing import Any

import fastavro

from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_timeline.metadata import avro_schemas as schemas
from hudi_timeline.metadata.archived_schema import COMPACTION_PLAN
from hudi_timeline.metadata.avro_guard import (
    DECODING_ERRORS,
    MAGIC,
    SYNC_BYTES,
    checked_schema,
    container_parts,
)
from hudi_timeline.metadata.avro_types import Schema

Record = dict[str, Any]

SCHEMAS: Mapping[str, Schema] = {
    s["name"]: s
    for s in (
        schemas.ROLLBACK_PLAN,
        schemas.ROLLBACK_METADATA,
        schemas.RESTORE_PLAN,
        schemas.RESTORE_METADATA,
        schemas.CLEAN_METADATA,
        schemas.CLEANER_PLAN,
        schemas.SAVEPOINT_METADATA,
        schemas.REQUESTED_REPLACE,
        COMPACTION_PLAN,
    )
}


def schema_text(name: str) -> str:
    """A schema as it stands in a container's header: compact JSON."""
    return json.dumps(SCHEMAS[name], separators=(",", ":"))


def render(name: str, record: Mapping[str, object], *, sync: bytes | None = None) -> bytes:
    """A container with one record of the schema `name`; missing fields get their defaults.

    Args:
        sync: the 16 bytes between blocks; random where it is not given.
    """
    # fastavro's own writer stores a rewritten schema and an `avro.codec` key; Apache Hudi stores
    # neither, so the frame is made here and fastavro encodes the record alone.
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _parsed(name), dict(record))
    header = schema_text(name).encode()
    marker = sync or os.urandom(SYNC_BYTES)
    key = b"avro.schema"
    meta = varint(1) + varint(len(key)) + key + varint(len(header)) + header + varint(0)
    data = body.getvalue()
    return MAGIC + meta + marker + varint(1) + varint(len(data)) + data + marker


def _parsed(name: str) -> Any:
    # parse_schema writes into nested parts of what it is given.
    return fastavro.parse_schema(copy.deepcopy(SCHEMAS[name]))


def parse(name: str, data: bytes, *, path: str = "") -> Record:
    """The one record of a container.

    Raises:
        CorruptFileError: no container, another record type, cut off, or not exactly one record.
        UnsupportedError: a codec that Apache Hudi does not use.
    """
    found, record = read_container(data, what=name, path=path)
    if found != name:
        raise _corrupt(name, f"it holds {found!r}", path)
    return record


def read_container(data: bytes, *, what: str = "Avro container", path: str = "") -> tuple[str, Record]:
    """The name of a container's record type, without its namespace, and its one record.

    Args:
        what: what is expected, for messages.

    Raises:
        CorruptFileError: no container, cut off, or not exactly one record.
        UnsupportedError: a codec that Apache Hudi does not use.
    """
    try:
        container = container_parts(data)
        schema = checked_schema(container.schema)
        count = sum(n for n, _ in container.blocks)
        if count != 1:
            raise CorruptFileError(f"it holds {count} records instead of one")
        source = io.BytesIO(b"".join(block for _, block in container.blocks))
        record = fastavro.schemaless_reader(source, schema, None)
        if source.read(1):
            raise CorruptFileError("bytes follow its record")
    except CorruptFileError as e:
        raise _corrupt(what, e.message, path) from None
    except UnsupportedError as e:
        raise e.at(file=path) from None
    except DECODING_ERRORS as e:
        raise _corrupt(what, f"{type(e).__name__}: {e}", path) from None
    name = str(schema.get("name", "")).rpartition(".")[2]
    if not isinstance(record, dict):
        raise _corrupt(what, f"it holds a {type(record).__name__} and no record", path)
    return name, record


def _corrupt(name: str, reason: str, path: str) -> CorruptFileError:
    return CorruptFileError(
        f"no readable {name}: {reason}",
        file=path,
        remedy="restore the file from a backup of the table; a pending plan that nothing has executed "
        "yet may be deleted.",
    )


def is_clustering_request(data: bytes, *, path: str = "") -> bool:
    """Whether the requested file of a replacecommit plans a clustering.

    Raises:
        CorruptFileError: the file cannot be read.
    """
    record = parse("HoodieRequestedReplaceMetadata", data, path=path)
    return record.get("operationType") == "CLUSTER" and record.get("clusteringPlan") is not None


def empty_replace_request() -> bytes:
    """The requested file of an insert_overwrite, insert_overwrite_table or delete_partition."""
    return render("HoodieRequestedReplaceMetadata", {})
