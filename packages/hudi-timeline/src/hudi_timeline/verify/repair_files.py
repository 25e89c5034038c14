"""Repairs of files beside the timeline: partition metadata, files of no commit, the manifest of the history."""

from __future__ import annotations

import json
import re

from hudi_format import partition_metadata
from hudi_format.names import parse_base_file, parse_log_file
from hudi_timeline.metadata_table import FOLDER
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import Finding
from hudi_timeline.verify.repair_timeline import NoRepair
from hudi_timeline.verify.steps import Step, create, move, replace

_HISTORY = re.compile(r"([0-9]+)_([0-9]+)_([0-9]+)\.parquet\Z")


def _mark_partition(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    partition = finding.details["partition"]
    times = [
        file.instant
        for entry in facts.folders.get(partition, ())
        if (file := parse_base_file(partition, entry.name) or parse_log_file(partition, entry.name))
        is not None
    ]
    if not times:
        times = [i.time for i in facts.timeline.completed_writes()]
    if not times:
        raise NoRepair("there is no commit that the partition could be of.")
    data = partition_metadata.render(min(times), partition_metadata.depth_of(partition))
    there = finding.path in facts.sizes
    return [replace(finding.path, data) if there else create(finding.path, data)]


def _move_stranger(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    if any(f.code == "timeline-hole" and f.instant == finding.instant for f in found):
        raise NoRepair("later commits are built on its instant, whose files are lost: it was committed.")
    if any(f.code == "timeline-contradiction" and f.instant == finding.instant for f in found):
        raise NoRepair("find out first what its instant was.")
    # A rollback takes the instant back there too.
    for entry in facts.storage.list(f"{FOLDER}/{facts.config.timeline_folder}"):
        if re.match(rf"{finding.instant}(_[0-9]+)?\.deltacommit\Z", entry.name):
            raise NoRepair(
                "the metadata table says that its instant was completed: the commit's file is lost."
            )
    return [move(finding.path)]


def _new_manifest(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    """A manifest of every file that no file of a higher layer covers: each instant is in one of them at least."""
    folder = facts.config.history_folder
    files = []
    for entry in facts.storage.list(folder):
        match = None if entry.is_dir else _HISTORY.match(entry.name)
        if match is not None:
            files.append((match[1], match[2], int(match[3]), entry))
    if not files:
        raise NoRepair("the history has no files.")
    kept = [
        entry
        for first, last, layer, entry in files
        if not any(f <= first and last <= t and higher > layer for f, t, higher, _ in files)
    ]
    listed = [{"fileName": e.name, "fileLen": e.size} for e in sorted(kept, key=lambda e: e.name)]
    data = json.dumps({"files": listed}, indent=2).encode()
    there = facts.storage.info(finding.path) is not None
    return [replace(finding.path, data) if there else create(finding.path, data)]


REPAIRS = {
    "partition-metadata-missing": _mark_partition,
    "partition-metadata": _mark_partition,
    "file-of-no-instant": _move_stranger,
    "archive-manifest": _new_manifest,
}
