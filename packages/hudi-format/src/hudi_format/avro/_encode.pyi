import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

OPS: dict[str, int]
UNFIT: dict[int, str]

@disjoint_base
class Program:
    """Compiled steps of a writer's schema; immutable, so that threads may share it."""

    def __new__(
        cls, steps: list[tuple[str, int, int, int, int, int, bytes, list[int], list[int]]]
    ) -> Program:
        """Compile.

        Args:
            steps: op, branch of null and of the value, size, width, digits, text, spans and kids (places in
                this list, after their parent's) of each type; the first is the outermost record.
        """

    def run(
        self,
        sources: list[tuple[int, int, int, int]],
        rows: int,
        offsets: npt.NDArray[np.int64],
        guess: int,
    ) -> tuple[int, int, int, bytearray | None]:
        """Encode rows.

        `offsets`, one more than rows, are filled with the start of each record.

        Args:
            sources: addresses of validity bits, values and offsets (0 for none), and the first row's place in
                them, of each step's array, which the caller keeps alive.
            guess: bytes to start with.

        Returns:
            what went wrong (0, or a key of UNFIT), the row and the step at fault, and the bytes.
        """
