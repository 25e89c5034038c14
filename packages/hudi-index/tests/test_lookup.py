"""Keys looked up in base files: what SIMPLE and BLOOM find, what is not opened, and who wins over a stored record."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import MissingColumnError, MissingFileError
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import BaseFile
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_format.storage.local import LocalStorage
from hudi_index.bloom.footer_index import FILTER, MAYBE, RANGE
from hudi_index.bloom.key_observer import BloomObserver, BloomSettings
from hudi_index.lookup import (
    BLOOM,
    GLOBAL_BLOOM,
    GLOBAL_SIMPLE,
    MISSED,
    SIMPLE,
    FileLookup,
    LookupCount,
    LookupTask,
    surviving,
    with_equal_keys,
)

EVENT_TIME = payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload")
TS = pa.field("ts", pa.int64())
STORED = ["k10", "k20", "k30"]


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


@pytest.fixture
def file(storage):
    """Three keys with ordering value 5, with bloom filter and range in the footer."""
    rows = pa.table(
        {**{n: STORED if n == "_hoodie_record_key" else ["x"] * 3 for n in META_COLUMNS}, "ts": [5, 5, 5]}
    )
    schema = rows.schema
    with BaseFileWriter(
        storage, "f.parquet", schema, config=ParquetConfig(), observer=BloomObserver(BloomSettings())
    ) as writer:
        writer.write(rows)
        writer.close()
    return BaseFile("", "f.parquet", "f", "1", "0", storage.info("f.parquet").size)


@pytest.mark.parametrize("index", [SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM])
def test_every_index_finds_the_same_rows(storage, file, index):
    keys = pa.array(["k30", "k15", "k10", "k30"])
    lookup = FileLookup(storage, keys, LookupTask(index))
    found = lookup.find(file)
    assert (found.verdict, found.rows.tolist()) == (MAYBE, [2, 3])
    assert with_equal_keys(found.rows, lookup.same_keys).tolist() == [0, 2, 3]


def test_bloom_opens_no_file_that_its_footer_rules_out(storage, file):
    assert FileLookup(storage, pa.array(["a"]), LookupTask(BLOOM)).find(file).verdict == RANGE
    assert FileLookup(storage, pa.array(["k11"]), LookupTask(BLOOM)).find(file).verdict == FILTER
    ranges_off = LookupTask(BLOOM, prune_by_ranges=False)
    assert FileLookup(storage, pa.array(["a"]), ranges_off).find(file).verdict == FILTER
    assert FileLookup(storage, pa.array(["a"]), LookupTask(SIMPLE)).find(file).verdict == MISSED


def test_without_keys_no_file_is_read(storage):
    gone = BaseFile("", "gone.parquet", "g", "1", "0", 100)
    assert FileLookup(storage, pa.array([], pa.string()), LookupTask()).find(gone).rows.tolist() == []
    for index in (SIMPLE, BLOOM):
        with pytest.raises(MissingFileError):
            FileLookup(storage, pa.array(["a"]), LookupTask(index)).find(gone)


def test_a_moving_record_stays_where_the_stored_one_is_newer(storage, file):
    task = LookupTask(GLOBAL_SIMPLE, ordering_field="ts", ordering_column=TS, rule=EVENT_TIME)
    assert task.compares_stored
    lookup = FileLookup(storage, pa.array(["k10", "k20", "k30"]), task, ordering=pa.array([4, 5, 6]))
    found = lookup.find(file, np.array([True, True, True]))
    assert found.stays.tolist() == [True, False, False]
    assert lookup.find(file, np.array([False] * 3)).stays is None


def test_a_file_without_the_ordering_column_is_named(storage, file):
    task = LookupTask(GLOBAL_SIMPLE, ordering_field="other.x", ordering_column=TS, rule=EVENT_TIME)
    lookup = FileLookup(storage, pa.array(["k10"]), task, ordering=pa.array([4]))
    with pytest.raises(MissingColumnError, match=r"other\.x"):
        lookup.find(file, np.array([True]))


def test_of_one_key_the_greatest_ordering_value_survives_or_the_last_row():
    keys = pa.array(["a", "b", "a"])
    assert surviving(keys, LookupTask(rule=EVENT_TIME), pa.array([9, 1, 5])).tolist() == [0, 1]
    latest = payload_rule("org.apache.hudi.common.model.OverwriteWithLatestAvroPayload")
    assert surviving(keys, LookupTask(rule=latest), None).tolist() == [1, 2]


def test_what_a_look_up_did_is_counted_and_said():
    count = LookupCount.of(BLOOM, [MAYBE, RANGE, FILTER, RANGE])
    assert (count.files, count.opened, count.by_range, count.by_filter) == (4, 1, 2, 1)
    assert str(count) == "BLOOM: keys of 1 of 4 files read, 2 ruled out by key range, 1 by bloom filter"
    assert str(LookupCount.of(SIMPLE, [MAYBE])) == "SIMPLE: keys of 1 of 1 files read"


def test_only_global_indexes_move_records_and_prepped_rows_are_not_looked_up():
    assert not LookupTask(SIMPLE, ordering_field="ts", rule=EVENT_TIME).compares_stored
    assert not LookupTask(GLOBAL_BLOOM, prepped=True).is_global
    assert not LookupTask(
        GLOBAL_BLOOM, update_partition=False, ordering_field="ts", rule=EVENT_TIME
    ).compares_stored
    assert LookupTask(GLOBAL_BLOOM).uses_filters
    assert not LookupTask(GLOBAL_SIMPLE).uses_filters
