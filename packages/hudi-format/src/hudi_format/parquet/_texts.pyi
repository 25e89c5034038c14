import numpy as np
import numpy.typing as npt
from _typeshed import ReadableBuffer

def all_present(levels: ReadableBuffer, values: int) -> bool:
    """Whether each of so many definition levels, of one bit, is 1."""

def plain_texts(
    page: ReadableBuffer,
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    first: int,
    values: int,
) -> int:
    """Move the texts of a page behind others; gives where they end, -1 where the page is not of just these texts.

    Args:
        page: its values.
        offsets: one more than texts; that of `first` says where the page's texts begin, those behind it are set.
        data: room for the bytes of all texts.
        first: number of the page's first text.
        values: number of its texts.

    Raises:
        ValueError: more texts than offsets.
    """
