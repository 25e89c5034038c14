"""Advice where keys make an index slow: BLOOM with random keys opens every file.

Told by the key ranges in the footers: where those of most files overlap, none is ruled out by range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hudi_format.model import BaseFile
from hudi_format.parquet.footer import read_footer
from hudi_format.storage import Storage
from hudi_index.bloom.observer import MAX_KEY, MIN_KEY
from hudi_timeline.engine.lookup import BLOOM, GLOBAL_BLOOM, LookupCount

# Fewer files are opened quickly whatever their ranges are.
FEW_FILES = 8
_SAMPLE = 16
_OVERLAP = 0.5
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-([1-8])[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z")
_said: set[str] = set()


def advice(
    storage: Storage, files: Mapping[str, Sequence[BaseFile]], lookup: LookupCount | None
) -> tuple[str, ...]:
    """What to say about the keys, once per table and process.

    Args:
        files: latest base files by partition, as the look-up saw them.
    """
    if lookup is None or lookup.index not in (BLOOM, GLOBAL_BLOOM) or storage.uri in _said:
        return ()
    # A range that rules most files out is worth its while.
    if lookup.files < FEW_FILES or 2 * lookup.by_range > lookup.files:
        return ()
    candidates = [f for of in files.values() for f in of] if lookup.index == GLOBAL_BLOOM else _largest(files)
    sample = _sampled(candidates)
    ranges = [r for r in (_range(storage, f) for f in sample) if r is not None]
    share = overlapping(ranges)
    if len(ranges) < 2 or share < _OVERLAP:
        return ()
    _said.add(storage.uri)
    return (
        f"index {lookup.index}: the key ranges of {share:.0%} of the pairs of files overlap, so ranges rule out few "
        f"files: {_kind([low for low, _ in ranges])}; hudi_format.ordered_keys makes keys that grow with time, or use "
        "the index SIMPLE",
    )


def _largest(files: Mapping[str, Sequence[BaseFile]]) -> list[BaseFile]:
    """The files of the partition that has most: ranges matter within one."""
    most: Sequence[BaseFile] = ()
    for found in files.values():
        most = found if len(found) > len(most) else most
    return list(most)


def _sampled(files: Sequence[BaseFile]) -> list[BaseFile]:
    step = max(1, len(files) // _SAMPLE)
    return list(files[::step][:_SAMPLE])


def _range(storage: Storage, file: BaseFile) -> tuple[str, str] | None:
    try:
        entries = read_footer(storage, file.path).entries
    except FileNotFoundError:  # cleaned by another writer meanwhile
        return None
    low, high = entries.get(MIN_KEY), entries.get(MAX_KEY)
    return (low, high) if low is not None and high is not None else None


def overlapping(ranges: Sequence[tuple[str, str]]) -> float:
    """The share of pairs of key ranges (both bounds inclusive) that overlap."""
    pairs = len(ranges) * (len(ranges) - 1) // 2
    met = sum(a[0] <= b[1] and b[0] <= a[1] for i, a in enumerate(ranges) for b in ranges[i + 1 :])
    return met / pairs if pairs else 0.0


def _kind(keys: Sequence[str]) -> str:
    versions = {m[1] for m in (_UUID.search(k) for k in keys) if m}
    if versions == {"4"}:
        return "the keys are random (UUIDs of version 4)"
    if versions == {"1"}:
        return "the keys are UUIDs of version 1, which do not sort by time"
    return "the keys do not grow with time"
