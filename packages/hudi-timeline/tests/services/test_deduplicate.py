"""Rows that stand twice, taken out by a commit."""

import pyarrow as pa
import pytest
from converted_tables import opened, tree
from made_tables import MadeTable, at, file_id

from hudi_format.errors import OptionError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.services.deduplicate import DedupeType, deduplicate
from hudi_timeline.services.table_service import ServiceContext


def context(made):
    return ServiceContext(LocalStorage(str(made.path)))


@pytest.mark.req("NEW-08", "NEW-28")
@pytest.mark.parametrize(
    ("kind", "left"), [("insert_type", [1, 2, 3]), ("update_type", [2, 4, 5, 7]), ("upsert_type", [2, 5, 7])]
)
def test_rows_that_stand_twice_are_taken_out_by_a_commit(tmp_path, kind, left):
    made = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    first = [{"id": "a", "p": "p", "v": 1}, {"id": "b", "p": "p", "v": 2}, {"id": "c", "p": "p", "v": 3}]
    made.commit(at(1), {("p", file_id(1)): first})
    second = [{"id": "a", "p": "p", "v": 4}, {"id": "a", "p": "p", "v": 5}, {"id": "c", "p": "p", "v": 7}]
    made.commit(at(2), {("p", file_id(2)): second})
    before = tree(made)
    planned = deduplicate(context(made), "p", kind=DedupeType(kind), dry_run=True)
    assert tree(made) == before
    done = deduplicate(context(made), "p", kind=DedupeType(kind))
    assert (done.keys, done.rows, done.files) == (planned.keys, planned.rows, planned.files)
    found = opened(made).read().to_arrow()
    assert sorted(found.column("v").to_pylist()) == left
    assert set(found.column("_hoodie_commit_time").to_pylist()) <= {at(1), at(2)}
    assert opened(made).read(as_of=at(2)).to_arrow().num_rows == 6
    assert opened(made).verify() == []
    opened(made).rollback(done.instant)
    assert opened(made).read().to_arrow().num_rows == 6
    with pytest.raises(OptionError, match="no files"):
        deduplicate(context(made), "nowhere")
