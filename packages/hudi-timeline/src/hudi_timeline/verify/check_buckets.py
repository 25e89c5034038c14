"""Checks of a bucket index: file groups that are no bucket, and keys of other buckets.

A write refuses what it meets of these; here all of them are found, and before the next write.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hudi_format.errors import CorruptFileError, HudiError, InvalidOptionError, MissingFileError
from hudi_index.bucket import BucketIndex
from hudi_index.lookup import BUCKET
from hudi_timeline.file_system_view.bucket_settings import recorded_settings, settled
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import with_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.table_config import PROPERTIES_FILE, index_of
from hudi_timeline.verify.check_keys import SliceKeys
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import TableFacts


def check_buckets(facts: TableFacts, report: VerifyReport, slices: Sequence[SliceKeys] | None) -> None:
    """Compare file groups, and keys where they were read, with the index of the table.

    Args:
        slices: keys of the newest file slices; None where they were not read.
    """
    properties = facts.config.properties
    if index_of(properties) != BUCKET:
        return
    try:
        index = recorded_settings(settled(properties, facts.timeline))
    except (CorruptFileError, InvalidOptionError) as e:
        report.add("properties-value", PROPERTIES_FILE, e.message)
        return
    if index is None:
        return
    snapshot = TableSnapshot(facts.storage, facts.config, facts.timeline)
    try:
        groups = [(s.partition, s.file_id) for s in newest_slices_of(snapshot)]
    except HudiError:  # of damaged commits and files, which other checks name
        return
    for partition in sorted({p for p, _ in groups}):
        try:
            known = with_rings(index, snapshot, [partition])
        except (CorruptFileError, MissingFileError) as e:
            report.add("ring-unreadable", e.file, e.message, partition=partition)
            continue
        _check_groups(known, partition, [f for p, f in groups if p == partition], report)
        _check_keys(known, [s for s in slices or () if s.partition == partition], report)


def _check_groups(index: BucketIndex, partition: str, file_ids: Sequence[str], report: VerifyReport) -> None:
    taken: dict[int, str] = {}
    for file_id in sorted(set(file_ids)):
        number = index.number(file_id, partition)
        path = f"{partition}/{file_id}" if partition else file_id
        if number is None:
            report.add(
                "bucket-group", path, f"the file group is none of the partition's {index.most} buckets"
            )
        elif number in taken:
            report.add("bucket-group", path, f"bucket {number} has another file group, {taken[number]}")
        else:
            taken[number] = file_id


def _check_keys(index: BucketIndex, slices: Sequence[SliceKeys], report: VerifyReport) -> None:
    for piece in slices:
        number = index.number(piece.file_id, piece.partition)
        if number is None or not len(piece.keys):
            continue
        wrong = np.flatnonzero(index.of(piece.keys, piece.partition) != number)
        if len(wrong):
            first = piece.keys[int(wrong[0])].as_py()
            text = f"{len(wrong):,} of {len(piece.keys):,} keys belong to other buckets, first {first!r}"
            report.add("bucket-keys", piece.path, text)
