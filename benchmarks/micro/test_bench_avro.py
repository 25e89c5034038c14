"""Avro records of 12 nullable columns (4 texts, 4 longs, 4 doubles) to Arrow columns and back, beside fastavro.

`HUDI_BENCH_ROWS` changes the number of records; fastavro gets one in ten of them.  Records are about 115 bytes.
`extra_info` has the bytes of Avro that one round reads or writes.
"""

import io
import os
import random

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from hudi_format import Decoder, Encoder

ROWS = int(os.environ.get("HUDI_BENCH_ROWS", 200_000))
KINDS = {"s": "string", "l": "long", "d": "double"}
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": f"{k}{i}", "type": ["null", KINDS[k]]} for i in range(4) for k in "sld"],
}
PARSED = fastavro.parse_schema(SCHEMA)
COLUMNS = pa.schema(
    [(f["name"], {"string": pa.string(), "long": pa.int64(), "double": pa.float64()}[f["type"][1]])
     for f in SCHEMA["fields"]]
)  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    """5 % of all values are null; texts have 9 to 16 bytes, longs all magnitudes."""
    r = random.Random(1)
    value = {
        "s": lambda: f"value-{r.randrange(10 ** r.randrange(3, 10))}",
        "l": lambda: r.randrange(10 ** r.randrange(1, 18)),
        "d": r.random,
    }
    names = COLUMNS.names
    return [{n: None if r.random() < 0.05 else value[n[0]]() for n in names} for _ in range(ROWS)]


@pytest.fixture(scope="module")
def records(rows):
    """Bytes of all records, their offsets and lengths."""
    stream, offsets = io.BytesIO(), [0]
    for row in rows:
        fastavro.schemaless_writer(stream, PARSED, row)
        offsets.append(stream.tell())
    return stream.getvalue(), np.array(offsets[:-1]), np.diff(offsets)


@pytest.mark.benchmark(group="avro-decode")
def test_decode(benchmark, records, rows):
    batch = benchmark(Decoder(SCHEMA).decode, *records)
    assert batch.slice(0, 1000).to_pylist() == rows[:1000]
    benchmark.extra_info["bytes"] = len(records[0])


@pytest.mark.benchmark(group="avro-decode")
def test_decode_two_columns(benchmark, records, rows):
    decoder = Decoder(SCHEMA, columns=["s0", "d3"])
    batch = benchmark(decoder.decode, *records)
    assert batch.column("d3")[-1].as_py() == rows[-1]["d3"]
    benchmark.extra_info["bytes"] = len(records[0])


@pytest.mark.benchmark(group="avro-decode")
def test_decode_by_fastavro(benchmark, records, rows):
    some = max(ROWS // 10, 1)
    data, offsets, lengths = records

    def decode():
        stream = io.BytesIO(data)
        return pa.Table.from_pylist(
            [fastavro.schemaless_reader(stream, PARSED, None) for _ in range(some)], COLUMNS
        )

    assert benchmark(decode).slice(0, 1000).to_pylist() == rows[: min(1000, some)]
    benchmark.extra_info["bytes"] = int(offsets[some - 1] + lengths[some - 1])


@pytest.mark.benchmark(group="avro-encode")
def test_encode(benchmark, records):
    batch = Decoder(SCHEMA).decode(*records)
    data, _ = benchmark(Encoder(SCHEMA, batch.schema).encode, batch)
    assert data.to_pybytes() == records[0]
    benchmark.extra_info["bytes"] = len(records[0])


@pytest.mark.benchmark(group="avro-encode")
def test_encode_by_fastavro(benchmark, records):
    some = max(ROWS // 10, 1)
    batch = Decoder(SCHEMA).decode(*(records[0], records[1][:some], records[2][:some]))

    def encode():
        stream = io.BytesIO()
        for row in batch.to_pylist():
            fastavro.schemaless_writer(stream, PARSED, row)
        return stream.getvalue()

    written = benchmark(encode)
    assert written == records[0][: len(written)]
    benchmark.extra_info["bytes"] = len(written)
