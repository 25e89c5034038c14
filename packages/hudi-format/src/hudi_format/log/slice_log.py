"""The log files of one file slice, opened, checked and put in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

import pyarrow as pa

from hudi_format.errors import ConcurrentWriterError
from hudi_format.log.blocks import LogBlock
from hudi_format.log.damage import CommittedRange, check_file
from hudi_format.log.order import BlockScope, OrderedBlocks, order_blocks
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile
from hudi_format.names import log_sort_key
from hudi_format.storage import Storage


class SliceLog:
    """What the log files of a slice say: blocks in the order in which they are applied.

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
        """Data and delete blocks that count, first to last."""
        return self.ordered.blocks

    def content(self, block: LogBlock) -> pa.Buffer:
        """The content of one of these blocks; without a copy where the file is in memory."""
        return self._readers[block.file].content(block)

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> SliceLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_taken_back(blocks: Sequence[LogBlock], committed: Mapping[str, Sequence[CommittedRange]]) -> None:
    """Raise where a rollback block took back what an instant wrote that is complete in the timeline of this read.

    A rollback or restore makes the instant pending first and then writes such blocks, one file after the other: the
    timeline is from before that, and other slices may be read with the instant's records still there.
    """
    for block in blocks:
        for part in committed.get(block.file, ()):
            if part.instant == block.instant and part.start <= block.offset < part.end:
                raise ConcurrentWriterError(
                    "a rollback took back what this instant wrote, after the timeline was read that has it completed",
                    file=block.file,
                    instant=block.instant,
                    offset=block.offset,
                    remedy="read the table again; if that does not help, a writer completed the instant after it had "
                    "been taken for dead: write its rows again.",
                )
