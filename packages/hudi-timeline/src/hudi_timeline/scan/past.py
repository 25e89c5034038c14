"""A table of version 8 or later as its commits up to a time of completion made it.

Commits completed later do not count, archived ones neither: a timeline that just leaves them out would take their
files for those of older commits.

Source: completed instants of the history, spec "v8 and v9 differences", sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_timeline.history import history_instants, history_metadata
from hudi_timeline.instant import INFLIGHT, WRITE_ACTIONS, Instant
from hudi_timeline.metadata.commit import parse_commit
from hudi_timeline.metadata.commit_files import CommitFiles
from hudi_timeline.snapshot import CommitCache, TableSnapshot
from hudi_timeline.timeline import Timeline


def completed_by(snapshot: TableSnapshot, end: str) -> TableSnapshot:
    """The snapshot of the commits that were completed at `end` or before.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: the history cannot be read.
    """
    storage, config, timeline = snapshot.storage, snapshot.config, snapshot.timeline
    files = [i for i in timeline.files if not i.completed or i.completion <= end]
    active = {i.time for i in timeline.completed_writes()}
    history = history_instants(storage, config, until=timeline.first_active or None)
    past = [i for i in history if i.action in WRITE_ACTIONS and i.time not in active]
    later = [replace(i, state=INFLIGHT, completion="") for i in past if i.completion > end]
    if not later:
        return replace(snapshot, timeline=Timeline.of_files(files))
    # Those before every later one are older than the timeline then, as archived ones are.  All are added, so that
    # files of theirs that the cleaner has removed are missed.
    commits = CommitCache(storage)
    known = _contents(snapshot, {i.time for i in past if i.completion <= end})
    for instant, content in known.items():
        commits.keep(instant, content)
    return replace(snapshot, timeline=Timeline.of_files([*files, *known, *later]), commits=commits)


def _contents(snapshot: TableSnapshot, times: set[str]) -> dict[Instant, CommitFiles]:
    """What archived commits say of files."""
    out: dict[Instant, CommitFiles] = {}
    for instant, data in history_metadata(snapshot.storage, snapshot.config):
        if instant.action not in WRITE_ACTIONS or instant.time not in times or not data:
            continue
        try:
            named = replace(instant, file_name=f"{instant.time}_{instant.completion}.{instant.action}")
            out[named] = CommitFiles.of(parse_commit(data))
        except (CorruptFileError, UnsupportedError) as e:
            raise e.at(table=snapshot.storage.uri, instant=instant.time) from None
    return out


__all__ = ["completed_by"]
