"""HFiles that HBase and Apache Hudi wrote, read whole and by look-up."""

import pyarrow as pa
import pytest
from hfile_reference import FILES, TABLES, entries, metadata_hfiles

from hudi_format.hfile.reader import HFileReader
from hudi_format.storage.open import open_storage


@pytest.fixture(params=FILES, ids=lambda p: p.stem.removeprefix("hudi_1_0_hbase_"))
def file(request):
    return request.param


def _pairs(table):
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def _grouped(pairs):
    out = {}
    for key, value in pairs:
        out.setdefault(key, []).append(value)
    return out


def test_all_nine_are_here():
    assert len(FILES) == 9


@pytest.mark.req("MT-02")
def test_a_scan_gives_every_entry_in_order(file):
    want = entries(file.read_bytes())
    reader = HFileReader.open(open_storage(str(file.parent)), file.name)
    assert _pairs(reader.scan()) == want
    assert reader.entry_count == len(want)
    small = list(reader.batches(batch_bytes=1))
    assert pa.Table.from_batches(small, reader.scan().schema).equals(reader.scan())
    assert len(small) >= min(len(want), reader.trailer.data_index_count)


@pytest.mark.req("MT-02")
def test_every_key_by_itself_and_all_together(file):
    want = _grouped(entries(file.read_bytes()))
    reader = HFileReader.open(open_storage(str(file.parent)), file.name)
    keys = list(want)
    assert all(reader.get(key) == want[key][0] for key in keys[:: max(1, len(keys) // 300)])
    some = keys[::3]
    assert _pairs(reader.lookup(reversed(some))) == [(k, v) for k in some for v in want[k]]
    # Between, before and after those that are there; a key is looked for once however often it is given.
    absent = [k + b"\0" for k in keys[::5]] + [b"", b"a", b"zzz"]
    assert reader.lookup(absent).num_rows == 0
    assert all(reader.get(k) is None for k in absent[-50:])
    assert _pairs(reader.lookup(absent + some + some)) == [(k, v) for k in some for v in want[k]]


@pytest.mark.req("MT-02")
def test_ranges_and_prefixes(file):
    pairs = entries(file.read_bytes())
    keys = sorted({k for k, _ in pairs})
    reader = HFileReader.open(open_storage(str(file.parent)), file.name)
    assert _pairs(reader.range()) == pairs
    for start, end in [(0, 1), (7, 8), (len(keys) // 3, len(keys) // 2), (len(keys) - 2, len(keys) - 1)]:
        if not 0 <= start < end < len(keys):
            continue
        low, high = keys[start], keys[end]
        assert _pairs(reader.range(low, high)) == [p for p in pairs if low <= p[0] < high]
        assert _pairs(reader.range(low + b"\0")) == [p for p in pairs if low < p[0]]
        assert _pairs(reader.range(None, high)) == [p for p in pairs if p[0] < high]
        assert reader.range(high, low).num_rows == 0
        for prefix in (low, low[:-1], low[:-2], low[:-3]):
            assert _pairs(reader.prefix(prefix)) == [p for p in pairs if p[0].startswith(prefix)]
        two = [low[:-2], high[:-1], low[:-1]]
        assert _pairs(reader.prefix(two)) == [p for p in pairs if p[0].startswith(tuple(two))]
    assert reader.prefix("").num_rows == len(pairs)
    assert reader.prefix([b"\xff\xff", "none"]).num_rows == 0


def test_levels_of_the_index():
    levels = {p.name: HFileReader.from_buffer(p.read_bytes()).trailer.index_levels for p in FILES}
    assert sorted(levels.values()) == [1] * 7 + [2, 3]


def test_meta_blocks_and_file_info():
    empty = next(p for p in FILES if "no_entry" in p.name)
    reader = HFileReader.from_buffer(empty.read_bytes())
    assert reader.meta_blocks == ["bloomFilter"]
    assert len(reader.meta_block("bloomFilter")) == 431380
    assert reader.meta_block("none") is None
    assert reader.file_info[b"bloomFilterTypeCode"] == b"DYNAMIC_V0"
    assert '"name":"trip"' in reader.schema


@pytest.mark.req("LF-16", "MT-02")
@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
def test_hfiles_of_metadata_tables_and_bootstrap_indexes(version):
    base = inline = 0
    for table in TABLES:
        if table.parent.name != version:
            continue
        for path, offset, data in metadata_hfiles(table):
            want = entries(data)
            reader = HFileReader.from_buffer(data, path=path, offset=offset)
            assert _pairs(reader.scan()) == want, path
            grouped = _grouped(want)
            assert _pairs(reader.lookup(grouped)) == [(k, v) for k in sorted(grouped) for v in grouped[k]], (
                path
            )
            if ".bootstrap" not in path:
                assert reader.schema is not None
            base += offset == 0
            inline += offset != 0
    assert base >= 2
    assert inline >= 12
