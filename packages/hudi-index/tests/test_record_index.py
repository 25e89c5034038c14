"""Places of keys by an index: what is believed of it, and what is looked for in the files."""

import uuid

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.merge.key_index import KeyIndex
from hudi_index.metadata_table.index_records import location_records
from hudi_index.metadata_table.records import LOCATION, locations, schema_of
from hudi_index.record_index import Located, located, places_of, shards_by_task

IDS = [str(uuid.UUID(int=n * 2**100 + 7)) for n in range(3)]
GROUPS = (
    ("p1", f"{IDS[0]}-0"), ("p2", f"{IDS[0]}-0"), ("", f"{IDS[1]}-12"), ("p1", IDS[2]), ("p1", "of another kind"),
    ("p1", IDS[0].upper()),
)  # fmt: skip


class Told:
    """An index that says what it is told to."""

    count = 4

    def __init__(self, keys, group, groups):
        self.answer = Located(pa.array(keys, pa.string()), np.array(group), groups)

    def shards(self, keys):
        return np.zeros(len(keys), dtype=np.int64)

    def locate(self, keys):
        return self.answer


class Broken(Told):
    def locate(self, keys):
        raise CorruptFileError("no HFile", file="x.hfile")


def records(keys, group, groups=GROUPS):
    made = location_records(pa.array(keys), np.array(group), groups, 0)
    schema = schema_of("record_index")
    places = pa.array(made.column(2).to_pylist(), schema.field(2).type)
    return pa.table([made.column(0), made.column(1), places], schema=schema)


@pytest.mark.req("IX-12")
def test_locations_of_a_column_are_those_of_each_record():
    rng = np.random.default_rng(3)
    group = rng.integers(0, len(GROUPS), 500)
    table = records([f"k{n}" for n in range(500)], group)
    found = located(table)
    one_by_one = [(p.key, p.partition, p.file_id) for b in table.to_batches() for p in locations(b)]
    assert [
        (k, *found.groups[g]) for k, g in zip(found.keys.to_pylist(), found.group, strict=True)
    ] == one_by_one
    assert len(set(found.groups)) == len(found.groups) == len(GROUPS)
    assert located(table.slice(0, 0)).groups == ()


def test_a_record_without_a_place_is_damage():
    table = records(["a", "b"], [0, 1])
    places = table.column(2).combine_chunks()
    none = pa.array([None, places[1].as_py()], places.type)
    with pytest.raises(CorruptFileError, match="no location for the key 'a'"):
        located(table.set_column(2, LOCATION, none))
    odd = places[0].as_py() | {"fileIdEncoding": 9}
    with pytest.raises(CorruptFileError, match="invalid location"):
        located(table.set_column(2, LOCATION, pa.array([odd, places[1].as_py()], places.type)))


@pytest.mark.req("IX-12")
def test_only_file_groups_of_the_table_are_believed():
    keys = pa.array(["a", "b", "c", "b", "d"])
    index = KeyIndex(keys)
    told = Told(["a", "b", "c", "stranger"], [0, 1, 2, 0], (("p", "f1"), ("p", "f2"), ("q", "f1")))
    found = places_of(told, keys, index.find, {"p": ["f1", "f2"], "q": []})
    assert {g: r.tolist() for g, r in found.rows.items()} == {("p", "f1"): [0], ("p", "f2"): [3]}
    assert found.doubted.tolist() == [2]
    assert "f1" in found.why
    # All that it does not have is new: nothing of it is in doubt.
    assert not len(places_of(Told([], [], ()), keys, index.find, {"p": ["f1"]}).doubted)


@pytest.mark.req("IX-12")
def test_of_an_index_that_cannot_be_read_every_key_is_in_doubt():
    keys = pa.array(["a", "b"])
    found = places_of(Broken([], [], ()), keys, KeyIndex(keys).find, {"p": ["f1"]})
    assert found.doubted.tolist() == [0, 1]
    assert not found.rows
    assert "no HFile" in found.why


def test_shards_go_to_tasks_in_order():
    assert shards_by_task(5, 2) == [0, 0, 0, 1, 1]
    assert shards_by_task(2, 8) == [0, 1]
    assert shards_by_task(0, 8) == []
