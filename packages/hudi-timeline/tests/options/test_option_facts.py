"""What is told of an option: value, origin, default, what it takes."""

import pytest

from hudi_timeline.options import (
    describe,
    explain,
)
from hudi_timeline.options.option_facts import EFFECT, MEANING, TUNING, UNKNOWN
from hudi_timeline.options.registry import declared_options


@pytest.mark.req("NEW-15", "OP-08")
def test_explain_tells_value_origin_default_and_class_of_each_option():
    facts = {f.key: f for f in explain({
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.index.type": "HBASE",
        "hoodie.cleaner.parallelism": "200",
        "hoodie.tabel.name": "t",
        "hoodie.streamer.source.kafka.topic": "trips",
        "hoodie.streamer.source.kafka.topics": "trips",
    })}  # fmt: skip
    table_type = facts["hoodie.datasource.write.table.type"]
    assert (table_type.origin, table_type.taken_as) == ("given as hoodie.table.type", MEANING)
    assert facts["hoodie.index.type"].taken_as == EFFECT
    assert "set it to one of SIMPLE" in facts["hoodie.index.type"].note
    assert facts["hoodie.cleaner.parallelism"].taken_as == TUNING
    assert facts["hoodie.tabel.name"].taken_as == UNKNOWN
    assert "hoodie.table.name" in facts["hoodie.tabel.name"].note
    assert facts["hoodie.streamer.source.kafka.topic"].taken_as == TUNING
    assert facts["hoodie.streamer.source.kafka.topics"].taken_as == UNKNOWN
    assert "hoodie.streamer.source.kafka.topic" in facts["hoodie.streamer.source.kafka.topics"].note
    codec = facts["hoodie.parquet.compression.codec"]
    assert (codec.value, codec.origin, codec.default) == (None, "default", "zstd")
    assert {k for k, option in declared_options().items() if option.doc} <= set(facts)


def test_describe_says_what_an_option_takes():
    fact = describe("hoodie.parquet.max.file.size")
    assert fact.allowed == "a whole number of bytes from 1"
    assert fact.default == "125829120"
    assert fact.note
