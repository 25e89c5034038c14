"""Records of a slice by key, with and without the bloom filter of its base file."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import Bloom
from hudi_format.log.scanner import BlockScope
from hudi_format.model import BaseFile, FileSlice
from hudi_format.storage.local import LocalStorage
from hudi_index.metadata_table import encoding
from hudi_index.metadata_table.encoding import base_file_of, hfile_of
from hudi_index.metadata_table.index_records import location_records
from hudi_index.metadata_table.keys import RECORD_INDEX
from hudi_index.metadata_table.records import schema_of
from hudi_index.metadata_table.slice_records import WantedRecords, _merged, read_records

KEYS = [f"k{n:05d}" for n in range(5000)]
NAME = "record-index-0000-0_0-0-0_20260101000000000.hfile"


def _records():
    return location_records(pa.array(KEYS), np.zeros(len(KEYS), np.int64), [("p", "f-0")], 0)


def _slice(folder, content):
    (folder / NAME).write_bytes(content)
    base = BaseFile("", NAME, "record-index-0000-0", "20260101000000000", len(content))
    return LocalStorage(str(folder)), FileSlice("", base.file_id, base.instant, base)


def _found(storage, part, keys, *, is_rare):
    wanted = WantedRecords(keys=keys, is_rare=is_rare)
    records = read_records(storage, part, BlockScope(), schema_of(RECORD_INDEX), wanted)
    return records.column("key").to_pylist()


@pytest.mark.parametrize("content", [base_file_of(_records()), hfile_of(_records())], ids=["filter", "none"])
def test_keys_that_are_rare_are_found_as_others_are(tmp_path, content):
    storage, part = _slice(tmp_path, content)
    absent = [f"x{n}" for n in range(100)]
    for keys in ([*absent, "k00007", "k04999"], absent, KEYS, ["k00003"], ["x"], [], ["", *KEYS[:20]]):
        for given in (sorted(keys), pa.array(sorted(keys), pa.large_string())):
            expected = _found(storage, part, given, is_rare=False)
            assert expected == sorted(set(keys) & set(KEYS))
            assert _found(storage, part, given, is_rare=True) == expected


def test_of_keys_that_are_rare_the_filter_is_asked_and_no_block_is_read(tmp_path, monkeypatch):
    storage, part = _slice(tmp_path, base_file_of(_records()))
    read = []
    decode = HFileReader._decode

    def counted(self, at, data, keep):
        read.append(at.offset)
        return decode(self, at, data, keep)

    monkeypatch.setattr(HFileReader, "_decode", counted)
    absent = [f"k{n:05d}x" for n in range(0, 5000, 500)]  # between the keys
    assert _found(storage, part, absent, is_rare=True) == []
    assert not read
    assert _found(storage, part, absent, is_rare=False) == []
    assert len(read) > 3


def test_a_filter_of_a_type_that_is_not_known_says_nothing_and_a_damaged_one_is_an_error(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(encoding, "_filter_of", lambda keys: Bloom("BETTER", b"YQ=="))
    storage, part = _slice(tmp_path, base_file_of(_records()))
    assert _found(storage, part, KEYS[:50], is_rare=True) == KEYS[:50]
    for text in (b"?!", b"YQ=="):
        monkeypatch.setattr(encoding, "_filter_of", lambda keys, text=text: Bloom("SIMPLE", text))
        storage, part = _slice(tmp_path, base_file_of(_records()))
        with pytest.raises(CorruptFileError) as refused:
            _found(storage, part, KEYS[:50], is_rare=True)
        assert NAME in str(refused.value)


def test_of_a_key_in_several_parts_the_last_record_counts_and_keys_are_in_order():
    def part(keys, partition):
        return location_records(pa.array(keys), np.zeros(len(keys), np.int64), [(partition, "f-0")], 0)

    schema = schema_of(RECORD_INDEX)
    base = part(["a", "b", "d", "\u00e9", "\U0001f600"], "p0")
    changes = [part(["b", "c"], "p1"), part(["c", "", "\U0001f600"], "p2")]
    found = _merged([base, *changes], [(1, pa.array(["d", "b"]))], schema)
    of = [row["recordIndexMetadata"]["partitionName"] for row in found.to_pylist()]
    assert list(zip(found.column("key").to_pylist(), of, strict=True)) == [
        ("", "p2"), ("a", "p0"), ("b", "p1"), ("c", "p2"), ("\u00e9", "p0"), ("\U0001f600", "p2"),
    ]  # fmt: skip
    # The keys of one file may be there more than once, or in no order.
    assert _merged([part(["b", "a", "b"], "p0")], [], schema).column("key").to_pylist() == ["a", "b"]
    assert _merged([part(pa.array([], pa.string()), "p0")], [], schema).num_rows == 0
    assert _merged([base], [(1, pa.array(base.column("key")))], schema).num_rows == 0
    assert _merged([base], [(1, pa.array(["a"]))], schema).column("key").to_pylist()[:2] == ["b", "d"]
    one = _merged([base, changes[0]], [(2, pa.array(["a", "b", "c", "\u00e9", "\U0001f600"]))], schema)
    assert one.column("key").to_pylist() == ["d"]
