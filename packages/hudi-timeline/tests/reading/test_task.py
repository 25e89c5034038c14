"""Tasks of a scan: read alone, in batches, and ended early."""

import gc
import pickle
import threading

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import (
    MissingFileError,
)

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("note", pa.string())])


def row(id, v=0, p="a", **more):
    return {"id": id, "p": p, "v": v, "note": f"n{v}", **more}


def test_batches_are_bounded_and_in_order(made):
    batches = list(made.open().read(["id"]).to_batches(batch_rows=2))
    assert max(b.num_rows for b in batches) <= 2
    assert [i for b in batches for i in b.column("id").to_pylist()] == ["1", "2", "3", "4", "5", "6"]


def test_a_stream_that_is_closed_early_ends_its_reading(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA, row_group_rows=1)
    table.commit(at(1), {("a", file_id(n)): [row(str(n))] for n in range(200)})
    before = set(threading.enumerate())
    reader = table.open().read().to_batches()
    assert reader.read_next_batch().num_rows == 1
    reader.close()
    del reader
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(300)  # for ever, as far as a busy machine goes
        assert not thread.is_alive()
    with table.open().read().to_batches() as reader:
        reader.read_next_batch()


def test_streams_do_not_open_files_that_nobody_asked_for(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA)
    stats = table.commit(at(1), {("a", file_id(n)): [row(str(n))] for n in range(50)})
    scan = table.open().read()
    reader = scan.to_batches()
    first = reader.read_next_batch()
    last = sorted(stats, key=lambda s: s.file_id)[-1]
    (table.path / last.path).unlink()
    assert first.num_rows == 1
    with pytest.raises(MissingFileError, match=last.path):
        reader.read_all()


def test_tasks_are_picklable_and_read_alone(made):
    tasks = made.open().read(["id", "p"], "v > 3").plan_files()
    again = pickle.loads(pickle.dumps(tasks))
    rows = [r for t in again for b in t.to_batches() for r in b.to_pylist()]
    assert sorted(r["id"] for r in rows) == ["2", "4", "5", "6"]
    assert {r["p"] for r in rows} == {"a", "b"}
    assert sum(b.num_rows for b in again[-1].to_batches()) == 3
    plan = pickle.loads(pickle.dumps(made.open().read().plan))
    assert plan.files.num_rows == 3


def test_rows_are_found_by_key(made):
    table = made.open()
    assert table.get(["2", "5", "none"]).select(["id", "v"]).to_pylist() == [
        {"id": "2", "v": 20},
        {"id": "5", "v": 5},
    ]
    assert ids(table.get(pa.table({"id": ["4"], "p": ["b"]}))) == ["4"]
    assert ids(table.get("2")) == ["2"]
