import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]
_Text = tuple[_Bytes, _Numbers, _Bytes | None]

def build(keys: _Text, slots: npt.NDArray[np.uint64], seed: int) -> int:
    """Fill the zeroed `slots` with the last row of each key; gives how many rows a later one replaced.

    `slots` is a power of two long, and twice the rows at least.  Null keys are left out.
    """

def find(keys: _Text, slots: npt.NDArray[np.uint64], seed: int, probes: _Text, out: _Numbers) -> None:
    """Fill `out` with each probe's row in `keys`, -1 for none; `slots` and `seed` are those of `build`."""

def losers(
    keys: _Text,
    slots: npt.NDArray[np.uint64],
    seed: int,
    numbers: _Numbers | None,
    text: _Text | None,
    dead: _Bytes,
) -> int:
    """Set `dead[i]` to 1 for every row that another row of its key beats; gives how many.

    The greater ordering value (`numbers`, or `text` in the order of Java's strings) wins, the later row
    among equals or where there are none.
    """

def keep_newer(
    take: _Numbers,
    old_numbers: _Numbers | None,
    old_text: _Text | None,
    old_valid: _Bytes | None,
    new_numbers: _Numbers | None,
    new_text: _Text | None,
    new_rows: int,
) -> None:
    """Set `take[i]` to -1 where old row i has a greater ordering value than the new row `take[i]`."""
