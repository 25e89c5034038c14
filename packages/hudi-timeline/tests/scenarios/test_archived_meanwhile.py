"""What others did to a table and archived since: it counts as what the timeline still tells."""

import shutil
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rival_writers import OCC, SCHEMA, make, rows, values

from hudi_format.errors import WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.reading.scan import Scan

pytestmark = pytest.mark.req("CC-01")

SHORT = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.enable": "false",
}


def instants(path):
    return [i.time for i in HudiTable.open(path).timeline.completed_writes()]


def writes_elsewhere(path):
    """So many commits to another partition that what was before them is archived."""
    for n in range(6):
        HudiTable.open(path).upsert(rows("by", ts=20 + n, v=20 + n), options={**OCC, **SHORT})


def updates(path):
    at = HudiTable.open(path).upsert(rows("ax", ts=5, v=5), options=OCC).instant
    writes_elsewhere(path)
    assert at not in instants(path)


def deletes(path):
    at = HudiTable.open(path).delete(rows("ax", ts=5), options=OCC).instant
    writes_elsewhere(path)
    assert at not in instants(path)


def rolls_back(path):
    table = HudiTable.open(path)
    at = instants(path)[-1]
    table.rollback(at)
    writes_elsewhere(path)
    assert min(instants(path)) > at


def makes_anew(path):
    shutil.rmtree(path)
    made = HudiTable.create(
        path, SCHEMA, name="t", table_type="COPY_ON_WRITE", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip
    made.insert(rows("by", v=1, ts=1))


@pytest.mark.parametrize(
    ("act", "wanted"), [(updates, 105), (deletes, None), (rolls_back, 101), (makes_anew, None)]
)
def test_what_was_done_to_rows_that_were_read_counts_also_when_it_was_archived_since(
    tmp_path, monkeypatch, act, wanted
):
    path = str(tmp_path / "t")
    make(path)
    if act is rolls_back:
        HudiTable.open(path).upsert(rows("ax", ts=3, v=50), options=OCC)
    to_arrow, read = Scan.to_arrow, []

    def beside(scan, *given, **named):
        found = to_arrow(scan, *given, **named)
        read.append(found)
        if len(read) == 1:
            act(path)
        return found

    monkeypatch.setattr(Scan, "to_arrow", beside)
    more = pc.add(pc.field("v"), pc.scalar(pa.scalar(100, pa.int32())))
    HudiTable.open(path).update({"v": more}, "p = 'x'", options=OCC)
    monkeypatch.undo()
    assert dict(values(path)).get("ax") == wanted


class Held:
    """An upsert that has begun, and commits when it is let."""

    def __init__(self, path, *keys):
        self.path, self.keys, self.result = path, keys, None
        self.begun, self.go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.begun.wait(60)

    def run(self):
        given = rows(*self.keys, ts=5, v=5)
        self.result = HudiTable.open(self.path).upsert(given, options=OCC, validators=[self.wait])

    def wait(self, change):
        self.begun.set()
        return self.go.wait(60)

    def commits(self):
        self.go.set()
        self.thread.join(60)
        assert self.result is not None


def test_a_rival_that_was_archived_before_the_commit_is_a_conflict(tmp_path):
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, SCHEMA, name="t", table_type="COPY_ON_WRITE", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip
    table.insert(rows("ax", "ex", "by", v=1, ts=1), options=OCC)
    for n in range(2):
        table.upsert(rows("by", ts=2 + n), options=OCC)
    held = Held(path, "ex")
    for n in range(2):  # later instants than the held one, before ours
        HudiTable.open(path).upsert(rows("by", ts=5 + n), options=OCC)

    def meanwhile(change):
        held.commits()
        writes_elsewhere(path)
        assert held.result.instant not in instants(path)
        return True

    with pytest.raises(WriteConflictError, match="which was open, has left the timeline"):
        HudiTable.open(path).upsert(rows("ax", ts=9, v=9), options=OCC, validators=[meanwhile])
    assert dict(values(path))["ex"] == 5
