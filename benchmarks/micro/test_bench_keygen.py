"""Record keys and partition paths of 2,000,000 rows in 8 partitions (`HUDI_BENCH_ROWS` changes the rows)."""

import os

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import partition_paths, record_keys

ROWS = int(os.environ.get("HUDI_BENCH_ROWS", 2_000_000))
PARTITIONS = 8


@pytest.fixture(scope="module")
def table() -> pa.Table:
    codes = np.random.default_rng(1).integers(0, PARTITIONS, ROWS)
    days = pa.array([f"2024/03/0{i}" for i in range(PARTITIONS)])
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS)).cast(pa.string()),
            "number": pa.array(np.arange(ROWS)),
            "text": days.take(pa.array(codes)),
            "day": pa.array(codes.astype(np.int32)).cast(pa.date32()),
        }
    )


def spec(keys: tuple[str, ...], partitions: tuple[str, ...]) -> KeySpec:
    return KeySpec.from_class(None, key_fields=keys, partition_fields=partitions, hive_style=True)


@pytest.mark.benchmark(group="record-keys")
@pytest.mark.parametrize("fields", [("id",), ("number",), ("id", "day")], ids=", ".join)
def test_record_keys(benchmark, table, fields):
    keys = benchmark(record_keys, table, spec(fields, ()))
    last = ROWS - 1
    day = table["day"][last].as_py()
    assert keys[last].as_py() == (f"id:{last},day:{day}" if len(fields) > 1 else str(last))
    benchmark.extra_info["rows"] = ROWS


@pytest.mark.benchmark(group="partition-paths")
@pytest.mark.parametrize("fields", [("text",), ("day",), ("text", "day")], ids=", ".join)
def test_partition_paths(benchmark, table, fields):
    paths = benchmark(partition_paths, table, spec(("id",), fields))
    last = ROWS - 1
    assert paths[last].as_py() == "/".join(f"{f}={table[f][last].as_py()}" for f in fields)
    assert len(paths.dictionary) == min(PARTITIONS, ROWS)
    benchmark.extra_info["rows"] = ROWS
