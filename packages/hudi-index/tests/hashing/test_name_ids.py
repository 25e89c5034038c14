"""Ids in keys of the metadata table, against Apache Hudi's own."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index.hashing.name_ids import file_name_id, name_id, name_ids, xxh64

# Java: HashID.hash(text, XXHASH_64).
IDS = {
    "": "DW/eaNVbRdo=",
    "a": "BFHqp2KLzrM=",
    "abc": "1b5yTevT38k=",
    "key1": "1eF2YHc17VQ=",
    "city=0/2024": "ZnMVTbtTYZI=",
    ".": "FXThHwelITM=",
    "2024/01/01": "NEj/wCdb1IM=",
    "uuid:1,ts:2": "OLr6/wkalig=",
    "中": "qCdKSHQe/TI=",
    "__partition_stat__": "2CMHrhWVE9w=",
    "part=x": "X+bY+F1b0Wk=",
}


@pytest.mark.parametrize("text", IDS)
def test_ids_are_those_of_apache_hudi(text):
    assert name_id(text) == IDS[text]


def test_the_seed_is_sign_extended():
    assert xxh64(pa.array(["abc"]))[0].as_py() == 0xD5BE724DEBD3DFC9
    assert xxh64(pa.array(["abc"]), 0xDABADABA)[0].as_py() == 0x737EAF0643C70FFA


# The reference's own test vectors: with seed 0, of the empty text, of one short one and of one over 32 bytes.
@pytest.mark.parametrize(
    ("text", "hash"),
    [
        ("", 0xEF46DB3751D8E999),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_of_the_reference(text, hash):
    assert xxh64(pa.array([text]), 0)[0].as_py() == hash


def test_file_names_are_hashed_by_md5():
    assert file_name_id("abc") == "kAFQmDzST7DWlj99KOF/cg=="


@given(st.lists(st.none() | st.text(max_size=70), max_size=8), st.integers(0, 3))
def test_a_text_has_the_same_id_in_any_array(texts, start):
    whole = pa.array(texts, pa.string())
    alone = [None if t is None else name_id(t) for t in texts]
    assert name_ids(whole).to_pylist() == alone
    assert name_ids(whole.slice(start)).to_pylist() == alone[start:]
    assert name_ids(pa.chunked_array([whole, whole])).to_pylist() == alone * 2
    assert name_ids(whole.cast(pa.large_string())).to_pylist() == alone
    assert name_ids(whole.dictionary_encode()).to_pylist() == alone


def test_other_columns_are_refused():
    with pytest.raises(TypeError):
        xxh64(pa.array([1]))
