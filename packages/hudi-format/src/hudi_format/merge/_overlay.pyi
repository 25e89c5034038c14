import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Offsets = npt.NDArray[np.int32]
_Rows = npt.NDArray[np.int64]

def text_size(
    old: _Bytes, old_offsets: _Offsets, new: _Bytes, new_offsets: _Offsets, rows: _Rows, source: _Rows
) -> tuple[int, bool]:
    """Bytes of the result of `put_text`, and whether it is what is there already.

    Args:
        old, old_offsets: the column's texts, n + 1 offsets.
        new, new_offsets: where values come from.
        rows: places in the column, ascending.
        source: for each of them, the place in `new`.

    Raises:
        ValueError: places or offsets that leave their column.
    """

def put_text(
    old: _Bytes,
    old_offsets: _Offsets,
    new: _Bytes,
    new_offsets: _Offsets,
    rows: _Rows,
    source: _Rows,
    out: _Bytes,
    out_offsets: _Offsets,
) -> None:
    """The column with values of `new` at `rows`; at least one.  `out` has the bytes that `text_size` says."""

def same_words(old: _Bytes, new: _Bytes, width: int, rows: _Rows, source: _Rows) -> bool:
    """Whether `put_words` would change nothing; arguments and errors as there."""

def put_words(out: _Bytes, new: _Bytes, width: int, rows: _Rows, source: _Rows) -> None:
    """Values of `width` bytes each put into `out` at `rows`, in place.

    Raises:
        ValueError: places that leave their column.
    """
