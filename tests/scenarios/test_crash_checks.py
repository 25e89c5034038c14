"""A writer that dies at any storage call of a checked write: bad rows are kept once, a refused write leaves nothing.

The table and its quarantine share one count of storage calls; at the n-th change the process is gone.
"""

import contextlib

import pyarrow as pa
import pytest

from hudi_format.errors import ValidationError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
# Enough to go past the last call of both commits.
MOST_CALLS = 80


def crash(at, after):
    return Faults(Fault(CRASH, operation=CHANGES, nth=at, after=after))


def data(*rows):
    ids, values = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.string()), "v": pa.array(values, pa.int64()),
                     "ts": pa.array([1] * len(ids), pa.int64()), "p": [f"p{v % 2}" for v in values]})  # fmt: skip


FIRST = data(("a", 1), ("b", 2))
CHANGE = data(("a", 3), ("bad", -1), ("c", 5), (None, 7))


def ids(path, column="id"):
    found = HudiTable.open(path).read(columns=[column]).to_arrow().column(0).to_pylist()
    return sorted(found, key=str)


def write(storage, rows, **options):
    return execute(LocalEngine(1), storage, rows, {**OPTIONS, **options})


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.sampled(2)
def test_bad_rows_are_kept_once_wherever_the_writer_dies(tmp_path, after):
    reached = False
    for at in range(1, MOST_CALLS):
        path, aside = str(tmp_path / f"t{at}"), str(tmp_path / f"q{at}")
        rules = {"hudi.write.rules": "v >= 0", "hudi.quarantine.path": aside}
        write(LocalStorage(path), FIRST)
        faults = crash(at, after)
        with faults.process():
            write(faults.wrap(LocalStorage(path)), CHANGE, **rules)
        done = "c" in ids(path)
        if done:  # the caller was not told; another write comes
            write(LocalStorage(path), data(("d", 9)), **rules)
        else:  # and tries again
            write(LocalStorage(path), CHANGE, **rules)
        assert ids(path) == ["a", "b", "c"] + ["d"] * done
        assert ids(aside) == [None, "bad"], f"call {at}"
        if not faults.dead:
            reached = True
            break
    assert reached, "there are more calls than were tried"


@pytest.mark.req("NEW-33", "MB-06")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.sampled(2)
def test_a_refused_write_that_dies_while_it_is_taken_back_leaves_nothing(tmp_path, after):
    reached = False
    for at in range(1, MOST_CALLS):
        path = str(tmp_path / f"t{at}")
        write(LocalStorage(path), FIRST)
        faults = crash(at, after)
        with contextlib.suppress(ValidationError), faults.process():
            execute(
                LocalEngine(1), faults.wrap(LocalStorage(path)), data(("a", 3), ("c", 5)), OPTIONS,
                validators=[lambda change: False],
            )  # fmt: skip
        assert ids(path) == ["a", "b"]
        write(LocalStorage(path), data(("d", 8)))
        assert ids(path) == ["a", "b", "d"]
        files = list((tmp_path / f"t{at}").rglob("*.parquet"))
        assert len(files) == 3, "no data file of the refused write is left"
        assert not list((tmp_path / f"t{at}" / ".hoodie" / ".temp").glob("*"))
        if not faults.dead:
            reached = True
            break
    assert reached, "there are more calls than were tried"
