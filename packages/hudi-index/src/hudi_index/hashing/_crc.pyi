import numpy as np
from numpy.typing import NDArray

def crc32_of(offsets: NDArray[np.int32], data: NDArray[np.uint8], out: NDArray[np.uint32]) -> None: ...
