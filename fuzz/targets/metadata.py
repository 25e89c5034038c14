"""What a table keeps beside data and timeline: metadata table, schema history, bootstrap index, locks; and capsules."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa

from hudi_format.errors import HudiError, UnsupportedError
from hudi_format.file_slice.bootstrap import FOLDER, INSTANT, read_sources
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.user_merger import parse_merge
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.schema.internal_schema import (
    ReadEvolution,
    SchemaVersion,
    parse_version,
    parse_versions,
    reading,
)
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table.files import read_table_files
from hudi_timeline.bug_capsule.open import open_capsule
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.storage_lock import PATH, StorageLock
from hudi_timeline.timeline.commit_metadata import parse_commit
from targets import golden
from targets.base_file import folder, storage
from targets.target import Target

_BASE, _LOG = "files-0000-0_0-1-2_1.hfile", ".files-0000-0_1.log.1_0-1-2"


def run_table_files(data: bytes) -> None:
    """A base file or a log of the metadata table's partition `files`, as the first byte says."""
    log = bool(data) and data[0] % 2 == 1
    name = _LOG if log else _BASE
    (folder() / name).write_bytes(data[1:])
    file_slice = FileSlice(
        "", "files-0000-0", "1",
        None if log else BaseFile("", name, "files-0000-0", "1", "0-1-2", len(data) - 1),
        (LogFile("", name, "files-0000-0", "1", 1, "0-1-2", len(data) - 1),) if log else (),
    )  # fmt: skip
    found = read_table_files(storage(), [file_slice], BlockScope())
    assert set(found.files) == set(found.partitions)
    for partition in found.partitions[:2]:
        part = read_table_files(storage(), [file_slice], BlockScope(), [partition])
        assert part.files[partition] == found.files[partition]


def run_history(data: bytes) -> None:
    """A file of the schema history, and a commit's entry of it; each version is read as each other."""
    versions: tuple[SchemaVersion, ...]
    try:
        versions = parse_versions(data)
    except HudiError:
        versions = (parse_version(data.decode("utf-8", "replace")),)
    assert [v.version for v in versions] == sorted(v.version for v in versions)
    for wanted in versions[:3]:
        evolution = ReadEvolution(wanted, versions)
        for stored in versions[-3:]:
            try:
                how = reading(wanted, stored)
                evolution.reading(str(stored.version))
            except UnsupportedError:
                continue
            if how is not None:
                schema = pa.schema([(c.name, pa.int64()) for c in wanted.columns if not c.inside])
                read = how.stored(schema)
                # Text that became another type is stored: it would have to be of a date.
                values = [pa.array([None if pa.types.is_string(f.type) else 1], f.type) for f in read]
                rows = pa.Table.from_arrays(values, schema=read)
                assert how.given(rows, schema).schema == schema


def run_bootstrap(data: bytes) -> None:
    """The value of an entry of the bootstrap's index."""
    path = folder() / FOLDER
    path.mkdir(parents=True, exist_ok=True)
    index = hfile_bytes(
        pa.array(["part=p;fileid=f"]), pa.array([data], pa.binary()), schema=None, codec="none"
    )
    (path / f"00000000-0000-0000-0000-000000000000-0_1-0-1_{INSTANT}.hfile").write_bytes(index)
    (found,) = read_sources(storage(), [("p", "f")]).values()
    assert found.name
    assert "/" not in found.name


class _Versioned:
    """Memory with writes on condition, as stores of objects have them."""

    can_replace = True

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        try:
            data = self._inner.read(path)
        except FileNotFoundError:
            return None
        return data, data.hex()

    def replace(self, path: str, data: bytes, version: str) -> bool:
        if self._inner.read(path).hex() != version:
            return False
        self._inner.delete(path)
        self._inner.create(path, data)
        return True


@cache
def _memory() -> Any:
    return _Versioned(open_storage("memory://fuzz-locks"))


def run_locks(data: bytes) -> None:
    """Lock files of others: taken over where they have run out, named where they have not, else an error."""
    store = _memory()
    own = heartbeat.this_process().text().encode()
    for lock, path in (
        (StorageLock(store, now=lambda: 2e9), PATH),
        (FileSystemLock(store, expire_minutes=1), ".hoodie/lock"),
    ):
        if store.info(path) is not None:
            store.delete(path)
        store.create(path, data.replace(b"OWN", own))
        assert isinstance(lock.holder(), str)
        if lock.try_acquire():
            lock.verify()
            lock.release()


def run_capsule(data: bytes) -> None:
    target = folder() / "capsule"
    shutil.rmtree(target, ignore_errors=True)
    (folder() / "capsule.zip").write_bytes(data)
    open_capsule(folder() / "capsule.zip", target)


def run_merge_option(data: bytes) -> None:
    """The merge of the user's that a table's properties may name."""
    merge = parse_merge(data.decode("utf-8", "surrogateescape"))
    assert bool(merge.columns) != bool(merge.function)


def _table_files_seeds() -> Iterator[bytes]:
    for name, data in golden.files():
        if "/.hoodie/metadata/files/" in name and 0 < len(data) < 20_000:
            last = name.rpartition("/")[2]
            if last.endswith(".hfile"):
                yield b"\0" + data
            elif ".log." in last and not last.endswith(".crc"):
                yield b"\1" + data


def _history_seeds() -> Iterator[bytes]:
    seen: set[str] = set()
    for name, data in golden.files():
        if name.endswith(".schemacommit") and 0 < len(data) < 20_000:
            yield data
        elif name.endswith((".commit", ".deltacommit")) and b"latest_schema" in data and data[:1] == b"{":
            text = parse_commit(data).extra.get("latest_schema")
            if isinstance(text, str) and text and text not in seen:
                seen.add(text)
                yield text.encode()


def _bootstrap_seeds() -> Iterator[bytes]:
    for name, data in golden.files():
        if "/.fileids/" in name and name.endswith(".hfile"):
            yield from HFileReader.from_buffer(data).scan().column("value").to_pylist()[:2]


def _lock_seeds() -> Iterator[bytes]:
    yield b'{"expired":false,"validUntil":1e999,"owner":"5b0ee1f5-5d3c-4b6b-8d5d-0b6ea2f8f5a1 h|b|n|1|s"}'
    yield b'{"expired":false,"validUntil":2999999999999,"owner":"5b0ee1f5 OWN"}'
    yield b'{"expired":true,"validUntil":9999999999999,"owner":"x"}'
    yield b'{"lockCreateTime":"2026-01-01 00:00:00.000","lockThreadName":"main","lockStacksInfo":[]}'


def _capsule_seeds() -> Iterator[bytes]:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        out = io.BytesIO()
        files = {".hoodie/hoodie.properties": b"hoodie.table.name=t\n" * 9, "p/f_0-1-2_3.parquet": b"PAR1"}
        manifest = {"format": 1, "files": [{"path": p, "mtime_ms": 1_700_000_000_000} for p in files]}
        with zipfile.ZipFile(out, "w", method) as archive:
            archive.writestr("capsule.json", json.dumps(manifest))
            for path, content in files.items():
                archive.writestr(f"files/{path}", content)
        yield out.getvalue()


def _merge_seeds() -> Iterator[bytes]:
    yield from (b'{"count": "sum", "name": "latest"}', b"module.sub:function", b"{}", b'{"a": ["sum"]}')


TARGETS = (
    Target("metadata_files", run_table_files, _table_files_seeds, most=20_000),
    Target("schema_history", run_history, _history_seeds, most=8192),
    Target("bootstrap_index", run_bootstrap, _bootstrap_seeds, most=8192),
    Target("locks", run_locks, _lock_seeds, most=1024),
    Target("capsule", run_capsule, _capsule_seeds, most=4096),
    Target("merge_option", run_merge_option, _merge_seeds, most=1024),
)
