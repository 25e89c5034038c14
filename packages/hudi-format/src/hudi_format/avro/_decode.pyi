import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

_Bytes = npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]

OPS: dict[str, int]
LAYOUTS: dict[str, int]
CORRUPT: dict[int, str]
UNFIT: dict[int, str]
TOO_LONG_FOR_ARROW: int
TOO_MUCH_FOR_INPUT: int

@disjoint_base
class Memory:
    """Owner of one buffer on the C heap; `size` is in bytes."""

    @property
    def size(self) -> int: ...
    @property
    def address(self) -> int: ...

@disjoint_base
class Program:
    """Compiled steps and sinks of a pair of schemas; immutable, so that threads may share it."""

    def __new__(
        cls,
        nodes: list[tuple[str, int, int, int, int, bytes, list[int], list[int]]],
        sinks: list[tuple[str, bool, bool, int, list[int], bool]],
        least: int,
    ) -> Program:
        """Compile.

        Args:
            nodes: op, sink, null_branch, size, digits, text, spans and kids (places in this list) of each
                `Step`; the first is the outermost record.
            sinks: layout, nullable, whether text, width, kids, and whether a record gives exactly one row.
            least: the fewest bytes of a record.
        """

    def run(
        self, data: _Bytes, offsets: _Numbers | None, lengths: _Numbers | None, start: int, rows: int
    ) -> tuple[int, int, int, int, list[tuple[int, int, Memory | None, Memory | None, Memory | None]] | None]:
        """Decode the records at `offsets`, or `rows` consecutive ones from `start` on.

        Returns:
            what went wrong (0, or a key of CORRUPT or UNFIT, TOO_LONG_FOR_ARROW or TOO_MUCH_FOR_INPUT); the
            records read; where in `data` reading ended; the step at fault; and of each sink: rows, nulls,
            validity bits (None without nulls), offsets and values.
        """
