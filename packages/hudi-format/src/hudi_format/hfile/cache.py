"""Decompressed blocks that were used last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from hudi_format.hfile._block import Block
from hudi_format.hfile._index import IndexNode


class BlockCache:
    """Blocks by their offset in the file; those that were not used for longest go first.

    Args:
        most: bytes of memory that all of them may hold; 0 keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._blocks: OrderedDict[int, Block | IndexNode] = OrderedDict()
        self._lock = Lock()

    def get(self, offset: int) -> Block | IndexNode | None:
        with self._lock:
            found = self._blocks.get(offset)
            if found is not None:
                self._blocks.move_to_end(offset)
            return found

    def put(self, offset: int, block: Block | IndexNode) -> None:
        cost = block.cost
        if cost > self._most:
            return
        with self._lock:
            old = self._blocks.pop(offset, None)
            self._held += cost - (old.cost if old is not None else 0)
            self._blocks[offset] = block
            while self._held > self._most:
                _, gone = self._blocks.popitem(last=False)
                self._held -= gone.cost
