"""The index of a bootstrap: entries that Apache Hudi wrote, and what is none."""

import io
import json
import zlib

import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_format.avro.container import container_header
from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_slice.bootstrap import FOLDER, INSTANT, read_sources
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import HFileWriter
from hudi_format.storage.open import open_storage

(TABLE,) = golden("v6", "bootstrap_metadata_only")
SYNC = bytes(16)


def container(schema, body, *, codec=b"null", count=1):
    meta = b"".join(varint(len(x)) + x for x in (b"avro.schema", schema, b"avro.codec", codec))
    return b"Obj\x01" + varint(2) + meta + varint(0) + SYNC + varint(count) + varint(len(body)) + body + SYNC


@pytest.fixture
def index(tmp_path):
    """The table's folder, the index's file in it, and an entry."""
    folder = TABLE.unpack(tmp_path)
    (path,) = (folder / FOLDER).glob("*.hfile")
    rows = HFileReader.from_buffer(path.read_bytes()).scan().to_pylist()
    return folder, path, rows[0]["key"], rows[0]["value"]


def read(folder, path, key, value):
    out = io.BytesIO()
    writer = HFileWriter(out, schema=None, codec="none")
    writer.append(pa.array([key], pa.binary()), pa.array([value], pa.binary()))
    writer.finish()
    path.write_bytes(out.getvalue())
    for crc in path.parent.glob(".*.crc"):
        crc.unlink()
    partition, file_id = key.decode().removeprefix("part=").split(";fileid=")
    (found,) = read_sources(open_storage(str(folder)), [(partition, file_id)]).values()
    return found


def test_the_source_of_a_skeleton_is_named(index):
    found = read(*index)
    source = index[0].parent / f"{TABLE.name}_source"
    assert (source / found.partition / found.name).is_file()
    assert path_of(index).endswith(f"_{INSTANT}.hfile")


def path_of(index):
    return index[1].name


def endless(depth):
    schema = "int"
    for n in range(depth):
        schema = {"type": "record", "name": f"r{n}", "fields": [{"name": "a", "type": schema}]}
    return json.dumps(schema).encode()


HOLDS_ITSELF = json.dumps(
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]}
).encode()


@pytest.mark.parametrize(
    "value",
    [
        b"", b"Obj\x01", b"{}", container(b"{}", b""), container(b'"int"', varint(1)),
        container(endless(90), b"\0"),
        # A record in a record without end: fastavro would end the process on it.
        container(HOLDS_ITSELF, b"\x02" * 200_000 + b"\0"),
        container(HOLDS_ITSELF, b"\0", codec=b"deflate"),
    ],
    ids=range(8),
)  # fmt: skip
def test_what_is_no_entry_is_an_error_with_the_file(index, value):
    folder, path, key, _ = index
    with pytest.raises(CorruptFileError) as e:
        read(folder, path, key, value)
    assert e.value.file.endswith(path.name)
    assert "restore the folder" in e.value.remedy


def test_an_entry_grows_to_a_hundred_times_its_bytes_at_most(index):
    folder, path, key, value = index
    schema = container_header(value).schema.encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = packer.compress(bytes(1 << 28)) + packer.flush()
    with pytest.raises(CorruptFileError, match="decompressed"):
        read(folder, path, key, container(schema, bomb, codec=b"deflate"))
    with pytest.raises(UnsupportedError) as e:
        read(folder, path, key, container(schema, b"", codec=b"bzip2"))
    assert e.value.file.endswith(path.name)


def test_every_cut_and_200_changed_bytes_of_an_entry_give_a_name_or_an_error(index):
    folder, path, key, value = index
    want = read(*index)
    for end in range(0, len(value), 7):
        with pytest.raises(CorruptFileError):
            read(folder, path, key, value[:end])
    for n in range(200):
        at = n * len(value) // 200
        changed = value[:at] + bytes([value[at] ^ (1 << n % 8)]) + value[at + 1 :]
        try:
            assert isinstance(read(folder, path, key, changed).name, str)
        except (CorruptFileError, UnsupportedError):
            continue
    assert read(folder, path, key, value) == want
