"""HFiles both ways: ours read by HBase's reader and by Apache Hudi's own, theirs read by us."""

import io
import random
from typing import NamedTuple

import pyarrow as pa
import pytest

from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import Bloom, HFileWriter
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_TYPE
from hudi_index.bloom.key_observer import BloomObserver, BloomSettings
from interop.hudi_classes import HudiClasses

SCHEMA = '{"type":"record","name":"r","fields":[{"name":"key","type":"string"},{"name":"v","type":"string"}]}'
WITH_HBASE = ("0.15.0", "1.0.2")


@pytest.fixture(scope="module")
def running():
    """Apache Hudi's classes by version, each in a JVM that starts once."""
    started: dict[str, HudiClasses] = {}

    def get(version):
        if version not in started:
            started[version] = HudiClasses(version)
        return started[version]

    yield get
    for classes in started.values():
        classes.close()


@pytest.fixture(params=[*WITH_HBASE, "1.2.0"])
def hudi(request, running):
    """Each Apache Hudi, all of which have a reader of their own."""
    return running(request.param)


@pytest.fixture(params=WITH_HBASE)
def with_hbase(request, running):
    """Those that write by HBase's writer."""
    return running(request.param)


@pytest.fixture
def with_writer(running):
    """The one that has a writer of its own."""
    return running("1.2.0")


class Case(NamedTuple):
    """Arguments of the writer, and how many levels its index gets."""

    codec: str = "gz"
    block_size: int = 600
    index_block_size: int | None = None
    entries: int = 120
    long_keys: bool = False


CASES = {
    "gz": Case(),
    "none": Case("none"),
    "one block": Case(block_size=1 << 20, entries=25),
    "one entry": Case(entries=1),
    "keys of more than 127 bytes": Case(long_keys=True),
    "two levels": Case(index_block_size=400),
    "two levels, none": Case("none", index_block_size=400),
}


def _rows(case):
    """Keys and values; a value is an Avro record of `SCHEMA`, its key left empty as metadata tables do."""
    draw = random.Random(7)
    names = {"é中文", "a b", "$x", "😀"} if case.entries > 4 else set()
    stem = "long-" * 50 if case.long_keys else "key-"
    while len(names) < case.entries:
        names.add(f"{stem}{draw.randrange(10**6):06d}")
    keys = sorted(names, key=str.encode)
    values = [
        b"\0" + bytes([2 * (n := draw.randrange(60))]) + draw.randbytes(n).hex().encode()[:n] for _ in keys
    ]
    return keys, values


def _written(case, path, **closing):
    keys, values = _rows(case)
    with path.open("wb") as sink:
        writer = HFileWriter(
            sink,
            schema=SCHEMA,
            codec=case.codec,
            block_size=case.block_size,
            index_block_size=case.index_block_size,
        )
        writer.append(pa.array(keys), pa.array(values, pa.binary()))
        writer.finish(**closing)
    return [(k.encode(), v) for k, v in zip(keys, values, strict=True)]


def _probes(pairs):
    """Keys that are there, and around them some that are not, ascending."""
    there = [k for k, _ in pairs[::7]] + [pairs[-1][0]]
    return sorted({*there, *(k + b"0" for k in there), b"!", b"zzz"})


@pytest.mark.req("MT-02", "LF-16")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_ours_is_read_whole_and_by_key(hudi, case, tmp_path):
    path = tmp_path / "f.hfile"
    pairs = _written(case, path)
    data = path.read_bytes()
    probes, by_key = _probes(pairs), dict(pairs)
    want = [by_key.get(k) for k in probes]
    if hudi.version in WITH_HBASE:
        assert hudi.hfile_by_hbase(path) == pairs
        assert hudi.hfile_keys_by_hbase(path, probes) == want
    if case.index_block_size and hudi.version == "0.15.0":
        return  # its own reader, which is not its default, knows an index of one level only
    assert hudi.hfile_by_hudi(data) == pairs
    assert hudi.hfile_keys_by_hudi(data, probes) == want
    assert hudi.hfile_info_by_hudi(data, "schema") == SCHEMA.encode()


@pytest.mark.req("MT-02")
def test_an_empty_file_of_ours_is_read(hudi, tmp_path):
    path = tmp_path / "f.hfile"
    with path.open("wb") as sink:
        HFileWriter(sink, schema=SCHEMA).finish()
    if hudi.version in WITH_HBASE:
        assert hudi.hfile_by_hbase(path) == []
    assert hudi.hfile_by_hudi(path.read_bytes()) == []


@pytest.mark.req("MT-02")
def test_bloom_filter_and_key_range_of_ours_are_found(hudi, tmp_path):
    path = tmp_path / "f.hfile"
    case = CASES["gz"]
    keys, _ = _rows(case)
    observer = BloomObserver(BloomSettings())
    observer.add(pa.array(keys))
    footer = observer.finish()
    bloom = Bloom(footer[BLOOM_TYPE], footer[BLOOM_FILTER].encode())
    pairs = _written(case, path, bloom=bloom, key_range=(keys[0], keys[-1]))
    data = path.read_bytes()
    assert hudi.hfile_by_hudi(data) == pairs
    assert hudi.hfile_meta_by_hudi(data, "bloomFilter") == bloom.text
    for native in (False, True) if hudi.version in WITH_HBASE else ():
        reader = hudi.avro_reader(path, native)
        assert reader.getTotalRecords() == len(pairs)
        assert list(reader.readMinMaxRecordKeys()) == [keys[0], keys[-1]]
        assert all(reader.readBloomFilter().mightContain(key) for key in keys[::9])
        records = hudi.records_of(reader)
        assert len(records) == len(pairs)
        assert hudi.records_of(reader, keys[5:9]) == records[5:9]
        assert f'"key": "{keys[5]}"' in records[5]


@pytest.mark.req("MT-02")
@pytest.mark.parametrize("codec", ["NONE", "GZ", "SNAPPY", "LZ4"])
@pytest.mark.parametrize("size", [500, 1 << 20])
def test_files_of_hbase_are_read_by_us(with_hbase, codec, size, tmp_path):
    pairs = [(b"key-%06d" % i, b"value %d " % (i // 3) * (i % 40 + 1)) for i in range(400)]
    path = tmp_path / "f.hfile"
    with_hbase.write_hfile_by_hbase(path, pairs, codec, size)
    _same(HFileReader.from_buffer(path.read_bytes()), pairs, codec)


@pytest.mark.req("MT-02")
@pytest.mark.parametrize("codec", ["NONE", "GZIP"])
def test_files_of_apache_hudis_own_writer_are_read_by_us(with_writer, codec, tmp_path):
    pairs = [(b"key-%06d" % i, b"value %d " % (i // 3) * (i % 40 + 1)) for i in range(400)]
    path = tmp_path / "f.hfile"
    with_writer.write_hfile_by_hudi(path, pairs, codec, 1000)
    _same(HFileReader.from_buffer(path.read_bytes()), pairs, {"GZIP": "GZ"}.get(codec, codec))


def _same(reader, pairs, codec):
    table = reader.scan()
    assert reader.trailer.codec.name == codec
    assert list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)) == pairs
    assert reader.lookup(k for k, _ in pairs[::11]).num_rows == len(pairs[::11])
    assert reader.get(pairs[77][0]) == pairs[77][1]


def test_the_same_bytes_for_a_stream_and_for_a_log_block(tmp_path):
    path = tmp_path / "f.hfile"
    keys, values = _rows(CASES["gz"])
    out = io.BytesIO()
    writer = HFileWriter(out, schema=SCHEMA, block_size=CASES["gz"].block_size)
    writer.append(pa.array(keys), pa.array(values, pa.binary()))
    writer.finish()
    _written(CASES["gz"], path)
    assert out.getvalue() == path.read_bytes()
