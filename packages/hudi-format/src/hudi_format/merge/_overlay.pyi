import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Offsets = npt.NDArray[np.int32]
_Rows = npt.NDArray[np.int64]
_Codes = npt.NDArray[np.int32]

def text_size(
    old: _Bytes, old_offsets: _Offsets, new: _Bytes, new_offsets: _Offsets, rows: _Rows, source: _Rows
) -> tuple[int, bool]:
    """Bytes of `put_text`'s result, and whether it equals the old column.

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
    """The column with values of `new` at `rows`, at least one.

    `out` has the bytes that `text_size` says.
    """

def same_words(old: _Bytes, new: _Bytes, width: int, rows: _Rows, source: _Rows) -> bool:
    """Whether `put_words` would change nothing; arguments and errors as of `put_words`."""

def put_words(out: _Bytes, new: _Bytes, width: int, rows: _Rows, source: _Rows) -> None:
    """Put values of `width` bytes into `out` at `rows`, in place.

    Raises:
        ValueError: places that leave their column.
    """

def repeated_size(
    codes: _Codes,
    valid: _Bytes | None,
    words: _Bytes,
    word_offsets: _Offsets,
    new: _Bytes,
    new_offsets: _Offsets,
    rows: _Rows,
    source: _Rows,
) -> int:
    """Bytes of the result of `put_repeated`.

    Args:
        codes: for each text of the column, which of `words` it is.
        valid: 0 where the column has null; None where it has none.
        words, word_offsets: the dictionary's texts.
        new, new_offsets, rows, source: as of `text_size`.

    Raises:
        ValueError: places, codes or offsets that leave their column.
    """

def put_repeated(
    codes: _Codes,
    valid: _Bytes | None,
    words: _Bytes,
    word_offsets: _Offsets,
    new: _Bytes,
    new_offsets: _Offsets,
    rows: _Rows,
    source: _Rows,
    out: _Bytes,
    out_offsets: _Offsets,
) -> None:
    """The dictionary column as plain text, with values of `new` at `rows`.

    `out` has the bytes that `repeated_size` says.
    """
