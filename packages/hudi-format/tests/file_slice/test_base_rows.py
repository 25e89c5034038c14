"""Base files of a slice that are ORC or HFiles: their rows, and errors that name them."""

import itertools
from contextlib import suppress

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from slices import SCHEMA, rows_of, write_slice

from hudi_format.avro.encoder import Encoder
from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import BaseFile, FileSlice
from hudi_format.parquet import reader
from hudi_format.schema.avro import to_avro
from hudi_format.storage.open import open_storage

MERGE = SliceMerge(payload_rule(None), "ts")
ROWS = rows_of([(k, {"ts": n, "text": k * 3}) for n, k in enumerate("abc")], "1")


def orc_bytes():
    sink = pa.BufferOutputStream()
    po.write_table(ROWS, sink)
    return sink.getvalue().to_pybytes()


def hfile_of_rows():
    avro = to_avro(SCHEMA, "r")
    data, offsets = Encoder(avro, SCHEMA).encode(ROWS.combine_chunks().to_batches()[0])
    values = [data[a:b].to_pybytes() for a, b in itertools.pairwise(offsets)]
    keys = ROWS["_hoodie_record_key"].cast(pa.binary())
    return hfile_bytes(keys, pa.array(values, pa.binary()), schema=avro, codec="none")


MADE = {"orc": orc_bytes, "hfile": hfile_of_rows}


def read(tmp_path, kind, data, **more):
    name = f"f-0_0-1-1_1.{kind}"
    if data is not None:
        (tmp_path / name).write_bytes(data)
    base = BaseFile("", name, "f-0", "1", "0-1-1")
    found = read_file_slice(
        open_storage(str(tmp_path)), FileSlice("", "f-0", "1", base), MERGE, SCHEMA, **more
    )
    return pa.Table.from_batches(found, SCHEMA)


@pytest.mark.req("TL-13")
@pytest.mark.parametrize("kind", MADE)
def test_rows_of_a_base_file_of_another_kind(tmp_path, kind):
    assert read(tmp_path, kind, MADE[kind]()).equals(ROWS)
    assert read(tmp_path, kind, MADE[kind](), keys=["b", "x"]).equals(ROWS.slice(1, 1))


@pytest.mark.req("TL-13")
@pytest.mark.parametrize("kind", MADE)
def test_logs_are_merged_into_it(tmp_path, kind):
    (tmp_path / f"f-0_0-1-1_1.{kind}").write_bytes(MADE[kind]())
    storage = open_storage(str(tmp_path))
    logged = write_slice(storage, None, [rows_of([("b", {"ts": 9, "text": "new"})], "100")])
    base = BaseFile("", f"f-0_0-1-1_1.{kind}", "f-0", "1", "0-1-1")
    found = read_file_slice(storage, FileSlice("", "f-0", "1", base, logged.log_files), MERGE, SCHEMA)
    assert pa.Table.from_batches(found)["text"].to_pylist() == ["aaa", "new", "ccc"]


@pytest.mark.parametrize("kind", [*MADE, "parquet"])
def test_one_that_is_gone_is_missing(tmp_path, kind):
    with pytest.raises(MissingFileError) as e:
        read(tmp_path, kind, None)
    assert e.value.file == f"f-0_0-1-1_1.{kind}"


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.sampled(2)
def test_every_cut_is_corrupt_and_names_the_file(tmp_path, kind):
    data = MADE[kind]()
    for end in [*range(0, len(data), 5), len(data) - 1]:
        with pytest.raises(CorruptFileError) as e:
            read(tmp_path, kind, data[:end])
        assert e.value.file == f"f-0_0-1-1_1.{kind}"


def test_a_record_of_an_hfile_that_is_cut_off_names_the_file(tmp_path):
    avro = to_avro(SCHEMA, "r")
    data = hfile_bytes(pa.array(["a"]), pa.array([b"\0"], pa.binary()), schema=avro)
    for more in ({}, {"keys": ["a"]}):
        with pytest.raises(CorruptFileError) as e:
            read(tmp_path, "hfile", data, **more)
        assert e.value.file == "f-0_0-1-1_1.hfile"


def test_a_changed_byte_of_an_orc_file_gives_rows_or_a_typed_error(tmp_path):
    data = orc_bytes()
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
        with suppress(
            HudiError
        ):  # no checksum covers it; text is not looked at, as in Arrow's reader of Parquet
            assert read(tmp_path, "orc", changed).schema == SCHEMA


KEYLESS = {
    "null": lambda rows: rows.set_column(2, rows.schema.field(2), [["a", None, "c"]]),
    "no column": lambda rows: rows.drop_columns(["_hoodie_record_key"]),
    "another name": lambda rows: rows.rename_columns([n.replace("_key", "_kez") for n in rows.column_names]),
}


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("what", KEYLESS)
def test_base_rows_without_keys_are_damage_where_logs_change_rows(tmp_path, what, limit):
    storage = open_storage(str(tmp_path))
    changed = rows_of([("b", {"ts": 9, "text": "new"})], "2")
    part = write_slice(storage, KEYLESS[what](ROWS), [changed])
    with pytest.raises(CorruptFileError, match="base file rows have no record key") as e:
        list(read_file_slice(storage, part, MERGE, SCHEMA, memory_limit=limit))
    assert (e.value.table, e.value.file) == (storage.uri, part.base_file.path)
    alone = write_slice(storage, KEYLESS[what](ROWS), [])
    assert sum(b.num_rows for b in read_file_slice(storage, alone, MERGE, SCHEMA)) == 3


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowNotImplementedError("Nested data conversions not implemented"),
        pa.ArrowInvalid("Length of byte array passed to Decimal128::FromBigEndian was 20, but must be 16"),
    ],
    ids=["feature", "wide decimal"],
)
def test_a_parquet_file_with_what_arrow_does_not_read_is_not_damaged(tmp_path, monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(reader, "check_text", refuse)
    sink = pa.BufferOutputStream()
    pq.write_table(ROWS, sink)
    with pytest.raises(UnsupportedError) as caught:
        read(tmp_path, "parquet", sink.getvalue().to_pybytes())
    assert caught.value.file == "f-0_0-1-1_1.parquet"
    assert "write" in caught.value.remedy or "use" in caught.value.remedy
