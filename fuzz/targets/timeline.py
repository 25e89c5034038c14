"""The table's own files: properties, commit metadata, plans, archive, markers, heartbeats; and names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format import properties
from hudi_format.errors import HudiError, PartitionPathError
from hudi_format.file_names import (
    log_sort_key,
    looks_bucketed,
    parse_base_file,
    parse_cdc_file,
    parse_log_file,
)
from hudi_format.keygen.partition_path import check_safe, escape, split_values
from hudi_format.storage import stable_reads
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.table_config import TableConfig, load
from hudi_timeline.timeline import archived_timeline, avro_files, lsm_timeline
from hudi_timeline.timeline.commit_files import CommitFiles, read_commit_files
from hudi_timeline.timeline.commit_metadata import parse_commit, read_commit
from hudi_timeline.timeline.instant import (
    CLEAN,
    RESTORE,
    ROLLBACK,
    Instant,
    file_name,
    parse_instant,
    parse_instant_file,
    parse_query_instant,
)
from hudi_timeline.timeline.lsm_timeline import history_contents, history_instants
from targets import golden
from targets.base_file import folder, storage
from targets.target import Target

# Nobody else writes the files here: a damaged one is not waited for, which is two seconds for each input.
stable_reads.YOUNG_S = -1.0


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
    found = parse_commit(data)
    again = parse_commit(found.to_json())
    assert again.to_json() == found.to_json()
    assert found.file_groups() == again.file_groups()


_NAMES = sorted(avro_files.SCHEMAS)


def run_plan(data: bytes) -> None:
    """The first byte chooses what the file should hold."""
    if data:
        assert isinstance(avro_files.parse(_NAMES[data[0] % len(_NAMES)], data[1:], path="f"), dict)


def run_archive(data: bytes) -> None:
    path = folder() / ".hoodie" / "archived"
    path.mkdir(parents=True, exist_ok=True)
    (path / ".commits_.archive.1_1-0-1").write_bytes(data)
    config = TableConfig({"hoodie.archivelog.folder": "archived"})
    _read_past(config)


_UNDOING = frozenset({CLEAN, ROLLBACK, RESTORE})  # what they did is asked of the archive in one pass


def _read_past(config: TableConfig) -> tuple[Instant, ...]:
    """All that a reader asks of past instants."""
    found = archived_timeline.archived_instants(storage(), config)
    assert list(found) == sorted(found)
    with contextlib.suppress(HudiError):  # what one of them did
        for instant, action in archived_timeline.archived_actions(storage(), config, _UNDOING):
            assert action is None or instant.completed
    for instant in found[:2]:
        with contextlib.suppress(HudiError):
            archived_timeline.read_archived(storage(), config, instant)
    last = archived_timeline.archived_write_with_time(
        storage(), config, "0", None, by_completion=True, unless=lambda _: False
    )
    assert last is None or last[1] in found
    return found


def run_torn_archive(data: bytes) -> None:
    """An archive of which a part is there, with other bytes behind it: no instant that the whole one does not have.

    A byte for the archive, two for what is left of it, then what follows.
    """
    if len(data) < 3:
        return
    whole = _whole_archives()[data[0] % len(_whole_archives())]
    rest = data[3:]
    run_archive(whole)
    config = TableConfig({"hoodie.archivelog.folder": "archived"})
    known = {(i.time, i.comparable_action): i for i in archived_timeline.archived_instants(storage(), config)}
    path = folder() / ".hoodie" / "archived" / ".commits_.archive.1_1-0-1"
    path.write_bytes(whole[: int.from_bytes(data[1:3], "big") % (len(whole) + 1)] + rest)
    found = _read_past(config)
    if not rest:
        for instant in found:
            assert not known[instant.time, instant.comparable_action] < instant, instant


@cache
def _whole_archives() -> list[bytes]:
    return list(_archive_seeds())


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
    with _at_once():
        for instant in _read_past(config)[:2]:
            history_contents(storage(), config, instant.time)


def _at_once() -> contextlib.AbstractContextManager[object]:
    """Nobody else writes: a folder that does not go together is not looked at again."""
    return mock.patch.object(lsm_timeline, "LOOK_AGAIN_S", ())


def run_torn_history(data: bytes) -> None:
    """A history between two states: no instants but those of its files, and all of those of a whole manifest.

    A byte for the length of `_version_`, which follows; two bytes that say how much of the newest manifest is there,
    and what follows that.
    """
    if len(data) < 3:
        return
    version, rest = data[1 : 1 + data[0]], data[1 + data[0] :]
    path = folder() / "torn" / ".hoodie" / "timeline" / "history"
    path.mkdir(parents=True, exist_ok=True)
    files = _history_pair()
    for name, content in files.items():
        if not (path / name).is_file():
            (path / name).write_bytes(content)
    lists = [json.dumps({"files": [{"fileName": n, "fileLen": len(files[n])} for n in names]}).encode()
             for names in (list(files)[:1], list(files))]  # fmt: skip
    newest = lists[1][: int.from_bytes(rest[:2], "big")] + rest[2:]
    for name, content in (("_version_", version), ("manifest_1", lists[0]), ("manifest_2", newest)):
        (path / name).write_bytes(content)
    config = TableConfig({"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"})
    with _at_once():
        found = history_instants(open_storage(str(folder() / "torn")), config)
    all_of = [len(_times(n)) for n in files.values()]
    if newest == lists[1] or version.strip() == b"1":
        assert len(found) == (all_of[0] if version.strip() == b"1" else sum(all_of)), (
            version,
            len(found),
            all_of,
        )
    assert {i.time for i in found} <= {t for n in files.values() for t in _times(n)}


def _times(data: bytes) -> set[str]:
    return set(pq.read_table(pa.BufferReader(data), columns=["instantTime"]).column(0).to_pylist())


@cache
def _history_pair() -> dict[str, bytes]:
    """Two files of one golden history, by names that tell their instants."""
    found: dict[str, dict[str, bytes]] = {}
    for name, data in golden.files():
        place, _, last = name.rpartition("/")
        if place.endswith("/timeline/history") and last.endswith(".parquet"):
            found.setdefault(place, {})[last] = data
    pairs = [f for f in found.values() if len(f) >= 2 and len(set().union(*map(_times, f.values()))) ==
             sum(len(_times(d)) for d in f.values())]  # fmt: skip
    return dict(list(pairs[0].items())[:2])


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


def _torn_archive_seeds() -> Iterator[bytes]:
    for n, whole in enumerate(_whole_archives()):
        for part in (len(whole), len(whole) // 2, len(whole) - 1, 40):
            yield bytes([n % 256]) + part.to_bytes(2, "big")
        yield bytes([n % 256]) + len(whole).to_bytes(2, "big") + whole[:60]


def _torn_history_seeds() -> Iterator[bytes]:
    for version in (b"1", b"2", b"", b"3", b"2\n", b"x"):
        for part in (0, 20, 1000):
            yield bytes([len(version)]) + version + part.to_bytes(2, "big")
    entry = (
        b'{"files": [{"fileName": "1_9_0.parquet", "fileLen": 1e999}, {"fileName": "../x", "fileLen": -1}]}'
    )
    yield b"\x012" + bytes(2) + entry


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
    Target("torn_archive", run_torn_archive, _torn_archive_seeds, most=2048),
    Target("torn_history", run_torn_history, _torn_history_seeds, most=512),
    Target("names", run_names, _name_seeds, most=300),
    Target("partition_path", run_paths, _path_seeds, (PartitionPathError,), 300),
    Target("small_files", run_small_files, _small_seeds, most=2048),
)
