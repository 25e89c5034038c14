"""A table before and after a conversion, and conversions cut off at each of their calls."""

import os

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.testing import CRASH, Crash, Fault, Faults


def opened(made):
    return HudiTable.open(str(made.path))


def tree(made):
    return {str(f.relative_to(made.path)): f.read_bytes() for f in made.path.rglob("*") if f.is_file()}


def cuts(made, run, check):
    """`run` with the process ending before each of its storage calls that change something, then `check`."""
    saved = tree(made)
    number = 0
    while True:
        number += 1
        for path in made.path.rglob("*"):
            if path.is_file():
                os.unlink(path)
        for name, data in saved.items():
            (made.path / name).parent.mkdir(parents=True, exist_ok=True)
            (made.path / name).write_bytes(data)
        faults = Faults(Fault(CRASH, number=number))
        try:
            with faults.process():
                run(faults.wrap(LocalStorage(str(made.path))))
        except Crash:
            pass
        if not faults.struck:
            return number
        check()
