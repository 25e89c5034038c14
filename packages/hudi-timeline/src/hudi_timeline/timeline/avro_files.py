"""Avro files of plans and results: object containers with one record each.

Read from any writer's container by the schema in its header, in full (every field is known by name,
appended ones are kept).  Written as Apache Hudi 0.15 does: no codec, one metadata key, its schemas.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import fastavro

from hudi_format.avro import container
from hudi_format.avro.container import MAGIC, SYNC_BYTES
from hudi_format.avro.defaults import varint
from hudi_format.avro.types import MISSING, AvroType
from hudi_format.avro.types import parse as parse_model
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.storage.protocol import Storage
from hudi_format.storage.stable_reads import read_whole

# Whether records of a schema have the shape that this package reads: a plan's writer may have had any other.
#
# Records are read by the schema in their file's header.  A field of another type than Apache Hudi's, or without the
# parts that Apache Hudi always writes, is damage: there it could not be read under the reader's schema either.
#
# Source: Avro 1.11 specification, "Schema Resolution".

# Kinds that are one in Python.
_ALIKE = {"int": "number", "long": "number", "float": "fraction", "double": "fraction", "enum": "string",
          "fixed": "bytes"}  # fmt: skip


def misfit(written: AvroType, wanted: AvroType, where: str = "") -> str:
    """First mismatch of a record schema with the wanted one, or "".

    Fields that are not wanted may be anything; wanted ones that have a default may be missing.
    """
    choices = _branches(wanted)
    for kind in _branches(written):
        same = [c for c in choices if _kind(c) == _kind(kind)]
        if not same:
            words = " or ".join(c.kind for c in choices)
            return f"{where or 'the record'} is a {kind.kind} and no {words}"
        found = [_inside(kind, c, where) for c in same]
        if all(found):
            return found[0]
    return ""


def _branches(kind: AvroType) -> list[AvroType]:
    return kind.branches if kind.kind == "union" else [kind]


def _kind(kind: AvroType) -> str:
    return _ALIKE.get(kind.kind, kind.kind)


def _inside(written: AvroType, wanted: AvroType, where: str) -> str:
    if written.items is not None and wanted.items is not None:
        return misfit(written.items, wanted.items, f"{where}[]")
    there = {f.name: f.type for f in written.fields}
    for f in wanted.fields:
        path = f"{where}.{f.name}" if where else f.name
        if f.name in there:
            found = misfit(there[f.name], f.type, path)
            if found:
                return found
        elif f.default is MISSING:
            return f"{path} is missing"
    return ""


Record = dict[str, Any]

_REMEDY = "restore the file from a backup of the table; a pending plan that nothing has executed yet may be deleted."

SCHEMAS = frozenset({
    "HoodieCleanMetadata",
    "HoodieCleanerPlan",
    "HoodieCompactionPlan",
    "HoodieRequestedReplaceMetadata",
    "HoodieRestoreMetadata",
    "HoodieRestorePlan",
    "HoodieRollbackMetadata",
    "HoodieRollbackPlan",
    "HoodieSavepointMetadata",
})  # fmt: skip
"""Records of instants' files whose schema is known: as Apache Hudi 0.15 writes it."""
ARCHIVED_ENTRY = "HoodieArchivedMetaEntry"
"""Record of an entry in the archive of timeline layout 1."""


@cache
def schema_text(name: str) -> str:
    """A schema as it stands in a container's header: compact JSON.

    Order of fields and of unions, `doc` and `default` are those of Apache Hudi's files, so that a container of ours has
    the same header.
    """
    text = (Path(__file__).parent / "schemas" / f"{name}.avsc").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))


@cache
def parsed_schema(name: str) -> Any:
    """A schema as fastavro takes it."""
    return fastavro.parse_schema(json.loads(schema_text(name)))


def render(name: str, record: Mapping[str, object], *, sync: bytes | None = None) -> bytes:
    """A container with one record of the schema `name`; missing fields get their defaults.

    Args:
        sync: the 16 bytes between blocks; random where it is not given.
    """
    # fastavro's own writer stores a rewritten schema and an `avro.codec` key; Apache Hudi stores
    # neither, so the frame is made here and fastavro encodes the record alone.
    body = io.BytesIO()
    fastavro.schemaless_writer(body, parsed_schema(name), dict(record))
    header = schema_text(name).encode()
    marker = sync or os.urandom(SYNC_BYTES)
    key = b"avro.schema"
    meta = varint(1) + varint(len(key)) + key + varint(len(header)) + header + varint(0)
    data = body.getvalue()
    return MAGIC + meta + marker + varint(1) + varint(len(data)) + data + marker


def parse(name: str, data: bytes, *, path: str = "") -> Record:
    """The one record of a container.

    Raises:
        CorruptFileError: no container, another record type or shape, cut off, or not exactly one record.
        UnsupportedError: a codec that Apache Hudi does not use.
    """
    found, record = read_container(data, what=name, path=path)
    other = (
        f"it holds {found!r}"
        if found != name
        else _other_shape(name, container.container_header(data).schema)
    )
    if other:
        raise CorruptFileError(f"no readable {name}: {other}", file=path, remedy=_REMEDY)
    return record


@lru_cache(maxsize=64)
def _other_shape(name: str, written: str) -> str:
    """First mismatch of a record schema with Apache Hudi's, or ""."""
    if name not in SCHEMAS:
        return ""
    return misfit(parse_model(written), parse_model(schema_text(name)))


def read_record(storage: Storage, name: str, path: str, instant: str) -> Record:
    """The record of an instant's file, which another writer may be writing.

    Raises:
        FileNotFoundError: there is no such file.
        CorruptFileError, UnsupportedError: as `parse`, with table and instant.
    """
    try:
        return read_whole(storage, path, lambda data: parse(name, data, path=path))
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, instant=instant, file=path) from None


def read_container(data: bytes, *, what: str = "Avro container", path: str = "") -> tuple[str, Record]:
    """Record type (without namespace) and the single record of a container.

    Args:
        what: what is expected, for messages.

    Raises:
        CorruptFileError: no container, cut off, or not exactly one record.
        UnsupportedError: a codec that Apache Hudi does not use.
    """
    try:
        return container.read_container(data, what=what)
    except CorruptFileError as e:
        e.remedy = _REMEDY
        raise e.at(file=path) from None
    except UnsupportedError as e:
        raise e.at(file=path) from None


# Of a group of a clustering plan that splits or merges buckets: the nodes of the ring that it makes.
CHILD_NODES = "clustering.group.child.node"


def plans_clustering(request: Record) -> bool:
    """Whether a HoodieRequestedReplaceMetadata plans a clustering."""
    return request.get("operationType") == "CLUSTER" and request.get("clusteringPlan") is not None


def resizes_alone(request: Record) -> bool:
    """Whether each group of a planned clustering names the nodes of a ring that it makes."""
    plan = request.get("clusteringPlan") or {}
    groups = plan.get("inputGroups") or ()
    return bool(groups) and all(CHILD_NODES in (g.get("extraMetadata") or {}) for g in groups)


def empty_replace_request() -> bytes:
    """Content of a requested file of insert_overwrite(_table) or delete_partition."""
    # Nothing in it could be taken for the marker, which may so be the same each time.
    return render(
        "HoodieRequestedReplaceMetadata", {}, sync=sha256(b"empty replace request").digest()[:SYNC_BYTES]
    )
