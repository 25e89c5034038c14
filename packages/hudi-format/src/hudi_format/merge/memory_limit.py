"""Memory limit of a merge, and the folder for spilling.

Source: options `hoodie.memory.merge.*`, `hoodie.memory.spillable.map.path` and `hoodie.common.diskmap.*` of Apache
Hudi 0.15, whose spillable map this stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SPILL_PATH = "hoodie.memory.spillable.map.path"
DEFAULT_BYTES = 1 << 30  # Apache Hudi's
# Of a stream of batches, whose memory is to stay small whatever the logs hold: with it a merge takes less than 300 MB.
STREAM_BYTES = 128 << 20
# Records are held twice while one per key is chosen, and once more where they are laid out anew.
_HELD = 0.3


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The memory limit of one merge: a file slice, or a file being rewritten.

    Attributes:
        bytes: what the records that meet the stored rows may take, decoded; beyond it they go to disk.  The
            stored rows, which stream past, one log block and the result's batches come on top.
        folder: of the temporary files; "" for the system's.
        compress: LZ4 in the temporary files.
        given: whether the user chose the bytes.
    """

    bytes: int = DEFAULT_BYTES
    folder: str = ""
    compress: bool = True
    given: bool = False

    def __post_init__(self) -> None:
        if self.bytes < 1:
            raise ValueError(f"invalid memory limit of {self.bytes} bytes")

    @property
    def held(self) -> int:
        """Bytes of records held in memory before spilling."""
        return max(1, int(self.bytes * _HELD))

    @property
    def step(self) -> int:
        """Bytes per processing step."""
        return max(1 << 16, min(self.bytes // 16, 32 << 20))

    def shared(self, by: int) -> MemoryLimit:
        """The limit divided among concurrent merges."""
        return replace(self, bytes=max(1, self.bytes // by))

    def for_stream(self) -> MemoryLimit:
        """The limit of a merge with streamed output."""
        return self if self.given else replace(self, bytes=min(self.bytes, STREAM_BYTES))


__all__ = ["DEFAULT_BYTES", "SPILL_PATH", "STREAM_BYTES", "MemoryLimit"]
