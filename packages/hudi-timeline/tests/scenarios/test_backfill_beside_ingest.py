"""A backfill of old partitions beside an ingest of new ones, and three writers of the same rows.

The purpose of several writers, and the scenario that optimistic concurrency control fails, of RFC-22 ("Motivation",
"Future Work"): nobody holds up the ingest without need, and nobody starves.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pyarrow as pa
import pytest
from rival_writers import GLOBAL, OCC, make, rows, values

from hudi_format.errors import ValidationError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.precedence import claims
from hudi_timeline.reading.scan import Scan
from hudi_timeline.transaction import retries


@pytest.fixture
def path(shared_table, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.0)
    return shared_table


def read_beside(path, monkeypatch, *keys, most=100):
    """Rivals that upsert rows after the first readings of a write, before it begins; what was read so far."""
    read = []
    to_arrow = Scan.to_arrow

    def beside(scan, *given, **named):
        found = to_arrow(scan, *given, **named)
        read.append(found)
        if len(read) <= most:
            HudiTable.open(path).upsert(rows(*keys, ts=5, v=5), options=OCC)
        return found

    monkeypatch.setattr(Scan, "to_arrow", beside)
    return read


COMPUTED = {
    "update": lambda t, where, o: t.update({"v": 70}, where, options=o),
    "delete": lambda t, where, o: t.delete(where, options=o),
    "merge": lambda t, where, o: t.merge(rows("ax", "nx", v=70, ts=9), options=o).when_matched_update()
    .when_not_matched_insert().execute(),
}  # fmt: skip


@pytest.mark.req("CC-39")
@pytest.mark.parametrize("name", ["update", "delete"])
def test_rows_of_partitions_that_others_do_not_write_to_are_read_once(path, monkeypatch, name):
    read = read_beside(path, monkeypatch, "my", "rz")
    result = COMPUTED[name](HudiTable.open(path), "p = 'x'", OCC)
    monkeypatch.undo()
    assert (len(read), result.retries) == (1, 0)
    left = {"ax": 70} if name == "update" else {}
    assert dict(values(path)) == {**left, "by": 1, "cq": 1, "my": 5, "rz": 5}
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.parametrize(
    ("name", "key", "where", "index"),
    [
        ("update", "mx", "p = 'x'", {}),
        ("delete", "mx", "p = 'x'", {}),
        ("merge", "mx", None, {}),
        ("update", "mz", "v < 70", {}),
        ("delete", "mz", "v < 70", {}),
        ("update", "my", "p = 'x'", GLOBAL),
        ("update", "ax", "p = 'x' and v < 3", {}),
    ],
)
def test_rows_are_read_again_where_others_may_have_added_to_them(
    tmp_path, monkeypatch, name, key, where, index
):
    """In a partition that was read, or elsewhere: rows that pass the filter, keys of an index over all partitions.

    The last one is a row that was read, and does not pass any more.
    """
    path = str(tmp_path / "t")
    make(path, **index)
    read = read_beside(path, monkeypatch, key, most=1)
    COMPUTED[name](HudiTable.open(path), where, {**OCC, **index})
    monkeypatch.undo()
    assert len(read) == 2
    left = {"by": 1, "cq": 1, key: 5}
    passing = {k for k in ("ax", *left) if where == "v < 70" or (where == "p = 'x'" and k[1] == "x")}
    if name == "merge":
        wanted = {**left, "ax": 70, "nx": 70}
    else:
        wanted = {k: v for k, v in left.items() if k not in passing}
        wanted |= dict.fromkeys(passing, 70) if name == "update" else {}
    assert dict(values(path)) == wanted
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-39")
@pytest.mark.parametrize("fails", [False, True])
def test_a_long_backfill_costs_the_ingest_beside_it_nothing(path, fails):
    """Its commits are seen at once, and nothing of the backfill before it ends; one that fails takes nothing along."""
    ingested, seen = [], []

    def ingest(change):
        for number in range(3):
            ingested.append(
                HudiTable.open(path).upsert(rows("nx", f"{number}x", v=100 + number), options=OCC)
            )
            seen.append(dict(values(path)))
        if fails:
            raise RuntimeError("the backfill is stopped")

    with pytest.raises(ValidationError) if fails else nullcontext():
        result = HudiTable.open(path).upsert(rows("by", "cq", "oq", v=50), options=OCC, validators=[ingest])
        assert result.retries == 0
    assert [r.retries for r in ingested] == [0, 0, 0]
    left = {"ax": 1, "by": 1, "cq": 1, "nx": 102, "0x": 100, "1x": 101, "2x": 102}
    assert [s["nx"] for s in seen] == [100, 101, 102]
    assert seen[-1] == left
    if fails:
        assert dict(values(path)) == left
        HudiTable.open(path).upsert(rows("by", "cq", "oq", v=50), options=OCC)
    assert dict(values(path)) == {**left, "by": 50, "cq": 50, "oq": 50}
    assert HudiTable.open(path).verify(deep=True) == []


class Ingest:
    """Upserts as fast as it can: a row that is always the same, and a new one each time."""

    def __init__(self, path):
        self.path, self.results, self.over = path, [], threading.Event()

    def run(self):
        last = False
        while not last:
            last = self.over.is_set()  # once more after the others
            number = len(self.results)
            given = rows("h4", "n4", v=1000 + number).set_column(0, "id", pa.array(["hot", f"new{number}"]))
            self.results.append(HudiTable.open(self.path).upsert(given, options=ENDLESS))


ENDLESS = {**OCC, "hoodie.write.num.retries.on.conflict.failures": "20", "hudi.write.precedence.after": "2"}
JOBS = {
    "encrypts": lambda t: t.update({"extra": "sealed"}, "p >= '3'", options=ENDLESS),
    "corrects": lambda t: t.update({"v": 500}, "p >= '2' and v < 500", options=ENDLESS),
}


@pytest.mark.req("CC-38", "NEW-31")
def test_ingest_encryption_and_backfill_of_the_same_rows_do_not_starve_each_other(tmp_path, monkeypatch):
    """Ingest is faster than any job reads, each time, unless the job has precedence; and what each did stays done."""
    path = str(tmp_path / "t")
    HudiTable.create(path, rows("a1"), name="t", record_keys="id", partition_fields="p", ordering_fields="ts")
    HudiTable.open(path).insert(rows("a1", "b2", "c3", "d4", v=1))
    ingest, reads = Ingest(path), threading.local()
    to_arrow = Scan.to_arrow

    def outrun(scan, *given, **named):
        found = to_arrow(scan, *given, **named)
        reads.made = getattr(reads, "made", 0) + 1
        before = len(ingest.results)
        while len(ingest.results) == before and not claims(scan.storage) and not steady.done():
            time.sleep(0.002)
        return found

    def job(name):
        made = []
        for _ in range(2):
            reads.made, known = 0, len(ingest.results)
            result = JOBS[name](HudiTable.open(path))
            made.append((result, reads.made, known))
        return made

    monkeypatch.setattr(Scan, "to_arrow", outrun)
    with ThreadPoolExecutor(3) as threads:
        steady = threads.submit(ingest.run)
        jobs = {name: threads.submit(job, name) for name in JOBS}
        try:
            made = {name: job.result() for name, job in jobs.items()}
        finally:
            ingest.over.set()
        steady.result()
    monkeypatch.undo()
    assert all(read <= 3 for of in made.values() for _, read, _ in of), "it loses twice, and no more"
    assert len(ingest.results) >= 5
    assert sum(r.retries for r in ingest.results) <= 4, "at most once to each of the others"
    there = {r["id"]: r for r in HudiTable.open(path).read().to_arrow().to_pylist()}
    number = len(ingest.results)
    assert set(there) == {*"abcd", "hot", *(f"new{n}" for n in range(number))}
    assert {k: (there[k]["v"], there[k]["extra"]) for k in "abcd"} == {
        "a": (1, "e1"), "b": (500, "e1"), "c": (500, "sealed"), "d": (500, "sealed"),
    }  # fmt: skip
    assert there["hot"]["v"] == 1000 + number - 1
    for n in range(number):
        assert there[f"new{n}"]["v"] == 1000 + n
        assert there[f"new{n}"]["extra"] == "sealed" or n >= made["encrypts"][-1][2]
    assert claims(HudiTable.open(path).storage) == []
    assert HudiTable.open(path).verify(deep=True) == []
