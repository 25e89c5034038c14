"""Places of keys by an index: what is believed of it, and what is looked for in the files."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.key_index import KeyIndex
from hudi_format.model import BaseFile, FileSlice
from hudi_format.storage.open import open_storage
from hudi_index import record_index
from hudi_index.metadata_table.index_records import location_records
from hudi_index.metadata_table.records import LOCATION, file_id_of, schema_of
from hudi_index.record_index import (
    Located,
    RecordIndex,
    files_are_cheaper,
    index_seconds,
    located,
    located_by,
    places_of,
    shards_by_task,
)

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
def test_locations_of_a_column_are_those_that_were_written():
    rng = np.random.default_rng(3)
    group = rng.integers(0, len(GROUPS), 500)
    table = records([f"k{n}" for n in range(500)], group)
    found = located(table)
    assert found.by_key() == {f"k{n}": GROUPS[g] for n, g in enumerate(group)}
    assert len(set(found.groups)) == len(found.groups) == len(GROUPS)
    assert located(table.slice(0, 0)).groups == ()


PLACE = {
    "partitionName": ".", "fileIdHighBits": 216315617792378950, "fileIdLowBits": -5391699336157682375,
    "fileIndex": 0, "fileId": "", "instantTime": 1795237939082, "fileIdEncoding": 0, "position": None,
}  # fmt: skip


def one_record(place):
    return pa.Table.from_pylist([{"key": "k", "type": 5, LOCATION: place}], schema_of("record_index"))


def test_locations_are_file_groups():
    assert located(one_record(PLACE)).by_key() == {"k": ("", "030081e8-85e2-4846-b52c-d6052c9ca539-0")}
    raw = {
        "fileIdHighBits": -1,
        "fileIdLowBits": -1,
        "fileIndex": -1,
        "fileId": "00000001-any",
        "fileIdEncoding": 1,
    }
    found = located(one_record({**PLACE, "partitionName": "p/q", **raw}))
    assert found.by_key() == {"k": ("p/q", "00000001-any")}
    assert file_id_of({**PLACE, "fileIndex": -1}) == "030081e8-85e2-4846-b52c-d6052c9ca539"


@pytest.mark.parametrize(
    "change",
    [{"fileIdEncoding": 2}, {"fileIdEncoding": 1}, {"fileIdHighBits": None}, {"fileIndex": None}, None],
)
def test_locations_that_say_nothing_are_corrupt(change):
    with pytest.raises(CorruptFileError, match="'k'"):
        located(one_record(None if change is None else {**PLACE, **change}))


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


class ByLength(Told):
    """An index that has each key in the group of its last digit, and doubts those of two digits."""

    asked: list[int]

    def __init__(self):
        self.asked = []

    def shards(self, keys):
        return np.array([int(k.as_py()[-1]) % self.count for k in keys], dtype=np.int64)

    def locate(self, keys):
        self.asked.append(len(keys))
        digits = [int(k.as_py()[-1]) for k in keys if k.as_py()[-1] != "9"]
        groups = tuple(("p", str(d)) for d in sorted(set(digits)))
        doubted = keys.filter(pa.array([len(k.as_py()) == 2 for k in keys]))
        known = keys.filter(pa.array([k.as_py()[-1] != "9" for k in keys]))
        number = {g[1]: n for n, g in enumerate(groups)}
        return Located(
            known,
            np.array([number[str(d)] for d in digits], dtype=np.int64),
            groups,
            doubted,
            "of two digits",
        )


@pytest.mark.req("IX-12")
def test_threads_get_the_answer_that_one_question_gets():
    keys = pa.array([f"{n}" for n in range(12_000)])
    one, several = ByLength(), ByLength()
    whole = located_by(one, keys)
    with ThreadPoolExecutor(3) as pool:
        parts = located_by(several, keys, pool)
    assert one.asked == [12_000]
    assert len(several.asked) == several.count
    assert sum(several.asked) == 12_000

    def said(found):
        return sorted((k, *found.groups[g]) for k, g in zip(found.keys.to_pylist(), found.group, strict=True))

    assert said(parts) == said(whole)
    assert sorted(parts.doubted.to_pylist()) == sorted(whole.doubted.to_pylist())
    assert parts.why == whole.why


INSTANT = "20260101000000000"


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path))


def file(storage, name, rows=1000, column="_hoodie_record_key", size=None):
    path = f"{storage.uri.removeprefix('file://')}/{name}_0-0-0_{INSTANT}.parquet"
    pq.write_table(pa.table({column: [f"k{n:09d}" for n in range(rows)], "v": list(range(rows))}), path)
    found = BaseFile("", f"{name}_0-0-0_{INSTANT}.parquet", name, INSTANT)
    return replace(found, size=storage.info(found.path).size if size is None else size)


def index(storage, megabytes):
    slices = [
        FileSlice("", f"record-index-{n:04d}-0", INSTANT, BaseFile("", "x.hfile", "x", INSTANT, size=10**6))
        for n in range(megabytes)
    ]
    return RecordIndex(storage, tuple(slices), BlockScope())


def given(storage, files, megabytes=200):
    groups = {"": tuple(f.file_id for f in files)}
    return groups, index(storage, megabytes)


@pytest.mark.req("IX-12")
def test_many_keys_are_looked_for_in_files_and_few_by_the_index(storage):
    files = [file(storage, "f1"), file(storage, "f2")]
    asked = given(storage, files)
    assert files_are_cheaper(storage, {"": files}, *asked, 300_000)
    assert not files_are_cheaper(storage, {"": files}, *asked, 100)
    # An index of two blocks is read at once.
    assert not files_are_cheaper(storage, {"": files}, *given(storage, files, megabytes=1), 300_000)
    # To many tasks each key would be sent.
    assert not files_are_cheaper(storage, {"": files}, *asked, 300_000, tasks=1000)


@pytest.mark.req("IX-12")
def test_files_are_not_read_where_their_keys_are_more_than_the_index(storage, monkeypatch):
    monkeypatch.setattr(record_index, "_OPENING_S", 0.0)
    one = file(storage, "f1", rows=100_000)
    for copies, cheaper in ((1, True), (20, True), (2000, False)):
        files = [one] * copies
        found = files_are_cheaper(storage, {"": files}, *given(storage, files), 300_000)
        assert found is cheaper, copies


@pytest.mark.req("IX-12")
def test_a_file_more_costs_its_opening(storage):
    files = [file(storage, "f1")] * 3000
    assert not files_are_cheaper(storage, {"": files}, *given(storage, files), 300_000)


@pytest.mark.req("IX-12")
def test_what_files_may_not_say_is_asked_of_the_index(storage):
    files = [file(storage, "f1")]
    asked = given(storage, files)
    assert files_are_cheaper(storage, {"": files}, *asked, 300_000)
    groups, locator = asked
    group_of_logs = {"": (*groups[""], "logs alone")}
    assert not files_are_cheaper(storage, {"": files}, group_of_logs, locator, 300_000)
    assert not files_are_cheaper(storage, {"": files}, groups, None, 300_000)
    assert not files_are_cheaper(storage, {"": files}, groups, Told([], [], ()), 300_000)
    unlisted = [replace(files[0], size=-1)]
    assert not files_are_cheaper(storage, {"": unlisted}, *asked, 300_000)
    keyless = [file(storage, "f3", column="id")]
    assert not files_are_cheaper(storage, {"": keyless}, *given(storage, keyless), 300_000)
    gone = [replace(files[0], name=f"gone_0-0-0_{INSTANT}.parquet")]
    assert not files_are_cheaper(storage, {"": gone}, *asked, 300_000)


def test_an_index_of_no_files_costs_nothing(storage):
    assert index_seconds(index(storage, 0), 10**6) == 0
    assert 0 < index_seconds(index(storage, 10), 10) < index_seconds(index(storage, 10), 10_000)
