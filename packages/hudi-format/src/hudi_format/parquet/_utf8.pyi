import numpy as np
import numpy.typing as npt

def first_invalid(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> int:
    """The first text that is not UTF-8; -1 where all are; -2 where an offset leaves the bytes or goes back.

    Args:
        data: the bytes that offsets count in.
        offsets: n + 1 for n texts.

    Raises:
        ValueError: no offset.
    """
