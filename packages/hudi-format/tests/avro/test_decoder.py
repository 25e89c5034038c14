from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from avro_records import written
from avro_strategies import as_arrow, later, plain, rows_of, schemas, stored, values
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.avro import Decoder
from hudi_format.avro.decoder import known_decoder
from hudi_format.errors import (
    SchemaError,
)
from hudi_format.schema.avro import from_avro

Json = Any


def record(*fields: Any) -> Json:
    listed = [
        f if isinstance(f, dict) and "fields" not in f and "name" in f and "type" in f and "size" not in f
        and "symbols" not in f else {"name": f"f{i}", "type": f}
        for i, f in enumerate(fields)
    ]  # fmt: skip
    return {"type": "record", "name": "r", "fields": listed}


def decode(decoder: Decoder, records: Sequence[bytes]) -> pa.RecordBatch:
    lengths = np.array([len(r) for r in records], np.int64)
    return decoder.decode(b"".join(records), np.cumsum(lengths) - lengths, lengths)


def listed(batch: pa.RecordBatch) -> list[Any]:
    columns = [stored(c).to_pylist() for c in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


@given(rows_of())
def test_rows_are_those_that_were_written(given_: tuple[Json, list[Any]]) -> None:
    schema, rows = given_
    batch = decode(Decoder(schema), written(schema, rows))
    batch.validate(full=True)
    assert listed(batch) == [as_arrow(r, schema) for r in rows]


@given(rows_of())
def test_records_end_to_end_give_the_same_batch(given_: tuple[Json, list[Any]]) -> None:
    schema, rows = given_
    records = written(schema, rows)
    decoder = Decoder(json.dumps(schema))
    batch, end = decoder.decode_stream(b"xx" + b"".join(records) + b"yy", 2, len(rows))
    assert end == 2 + sum(map(len, records))
    assert batch.equals(decode(decoder, records))


@given(rows_of(), st.data())
def test_wanted_columns_are_the_same_without_the_others(given_: tuple[Json, list[Any]], data: Any) -> None:
    schema, rows = given_
    names = [f["name"] for f in schema["fields"]]
    wanted = data.draw(st.lists(st.sampled_from(names), unique=True))
    records = written(schema, rows)
    part = decode(Decoder(schema, columns=wanted), records)
    assert part.num_rows == len(rows)
    assert part.schema.names == wanted
    whole = decode(Decoder(schema), records)
    assert all(part.column(n).equals(whole.column(n)) for n in wanted)


@given(schemas)
def test_types_are_those_of_the_schema_module(schema: Json) -> None:
    try:
        known = from_avro(json.dumps(schema))
    except SchemaError:  # times of day, nanoseconds, wide decimals
        return
    assert Decoder(schema).schema == known


@pytest.mark.req("SE-01", "SE-02")
@given(st.data())
def test_a_later_schema_reads_what_fastavro_reads_with_it(data: Any) -> None:
    schema = plain(data.draw(schemas))
    reader = data.draw(later(schema))
    rows = data.draw(st.lists(values(schema), max_size=4))
    records = written(schema, rows)
    batch = decode(Decoder(schema, reader), records)
    batch.validate(full=True)
    expected = [fastavro.schemaless_reader(io.BytesIO(r), schema, reader) for r in records]
    assert listed(batch) == [as_arrow(r, reader) for r in expected]


def test_a_pair_of_schemas_is_compiled_once_and_schemas_that_differ_in_metadata_only_are_not_one_pair():
    text = json.dumps(record("long", "string"))
    wanted = pa.schema([("f0", pa.int64()), ("f1", pa.string())])
    assert known_decoder(text, arrow_schema=wanted) is known_decoder(
        text, arrow_schema=pa.schema(list(wanted))
    )
    named = wanted.with_metadata({"of": "another"})
    assert named == wanted
    assert known_decoder(text, arrow_schema=named).schema.metadata == {b"of": b"another"}
    assert known_decoder(text, columns=["f1"]).schema.names == ["f1"]
    assert known_decoder(text).schema.names == ["f0", "f1"]


def test_columns_whose_metadata_names_another_type_keep_theirs_where_a_pair_of_schemas_is_kept():
    text = json.dumps(record("long", "string"))
    noted = pa.field("f1", pa.string(), metadata={"ARROW:extension:name": "arrow.json"})
    wanted = pa.schema([("f0", pa.int64()), noted])
    assert known_decoder(text, arrow_schema=wanted).schema.equals(wanted, check_metadata=True)
