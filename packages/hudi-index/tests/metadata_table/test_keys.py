"""Keys and shards of the metadata table, against those in tables of Apache Hudi."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_index.metadata_table import keys as k

NAME = "b7e9a3ea-8f5c-4a5b-b2bd-0d4a5b5d1f4f-0_0-1-2_20240101000000000.parquet"


def test_keys_are_ids_one_after_the_other():
    # Of a table of Apache Hudi 0.15: column mp in partition 0.
    assert k.column_stats_prefix("mp", "0") == "11fZBWVDaaU=" + "06zdpyCf3Jg="
    assert k.partition_stats_key("mp", "0") == k.column_stats_prefix("mp", "0")
    key = k.column_stats_key("mp", "0", NAME)
    assert key.startswith(k.column_stats_prefix("mp"))
    assert len(key) == 48
    assert key.endswith(k.bloom_filter_key("0", NAME)[12:])
    assert len(k.bloom_filter_key("0", NAME)) == 36


def test_the_partition_of_a_table_without_any_is_a_dot():
    assert k.bloom_filter_key("", NAME) == k.bloom_filter_key(".", NAME)
    assert k.column_stats_key("a", "", NAME)[12:24] == "FXThHwelITM="


@pytest.mark.parametrize(
    ("key", "shard"), [("abc", 4), ("k001", 2), ("uuid:1", 0), ("polygenelubricants", 8)]
)
def test_shards_are_those_of_apache_hudi(key, shard):
    assert k.shards(pa.array([key]), 10).tolist() == [shard]


def test_secondary_keys_have_a_value_and_a_record_key():
    assert k.secondary_key("zz", "2") == "zz$2"
    assert k.secondary_key("b$c", "2") == r"b\$c$2"
    assert k.secondary_key(None, "2") == "\0$2"
    assert k.secondary_key("\0", "2") == "\\\0$2"
    assert k.sharded_part(pa.array([r"b\$c$2$3"]), by_value=True).to_pylist() == [r"b\$c$"]
    with pytest.raises(CorruptFileError):
        k.split_secondary_key(r"a\$b")


@given(st.none() | st.text("a\\$\0\n中", max_size=6), st.text("a\\$\0\n中", max_size=6))
def test_a_secondary_key_gives_back_what_it_was_made_of(value, record_key):
    key = k.secondary_key(value, record_key)
    assert k.split_secondary_key(key) == (value, record_key)
    assert key.startswith(k.secondary_prefix(value))
    (part,) = k.sharded_part(pa.array([key]), by_value=True).to_pylist()
    assert part == k.secondary_prefix(value)


@pytest.mark.parametrize(
    ("partition", "first"),
    [
        ("files", "files-0000-0"),
        ("column_stats", "col-stats-0000-0"),
        ("secondary_index_idx_city", "secondary-index-idx-city-0000-0"),
        ("expr_index_day", "expr-index-day-0000-0"),
    ],
)
def test_file_groups_are_numbered(partition, first):
    assert k.file_group_id(partition, 0) == first
    assert k.shard_of(partition, k.file_group_id(partition, 12)) == 12


def test_other_file_groups_and_partitions_are_refused():
    with pytest.raises(CorruptFileError, match="files-zero"):
        k.shard_of("files", "files-zero")
    with pytest.raises(CorruptFileError):
        k.shard_of("files", "col-stats-0000-0")
    with pytest.raises(ValueError, match="no partition"):
        k.file_id_prefix("filez")


def test_keys_are_sorted_by_bytes():
    assert k.sorted_keys(pa.chunked_array([["\U0001f600", None, "b"], ["\uffff", "b"]])).to_pylist() == [
        "b",
        "\uffff",
        "\U0001f600",
    ]
