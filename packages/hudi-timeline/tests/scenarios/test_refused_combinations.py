"""Combinations of payload, index, table type and operation that are refused: before anything is written, with a way on.

`docs/differences.md` and the errors themselves say why.
"""

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    HudiError,
    OptionError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

WRITE = "hoodie.datasource.write."
MODELS = "org.apache.hudi.common.model."
ROWS = pa.table({"id": ["a"], "p": ["x"], "ts": [1], "_event_lsn": [1]})
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
}
LOGS = {WRITE + "table.type": "MERGE_ON_READ"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
FREE = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
OWN = {"hudi.merge": '{"ts": "max"}'}

# Options, the error, and what it says to do.
REFUSED = {
    "payload x ordering field": (
        {WRITE + "payload.class": MODELS + "debezium.PostgresDebeziumAvroPayload"},
        UnsupportedError,
        "make _event_lsn the table's ordering field",
    ),
    "payload x delete field": (
        {"hoodie.payload.delete.field": "ts", "hoodie.payload.delete.marker": "1"},
        OptionError,
        "payload.class to DefaultHoodieRecordPayload",
    ),
    "payload x merge function": (
        {**OWN, WRITE + "payload.class": MODELS + "DefaultHoodieRecordPayload"},
        ConflictingOptionError,
        "give one of them",
    ),
    "payload of a JVM": ({WRITE + "payload.class": "com.corp.Payload"}, UnsupportedError, "use one of"),
    "merge function x log compaction": (
        {**OWN, **LOGS, "hoodie.log.compaction.inline": "true"},
        UnsupportedError,
        "compactions merge such logs",
    ),
    "virtual keys x global index": (
        {"hoodie.populate.meta.fields": "false", "hoodie.index.type": "GLOBAL_SIMPLE"},
        ConflictingOptionError,
        "the index SIMPLE or BUCKET",
    ),
    "virtual keys x key generator": (
        {
            "hoodie.populate.meta.fields": "false",
            WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy",
            WRITE + "partitionpath.field": "ts",
        },
        ConflictingOptionError,
        "use SimpleKeyGenerator",
    ),
    "made-up keys x BUCKET": (
        {**BUCKETS, WRITE + "recordkey.field": None, WRITE + "operation": "insert"},
        UnsupportedError,
        "name the record key fields",
    ),
    "copy-on-write x consistent hashing": (
        {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
        UnsupportedError,
        "MERGE_ON_READ, or hoodie.index.bucket.engine=EXTENDIBLE_HASHING",
    ),
    "copy-on-write x compaction": ({"hoodie.compact.inline": "true"}, UnsupportedError, "leave it out"),
    "buckets x another index": (
        {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.bucket.index.num.buckets": "2"},
        ConflictingOptionError,
        "hoodie.index.type=BUCKET",
    ),
    "several ordering fields": (
        {WRITE + "precombine.field": "ts,_event_lsn"},
        UnsupportedError,
        "name the one field that decides",
    ),
    "logging mode x no change data capture": (
        {"hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"},
        ConflictingOptionError,
        "hoodie.table.cdc.enabled=true",
    ),
    "writers beside each other x copy-on-write": (
        {**FREE, **BUCKETS},
        UnsupportedError,
        "OPTIMISTIC_CONCURRENCY_CONTROL",
    ),
    "writers beside each other x global index": (
        {**FREE, **LOGS, "hoodie.index.type": "GLOBAL_SIMPLE"},
        UnsupportedError,
        "OPTIMISTIC_CONCURRENCY_CONTROL",
    ),
    "writers beside each other x change data capture": (
        {**FREE, **LOGS, **BUCKETS, "hoodie.table.cdc.enabled": "true"},
        UnsupportedError,
        "OPTIMISTIC_CONCURRENCY_CONTROL",
    ),
    "writers beside each other x a merge that order changes": (
        {**FREE, **LOGS, **BUCKETS, "hudi.merge": '{"ts": "last"}'},
        UnsupportedError,
        "OPTIMISTIC_CONCURRENCY_CONTROL",
    ),
    "merger of a JVM": (
        {WRITE + "record.merger.impls": "org.apache.hudi.HoodieSparkRecordMerger"},
        UnsupportedError,
        "DefaultHoodieRecordPayload",
    ),
}


@pytest.mark.parametrize("combination", REFUSED)
@pytest.mark.sampled(4)
def test_a_combination_is_refused_before_anything_is_written_with_a_way_on(tmp_path, combination):
    given, error, remedy = REFUSED[combination]
    options = {k: v for k, v in {**BASE, **given}.items() if v is not None}
    with pytest.raises(error) as refused:
        execute(LocalEngine(), open_storage(str(tmp_path / "t")), ROWS, options)
    assert isinstance(refused.value, HudiError)
    assert remedy in str(refused.value)
    assert not (tmp_path / "t").exists()


def test_expressions_for_the_columns_of_keys_and_partitions_are_refused(tmp_path):
    """A record that moves has those that it came with."""
    for column in ("id", "p"):
        with pytest.raises(
            HudiError, match=f"names '{column}', which is part of the record key or partition"
        ):
            execute(
                LocalEngine(),
                open_storage(str(tmp_path / "t")),
                ROWS,
                {**BASE, "hoodie.index.type": "GLOBAL_SIMPLE", "hudi.merge": f'{{"{column}": "max"}}'},
            )
    assert not (tmp_path / "t").exists()


def test_duplicates_are_not_looked_for_in_the_logs_of_buckets(tmp_path):
    options = {**BASE, **LOGS, **BUCKETS, WRITE + "insert.drop.duplicates": "true"}
    for _ in range(2):
        execute(LocalEngine(), open_storage(str(tmp_path)), ROWS, {**BASE, **LOGS, **BUCKETS})
    with pytest.raises(UnsupportedError, match="upsert the rows, or compact the table first"):
        execute(LocalEngine(), open_storage(str(tmp_path)), ROWS, options | {WRITE + "operation": "insert"})
    assert HudiTable.open(str(tmp_path)).read().count() == 1
