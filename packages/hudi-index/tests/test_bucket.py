"""File groups of buckets: numbers, ids, and ids that contradict the index."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.model import BaseFile
from hudi_format.storage.local import LocalStorage
from hudi_index.bucket import BucketIndex, bucket_number, files_of_buckets, locate, new_bucket_file_id
from hudi_index.lookup import BUCKET, LookupTask
from hudi_index.tagging import tag_rows

INDEX = BucketIndex(4, ("id",))
REST = "-49e7-4bf5-8b0c-5a5b1a6a1d6e-0"


def file(number, partition="p", rest=REST):
    file_id = f"{number:08d}{rest}"
    return BaseFile(partition, f"{file_id}_0-0-0_1.parquet", file_id, "1", "0-0-0", 10)


@pytest.mark.req("IX-22")
def test_a_new_file_id_begins_with_the_bucket_in_eight_digits():
    made = new_bucket_file_id(7)
    assert made.startswith("00000007-")
    assert made.endswith("-0")
    assert len(made) == 38
    assert new_bucket_file_id(7) != made
    assert bucket_number(made) == 7


@pytest.mark.parametrize(
    "file_id", ["", "0000000-x", "0000000a-49e7-0", "abcdefgh-49e7-0", "٠٠٠٠٠٠٠١-49e7-0"]
)
def test_another_id_is_no_bucket(file_id):
    assert bucket_number(file_id) is None


@pytest.mark.req("IX-22")
def test_the_number_in_a_file_of_a_bulk_insert_of_apache_hudi_counts_too():
    # Its row writer numbers the files of a task: 00000003-c463-46ae-97de-397add8371af-1.
    assert INDEX.number("00000003-c463-46ae-97de-397add8371af-1") == 3
    assert INDEX.number("00000004-c463-46ae-97de-397add8371af-0") is None


@pytest.mark.req("IX-23", "IX-26")
def test_rows_go_to_the_group_of_their_bucket_within_their_partition():
    keys = pa.chunked_array([["abc", "k001"], ["abc"], pa.array(["x", "k001"])[1:]])
    codes = np.array([0, 0, 1, 1])
    files = {"p": [file(1).file_id, file(3).file_id], "q": []}
    groups, location = locate(INDEX, keys, codes, ("p", "q"), files, table="t")
    places = [(("p", "q")[groups[n][0]], groups[n][1]) for n in location]
    assert places[0] == ("p", file(1).file_id)  # spec: "abc" of 4 is 1
    assert [bucket_number(f) for _, f in places] == [1, 1, 1, 1]
    assert [p for p, _ in places] == ["p", "p", "q", "q"]
    assert places[2] == places[3]
    assert places[2][1] not in (file(1).file_id, file(3).file_id)


def test_many_buckets_are_numbered_as_few():
    few, many = BucketIndex(5, ("id",)), BucketIndex(5_000_000, ("id",))
    keys, codes = pa.array([f"k{n}" for n in range(999)]), np.arange(999) % 2
    for index in (few, many):
        groups, location = locate(index, keys, codes, ("p", "q"), {}, table="t")
        numbers = index.of(keys)
        for row in range(999):
            code, file_id = groups[location[row]]
            assert (code, bucket_number(file_id)) == (codes[row], numbers[row])
        assert len({f for _, f in groups}) == len(groups)


def test_no_rows_use_no_bucket():
    none = pa.array([], pa.string())
    assert locate(INDEX, none, np.zeros(0, np.int32), ("p",), {"p": [file(0).file_id]}, table="t")[0] == ()


@pytest.mark.req("IX-26")
def test_two_file_groups_of_one_bucket_are_refused_with_a_way_out():
    twice = {"p": [file(1).file_id, file(1, rest="-1111-4bf5-8b0c-5a5b1a6a1d6e-0").file_id]}
    with pytest.raises(UnsupportedError, match="two file groups of bucket 1") as e:
        files_of_buckets(INDEX, {"p": [0]}, twice, table="t")
    assert "insert_overwrite" in e.value.remedy


@pytest.mark.parametrize("file_id", [f"00000004{REST}", "3f1c0a52-0000-4000-8000-000000000000-0"])
def test_a_file_group_that_is_no_bucket_is_refused(file_id):
    with pytest.raises(UnsupportedError, match="none of the table's 4 buckets"):
        INDEX.groups("p", [file_id], table="t")


def test_keys_of_another_bucket_are_refused_by_name():
    keys = pa.chunked_array([["abc"], ["abc", "uuid:abc,i32:5"]])
    INDEX.check_keys(keys.slice(0, 2), file(1).file_id, table="t", path="f")
    with pytest.raises(UnsupportedError, match=r"1 of 3 keys .* 'uuid:abc,i32:5' to bucket 0 of 4") as e:
        BucketIndex(4, ("uuid", "i32")).check_keys(keys, file(1).file_id, table="t", path="f")
    assert e.value.file == "f"


@pytest.mark.req("IX-10")
def test_tagging_reads_no_file(tmp_path):
    ids = tuple(file(n).file_id for n in range(4))
    task = LookupTask(index=BUCKET, bucket=INDEX, groups={"p": ids})
    rows = pa.table({"_hoodie_record_key": ["abc", "k001", "zzz"]})
    there = {"p": [file(n) for n in range(4)]}  # none of which is on the storage
    storage = LocalStorage(str(tmp_path))
    tagged = tag_rows(
        rows, np.zeros(3, np.int32), ("p",), storage, there, pickle.loads(pickle.dumps(task)), 1
    )
    found = [tagged.files[n][1] for n in tagged.location]
    assert found == [there["p"][n].file_id for n in INDEX.of(rows.column(0))]
    assert (tagged.count.index, tagged.count.files, tagged.count.opened) == ("BUCKET", 4, 0)
