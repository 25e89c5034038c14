"""The LSM timeline: archived instants of layout 2, a log-structured merge tree.

`<history>/_version_` names the manifest that counts, `manifest_<n>` lists Parquet files
`<first>_<last>_<layer>.parquet` with one row for each completed instant.  Files that no manifest lists are inputs of
a merge that nobody has removed yet.

Source: LSMTimeline and ArchivedTimelineLoaderV2 of Apache Hudi 1.x; spec "v8 and v9 differences", section 3.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.instant import ACTIONS, COMPLETED, Instant

_VERSION_FILE = "_version_"
_MANIFEST = re.compile(r"manifest_([0-9]+)\Z")
_FILE = re.compile(r"([0-9]+)_([0-9]+)_([0-9]+)\.parquet\Z")
_MOST_DIGITS = 19
_INSTANT_COLUMNS = ["instantTime", "completionTime", "action"]
_REMEDY = "restore the folder from a backup of the table."
_AGAIN = "read the table again: its writer may have merged files."
# How long to wait before the folder is looked at again, where its files do not go together.
LOOK_AGAIN_S = (0.01, 0.05, 0.2)


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of the LSM timeline; `first` and `last` are requested times, inclusive.

    `mtime_ms` is when it was written, in milliseconds since 1970; 0 where that is not known.
    """

    path: str
    first: str
    last: str
    mtime_ms: int = 0


def history_files(storage: Storage, config: TableConfig) -> tuple[HistoryFile, ...]:
    """Files in the newest manifest, oldest first; () for a table without archived instants.

    Raises:
        CorruptFileError: a manifest that is missing or cannot be read, or a file of another size than it says.
        MissingFileError: a file that it lists is not there.
    """
    # A writer puts new files beside the old ones, then a manifest, then the version; the listing that is compared with
    # them may be older.
    for pause in (0.0, *LOOK_AGAIN_S):
        if pause:
            time.sleep(pause)
        try:
            return _listed_files(storage, config)
        except (CorruptFileError, MissingFileError) as e:
            problem = e
    raise problem


def _listed_files(storage: Storage, config: TableConfig) -> tuple[HistoryFile, ...]:
    folder = config.history_folder
    there = {e.name: e for e in storage.list(folder) if not e.is_dir}
    number = _newest_manifest(storage, folder, there)
    if number is None:
        return ()
    path = f"{folder}/manifest_{number}"
    if f"manifest_{number}" not in there:
        raise _corrupt(storage, path, f"{_VERSION_FILE} names the missing manifest {number}")
    out = []
    for name, size in _listed(storage, path):
        match = _FILE.match(name)
        if match is None:
            raise _corrupt(storage, path, f"it lists {name!r}, which is not a file of the LSM timeline")
        entry = there.get(name)
        if entry is None:
            raise MissingFileError(
                "a file of the LSM timeline is missing",
                table=storage.uri, file=f"{folder}/{name}", remedy=_REMEDY,
            )  # fmt: skip
        if size >= 0 and entry.size >= 0 and size != entry.size:
            raise _corrupt(
                storage, f"{folder}/{name}", f"it has {entry.size} bytes, the manifest says {size}"
            )
        out.append(HistoryFile(f"{folder}/{name}", match[1], match[2], entry.mtime_ms))
    return tuple(sorted(out, key=lambda f: (f.first, f.last, f.path)))


def _newest_manifest(storage: Storage, folder: str, there: dict[str, FileInfo]) -> int | None:
    if _VERSION_FILE in there:
        try:
            text = storage.read(f"{folder}/{_VERSION_FILE}").strip()
        except FileNotFoundError:  # its writer removes it and makes it anew
            text = b""
        if text.isdigit() and len(text) < _MOST_DIGITS:
            return int(text)
    # As Apache Hudi: without a readable version file the greatest manifest counts.
    numbers = [int(m[1]) for m in map(_MANIFEST.match, there) if m is not None]
    return max(numbers, default=None)


def _listed(storage: Storage, path: str) -> Iterator[tuple[str, int]]:
    try:
        entries = loads(storage.read(path))["files"]
        for entry in entries:
            yield str(entry["fileName"]), int(entry.get("fileLen", -1))
    except FileNotFoundError:  # the last three are kept
        raise MissingFileError(
            "a manifest of the timeline's history is gone", table=storage.uri, file=path, remedy=_AGAIN
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        raise _corrupt(storage, path, f"no manifest of a history: {type(e).__name__}: {e}") from None


def history_instants(
    storage: Storage,
    config: TableConfig,
    *,
    until: str | None = None,
    written_since_ms: int = 0,
) -> tuple[Instant, ...]:
    """Completed instants of the LSM timeline with completion times, oldest first.

    Args:
        until: only instants requested up to this one; files of later ones are not opened.
        written_since_ms: files that were written before this time, in milliseconds since 1970, are not opened either.

    Raises:
        as `history_files`; CorruptFileError: a file that cannot be read.
    """
    found: dict[tuple[str, str], Instant] = {}
    for file in history_files(storage, config):
        if until is not None and file.first > until:
            continue
        if 0 < file.mtime_ms < written_since_ms:
            continue
        for row in _rows(storage, file, _INSTANT_COLUMNS):
            instant = _instant(row)
            if instant is not None and (until is None or instant.time <= until):
                found[instant.time, instant.action] = instant
    return tuple(sorted(found.values()))


def history_contents(
    storage: Storage, config: TableConfig, time: str
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Completed and plan files of an archived instant, by action.

    Raises:
        as `history_instants`.
    """
    out: dict[str, tuple[bytes | None, bytes | None]] = {}
    for file in history_files(storage, config):
        if file.first <= time <= file.last:
            for row in _rows(storage, file, [*_INSTANT_COLUMNS, "metadata", "plan"]):
                if row["instantTime"] == time and isinstance(row["action"], str):
                    out[row["action"]] = (row["metadata"], row["plan"])
    return out


def history_metadata(storage: Storage, config: TableConfig) -> Iterator[tuple[Instant, bytes | None]]:
    """Instants of the LSM timeline with the content of their completed files.

    Raises:
        as `history_instants`.
    """
    for file in history_files(storage, config):
        for row in _rows(storage, file, [*_INSTANT_COLUMNS, "metadata"]):
            instant = _instant(row)
            if instant is not None:
                yield instant, row["metadata"]


def history_metadata_in(storage: Storage, path: str, action: str) -> Iterator[tuple[Instant, bytes | None]]:
    """Instants of one action in one file, with the content of their completed files.

    Raises:
        as `history_instants`.
    """
    wanted = pc.field("action") == action
    for row in _rows(storage, HistoryFile(path, "", ""), [*_INSTANT_COLUMNS, "metadata"], wanted):
        instant = _instant(row)
        if instant is not None:
            yield instant, row["metadata"]


def _rows(
    storage: Storage, file: HistoryFile, columns: list[str], wanted: pc.Expression | None = None
) -> Iterable[dict[str, Any]]:
    try:
        with storage.open_input(file.path) as source:
            found = pq.read_table(source, columns=columns)
        rows: list[dict[str, Any]] = (found if wanted is None else found.filter(wanted)).to_pylist()
    except FileNotFoundError:
        raise MissingFileError(
            "a file of the timeline's history is gone",
            table=storage.uri, file=file.path, remedy=_AGAIN,
        ) from None  # fmt: skip
    except (pa.ArrowException, OSError, ValueError) as e:
        raise _corrupt(
            storage, file.path, f"it cannot be read as Parquet: {str(e).splitlines()[0]}"
        ) from None
    if rows and set(rows[0]) != set(columns):
        missing = sorted(set(columns) - set(rows[0]))
        raise _corrupt(storage, file.path, f"it has no column {missing[0]}")
    return rows


def _instant(row: dict[str, Any]) -> Instant | None:
    time, completion, action = (row[n] for n in _INSTANT_COLUMNS)
    # Those that were archived by an upgrade from version 6 had no time of completion.
    return archived_instant(time, action, COMPLETED, completion if isinstance(completion, str) else time)


def archived_instant(time: Any, action: Any, state: str, completion: str = "") -> Instant | None:
    """Instant that the archive names; None where it names none that is known."""
    if not isinstance(time, str) or not time.isdigit():
        return None
    if not isinstance(action, str) or action not in ACTIONS:
        return None
    return Instant(time, action, state, completion=completion)


def _corrupt(storage: Storage, path: str, reason: str) -> CorruptFileError:
    return CorruptFileError(reason, table=storage.uri, file=path, remedy=_REMEDY)
