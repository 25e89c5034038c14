import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]
_Text = tuple[_Bytes, _Numbers, _Bytes | None]

def hashes(keys: _Text, seed: int, out: npt.NDArray[np.uint64]) -> None:
    """Fill `out` with the hash of each key, by a seed."""

def build(keys: _Text, slots: npt.NDArray[np.uint64], seed: int) -> int:
    """Fill the zeroed `slots` with the last row of each key; returns the number of duplicates.

    `slots` is a power of two long, and twice the rows at least.  Null keys are left out.
    """

def words(slots: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64]) -> None:
    """Fill the zeroed `out`, a power of two long, with a filter of the keys in `slots`."""

def find(
    keys: _Text,
    slots: npt.NDArray[np.uint64],
    seed: int,
    probes: _Text,
    words: npt.NDArray[np.uint64] | None,
    out: _Numbers | None,
    marks: _Bytes | None,
) -> None:
    """Fill `out` with each probe's row in `keys`, -1 for none, and set `marks` of those rows in `keys` to 1.

    `slots` and `seed` are those of `build`, `words` a filter of them or None.
    """

def losers(
    keys: _Text,
    slots: npt.NDArray[np.uint64],
    seed: int,
    numbers: _Numbers | None,
    text: _Text | None,
    dead: _Bytes,
) -> int:
    """Set `dead[i]` to 1 for each row that loses against another row of its key.

    The greater ordering value (`numbers`, or `text` in the order of its UTF-8 bytes) wins, the later row
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
    ties_stay: bool = False,
) -> None:
    """Set `take[i]` to -1 where old row i has a greater ordering value than new row `take[i]`.

    `ties_stay`: also where it has an equal one.
    """

def group(keys: _Text, slots: npt.NDArray[np.uint64], seed: int, out: _Numbers) -> None:
    """Fill `out` with the first row of each row's key, -1 for null; `slots` as of `build`."""

def fold(
    groups: _Numbers,
    kinds: _Bytes,
    numbers: _Numbers | None,
    text: _Text | None,
    valid: _Bytes | None,
    how: int,
    fill: bool,
    logged: bool,
    tombstones_compare: bool,
    state: _Numbers,
    state_kind: _Bytes,
    actions: _Bytes,
) -> None:
    """Merge the records of each key, in row order.

    `state[g]` becomes the row that stands for the key of group g (-1 where no group begins) and
    `state_kind[g]` what it is; `actions` what each row did (`hudi_format.merge.record_merger` names the numbers).
    """

def fold_column(
    groups: _Numbers, actions: _Bytes, valid: _Bytes | None, latest: bool, source: _Numbers
) -> None:
    """Fill `source[g]` with the row of group g's value in one column, after `fold`.

    `latest`: the column has the value of the last record that did anything (meta columns).
    """
