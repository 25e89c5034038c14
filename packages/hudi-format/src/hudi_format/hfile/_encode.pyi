from typing import Self, final

import numpy as np
from numpy.typing import NDArray

_Bytes = bytes | memoryview | NDArray[np.uint8]

OUT_OF_ORDER: int
DUPLICATE: int
KEY_TOO_LONG: int
VALUE_TOO_LONG: int

@final
class BlockBuilder:
    size: int
    entries: int
    row: int
    key_bytes: int
    value_bytes: int
    def __new__(cls, block_size: int, unique: bool) -> Self: ...
    def add(
        self,
        keys: _Bytes,
        key_offsets: NDArray[np.int64],
        values: _Bytes,
        value_offsets: NDArray[np.int64],
        start: int,
    ) -> int: ...
    def take(self) -> tuple[bytes, bytes, bytes]: ...
