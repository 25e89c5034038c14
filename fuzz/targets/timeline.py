"""The table's own files: properties, commit metadata, plans, archive, markers, heartbeats; and names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime

from hudi_format import properties
from hudi_format.errors import HudiError, PartitionPathError
from hudi_format.instant_time import parse_instant, parse_query_instant
from hudi_format.names import (
    log_sort_key,
    looks_bucketed,
    parse_base_file,
    parse_cdc_file,
    parse_log_file,
)
from hudi_format.partition_path import check_safe, escape, split_values
from hudi_timeline import archived, heartbeat, markers
from hudi_timeline.history import history_contents, history_instants
from hudi_timeline.instant import file_name, parse_instant_file
from hudi_timeline.metadata import avro_records
from hudi_timeline.metadata.commit import parse_commit, read_commit
from hudi_timeline.metadata.commit_files import CommitFiles, read_commit_files
from hudi_timeline.table_config import TableConfig, load
from targets import golden
from targets.base_file import folder, storage
from targets.target import Target


def run_properties(data: bytes) -> None:
    found = properties.parse(data, path="f")
    text = properties.render(found, [])
    assert properties.parse(text) == found


def run_table_config(data: bytes) -> None:
    """A table's configuration, and every value that is made of it."""
    (folder() / ".hoodie").mkdir(exist_ok=True)
    (folder() / ".hoodie" / "hoodie.properties").write_bytes(data)
    config = load(storage(), pause=lambda _: None)
    for name in dir(TableConfig):
        if not name.startswith("_") and isinstance(getattr(TableConfig, name), property):
            with contextlib.suppress(HudiError):
                getattr(config, name)


def run_commit(data: bytes) -> None:
    found = parse_commit(data, path="f")
    again = parse_commit(found.to_json())
    assert again.to_json() == found.to_json()
    assert found.file_groups() == again.file_groups()


_NAMES = sorted(avro_records.SCHEMAS)


def run_plan(data: bytes) -> None:
    """The first byte chooses what the file should hold."""
    if data:
        assert isinstance(avro_records.parse(_NAMES[data[0] % len(_NAMES)], data[1:], path="f"), dict)


def run_archive(data: bytes) -> None:
    path = folder() / ".hoodie" / "archived"
    path.mkdir(parents=True, exist_ok=True)
    (path / ".commits_.archive.1_1-0-1").write_bytes(data)
    config = TableConfig({"hoodie.archivelog.folder": "archived"})
    found = archived.archived_instants(storage(), config)
    assert list(found) == sorted(found)
    archived.archived_write_between(storage(), config, "0", None, by_completion=True)


def run_commit_files(data: bytes) -> None:
    """The quick reader of commits, JSON and Avro, agrees with the one that reads them in full."""
    (folder() / ".hoodie").mkdir(exist_ok=True)
    (folder() / ".hoodie" / "1.commit").write_bytes(data)
    instant = parse_instant_file("1.commit")
    assert instant is not None
    (found,) = read_commit_files(storage(), [instant])
    assert found == CommitFiles.of(read_commit(storage(), instant))


def run_history(data: bytes) -> None:
    """The manifest of a history and a Parquet file of it: four bytes of length, the manifest, the file."""
    path = folder() / ".hoodie" / "timeline" / "history"
    path.mkdir(parents=True, exist_ok=True)
    size = int.from_bytes(data[:4], "big")
    (path / "_version_").write_bytes(b"1")
    (path / "manifest_1").write_bytes(data[4 : 4 + size])
    (path / HISTORY_FILE).write_bytes(data[4 + size :])
    config = TableConfig({"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"})
    found = history_instants(storage(), config)
    assert list(found) == sorted(found)
    for instant in found[:2]:
        history_contents(storage(), config, instant.time)


def run_names(data: bytes) -> None:
    """Names of instants, of data files, points in time."""
    text = data.decode("utf-8", "surrogateescape")
    instant = parse_instant_file(text)
    if instant is not None:
        assert file_name(instant.time, instant.action, instant.state) == text
        assert "/" not in text
    files = [parse_base_file("p", text), parse_log_file("p", text), parse_cdc_file("p", text)]
    assert sum(f is not None for f in files) <= 1
    for log in files[1:]:
        if log is not None:
            log_sort_key(log)
    for base in files[:1]:
        if base is not None:
            assert "/" not in base.name
            looks_bucketed([base.file_id])
    with contextlib.suppress(ValueError):
        assert isinstance(parse_instant(text), datetime)
    parse_query_instant(text)


def run_paths(data: bytes) -> None:
    """Partition paths: a number of fields, then the path."""
    text = data[1:].decode("utf-8", "surrogateescape")
    fields = ["a", "b", "c"][: data[0] % 4] if data else []
    found = split_values(text, fields)
    assert found is None or len(found) == len(fields)
    if "\0" not in text:
        assert split_values(escape(text), ["a"]) is not None
    safe = check_safe(text)
    assert ".." not in safe.split("/")


def run_small_files(data: bytes) -> None:
    """Marker lines of the timeline server, and a heartbeat."""
    path = folder() / ".hoodie" / ".temp" / "1"
    path.mkdir(parents=True, exist_ok=True)
    (path / "MARKERS0").write_bytes(data)
    beat = folder() / heartbeat.heartbeat_path("1")
    beat.parent.mkdir(parents=True, exist_ok=True)
    beat.write_bytes(data)
    heartbeat.liveness(storage(), "1")
    for marker in markers.list_markers(storage(), "1"):
        assert not marker.path.startswith("/")
        assert ".." not in marker.path.split("/")


def _files(*suffixes: str) -> Iterator[bytes]:
    yield from (d for _, d in golden.named(*suffixes, most=20_000))


def _commit_seeds() -> Iterator[bytes]:
    yield from _files(".commit", ".deltacommit", ".replacecommit", ".inflight")


def _plan_seeds() -> Iterator[bytes]:
    words = {"rollback": "HoodieRollbackMetadata", "rollback.requested": "HoodieRollbackPlan",
             "clean": "HoodieCleanMetadata", "clean.requested": "HoodieCleanerPlan",
             "savepoint": "HoodieSavepointMetadata", "restore": "HoodieRestoreMetadata",
             "restore.requested": "HoodieRestorePlan", "replacecommit.requested": "HoodieRequestedReplaceMetadata",
             "compaction.requested": "HoodieCompactionPlan"}  # fmt: skip
    for suffix, name in words.items():
        if name in _NAMES:
            yield from (bytes([_NAMES.index(name)]) + d for d in _files(f".{suffix}"))


HISTORY_FILE = "1_9_0.parquet"


def _history_seeds() -> Iterator[bytes]:
    for name, data in golden.files():
        if "/history/" in name and name.endswith(".parquet") and len(data) < 40_000:
            manifest = json.dumps({"files": [{"fileName": HISTORY_FILE, "fileLen": len(data)}]}).encode()
            yield len(manifest).to_bytes(4, "big") + manifest + data


def _archive_seeds() -> Iterator[bytes]:
    for name, data in golden.files():
        if ".commits_.archive." in name and 0 < len(data) < 30_000:
            yield data


def _name_seeds() -> Iterator[bytes]:
    seen = set()
    for name, _ in golden.files():
        last = name.rpartition("/")[2]
        kind = "".join(c for c in last if not c.isalnum()) + last.rpartition(".")[2]
        if kind not in seen:
            seen.add(kind)
            yield last.encode()
    yield from (b"2026-11-21 05:37:48.123", b"2026-11-21T05:37:48+02:00", b"20261121053748123")


def _path_seeds() -> Iterator[bytes]:
    for path in ("a=1/b=2", "2024/03/05", "__HIVE_DEFAULT_PARTITION__", "a=x%2Fy", "../x", "a=1/x/b=2/y"):
        yield from (bytes([n]) + path.encode() for n in range(4))


def _small_seeds() -> Iterator[bytes]:
    yield b"p/f_0-1-2_3.parquet.marker.CREATE\np/.f_3.log.1_0-1-2.marker.APPEND\n"
    yield (
        b'{"host":"h","boot":"b","namespace":"n","pid":1,"started":"s","token":"t","interval_ms":1,"misses":2}'
    )


TARGETS = (
    Target("properties", run_properties, lambda: _files("hoodie.properties"), most=4096),
    Target("table_config", run_table_config, lambda: _files("hoodie.properties"), most=4096),
    Target("commit", run_commit, _commit_seeds),
    Target("commit_files", run_commit_files, _commit_seeds),
    Target("history", run_history, _history_seeds),
    Target("plan", run_plan, _plan_seeds),
    Target("archive", run_archive, _archive_seeds),
    Target("names", run_names, _name_seeds, most=300),
    Target("partition_path", run_paths, _path_seeds, (PartitionPathError,), 300),
    Target("small_files", run_small_files, _small_seeds, most=2048),
)
