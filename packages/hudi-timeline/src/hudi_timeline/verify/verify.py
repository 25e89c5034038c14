"""All checks in order."""

from __future__ import annotations

from dataclasses import replace

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError
from hudi_format.storage.protocol import Storage
from hudi_timeline import metadata_config
from hudi_timeline.table_config import INDEX, META_FOLDER, TableConfig
from hudi_timeline.verify import (
    check_base_files,
    check_files,
    check_keys,
    check_logs,
    check_metadata_table,
    check_timeline,
    lost_columns,
)
from hudi_timeline.verify.check_keys import ScanOf
from hudi_timeline.verify.findings import Findings, VerifyReport
from hudi_timeline.verify.table_state import TableFacts, gather

_TRIES = 3


def verify(
    storage: Storage,
    *,
    deep: bool = False,
    workers: int | None = None,
    scan_of: ScanOf | None = None,
    sound: set[str] | None = None,
) -> Findings:
    """All findings of a table; [] for a sound one. Read-only.

    A write that is open is no fault, nor what a dead one left that the next write rolls back.  Where the timeline
    moves while it runs, it runs again, three times at most; what then counts is what every run found.

    Args:
        deep: also read all data: rows against statistics, key ranges and bloom filters, blocks decoded, duplicates,
            the metadata table's indexes.
        workers: how many files are looked at at once; None for a number that fits the machine and the store.
        scan_of: `HudiTable.read`, for the checks of the newest state's rows; None to leave them out.
        sound: paths of files whose data was read before without a finding, and that have not changed: it is not read
            again.  Those read now are added.

    Raises:
        ValueError: no such number of workers.
        StorageError: the storage refused.
    """
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers must be a number of threads, of 1 or more, and is {workers!r:.80}")
    return examine(storage, deep=deep, workers=workers, scan_of=scan_of, sound=sound)[0]


def examine(
    storage: Storage,
    *,
    deep: bool = False,
    workers: int | None = None,
    scan_of: ScanOf | None = None,
    sound: set[str] | None = None,
) -> tuple[Findings, TableFacts | None]:
    """`verify`, with the collected table state; None for an unreadable table."""
    found: Findings | None = None
    facts: TableFacts | None = None
    for _ in range(_TRIES):
        before = _state(storage)
        report = VerifyReport()
        facts = _verify(storage, report, deep=deep, workers=workers, scan_of=scan_of, sound=sound)
        now = report.findings()
        if _state(storage) == before:
            return now, facts
        # What a look between two steps of a writer saw is gone at the next look.
        found = now if found is None else Findings(f for f in now if f in found)
    return Findings() if found is None else found, facts


def _state(storage: Storage) -> frozenset[tuple[str, int]]:
    folders = (META_FOLDER, f"{META_FOLDER}/timeline")
    return frozenset((e.name, e.size) for folder in folders for e in storage.list(folder) if not e.is_dir)


def _verify(
    storage: Storage,
    report: VerifyReport,
    *,
    deep: bool,
    workers: int | None,
    scan_of: ScanOf | None,
    sound: set[str] | None,
) -> TableFacts | None:
    config = check_timeline.check_properties(storage, report)
    if config is None:
        return None
    facts = _check_table(storage, config, report, deep=deep, workers=workers, sound=sound)
    if facts is None:
        return None
    slices = None
    if deep and scan_of is not None and not facts.unreadable_times:
        slices = check_keys.read_keys(facts, scan_of, report)
        if slices is not None and not facts.is_metadata:
            check_keys.check_duplicates(slices, report)
    if INDEX in config.properties and not facts.is_metadata and not facts.unreadable_times:
        # The decoders of a bucket index take long to import, and few tables have one.
        from hudi_timeline.verify.check_buckets import check_buckets

        check_buckets(facts, report, slices)
    if not facts.is_metadata:
        _check_metadata_table(facts, report, slices, scan_of, deep=deep, workers=workers)
    return facts


def _check_table(
    storage: Storage,
    config: TableConfig,
    report: VerifyReport,
    *,
    deep: bool,
    workers: int | None,
    sound: set[str] | None = None,
) -> TableFacts | None:
    """Checks shared by a table and its metadata table."""
    facts = gather(storage, config, report, workers)
    if facts is None:
        return None
    try:
        check_timeline.check_timeline(facts, report)
        check_timeline.check_plans(facts, report)
        check_files.check_names(facts, report, deep=deep)
        check_files.check_files(facts, report)
        check_logs.check_logs(facts, report, deep=deep, sound=sound)
        readable = check_base_files.check_base_files(facts, report)
        lost_columns.check_lost_columns(facts, readable, report)
        if deep:
            check_base_files.check_data(facts, readable, report, sound)
        if sound is not None:
            sound -= {f.path for f in report.findings()}
        check_timeline.check_leftovers(facts, report)
        check_timeline.check_archive(facts, report)
    except (CorruptFileError, MissingFileError) as e:
        if not report.names(e.file):
            report.add("unreadable", e.file, e.message, e.instant)
    return facts


def _check_metadata_table(
    facts: TableFacts,
    report: VerifyReport,
    slices: list[check_keys.SliceKeys] | None,
    scan_of: ScanOf | None,
    *,
    deep: bool,
    workers: int | None,
) -> None:
    listed = check_metadata_table.check_presence(facts, report)
    if not metadata_config.built(facts.config) or report.names(metadata_config.FOLDER):
        return
    own = metadata_config.own_storage(facts.storage)
    inner = VerifyReport()
    config = check_timeline.check_properties(own, inner)
    if config is not None:
        _check_table(own, config, inner, deep=deep, workers=workers)
    # A compaction is run again under its own time, and its delta commit then stands behind its rollback; so does that
    # of a cleaning that Apache Hudi completes after another process has.
    done = {i.time for i in facts.timeline.instants if i.completed}
    found = [f for f in inner.findings() if f.code != "timeline-rolled-back" or f.instant not in done]
    report.take(replace(f, path=f"{metadata_config.FOLDER}/{f.path}") for f in found)
    if not listed or facts.unreadable_times:
        return
    check_metadata_table.check_listing(facts, report)
    damaged = any(f.severity == "error" for f in found)
    if deep and not damaged and not report.names(metadata_config.FOLDER):
        try:
            check_metadata_table.check_indexes(facts, slices, scan_of, report)
        except HudiError as e:
            report.add("mdt-unreadable", e.file or metadata_config.FOLDER, e.message, e.instant)
