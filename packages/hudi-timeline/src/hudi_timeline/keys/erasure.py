"""Erasure report: every file that still holds given keys, and what erases them.

    every file below the table -> traces of the keys -> which state of the table needs the file -> plan

All files are read, older slices, change logs, indexes and leftovers too: an erasure is proven by looking, not by what
commits say.  The plan is what to run next; the report after it says what remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_format.errors import MissingFileError, RecordKeyError, StaleSnapshotError, UnsupportedError
from hudi_format.file_names import parse_data_file
from hudi_format.model import join_path
from hudi_format.storage.open import open_beside
from hudi_format.storage.parallel import side_by_side, walk_folders
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import metadata_config
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.archived_replacements import archived_left
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import newest_slices, pending_compactions
from hudi_timeline.file_system_view.outlived_snapshot import looked_again
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, open_snapshot
from hudi_timeline.keys.key_traces import CHANGE, KEY_RANGE, Trace, TracedKeys, traces
from hudi_timeline.options.file_options import BLOOM_TYPE
from hudi_timeline.options.service_options import (
    CLEAN_INCREMENTAL,
    CLEAN_POLICY,
    CLEAN_VERSIONS_RETAINED,
    SERVICES_ENABLED,
)
from hudi_timeline.options.transaction_options import (
    BLOOM_FILTERS_ENABLE,
    COLUMN_STATS_ENABLE,
    METADATA_ENABLE,
    RECORD_INDEX_ENABLE,
)
from hudi_timeline.options.write_options import QUARANTINE
from hudi_timeline.reading.point_lookup import Keys, key_texts
from hudi_timeline.timeline.action_metadata import SavepointMetadata, read_action
from hudi_timeline.timeline.instant import SAVEPOINT

NEWEST, OLDER, REPLACED, UNCOMMITTED = (
    "newest slice",
    "older slice",
    "replaced file group",
    "uncommitted file",
)
PENDING = "input of a pending compaction"
METADATA_TABLE, TIMELINE, ARCHIVE, BACKUP = "metadata table", "timeline", "archived timeline", "repair backup"
ELSEWHERE, OUTSIDE = "other file", "quarantine"

_THREADS = 4
# Of looking and running: what one plan lays bare, such as the logs of the deletes, the next one takes away.
_ROUNDS = 3

TRACES = pa.schema(
    [
        ("key", pa.string()), ("state", pa.string()), ("path", pa.string()), ("what", pa.string()),
        ("offset", pa.int64()), ("instant", pa.string()), ("savepoints", pa.list_(pa.string())),
    ]
)  # fmt: skip
"""Columns of a report: `state` is what the file is to the table, `what` in it holds the key, `offset` and `instant` are
of a log block, and `savepoints` keep the file."""


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """One service of a plan: a method of `HudiTable` with its arguments, and why.

    Attributes:
        keys: whose rows the method is given, as they are when it runs; none for a method that takes no rows.
    """

    method: str
    arguments: Mapping[str, object]
    why: str
    keys: tuple[str, ...] = ()

    def run(self, table: object) -> None:
        """Run the method on a `HudiTable`."""
        call = getattr(table, self.method)
        if not self.keys:
            call(**self.arguments)
            return
        rows = table.get(list(self.keys))  # type: ignore[attr-defined]
        if rows.num_rows:
            call(rows, **self.arguments)

    def __str__(self) -> str:
        given = [f"get({list(self.keys)!r})"] if self.keys else []
        return f"{self.method}({', '.join([*given, *(f'{k}={v!r}' for k, v in self.arguments.items())])})"


@dataclass(frozen=True, slots=True)
class ErasureReport(HtmlView):
    """Files that hold keys, and what to do.

    Attributes:
        keys: that were looked for.
        files: how many files were read.
        traces: see `TRACES`.
        plan: services to run, in order; look again afterwards.
        by_hand: paths with traces that no service takes away, each with what to do.
    """

    keys: tuple[str, ...]
    files: int
    traces: pa.Table
    plan: tuple[ErasureStep, ...] = ()
    by_hand: Mapping[str, str] = field(default_factory=dict)

    @property
    def erased(self) -> bool:
        """Whether nothing remains."""
        return not len(self.traces)


def erasure_report(
    storage: Storage, options: Mapping[str, str], keys: Keys, *, commits: CommitCache | None = None
) -> ErasureReport:
    """Traces of keys, as of `HudiTable.erasure_report`.

    Raises:
        CorruptFileError, MissingFileError: a file of which nothing can be said.
        UnsupportedError: a table without keys.
        RecordKeyError, SchemaError, TypeError: what is given is no key of the table.
    """
    return looked_again(lambda: _report(storage, options, keys, commits))


def _report(
    storage: Storage, options: Mapping[str, str], keys: Keys, commits: CommitCache | None
) -> ErasureReport:
    snapshot = open_snapshot(storage, commits=commits)
    config = snapshot.config
    if not config.populate_meta_fields and not config.record_key_fields:
        raise UnsupportedError(
            "the table's rows have no record keys: neither meta columns nor key columns hold them",
            table=storage.uri,
            remedy="delete rows by a filter, and clean.",
        )
    spec = metadata_config.key_spec(config) if config.record_key_fields else None
    given = key_texts(keys, config, snapshot.schema).drop_null()
    if "" in given.to_pylist():
        raise RecordKeyError(
            "an empty text is no record key",
            table=storage.uri,
            remedy="give the keys of the records to erase.",
        )
    wanted = TracedKeys(given, spec)
    found, files = _looked_at(storage, wanted)
    states = _States(snapshot)
    rows = [_row(t, states.of(path), path, states.savepoints(path)) for path, t in found]
    quarantine = options.get(QUARANTINE)
    if quarantine:
        aside = open_beside(storage, quarantine)
        others, more = _looked_at(aside, wanted)
        files += more
        rows += [_row(t, OUTSIDE, f"{aside.uri}/{path}", []) for path, t in others]
    rows.sort(key=lambda r: (r["key"], r["state"], r["path"], r["offset"] or 0))
    table = pa.Table.from_pylist(rows, TRACES)
    plan, by_hand = _plan(snapshot, rows)
    return ErasureReport(tuple(wanted.keys.to_pylist()), files, table, plan, by_hand)


def erase(
    table: object,
    report: Callable[[], ErasureReport],
    told: Callable[[ErasureStep], None] = lambda step: None,
) -> ErasureReport:
    """Report after the plans of reports were run, until there is nothing more to run.

    Args:
        table: the `HudiTable`.
        report: looks for the keys.
        told: is given each step before it runs.
    """
    found = report()
    for _ in range(_ROUNDS):
        for step in found.plan:
            told(step)
            step.run(table)
        if not found.plan:
            break
        found = report()
    return found


def _row(trace: Trace, state: str, path: str, savepoints: Sequence[str]) -> dict[str, object]:
    return {"key": trace.key, "state": state, "path": path, "what": trace.what, "offset": trace.offset,
            "instant": trace.instant, "savepoints": list(savepoints)}  # fmt: skip


def _looked_at(storage: Storage, wanted: TracedKeys) -> tuple[list[tuple[str, Trace]], int]:
    """Traces in every file of a storage, and how many files there are."""
    paths = [
        join_path(folder, e.name)
        for folder, entries in walk_folders(storage)
        for e in entries
        if not e.is_dir
    ]

    def one(path: str) -> list[tuple[str, Trace]]:
        try:
            return [(path, t) for t in traces(storage, path, wanted)]
        except (FileNotFoundError, MissingFileError):  # taken away since the listing
            return []

    return [t for of in side_by_side(one, paths, _THREADS, "hudi-erasure") for t in of], len(paths)


class _States:
    """What each file is to the table."""

    def __init__(self, snapshot: TableSnapshot) -> None:
        listing: Mapping[str, Sequence[FileInfo]] = snapshot.listing().files
        self._newest: set[str] = set()
        self._begun: dict[Group, str] = {}
        for one in newest_slices(snapshot, listing):
            self._begun[one.partition, one.file_id] = one.base_instant
            self._newest.update(f.path for f in one.files)
        self._visible = snapshot.visible()
        self._replaced = {**archived_left(snapshot).groups, **snapshot.written().replaced}
        merges = snapshot.config.table_type == "MERGE_ON_READ"
        self._pending = pending_compactions(snapshot) if merges else {}
        self._saved: dict[str, list[str]] = {}
        for instant in snapshot.timeline.completed(SAVEPOINT):
            try:
                found = read_action(snapshot.storage, instant)
            except StaleSnapshotError:  # deleted since the timeline was listed: it keeps nothing any more
                continue
            assert isinstance(found, SavepointMetadata)
            for partition, saved in found.partitions.items():
                for name in saved.files:
                    self._saved.setdefault(join_path(partition, name), []).append(instant.time)

    def savepoints(self, path: str) -> list[str]:
        return self._saved.get(path, [])

    def of(self, path: str) -> str:
        """State of a file."""
        folder, _, name = path.rpartition("/")
        for top, state in (
            (".hoodie/metadata", METADATA_TABLE),
            (".hoodie/archived", ARCHIVE),
            (".hoodie/timeline/history", ARCHIVE),
            (".hoodie/.repair_backup", BACKUP),
            (".hoodie/.schema", TIMELINE),
            (".hoodie/timeline", TIMELINE),
        ):
            if path.startswith(top):
                return state
        if folder == ".hoodie":
            return TIMELINE
        file = parse_data_file(folder, name)
        if path.startswith(".hoodie/") or file is None:
            return ELSEWHERE
        if file.instant in self._visible.overwritten:
            return ELSEWHERE
        group = (folder, file.file_id)
        if path in self._newest:
            return PENDING if group in self._pending else NEWEST
        if file.instant not in self._visible and self._pending.get(group) != file.instant:
            return UNCOMMITTED
        if group in self._replaced and group not in self._begun:
            return REPLACED
        # Changes of the commit that wrote the newest base file go with it.
        return NEWEST if file.instant == self._begun.get(group) else OLDER


_CLEAN = {
    str(CLEAN_POLICY): "KEEP_LATEST_FILE_VERSIONS",
    str(CLEAN_VERSIONS_RETAINED): "1",
    str(CLEAN_INCREMENTAL): "false",
}
# Files without the index of the old one, whose key range would be taken over with the keys that are gone.
_DELETE = {str(BLOOM_TYPE): "SIMPLE", str(SERVICES_ENABLED): "false"}

_BY_HAND = {
    TIMELINE: "let it be archived, then delete the archive's file: no service rewrites an instant",
    ARCHIVE: "delete the archive's file: no service rewrites it",
    BACKUP: "delete the backup's folder once the repair is known to be good",
    ELSEWHERE: "the file is none of the table's; delete it",
    OUTSIDE: "delete the rows in the quarantine's table, and clean it",
}


def _plan(
    snapshot: TableSnapshot, rows: Iterable[Mapping[str, object]]
) -> tuple[tuple[ErasureStep, ...], dict[str, str]]:
    """Services that take traces away, and files that none does."""
    rows = list(rows)
    states = {str(r["state"]) for r in rows}
    logs = snapshot.config.table_type == "MERGE_ON_READ"
    here = [r for r in rows if r["state"] in (NEWEST, PENDING)]
    visible = sorted({str(r["key"]) for r in here if r["what"] not in (KEY_RANGE, CHANGE)})
    by_hand = {str(r["path"]): _BY_HAND[str(r["state"])] for r in rows if r["state"] in _BY_HAND}
    for r in here:
        if not visible and r["what"] in (KEY_RANGE, CHANGE):
            by_hand[str(r["path"])] = (
                f"write to a row of its file group with {BLOOM_TYPE}=SIMPLE, then clean: the file "
                "goes once a newer one is there"
            )
    return tuple(_steps(snapshot, rows, states, visible, logs=logs)), by_hand


def _steps(
    snapshot: TableSnapshot, rows: Sequence[Mapping[str, object]], states: set[str], visible: Sequence[str], *,
    logs: bool,
) -> Iterator[ErasureStep]:  # fmt: skip
    if UNCOMMITTED in states:
        yield ErasureStep("rollback", {}, "a write that died left files with the keys")
    if PENDING in states:
        yield ErasureStep("compact", {"mode": "execute"}, "a pending compaction reads files with the keys")
    if visible:
        why = "rows, or log blocks, of the keys are in newest slices"
        yield ErasureStep("delete", {"options": _DELETE}, why, tuple(visible))
        if logs:
            yield ErasureStep("compact", {}, "log blocks, those of the deletes too, hold the keys")
    saved = sorted({s for r in rows for s in r["savepoints"]})  # type: ignore[attr-defined]
    for savepoint in saved:
        yield ErasureStep("delete_savepoint", {"instant": savepoint}, "it keeps files with the keys")
    indexed = METADATA_TABLE in states
    if visible or indexed or states & {OLDER, REPLACED}:
        # The table may have been opened with options that ask for its indexes.
        gone = (METADATA_ENABLE, COLUMN_STATS_ENABLE, BLOOM_FILTERS_ENABLE, RECORD_INDEX_ENABLE)
        more = {str(key): "false" for key in gone} if indexed else {}
        why = "older slices hold the keys" + (
            ", and so does the metadata table, which is made anew" if indexed else ""
        )
        yield ErasureStep("clean", {"options": {**_CLEAN, **more}}, why)
