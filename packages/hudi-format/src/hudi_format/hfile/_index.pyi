from typing import Self, final

import numpy as np
from numpy.typing import NDArray

_Bytes = bytes | memoryview | NDArray[np.uint8]

FAULTS: dict[int, str]

@final
class IndexNode:
    entries: int
    size: int
    fault: int
    fault_at: int
    def __new__(cls, payload: _Bytes, *, count: int, below: bool, end: int, plain: bool = ...) -> Self: ...
    @property
    def cost(self) -> int: ...
    def row(self, i: int) -> bytes: ...
    def span(self, i: int) -> tuple[int, int]: ...
    def touch(
        self,
        data: _Bytes,
        offsets: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
    ) -> None: ...
    def range(self, start: _Bytes | None, end: _Bytes | None) -> tuple[int, int]: ...
