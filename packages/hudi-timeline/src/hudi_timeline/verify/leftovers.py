"""What writers left behind that counts as nothing: markers, heartbeats, folders of staged rows; and the archive."""

from __future__ import annotations

import time
from collections.abc import Callable

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.names import META_DIR
from hudi_timeline import heartbeat, leftovers, markers
from hudi_timeline.history import history_files
from hudi_timeline.verify.facts import Facts, is_old
from hudi_timeline.verify.finding import Report


def check_leftovers(facts: Facts, report: Report, *, now: Callable[[], float] = time.time) -> None:
    """All checks of what is left over.

    Args:
        now: seconds since the epoch.
    """
    storage = facts.storage
    known = {i.time for i in facts.timeline.instants}
    # Of a completed instant they go when it is archived; asynchronous services leave them until then.
    for instant in markers.list_instants(storage):
        if instant not in known:
            report.add("markers-left", markers.marker_folder(instant), "markers of an instant that is on no timeline",
                       instant)  # fmt: skip
    for instant in heartbeat.list_instants(storage):
        if instant in facts.pending_times or heartbeat.liveness(storage, instant, now=now).alive:
            continue
        state = "is completed" if instant in known else "is on no timeline"
        report.add("heartbeat-left", heartbeat.heartbeat_path(instant), f"the heartbeat of an instant that {state}",
                   instant)  # fmt: skip
    for entry in storage.list(heartbeat.FOLDER):
        if not entry.is_dir and entry.name.endswith(".tmp") and is_old(entry):
            report.add("timeline-temporary", f"{heartbeat.FOLDER}/{entry.name}",
                       "the temporary file of a writer that is gone")  # fmt: skip
    for entry in storage.list(""):
        if entry.is_dir and entry.name.startswith(leftovers.STAGING):
            youngest = max((f.mtime_ms for f in storage.list(entry.name)), default=entry.mtime_ms)
            if now() * 1000 - youngest > leftovers.STAGING_AGE_MS:
                report.add("staging-left", entry.name, "staged rows of a write that is gone")


def check_archive(facts: Facts, report: Report) -> None:
    """The archive can be read; in layout 2 its manifest, files and version file agree."""
    config, storage = facts.config, facts.storage
    if config.layout_version == 2:
        try:
            history_files(storage, config)
        except (CorruptFileError, MissingFileError) as e:
            name = e.file.rpartition("/")[2]
            code = "archive-manifest" if name.startswith("manifest_") else "archive-unreadable"
            report.add(code, e.file, e.message)
            return
    problem = facts.archived.problem
    if problem is not None:
        report.add(
            "archive-unreadable", problem.file or f"{META_DIR}/{config.archive_folder}", problem.message
        )
