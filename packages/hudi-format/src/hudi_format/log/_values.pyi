from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
_Value = TypeVar("_Value")

def block_values(
    data: _Bytes,
    rows: npt.NDArray[np.int64],
    kind: type[_Value],
    slots: tuple[Any, ...],
    file: str,
    types: tuple[Any, ...],
    sound: Any,
    no_footer: Mapping[int, str],
    parse: Callable[[bytes], Mapping[int, str] | None],
    other: Callable[[int], _Value],
) -> list[_Value]:
    """A value for each row.

    Args:
        kind: class of the values; `slots` are the descriptors of its nine slots: file, offset, size, type, header,
            place and length of the content, footer, damage.
        types: by their numbers.
        sound: the damage of blocks that have none.
        parse: a header's map of its bytes; None where it is broken.
        other: the value of a row, by its number, that is not that of a sound block without a footer.

    Raises:
        ValueError: rows that are not of these bytes.
    """
