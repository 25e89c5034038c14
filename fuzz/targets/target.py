"""What a fuzz target is: a parser of untrusted bytes, its seeds, and what may come of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hudi_format.errors import HudiError


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes:
        run: gives the bytes to the parser and checks what comes out; raises `refusals` for bytes that it refuses,
            AssertionError where what came out is wrong.
        seeds: inputs to begin with, made from the golden files.
        refusals: errors that the parser documents.
        most: bytes of an input at most.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]
    refusals: tuple[type[Exception], ...] = (HudiError,)
    most: int = 1 << 16

    def try_one(self, data: bytes) -> bool:
        """Whether the parser took the bytes; anything but its documented errors comes through."""
        try:
            self.run(data)
        except self.refusals:
            return False
        return True


def mutations(seeds: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Damaged inputs that are the same in each run: cut, overwritten, doubled and mixed seeds."""
    draw = random.Random(seed)
    edges = (0, 1, 0x7F, 0x80, 0xFF)
    for _ in range(count):
        data = bytearray(draw.choice(seeds))
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            at = draw.randrange(len(data) + 1)
            how = draw.randrange(6)
            if how == 0:
                del data[at:]
            elif how == 1 and at < len(data):
                data[at] = draw.choice(edges) if draw.random() < 0.5 else draw.randrange(256)
            elif how == 2:
                data[at : at + 4] = draw.choice(
                    (
                        b"\xff\xff\xff\xff",
                        b"\x7f\xff\xff\xff",
                        b"\0\0\0\0",
                        b"\x80\0\0\0",
                        b"\xff\xff\xff\x7f",
                    )
                )
            elif how == 3:
                del data[at : at + draw.randrange(1, 9)]
            elif how == 4:
                data[at:at] = data[max(0, at - draw.randrange(1, 64)) : at]
            else:
                other = draw.choice(seeds)
                start = draw.randrange(len(other) + 1)
                data[at:] = other[start:]
        yield bytes(data)
