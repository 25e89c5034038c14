"""Time zones by Java's names."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import partition_paths
from hudi_format.keygen.time_zones import local_zone, zone
from hudi_format.keygen.timestamp_based import (
    OUTPUT,
    TYPE,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


def spec(
    kind="EPOCHMILLISECONDS", *, name="TimestampBasedKeyGenerator", fields=("p",), keys=("id",), **options
):
    hive, encode = options.pop("hive", False), options.pop("encode", False)
    given = {TYPE: kind, OUTPUT: "yyyy/MM/dd HH"} | {k.replace("__", "."): v for k, v in options.items()}
    return KeySpec.from_class(
        name, key_fields=keys, partition_fields=fields, hive_style=hive, url_encode=encode, options=given
    )


def paths(column, made):
    return partition_paths(pa.table({"p": column}), made).to_pylist()


def longs(*values):
    return pa.array(values, pa.int64())


def test_zones_have_java_s_names_and_the_database_s_offsets(monkeypatch):
    hour = 3_600_000
    summer, winter = 1720000000000, 1704067200000
    assert zone("Europe/Oslo").offsets(np.array([summer, winter])).tolist() == [2 * hour, hour]
    # Rules go on, in 2100 as in 14024.
    assert zone("Europe/Oslo").offsets(np.array([4118083200000, 4101926400000])).tolist() == [2 * hour, hour]
    assert zone("Europe/Oslo").offsets(np.array([summer + 86_400_000 * 146_097 * 30])).tolist() == [2 * hour]
    assert zone("PST") == zone("America/Los_Angeles")
    assert zone("GMT-03:30").fixed_ms == -(3 * hour + hour // 2)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert local_zone() == zone("Asia/Tokyo")
    assert paths(longs(0), spec()) == ["1970/01/01 09"]
