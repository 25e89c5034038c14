"""Damage in log files: an interrupted write, or loss of committed data.

A writer that dies leaves the beginning of a block behind, which nobody may read anyway.  Everything else that
is no block was one: Apache Hudi and other readers pass over it and return fewer rows; here it is an error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_names import parse_log_file
from hudi_format.log.block import BlockType, Damage, HeaderKey, LogBlock
from hudi_format.model import VisibleInstants

_REMEDY = CorruptFileError.usual_remedy
_KNOWN_KEYS = frozenset(int(k) for k in HeaderKey)
_COMMAND_KEYS = frozenset({HeaderKey.TARGET_INSTANT_TIME, HeaderKey.COMMAND_BLOCK_TYPE})


@dataclass(frozen=True, slots=True)
class CommittedRange:
    """Bytes `start` up to `end` of a log file, written by a completed instant."""

    instant: str
    start: int
    end: int


def committed_range(instant: str, stat: Mapping[str, Any]) -> CommittedRange | None:
    """Byte range of a completed delta commit's write statistic.

    Args:
        stat: a HoodieWriteStat of the commit's metadata, by Apache Hudi's names.

    Returns:
        None where the statistic does not say (Apache Hudi gives -1 or leaves the size out).

    Source: HoodieAppendHandle.close of Apache Hudi 0.15: the size is that of the whole file, with what other
    instants had appended before `logOffset`.  A smaller one can only be that of the bytes which were appended.
    """
    size = stat.get("fileSizeInBytes")
    start = stat.get("logOffset") or 0
    if not isinstance(size, int) or not isinstance(start, int) or size <= 0 or start < 0:
        return None
    return CommittedRange(instant, start, size if size > start else start + size)


def check_file(
    blocks: Iterable[LogBlock],
    *,
    file: str,
    size: int,
    visible: VisibleInstants | None = None,
    committed: Sequence[CommittedRange] | None = None,
) -> None:
    """Raise where committed data is damaged or missing.

    Args:
        blocks: all of one file, as `LogFileReader.blocks` gives them.
        size: the file's, in bytes.
        visible: the completed instants; None where every file given is one of a completed instant (table
            version 8 and later).
        committed: what the completed instants of the active timeline say that they wrote into this file; () where
            none of them names it.  With it the check is exact: each range is made of whole blocks of its instant,
            and damage elsewhere is a write that failed, unless it is that of an archived instant, which says
            nothing any more.  Without (None), a torn block counts as committed if its header names a visible
            instant.

    Raises:
        CorruptFileError: damage to what was committed, with the file and the offset.
    """
    found = list(blocks)
    if committed is not None:
        ends = [b.end for b in found]
        for part in committed:
            first = bisect_right(ends, part.start)
            _check_range(map(found.__getitem__, range(first, len(found))), part, file, size)
        if visible is not None and _may_be_archived(file, visible):
            _check_archived(_outside(found, committed), file, visible)
        return
    for block in found:
        if block.damage is Damage.NONE or block.damage is Damage.STRAY:
            continue
        named = visible is None or (bool(block.instant) and block.instant in visible)
        if not block.damage.may_be_cut_off or named:
            raise _lost(file, block.instant, block.offset, f"{block.damage.text}, {block.size} bytes")


def _outside(blocks: Iterable[LogBlock], ranges: Iterable[CommittedRange]) -> Iterator[LogBlock]:
    ordered = sorted(ranges, key=lambda part: part.start)
    starts = [part.start for part in ordered]
    for block in blocks:
        i = bisect_right(starts, block.offset) - 1
        if i < 0 or block.offset >= ordered[i].end:
            yield block


def _may_be_archived(file: str, visible: VisibleInstants) -> bool:
    """Whether archived instants may have written to the file, given the instant in its name."""
    folder, _, name = file.rpartition("/")
    log = parse_log_file(folder, name)
    if log is None:
        return bool(visible.first_active)
    return log.instant < visible.first_active and log.instant not in visible.overwritten


def _check_archived(blocks: Iterable[LogBlock], file: str, visible: VisibleInstants) -> None:
    """Raise where damage outside all ranges may belong to an archived or unknown instant."""
    for block in blocks:
        if block.damage is Damage.NONE or block.damage is Damage.STRAY:
            continue
        if block.instant:
            lost = block.instant in visible and block.instant not in visible.completed
        else:
            lost = not block.damage.may_be_cut_off
        if lost:
            raise _lost(file, block.instant, block.offset, f"{block.damage.text}, {block.size} bytes")


def _check_range(blocks: Iterable[LogBlock], part: CommittedRange, file: str, size: int) -> None:
    if part.end > size:
        what = f"the file ends at byte {size}, but the instant's blocks extend to byte {part.end}"
        raise _lost(file, part.instant, size, what)
    at = part.start
    for block in blocks:
        if block.offset >= part.end:
            break
        if block.offset != at:
            raise _lost(file, part.instant, at, "no block begins at the start of the instant's blocks")
        if block.damage is not Damage.NONE:
            raise _lost(file, part.instant, at, f"{block.damage.text}, {block.size} bytes")
        if block.instant != part.instant:
            raise _lost(file, part.instant, at, f"a block of another instant, {block.instant!r}")
        at = block.end
    if at != part.end:
        what = f"blocks end at byte {at}, but the instant's extend to byte {part.end}"
        raise _lost(file, part.instant, at, what)


def _lost(file: str, instant: str, offset: int, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"committed data is damaged at byte {offset}: {what}",
        file=file,
        instant=instant,
        offset=offset,
        remedy=_REMEDY,
    )


def check_header(block: LogBlock) -> None:
    """Raise where a valid block's header does not fit its type.

    Raises:
        CorruptFileError: an entry that must be there is not, or one is there that cannot be.
        UnsupportedError: entries that this package does not know, which may change what the block means.
    """
    if not block.instant.isdecimal():
        raise block.broken(f"INSTANT_TIME is {block.instant[:40]!r}")
    unknown = sorted(set(block.header) - _KNOWN_KEYS)
    if unknown:
        raise UnsupportedError(
            f"a block at byte {block.offset} has unknown header entries {unknown}",
            file=block.file,
            instant=block.instant,
            remedy="read the table with a newer release of hudi-format.",
        )
    if block.type is BlockType.COMMAND:
        if not block.is_rollback or not block.target_instant.isdecimal() or block.content_length:
            raise block.broken("a command block that is not a rollback of an instant")
        return
    if block.type is BlockType.CDC_DATA:
        raise block.broken("a CDC block among data blocks")
    if not _COMMAND_KEYS.isdisjoint(block.header):
        raise block.broken(f"a {block.type.name} block with the header of a command")
    if block.type.has_records and not block.schema:
        raise block.broken("a data block without SCHEMA")
    if block.header.get(HeaderKey.IS_PARTIAL, "false").lower() not in ("true", "false"):
        raise block.broken(f"IS_PARTIAL is {block.header[HeaderKey.IS_PARTIAL][:40]!r}")
    if not all(i.isdecimal() for i in block.compacted_instants):
        raise block.broken(f"COMPACTED_BLOCK_TIMES is {block.header[HeaderKey.COMPACTED_BLOCK_TIMES][:40]!r}")
