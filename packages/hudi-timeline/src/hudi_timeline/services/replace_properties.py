"""Replacement of hoodie.properties from a file (hudi-cli's `repair overwrite-hoodie-props`).

The way from copy on write to merge on read is a property; back it goes only where no log file and no delta commit would
be lost by it: readers of a copy-on-write table see base files of commits and nothing else.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format import properties as props
from hudi_format.errors import OptionError, UnsupportedError
from hudi_index.lookup import BUCKET
from hudi_timeline import table_config
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.file_slices import merged_slices
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options import describe
from hudi_timeline.options.file_options import BUCKET_ENGINE, HASH_FIELDS, NUM_BUCKETS
from hudi_timeline.services.table_service import WITH_INDEXES, ServiceContext
from hudi_timeline.timeline.instant import COMPACTION, DELTA_COMMIT, LOG_COMPACTION

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"

# Every table has them, and none has a default that fits each table.
REQUIRED = (table_config.NAME, table_config.TYPE, table_config.VERSION, table_config.LAYOUT_VERSION)
# Changed by what changes the table along with them.
_FIXED = {
    table_config.VERSION: "`hudi upgrade` and `hudi downgrade` change it.",
    table_config.LAYOUT_VERSION: "the upgrade of a table changes it.",
    table_config.METADATA_PARTITIONS: "what builds or deletes the metadata table changes it.",
    table_config.METADATA_PARTITIONS_INFLIGHT: "what builds or deletes the metadata table changes it.",
    **dict.fromkeys(
        (table_config.OVERWRITTEN_UNTIL, table_config.OVERWRITTEN_BY),
        "by it files of the table that was overwritten are told from those of this one.",
    ),
}
# What the files of the table were written by: another value contradicts them.
_MEANING = (
    table_config.RECORD_KEY_FIELDS,
    table_config.PARTITION_FIELDS,
    table_config.KEYGEN_CLASS,
    table_config.KEYGEN_TYPE,
    table_config.BASE_FILE_FORMAT,
    table_config.POPULATE_META_FIELDS,
    table_config.HIVE_STYLE,
    table_config.URL_ENCODE,
    table_config.DROP_PARTITION_COLUMNS,
    table_config.TIMEZONE,
    table_config.BOOTSTRAP_BASE_PATH,
    table_config.ARCHIVE_FOLDER,
)
# Of a table with buckets: in which of them keys are, and which resizes a rollback takes back.
_BUCKETS = (
    NUM_BUCKETS,
    HASH_FIELDS,
    BUCKET_ENGINE,
    table_config.BUCKET_RESIZING,
    table_config.BUCKET_RESIZES,
)
_KNOWN = frozenset(
    v for k, v in vars(table_config).items() if k.isupper() and isinstance(v, str) and v.startswith("hoodie.")
)


@dataclass(frozen=True)
class PropertiesChange(HtmlView):
    """Changed entries: before and after, None for absent.

    Attributes:
        changes: by key, in order.
        executed: whether they were written.
        warnings: what the user should know.
    """

    changes: Mapping[str, tuple[str | None, str | None]]
    executed: bool = False
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = []
        for key, (before, after) in self.changes.items():
            lines += [f"- {key}={before}"] if before is not None else []
            lines += [f"+ {key}={after}"] if after is not None else []
        return "\n".join(lines)


def overwrite_properties(
    context: ServiceContext, new: Mapping[str, str], *, dry_run: bool = False, force: bool = False
) -> PropertiesChange:
    """Replace all of the table's properties by `new`; the checksum is computed.

    Args:
        new: every entry that the table is to have.
        force: also entries that contradict the files which were written by the old ones, or that nobody knows.

    Raises:
        OptionError: unknown or lost keys, or values that contradict the table's files; `errors` in its details.
        UnsupportedError: the table would lose rows by it.
    """
    if not isinstance(new, Mapping):
        raise TypeError(f"properties must be a mapping of texts, not {type(new).__name__}: {new!r:.80}")
    if dry_run:
        return _check(context, context.looked(allowed=WITH_INDEXES), new, force)
    with context.locked(keep_metadata=True, allowed=WITH_INDEXES) as snapshot:
        change = _check(context, snapshot, new, force)
        if change.changes:
            gone = [k for k, (_, after) in change.changes.items() if after is None]
            context.check_lock()
            table_config.update(
                context.storage, {k: v for k, (_, v) in change.changes.items() if v is not None}, gone
            )
    return PropertiesChange(change.changes, bool(change.changes), change.warnings)


def parse_file(data: bytes, path: str) -> dict[str, str]:
    """Entries of a properties file.

    Raises CorruptFileError.
    """
    return dict(props.parse(data, path=path))


def _check(
    context: ServiceContext, snapshot: TableSnapshot, given: Mapping[str, str], force: bool
) -> PropertiesChange:
    old = dict(context.table.properties)
    new = {**given, table_config.CHECKSUM: table_config.checksum(given)}
    if new.get(table_config.TYPE) == MERGE_ON_READ:
        new = {**table_config.OF_MERGE_ON_READ, **new}
    changes = {
        k: (old.get(k), new.get(k)) for k in sorted({*old, *new}) if old.get(k) != new.get(k)
    }  # fmt: skip
    errors = [f"{k} is missing" for k in REQUIRED if not new.get(k)]
    errors += [
        f"{k}: {old.get(k)!r} -> {new.get(k)!r}: {reason}"
        for k, reason in _FIXED.items()
        if k in changes and k in old
    ]
    doubtful = []
    for key, (before, after) in changes.items():
        if key in REQUIRED or key in _FIXED or key == table_config.CHECKSUM:
            continue
        if after is None and before == table_config.OF_MERGE_ON_READ.get(key):
            continue
        if after is None:
            doubtful.append(f"{key}={before} is lost")
        elif snapshot.timeline.instants and _contradicts(key, before, after, old.get(table_config.INDEX)):
            doubtful.append(f"{key}: {before!r} -> {after!r} contradicts the files that are there")
        elif before is None and not _is_known(key):
            near = difflib.get_close_matches(key, _KNOWN, 1)
            doubtful.append(f"{key} is unknown{f', is {near[0]} meant?' if near else ''}")
    kind = new.get(table_config.TYPE)
    if kind not in (COPY_ON_WRITE, MERGE_ON_READ):
        errors.append(f"{table_config.TYPE} is {COPY_ON_WRITE} or {MERGE_ON_READ}, not {kind!r}")
    if errors or (doubtful and not force):
        found = errors + ([] if force else doubtful)
        raise OptionError(
            f"the properties do not fit the table: {'; '.join(found)}",
            table=context.storage.uri,
            remedy="correct the file"
            + ("." if errors else "; --force takes lost, unknown and contradicting entries."),
            errors=tuple(found),
        )
    if changes.get(table_config.TYPE) is not None:
        _check_type(context, snapshot, str(kind))
    return PropertiesChange(changes, warnings=tuple(doubtful))


def _contradicts(key: str, before: str | None, after: str, index: str | None) -> bool:
    """Whether files that are there were written by another value of an entry."""
    if key == table_config.INDEX:  # any but buckets goes on with what is there
        return BUCKET in (before, after) and before is not None
    return (key in _BUCKETS and index == BUCKET) or (key in _MEANING and before is not None)


def _is_known(key: str) -> bool:
    return (
        key in (*_KNOWN, table_config.INDEX)
        or key.startswith(table_config.MERGE_PROPERTY)
        or describe(key).taken_as != "unknown"
    )


def _check_type(context: ServiceContext, snapshot: TableSnapshot, kind: str) -> None:
    """Refuse a table type change that would hide rows or plans."""
    storage, timeline = context.storage, snapshot.timeline
    pending = [str(i) for i in timeline.pending_writes()]
    if pending:
        raise UnsupportedError(
            f"{len(pending)} writes are not finished, such as {pending[0]}",
            table=storage.uri,
            remedy="let them be finished, or roll them back (`hudi rollback PATH`), then change the type.",
        )
    if kind != COPY_ON_WRITE:
        return
    plans = [str(i) for a in (COMPACTION, LOG_COMPACTION) for i in timeline.pending(a)]
    if plans:
        raise UnsupportedError(
            f"{plans[0]} is not finished",
            table=storage.uri,
            remedy="run the compaction, then change the type.",
        )
    slices, _ = merged_slices(snapshot, snapshot.listing().files)
    logs = [f for s in slices for f in s.log_files]
    if logs:
        raise UnsupportedError(
            f"{len(logs):,} log files ({sum(f.size for f in logs):,} bytes) of "
            f"{sum(1 for s in slices if s.log_files):,} file groups hold rows that are in no base file; "
            "a copy-on-write table would not show them",
            table=storage.uri,
            file=logs[0].path,
            remedy="compact all file groups (`hudi compact run PATH`, or HudiTable.compact()), then change the type.",
        )
    deltas = {i.time for i in timeline.completed_writes() if i.action == DELTA_COMMIT}
    hidden = [s.base_file.path for s in slices if s.base_file is not None and s.base_file.instant in deltas]
    if hidden:
        raise UnsupportedError(
            f"{len(hidden):,} file groups have base files that a delta commit wrote, such as {hidden[0]}; Apache Hudi "
            "does not see delta commits of a copy-on-write table",
            table=storage.uri,
            file=hidden[0],
            remedy="rewrite them by a clustering with Apache Hudi, or wait until those delta commits are archived, "
            "then change the type.",
        )
