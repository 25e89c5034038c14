"""The archived timeline of layout 1: log files of Avro blocks (layout 2: `lsm_timeline`).

`.hoodie/<archive folder>/.commits_.archive.<n>_<token>` are log files of Avro blocks; a record for each state of
an instant.  What a reader asks of them is which writes there were, and what an instant did.

Source: HoodieArchivedTimeline of Apache Hudi 0.15; spec "Timeline", section 8.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import fastavro

from hudi_format.avro.container import DECODING_ERRORS, checked_schema
from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    InstantNotFoundError,
    MissingFileError,
    UnsupportedError,
)
from hudi_format.file_names import parse_log_file
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import read_avro
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.protocol import Storage
from hudi_timeline.table_config import TableConfig, load
from hudi_timeline.timeline.action_metadata import Action, action_of_record, parse_action, read_action
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.commit_metadata import CommitMetadata, commit_of_record, parse_commit
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from hudi_timeline.timeline.lsm_timeline import (
    archived_instant,
    history_contents,
    history_files,
    history_instants,
    history_metadata,
    history_metadata_in,
)

_FILE = re.compile(r"\.commits_\.archive\.(\d+)_.*\Z")


def archive_files(storage: Storage, config: TableConfig, *, written_since_ms: int = 0) -> list[str]:
    """Paths of the archive files below the table, oldest first.

    Args:
        written_since_ms: files that were written before this time, in milliseconds since 1970, are left out.
    """
    folder = config.history_folder
    found = []
    for entry in storage.list(folder):
        match = None if entry.is_dir or entry.size == 0 else _FILE.match(entry.name)
        if match is not None and not 0 < entry.mtime_ms < written_since_ms:
            found.append((int(match[1]), f"{folder}/{entry.name}"))
    return [path for _, path in sorted(found)]


def archived_instants(storage: Storage, config: TableConfig) -> tuple[Instant, ...]:
    """Archived instants in their highest archived state, oldest first.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    if config.version.has_lsm_history:
        return history_instants(storage, config)
    found: dict[tuple[str, str], Instant] = {}
    for path in archive_files(storage, config):
        for record in _records(storage, path):
            instant = _instant(record)
            if instant is None:
                continue
            known = found.get((instant.time, instant.comparable_action))
            if known is None or known < instant:
                found[instant.time, instant.comparable_action] = instant
    return tuple(sorted(found.values()))


def archived_actions(
    storage: Storage, config: TableConfig, actions: frozenset[str]
) -> Iterator[tuple[Instant, Action | None]]:
    """All states of all archived instants in one pass, completed `actions` with their content.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    if config.version.has_lsm_history:
        for instant, data in history_metadata(storage, config):
            wanted = instant.action in actions and bool(data)
            yield instant, _parsed(instant.action, data) if wanted and data else None
        return
    for path in archive_files(storage, config):
        for record in _records(storage, path):
            found = _instant(record)
            if found is None:
                continue
            content = record.get(_CONTENT.get(found.action, ""))
            if content and found.completed and found.action in actions:
                yield found, _parsed(found.action, content)
            else:
                yield found, None


def archived_cleans(
    storage: Storage, config: TableConfig, *, written_since_ms: int = 0
) -> Iterator[tuple[Instant, Action | None]]:
    """Completed archived cleans, with what they did.

    Args:
        written_since_ms: files of the archive that were written before this time are not opened.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    if config.version.has_lsm_history:
        files = history_files(storage, config)
        paths = [f.path for f in files if not 0 < f.mtime_ms < written_since_ms]
    else:
        paths = archive_files(storage, config, written_since_ms=written_since_ms)
    for path in paths:
        yield from _completed_in(storage, config, path, CLEAN)


def _completed_in(
    storage: Storage, config: TableConfig, path: str, action: str
) -> Iterator[tuple[Instant, Action | None]]:
    """Completed instants of one action in a file of the archive, with what they did."""
    if config.version.has_lsm_history:
        for instant, data in history_metadata_in(storage, path, action):
            yield instant, _parsed(action, data) if data else None
        return
    for record in _records(storage, path, having=action.encode()):
        found = _instant(record)
        if found is not None and found.completed and found.action == action:
            content = record.get(_CONTENT[action])
            yield found, _parsed(action, content) if content else None


# The field of an archive's record that holds what a completed instant's file did.
_CONTENT = {
    COMMIT: "hoodieCommitMetadata",
    DELTA_COMMIT: "hoodieCommitMetadata",
    REPLACE_COMMIT: "hoodieReplaceCommitMetadata",
    CLEAN: "hoodieCleanMetadata",
    ROLLBACK: "hoodieRollbackMetadata",
    SAVEPOINT: "hoodieSavePointMetadata",
}


def read_archived(storage: Storage, config: TableConfig, instant: Instant) -> Action:
    """Content of an archived instant's completed file, typed as by `read_action`.

    Args:
        instant: one of `archived_instants`.

    Raises:
        InstantNotFoundError: the archive does not have it, or not what it did.
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    content = _content(storage, config, instant)
    if content is None:
        raise InstantNotFoundError(
            f"the archive does not say what the {instant.action} did",
            table=storage.uri,
            instant=instant.time,
            remedy="only completed instants of the archived timeline can be read.",
        )
    try:
        return _parsed(instant.action, content)
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, instant=instant.time) from None


def _parsed(action: str, content: bytes | dict[str, Any]) -> Action:
    """Content of a completed instant: bytes in layout 2, a decoded record in layout 1."""
    if isinstance(content, bytes):
        return parse_commit(content) if action in WRITE_ACTIONS else parse_action(action, COMPLETED, content)
    if action in WRITE_ACTIONS:
        return commit_of_record(content)
    return action_of_record(action, COMPLETED, content)


def _content(storage: Storage, config: TableConfig, instant: Instant) -> bytes | dict[str, Any] | None:
    """Bytes of the file in layout 2, a decoded record in layout 1."""
    if config.version.has_lsm_history:
        return history_contents(storage, config, instant.time).get(instant.action, (None, None))[0]
    found = None
    for path in archive_files(storage, config):
        for record in _records(storage, path):
            known = _instant(record)
            if (
                known is not None
                and known.completed
                and (known.time, known.action) == (instant.time, instant.action)
            ):
                found = record.get(_CONTENT.get(instant.action, "")) or found
    return found


def archived_write_between(
    storage: Storage,
    config: TableConfig,
    begin: str,
    end: str | None,
    *,
    unless: Callable[[str], bool] = lambda _: False,
    written_since_ms: int = 0,
) -> Instant | None:
    """Newest completed write in (begin, end], from the newest archive file with one.

    Args:
        unless: whether an instant does not count, by its time: an archival first writes its archive, then removes
            files, so that some are on the timeline too.
        written_since_ms: files of the archive that were written before this time are not opened.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    found = archived_write_with_time(
        storage, config, begin, end,
        by_completion=False, unless=unless, written_since_ms=written_since_ms,
    )  # fmt: skip
    return None if found is None else found[1]


def archived_write_with_time(
    storage: Storage,
    config: TableConfig,
    begin: str,
    end: str | None,
    *,
    by_completion: bool,
    unless: Callable[[str], bool],
    written_since_ms: int = 0,
) -> tuple[str, Instant] | None:
    """The write of `archived_write_between`, after its time in the order that was asked for.

    Args:
        by_completion: compare with the times at which instants were completed, and not their own.
    """
    if config.version.has_lsm_history:
        past = history_instants(storage, config, written_since_ms=written_since_ms)
        writes = (i for i in past if i.action in WRITE_ACTIONS and not unless(i.time))
        times = ((i.completion if by_completion else i.time, i) for i in writes)
        return max((t for t in times if begin < t[0] and (end is None or t[0] <= end)), default=None)
    for path in reversed(archive_files(storage, config, written_since_ms=written_since_ms)):
        hit = []
        for record in _records(storage, path):
            instant = _instant(record)
            if instant is None or not instant.completed or instant.action not in WRITE_ACTIONS:
                continue
            if unless(instant.time):
                continue
            at = str(record.get("stateTransitionTime") or instant.time) if by_completion else instant.time
            if begin < at and (end is None or at <= end):
                hit.append((at, instant))
        if hit:
            return max(hit)
    return None


def replacements_in(storage: Storage, config: TableConfig, path: str) -> Iterator[tuple[str, CommitMetadata]]:
    """Times and metadata of completed replacements in a file of the archive.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    for instant, did in _completed_in(storage, config, path, REPLACE_COMMIT):
        if isinstance(did, CommitMetadata):
            yield instant.time, did


def archived_extra(storage: Storage, config: TableConfig) -> Iterator[Mapping[str, str]]:
    """Extra metadata of archived writes (`CommitMetadata.extra`), newest first; layout 1 only.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    for path in reversed(archive_files(storage, config)):
        found = []
        for record in _records(storage, path):
            instant = _instant(record)
            if instant is None or not instant.completed or instant.action not in WRITE_ACTIONS:
                continue
            extra = (record.get(_CONTENT[instant.action]) or {}).get("extraMetadata")
            if extra:
                found.append((instant, extra))
        found.sort(key=lambda of: of[0], reverse=True)
        yield from (extra for _, extra in found)


def archived_schema(
    storage: Storage,
    config: TableConfig,
    since: str,
    until: str | None,
    *,
    unless: Callable[[str], bool] = lambda _: False,
) -> tuple[Instant, CommitMetadata] | None:
    """Newest archived write in (since, until] that has a schema, and its metadata; or None.

    Args:
        until: None for no bound.
        unless: whether an instant does not count, by its time.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: naming the archive's file.
    """
    newest: tuple[Instant, CommitMetadata] | None = None
    for instant, action in archived_actions(storage, config, frozenset(WRITE_ACTIONS)):
        if not isinstance(action, CommitMetadata) or (until is not None and instant.time > until):
            continue
        if instant.time <= (since if newest is None else newest[0].time):
            continue
        if action.table_schema_text and not unless(instant.time):
            newest = instant, action
    return newest


def _records(storage: Storage, path: str, *, having: bytes = b"") -> Iterator[dict[str, Any]]:
    """Records of a file of the archive.

    Args:
        having: records without these bytes are not decoded.
    """
    with LogFileReader.open(storage, path) as log:
        for block in log.blocks:
            if block.type != BlockType.AVRO_DATA:
                # A writer that died while it appended leaves such a stretch; the next one wrote all of it again.
                if block.type == BlockType.CORRUPT and block.damage.may_be_cut_off:
                    continue
                what = block.damage.text if block.type == BlockType.CORRUPT else f"{block.type.name} block"
                raise block.broken(f"a {what} in the archived timeline").at(table=storage.uri)
            try:
                schema = checked_schema(block.schema)
                rows = read_avro(block, log.content(block))
            except HudiError as e:
                raise e.at(table=storage.uri, file=path) from None
            for at, length in zip(rows.offsets.tolist(), rows.lengths.tolist(), strict=True):
                encoded = rows.data.slice(at, length).to_pybytes()
                if having not in encoded:
                    continue
                data = io.BytesIO(encoded)
                try:
                    yield _whole_record(fastavro.schemaless_reader(data, schema, None), data)
                except DECODING_ERRORS as e:
                    raise CorruptFileError(
                        f"a record of the archived timeline cannot be decoded: {type(e).__name__}: {e}",
                        table=storage.uri,
                        file=path,
                        offset=block.content_offset + at,
                        remedy="restore the file from a backup.",
                    ) from None


def _whole_record(value: object, data: io.BytesIO) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("it is not a record")
    if data.read(1):
        raise ValueError("bytes follow its last field")
    return value


def _instant(record: dict[str, Any]) -> Instant | None:
    # Releases before 0.6 archived completed instants only, and gave no state.
    state = record.get("actionState") or COMPLETED
    if state not in (REQUESTED, INFLIGHT, COMPLETED):
        return None
    return archived_instant(record.get("commitTime"), record.get("actionType"), state)


# Completed instants whose file is not where it was listed: archived meanwhile, or moved by the table's upgrade.
#
# A state of the table that was read stays what it was: archiving removes no data, and what a commit said is in the
# archive before its file goes.


def read_moved(storage: Storage, instant: Instant) -> Action | None:
    """Content of a completed instant's file at its present place; None where it is gone.

    Log files of archived delta commits have no size: archives of table version 6 do not say where in a file the bytes
    of a commit begin.
    """
    config = load(storage)
    try:
        if config.timeline_folder != instant.folder:
            there = load_timeline(storage, config).instants
            found = (i for i in there if i.completed and (i.time, i.action) == (instant.time, instant.action))
            moved = next(found, None)
            if moved is not None:
                return read_action(storage, moved)
        action = read_archived(storage, config, instant)
    except (InstantNotFoundError, MissingFileError, CorruptFileError, UnsupportedError):
        return None  # the caller's error says what is missed
    return _without_log_sizes(action) if isinstance(action, CommitMetadata) else action


def _without_log_sizes(metadata: CommitMetadata) -> CommitMetadata:
    stats = {
        partition: tuple(
            replace(s, file_size_in_bytes=0)
            if parse_log_file(partition, s.path.rpartition("/")[2]) is not None and "logOffset" not in s.extra
            else s
            for s in found
        )
        for partition, found in metadata.partition_to_stats.items()
    }
    return replace(metadata, partition_to_stats=stats)
