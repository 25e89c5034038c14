import numpy as np
import numpy.typing as npt

def first_invalid(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> int:
    """Index of the first invalid UTF-8 text; -1: all valid; -2: an offset out of bounds.

    Args:
        data: the bytes that offsets count in.
        offsets: n + 1 for n texts.

    Raises:
        ValueError: no offset.
    """
