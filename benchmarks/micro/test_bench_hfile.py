"""One HFile of about 100 MB on a local disk: a scan, ten keys and ten thousand keys of it, each from opening on.

`HUDI_BENCH_ROWS` changes the number of entries; one has 21 bytes of key and 60 of value.
"""

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format import HFileReader, HFileWriter, open_storage

ROWS = int(os.environ.get("HUDI_BENCH_ROWS", 1_000_000))
CODECS = ["none", "gz"]


@pytest.fixture(scope="module")
def entries():
    numbers = pc.utf8_lpad(pa.array(np.arange(ROWS)).cast(pa.string()), 9, "0")
    keys = pc.binary_join_element_wise("driver-0000-", numbers, "")
    # Hexadecimal digits, so that gzip has something to do and something to gain.
    digits = np.frombuffer(np.random.default_rng(1).bytes(30 * ROWS).hex().encode(), "S60")
    return keys, pa.array(digits, pa.binary())


def _write(folder, name, entries):
    storage = open_storage(str(folder))
    with storage.open_output(name) as sink:
        writer = HFileWriter(sink, schema='"bytes"', codec=name)
        writer.append(*entries)
        return writer.finish()


@pytest.fixture(scope="module")
def storage(entries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hfile")
    for codec in CODECS:
        _write(folder, codec, entries)
    return open_storage(str(folder))


def _some(entries, count):
    rows = np.random.default_rng(2).choice(ROWS, min(count, ROWS), replace=False)
    return entries[0].take(pa.array(rows))


@pytest.mark.benchmark(group="hfile-scan")
@pytest.mark.parametrize("codec", CODECS)
def test_scan(benchmark, storage, codec):
    table = benchmark(lambda: HFileReader.open(storage, codec).scan())
    assert table.num_rows == ROWS
    benchmark.extra_info["entries"] = ROWS


@pytest.mark.benchmark(group="hfile-ten-keys")
@pytest.mark.parametrize("codec", CODECS)
def test_ten_keys(benchmark, storage, entries, codec):
    keys = _some(entries, 10).to_pylist()

    def look():
        reader = HFileReader.open(storage, codec)
        return [reader.get(key) for key in keys]

    assert all(value is not None and len(value) == 60 for value in benchmark(look))


@pytest.mark.benchmark(group="hfile-ten-thousand-keys")
@pytest.mark.parametrize("codec", CODECS)
def test_ten_thousand_keys(benchmark, storage, entries, codec):
    keys = _some(entries, 10_000)
    table = benchmark(lambda: HFileReader.open(storage, codec).lookup(keys))
    assert table.num_rows == len(keys)


@pytest.mark.benchmark(group="hfile-write")
@pytest.mark.parametrize("codec", CODECS)
def test_write(benchmark, entries, tmp_path, codec):
    stats = benchmark(_write, tmp_path, codec, entries)
    assert stats.entries == ROWS
    benchmark.extra_info["bytes"] = stats.size
