"""ORC and HFile base files: projection, types, counts, damage."""

import pyarrow as pa
import pyarrow.orc as po
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.file_slice.base_file import open_other
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.hfile.writer import HFileWriter
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import BaseFile, FileSlice
from hudi_format.storage.open import open_storage

ROWS = pa.table(
    {
        "_hoodie_record_key": pa.array([f"k{n}" for n in range(1000)]),
        "n": pa.array(range(1000), pa.int32()),
        "at": pa.array([n * 1_000_003_000 if n % 7 else None for n in range(1000)], pa.timestamp("ns")),
        "point": pa.array([{"x": n, "tags": ["a", str(n)]} if n % 3 else None for n in range(1000)]),
        "price": pa.array(range(1000), pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(22, 2)),
    }
)
WANTED = pa.schema(
    [
        ("price", pa.decimal128(22, 2)),
        ("n", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("new", pa.string()),
        ("point", ROWS.schema.field("point").type),
        ("_hoodie_record_key", pa.string()),
    ]
)


@pytest.fixture
def orc(tmp_path):
    po.write_table(ROWS, tmp_path / "f-0_1-0-1_1.orc", stripe_size=4096, batch_size=100)
    return open_storage(str(tmp_path))


@pytest.mark.req("TL-13")
def test_orc_is_read_by_column_in_the_wanted_types(orc):
    file = open_other(orc, "f-0_1-0-1_1.orc", WANTED)
    assert file.rows == 1000
    assert list(file.names) == ROWS.column_names
    batches = list(file.batches(["n", "at"], 64))
    file.close()
    assert max(b.num_rows for b in batches) <= 64
    found = pa.Table.from_batches(batches)
    assert found.schema.types == [pa.int64(), pa.timestamp("us", "UTC")]
    assert found["n"].to_pylist() == list(range(1000))
    want = [None if n % 7 == 0 else n * 1_000_003 for n in range(1000)]
    assert found["at"].cast(pa.int64()).to_pylist() == want


@pytest.mark.req("TL-13")
def test_a_slice_of_orc_is_read_like_any_other(orc):
    part = FileSlice("", "f-0", "1", BaseFile("", "f-0_1-0-1_1.orc", "f-0", "1"))
    found = pa.Table.from_batches(read_file_slice(orc, part, SliceMerge(payload_rule(None)), WANTED), WANTED)
    assert found["point"].to_pylist() == ROWS["point"].to_pylist()
    assert found["price"].to_pylist() == ROWS["price"].to_pylist()
    assert found["new"].null_count == 1000


def test_damaged_orc_gives_an_error_and_no_wrong_rows(orc, tmp_path):
    file = tmp_path / "f-0_1-0-1_1.orc"
    whole = file.read_bytes()
    for cut in (0, 3, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with pytest.raises((CorruptFileError, pa.ArrowInvalid, OSError)):
            list(open_other(orc, file.name, WANTED).batches(["n"], 100))
    with pytest.raises(FileNotFoundError):
        open_other(orc, "no_1-0-1_1.orc", WANTED)


def test_other_names_are_parquet(orc):
    assert open_other(orc, "f-0_1-0-1_1.parquet", WANTED) is None


@pytest.mark.req("TL-13")
def test_an_hfile_gives_the_key_back_to_its_records(tmp_path):
    storage = open_storage(str(tmp_path))
    schema = '{"type":"record","name":"r","fields":[{"name":"key","type":"string"},{"name":"v","type":["null","int"]}]}'
    with storage.open_output("f_1-0-1_1.hfile") as sink:
        writer = HFileWriter(sink, schema=schema)
        writer.append(pa.array(["a", "b", "c"]), pa.array([b"\0\0", b"\0\x02\x06", b"\x02c\x02\x08"]))
        writer.finish()
    file = open_other(storage, "f_1-0-1_1.hfile", pa.schema([("v", pa.int64()), ("key", pa.string())]))
    assert file.rows == 3
    rows = [r for b in file.batches(["v", "key"], 2) for r in b.to_pylist()]
    assert rows == [{"v": None, "key": "a"}, {"v": 3, "key": "b"}, {"v": 4, "key": "c"}]
    assert [r for b in file.batches(["v"], 2) for r in b.to_pylist()] == [{"v": v} for v in (None, 3, 4)]


@pytest.mark.req("NEW-37")
def test_an_entry_that_holds_the_record_of_another_key_is_damage_however_it_is_found(tmp_path):
    storage = open_storage(str(tmp_path))
    schema = (
        '{"type":"record","name":"r","fields":[{"name":"key","type":"string"},{"name":"v","type":"int"}]}'
    )
    with storage.open_output("f_1-0-1_1.hfile") as sink:
        writer = HFileWriter(sink, schema=schema)
        writer.append(pa.array(["a", "b"]), pa.array([b"\0\x02", b"\x02x\x02"]))
        writer.finish()
    part = FileSlice("", "f", "1", BaseFile("", "f_1-0-1_1.hfile", "f", "1"))
    wanted = pa.schema([("key", pa.string()), ("v", pa.int64())])
    merge = SliceMerge(payload_rule(None), key_spec=KeySpec(("key",), (), "NON_PARTITION"))
    for keys in (None, ["b"]):
        with pytest.raises(CorruptFileError, match="entry 'b' holds the record of 'x'") as e:
            list(read_file_slice(storage, part, merge, wanted, keys=keys))
        assert e.value.file == "f_1-0-1_1.hfile"
    found = list(read_file_slice(storage, part, merge, wanted, keys=["a"]))
    assert [r for b in found for r in b.to_pylist()] == [{"key": "a", "v": 1}]
