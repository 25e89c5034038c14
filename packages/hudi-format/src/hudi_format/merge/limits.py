"""How much memory a merge may take, and where it goes on when that is used up.

Source: options `hoodie.memory.merge.*`, `hoodie.memory.spillable.map.path` and `hoodie.common.diskmap.*` of Apache
Hudi 0.15, whose spillable map this stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_SIZE = "hoodie.memory.merge.max.size"
SPILL_PATH = "hoodie.memory.spillable.map.path"
COMPRESS = "hoodie.common.diskmap.compression.enabled"
DEFAULT_BYTES = 1 << 30
# Records are held twice while one per key is chosen, and once more where they are laid out anew.
_HELD = 0.3


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The memory of one merge: of one file slice, or of one file that is rewritten.

    Attributes:
        bytes: what the records that meet the stored rows may take, decoded; beyond it they go to disk.  The
            stored rows, which stream past, one log block and the result's batches come on top.
        folder: of the temporary files; "" for the system's.
        compress: LZ4 in the temporary files.
    """

    bytes: int = DEFAULT_BYTES
    folder: str = ""
    compress: bool = True

    def __post_init__(self) -> None:
        if self.bytes < 1:
            raise ValueError(f"a memory limit of {self.bytes} bytes")

    @property
    def held(self) -> int:
        """Bytes of records up to which a merge stays in memory."""
        return max(1, int(self.bytes * _HELD))

    @property
    def step(self) -> int:
        """Bytes to handle at once."""
        return max(1 << 16, min(self.bytes // 16, 32 << 20))

    @classmethod
    def of(cls, parsed: Mapping[str, object], *, bytes: int = DEFAULT_BYTES) -> MemoryLimit:
        """The limit that parsed options ask for; `bytes` where they say none."""
        given = parsed.get(MAX_SIZE)
        return cls(
            given if isinstance(given, int) else bytes,
            str(parsed.get(SPILL_PATH) or ""),
            parsed.get(COMPRESS) is not False,
        )


__all__ = ["COMPRESS", "DEFAULT_BYTES", "MAX_SIZE", "SPILL_PATH", "MemoryLimit"]
