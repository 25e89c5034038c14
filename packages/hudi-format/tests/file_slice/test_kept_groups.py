"""Rewritten base files: what does not change is the old file's chunk, and every value is the merged one."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.file_slice.kept_groups import same_columns
from hudi_format.file_slice.writer import FileSpec, Incoming, RowCounter, concat_file, merge_file, stamp
from hudi_format.merge.record_merger import DATA, DATA_DELETED
from hudi_format.model import BaseFile
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.reader import Pieces
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.meta_fields import META_COLUMNS, RECORD_KEY, with_meta
from hudi_format.storage.local import LocalStorage

SCHEMA = pa.schema(
    [("v", pa.int64()), ("d", pa.float64()), ("t", pa.string()), ("l", pa.list_(pa.float64()))]
)
ROWS = 1000


def spec(instant, **config):
    return FileSpec(
        "p",
        "f-0",
        "0-1-1",
        instant,
        SCHEMA,
        ParquetConfig(**{"kept_chunk_bytes": 1, **config}),
        f"{instant}_0_",
    )


def records(keys, v=0, d=0.0, t="x", many=(1.5,)):
    n = len(keys)
    return pa.table({RECORD_KEY: keys, "v": [v] * n, "d": [d] * n, "t": [t] * n, "l": [list(many)] * n}).cast(
        pa.schema([(RECORD_KEY, pa.string()), *SCHEMA])
    )


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


def first(storage, rows=None, **config):
    made = spec("1", **config)
    with BaseFileWriter(storage, made.path, with_meta(SCHEMA), config=made.config) as writer:
        writer.write(
            stamp(records([f"k{n:04d}" for n in range(ROWS)]) if rows is None else rows, made, RowCounter())
        )
    return file_of(made)


def file_of(made):
    return BaseFile("p", made.name, "f-0", made.instant, "0-1-1")


def pages(tmp_path, file, group=0):
    path = tmp_path / "p" / file.name
    data, out = path.read_bytes(), {}
    meta = pq.read_metadata(path).row_group(group)
    for n in range(meta.num_columns):
        chunk = meta.column(n)
        at = chunk.dictionary_page_offset or chunk.data_page_offset
        out[chunk.path_in_schema.split(".")[0]] = data[at : at + chunk.total_compressed_size]
    return out


def taken(tmp_path, before, after, group=0):
    old, new = pages(tmp_path, before, group), pages(tmp_path, after, group)
    return {n for n in old if old[n] == new[n]}


def rows(tmp_path, file):
    return {r[RECORD_KEY]: r for r in pq.read_table(tmp_path / "p" / file.name).to_pylist()}


def test_columns_that_no_record_changes_are_taken_over(storage, tmp_path):
    old = first(storage)
    made = spec("2")
    stat = merge_file(storage, made, old, Incoming(records(["k0003", "k0500"], v=7)))
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts) == (ROWS, 2, 0)
    new = file_of(made)
    # Numbers within lists are not compared: written anew, they have the same bytes.
    assert taken(tmp_path, old, new) == {RECORD_KEY, "_hoodie_partition_path", "d", "t", "l"}
    found = rows(tmp_path, new)
    assert [k for k, r in found.items() if r["v"] == 7] == ["k0003", "k0500"]
    assert {r["_hoodie_file_name"] for r in found.values()} == {made.name}
    assert {r["_hoodie_commit_time"] for k, r in found.items() if k in ("k0003", "k0500")} == {"2"}
    assert found["k0004"]["_hoodie_commit_time"] == "1"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("d", 0.0, -0.0), ("d", None, 0.0), ("d", 0.0, float("nan")), ("t", "", None), ("l", [0.0], [-0.0])],
)
def test_values_that_only_look_alike_are_changes(storage, tmp_path, name, before, after):
    base = records(["a", "b", "c"])
    place = base.schema.get_field_index(name)
    old = first(
        storage,
        base.set_column(place, base.schema.field(name), pa.array([before] * 3, SCHEMA.field(name).type)),
    )
    change = records(["b"]).set_column(
        place, base.schema.field(name), pa.array([after], SCHEMA.field(name).type)
    )
    made = spec("2")
    merge_file(storage, made, old, Incoming(change))
    assert repr(rows(tmp_path, file_of(made))["b"][name]) == repr(after)
    assert repr(rows(tmp_path, file_of(made))["a"][name]) == repr(before)


def test_new_records_follow_in_a_row_group_of_their_own_until_it_is_large(storage, tmp_path):
    file = first(storage)
    sizes, counter = [], RowCounter()
    for turn in range(2, 22):
        made = spec(str(turn))
        new = records([f"n{turn}-{i}" for i in range(30)], v=turn)
        if turn % 2:
            concat_file(storage, made, file, [new], counter=counter)
        else:
            merge_file(storage, made, file, Incoming(new), counter=counter)
        before, file = file, file_of(made)
        meta = pq.read_metadata(tmp_path / "p" / file.name)
        sizes.append([meta.row_group(n).num_rows for n in range(meta.num_row_groups)])
        if len(sizes) == 1:
            assert taken(tmp_path, before, file) == {*META_COLUMNS, *SCHEMA.names} - {"_hoodie_file_name"}
    assert sizes[0] == [ROWS, 30]
    assert [sum(s) for s in sizes] == [ROWS + 30 * n for n in range(1, 21)]
    assert max(map(len, sizes)) <= 4
    assert min(map(len, sizes)) == 1
    found = rows(tmp_path, file)
    assert len(found) == ROWS + 600
    assert {r["_hoodie_file_name"] for r in found.values()} == {file.name}
    assert {(r["v"], r["_hoodie_commit_time"]) for k, r in found.items() if k.startswith("n7-")} == {(7, "7")}


def test_row_groups_with_deletes_are_written_anew_and_others_stay(storage, tmp_path):
    old = first(storage, row_group_rows=250, row_group_bytes=40_000)
    kinds = np.array([DATA_DELETED, DATA])
    made = spec("2", row_group_rows=250, row_group_bytes=40_000)
    merge_file(storage, made, old, Incoming(records(["k0300", "k0600"], v=1), kinds=kinds))
    new = file_of(made)
    assert taken(tmp_path, old, new) == {*META_COLUMNS, *SCHEMA.names} - {"_hoodie_file_name"}
    found = pq.read_table(tmp_path / "p" / new.name)
    assert found[RECORD_KEY].to_pylist() == [f"k{n:04d}" for n in range(ROWS) if n != 300]
    assert rows(tmp_path, new)["k0600"]["v"] == 1
    assert {r["_hoodie_file_name"] for r in found.to_pylist()} == {made.name}


class Keys:
    def __init__(self):
        self.seen = []

    def add(self, keys):
        self.seen += keys.to_pylist()

    def finish(self):
        return {"keys": str(len(self.seen))}


@pytest.mark.parametrize("merge", [True, False])
def test_an_observer_sees_the_keys_of_rows_that_stay(storage, merge):
    old, made, keys = first(storage), spec("2"), Keys()
    if merge:
        merge_file(storage, made, old, Incoming(records(["new"])), observer=lambda *_: keys)
    else:
        concat_file(storage, made, old, [records(["new"])], observer=lambda *_: keys)
    assert keys.seen == [*(f"k{n:04d}" for n in range(ROWS)), "new"]


def test_small_row_groups_are_written_anew_without_a_look_at_their_chunks(storage, tmp_path, monkeypatch):
    old = first(storage)
    group = pq.read_metadata(tmp_path / "p" / old.name).row_group(0)
    average = group.total_byte_size // group.num_columns
    made = spec("2", kept_chunk_bytes=average)
    merge_file(storage, made, old, Incoming(records(["new"])))
    new = file_of(made)
    # The large row group stays as it is, and new rows are another one.
    assert [pq.read_metadata(tmp_path / "p" / new.name).row_group(n).num_rows for n in (0, 1)] == [ROWS, 1]

    def looked_at(*_):
        raise AssertionError("its chunks are looked at")

    monkeypatch.setattr("hudi_format.parquet.reader.StoredChunks", looked_at)
    with pytest.raises(AssertionError, match="looked at"):
        merge_file(storage, spec("3", kept_chunk_bytes=average), old, Incoming(records(["new"])))
    made = spec("3", kept_chunk_bytes=average + 1)
    merge_file(storage, made, old, Incoming(records(["new"])))
    meta = pq.read_metadata(tmp_path / "p" / made.name)
    assert [meta.row_group(n).num_rows for n in range(meta.num_row_groups)] == [ROWS + 1]


def test_small_row_groups_beside_large_ones_are_written_anew(storage, tmp_path):
    old = first(storage)
    meta = pq.read_metadata(tmp_path / "p" / old.name).row_group(0)
    made = spec("2", kept_chunk_bytes=meta.total_byte_size // meta.num_columns)
    merge_file(storage, made, old, Incoming(records(["n1"])))
    again = spec("3", kept_chunk_bytes=meta.total_byte_size // meta.num_columns)
    merge_file(storage, again, file_of(made), Incoming(records(["k0001"], v=7)))  # one row, one change
    after = pq.read_metadata(tmp_path / "p" / again.name)
    assert [after.row_group(n).num_rows for n in range(after.num_row_groups)] == [ROWS, 1]
    assert taken(tmp_path, file_of(made), file_of(again)) == {
        RECORD_KEY, "_hoodie_partition_path", "d", "t", "l",
    }  # fmt: skip
    assert rows(tmp_path, file_of(again))["k0001"]["v"] == 7
    assert rows(tmp_path, file_of(again))["n1"]["_hoodie_file_name"] == again.name


def test_columns_are_compared_bit_by_bit():
    nan = np.array([np.nan, 1.0])
    before = pa.table(
        {"a": nan, "b": ["x", None], "c": pa.array(["u", "u"]).dictionary_encode(), "d": [1, 2]}
    )
    after = pa.table({"a": nan.copy(), "b": ["x", None], "c": ["u", "u"], "d": pa.array([1, 2], pa.int32())})
    assert same_columns(before, after, {"a", "b", "c", "d", "e"}) == {"a", "b", "c"}


def test_of_large_row_groups_only_the_keys_come_whole(storage, tmp_path, monkeypatch):
    whole = []

    class Small(Pieces):
        def __init__(self, *given, **more):
            super().__init__(*given, most_bytes=4000, **more)

        def columns(self, group, names):
            whole.append(names)
            return super().columns(group, names)

    monkeypatch.setattr("hudi_format.file_slice.writer.Pieces", Small)
    old, made = first(storage), spec("2")
    merge_file(storage, made, old, Incoming(records(["k0003", "k0900"], v=7)))
    assert whole == [[RECORD_KEY]]
    new = file_of(made)
    assert taken(tmp_path, old, new) == {RECORD_KEY, "_hoodie_partition_path", "d", "t", "l"}
    assert [k for k, r in rows(tmp_path, new).items() if r["v"] == 7] == ["k0003", "k0900"]
