import numpy as np
import numpy.typing as npt

def hashes(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], seed: int, out: npt.NDArray[np.uint64]
) -> None: ...
