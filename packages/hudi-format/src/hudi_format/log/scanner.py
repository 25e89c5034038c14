"""Valid log blocks of a file slice, in merge order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.errors import ConcurrentWriterError
from hudi_format.file_names import log_sort_key
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.corruption import CommittedRange, check_file, check_header
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile, VisibleInstants
from hudi_format.storage.protocol import Storage

# Which blocks of a file slice's logs count, and in what order.
#
# Source: AbstractHoodieLogRecordReader of Apache Hudi 0.15.0 (table versions up to 6) and BaseHoodieLogRecordReader
# of 1.x (from 8 on).  One difference on purpose: 0.15 stops at the first block that is newer than the instant
# asked for; as in 1.x such blocks are passed over here, so that an older instant's block behind one is not lost.


@dataclass(frozen=True, slots=True)
class BlockScope:
    """The instants whose blocks are read.

    Attributes:
        visible: completed instants; None for all (table version 8 and later: the listing has left out the log
            files of others).
        inflight: instants that are not complete though older than `visible.first_active`.
        rolled_back: instants that were taken back, whatever their blocks and the timeline say.
        latest: the instant asked for; blocks of later ones are passed over.  "" for no bound.
        instants: of an incremental read: only these; None for all.
        grouped: put the blocks of an instant together, where its first one is (from table version 8 on).  So
            are those of older tables where a log compaction replaced some.
    """

    visible: VisibleInstants | None = None
    inflight: frozenset[str] = frozenset()
    rolled_back: frozenset[str] = frozenset()
    latest: str = ""
    instants: frozenset[str] | None = None
    grouped: bool = False

    def sees(self, instant: str) -> bool:
        """Whether blocks of an instant are read."""
        if self.latest and instant > self.latest:
            return False
        if self.visible is not None and (instant not in self.visible or instant in self.inflight):
            return False
        if self.instants is not None and instant not in self.instants:
            return False
        return instant not in self.rolled_back


@dataclass(frozen=True, slots=True)
class OrderedBlocks:
    """Blocks in merge order, and what is known of the others.

    Attributes:
        blocks: data and delete blocks only.
        corrupt: how many damaged stretches there were.
        taken_back: those that a rollback block took back.
    """

    blocks: tuple[LogBlock, ...]
    corrupt: int = 0
    taken_back: tuple[LogBlock, ...] = ()

    @property
    def rolled_back(self) -> int:
        """Number of rolled-back blocks."""
        return len(self.taken_back)


def order_blocks(blocks: Iterable[LogBlock], scope: BlockScope) -> OrderedBlocks:
    """The valid blocks in merge order.

    A rollback block takes back the blocks of its target that came before it, in any file of the slice; later
    ones, of a new attempt, stay.  It does so whether or not the rollback itself is complete.

    Args:
        blocks: of all log files of one slice, in the order of `names.log_sort_key`.

    Raises:
        CorruptFileError: a header that its block cannot have.
        UnsupportedError: a header entry that is not known.
    """
    seen: list[LogBlock] = []
    alive: list[bool] = []
    places: dict[str, list[int]] = {}
    taken_back: list[LogBlock] = []
    corrupt = 0
    for block in blocks:
        if block.type is BlockType.CORRUPT:
            corrupt += 1
            continue
        named = block.type is not BlockType.COMMAND and block.instant.isdecimal()
        if named and not scope.sees(block.instant):
            continue
        check_header(block)
        if block.type is BlockType.COMMAND:
            for place in places.pop(block.target_instant, []):
                taken_back.append(seen[place])
                alive[place] = False
        else:
            places.setdefault(block.instant, []).append(len(seen))
            seen.append(block)
            alive.append(True)
    queue = [block for block, kept in zip(seen, alive, strict=True) if kept]
    ordered = queue
    if scope.grouped or any(b.compacted_instants for b in queue):
        ordered = _grouped(queue, whole=scope.instants is None)
    return OrderedBlocks(tuple(ordered), corrupt, tuple(taken_back))


def _grouped(queue: list[LogBlock], *, whole: bool) -> list[LogBlock]:
    """Blocks by instant, with those replaced by a log compaction left out.

    The compaction's blocks stand where the last of the instants stood that it replaced: blocks written while
    it ran come after them.

    Args:
        whole: all of the slice is read, so that what a log compaction replaced must be there.

    Raises:
        CorruptFileError: a block says that it replaced others, none of which the slice has.  No checksum covers
            headers, and Apache Hudi would drop its records.
    """
    groups: dict[str, list[LogBlock]] = {}
    for block in queue:
        groups.setdefault(block.instant, []).append(block)
    replaced_by: dict[str, str] = {}
    used: set[str] = set()
    backwards: list[list[LogBlock]] = []
    for instant, group in reversed(groups.items()):
        compacted = group[0].compacted_instants
        if compacted:
            final = replaced_by.get(instant, instant)
            replaced_by.update(dict.fromkeys(compacted, final))
            continue
        final = replaced_by.get(instant, instant)
        if final not in used:
            used.add(final)
            backwards.append(groups[final])
    if whole:
        for instant, group in groups.items():
            replaced = group[0].compacted_instants
            if replaced and not any(original in groups for original in replaced):
                raise group[0].broken(
                    f"COMPACTED_BLOCK_TIMES of the block of {instant} names {replaced[0]}, but the "
                    "slice has no block of it"
                )
    return [block for group in reversed(backwards) for block in group]


class SliceLog:
    """Valid blocks of a slice's log files, in merge order.

    Args:
        storage: where the files are.
        files: log files of one slice, in any order, without those of changes (`.cdc`).
        scope: whose blocks count.
        committed: by path, what completed instants say that they wrote; see `check_file`.  () for a file that
            none of them names; a file that is not in it, of archived commits say, is checked without.
        in_ranges: read the files piece by piece, rather than mapping local ones into memory, whose pages would
            count as this process's.

    Raises:
        MissingFileError: a file is not there.
        CorruptFileError: something that was committed is damaged; with file and offset.
        ConcurrentWriterError: a rollback took back what a completed instant wrote.
        UnsupportedError: a header entry that is not known.
    """

    def __init__(
        self,
        storage: Storage,
        files: Sequence[LogFile],
        scope: BlockScope,
        *,
        committed: Mapping[str, Sequence[CommittedRange]] | None = None,
        in_ranges: bool = False,
    ) -> None:
        self._readers: dict[str, LogFileReader] = {}
        self._stack = ExitStack()
        try:
            with ExitStack() as opening:
                for file in sorted(files, key=log_sort_key):
                    reader = opening.enter_context(
                        LogFileReader.open(storage, file.path, in_ranges=in_ranges)
                    )
                    self._readers[file.path] = reader
                    parts = None if committed is None else committed.get(file.path)
                    check_file(reader.blocks, file=file.path, size=reader.size, visible=scope.visible,
                               committed=parts)  # fmt: skip
                self.ordered: OrderedBlocks = order_blocks(self._all(), scope)
                _check_taken_back(self.ordered.taken_back, committed or {})
                self._stack = opening.pop_all()
        except BaseException:
            self._readers.clear()
            raise

    def _all(self) -> Iterator[LogBlock]:
        for reader in self._readers.values():
            yield from reader.blocks

    @property
    def blocks(self) -> tuple[LogBlock, ...]:
        """Valid data and delete blocks, first to last."""
        return self.ordered.blocks

    def content(self, block: LogBlock) -> pa.Buffer:
        """Content of one of these blocks; not copied where the file is in memory."""
        return self._readers[block.file].content(block)

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> SliceLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_taken_back(blocks: Sequence[LogBlock], committed: Mapping[str, Sequence[CommittedRange]]) -> None:
    """Raise where a rollback block rolls back an instant that is complete in this timeline.

    A rollback or restore makes the instant pending first and then writes such blocks, one file after the other: the
    timeline is from before that, and other slices may be read with the instant's records still there.
    """
    for block in blocks:
        for part in committed.get(block.file, ()):
            if part.instant == block.instant and part.start <= block.offset < part.end:
                raise ConcurrentWriterError(
                    "a rollback removed this instant's data after the timeline was read, which has it "
                    "completed",
                    file=block.file,
                    instant=block.instant,
                    offset=block.offset,
                    remedy="read the table again; if that fails too, a writer completed the instant after it "
                    "had been considered dead: write its rows again.",
                )
