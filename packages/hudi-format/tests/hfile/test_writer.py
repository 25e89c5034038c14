"""What our writer writes our reader gives back, whatever the keys, values, block sizes and codecs."""

import io
import itertools

import pyarrow as pa
import pytest
from hfile_reference import blocks, entries
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import RecordKeyError, SchemaError
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.writer import Bloom, HFileWriter, hfile_bytes

SCHEMA = '{"type":"string"}'
KEYS = st.binary(max_size=30) | st.sampled_from([b"\xff", b"\xff\xff", b"\0", b"a" * 200, b"a" * 300])


@st.composite
def layouts(draw):
    return {
        "codec": draw(st.sampled_from(["gz", "none"])),
        "block_size": draw(st.integers(1, 2000)),
        "index_block_size": draw(st.none() | st.integers(1, 400)),
    }


def _write(pairs, cuts=(), **arguments):
    out = io.BytesIO()
    writer = HFileWriter(out, schema=SCHEMA, **arguments)
    bounds = [0, *sorted(c % (len(pairs) + 1) for c in cuts), len(pairs)]
    for low, high in itertools.pairwise(bounds):
        part = pairs[low:high]
        writer.append(
            pa.array([k for k, _ in part], pa.binary()), pa.array([v for _, v in part], pa.large_binary())
        )
    stats = writer.finish()
    assert stats.size == len(out.getvalue())
    assert stats.entries == len(pairs)
    return out.getvalue()


def _pairs(table):
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


@pytest.mark.req("MT-02", "LF-16")
@given(
    st.dictionaries(KEYS, st.binary(max_size=80), max_size=60),
    layouts(),
    st.lists(st.integers(0, 60), max_size=3),
    st.lists(KEYS, max_size=20),
)
def test_whole_look_ups_ranges_and_prefixes(content, layout, cuts, probes):
    pairs = sorted(content.items())
    data = _write(pairs, cuts, **layout)
    assert entries(data) == pairs
    reader = HFileReader.from_buffer(data, cache_bytes=len(probes) * 200)
    assert _pairs(reader.scan()) == pairs
    wanted = [*probes, *list(content)[::2]]
    assert _pairs(reader.lookup(wanted)) == [(k, content[k]) for k in sorted(set(wanted)) if k in content]
    assert [reader.get(k) for k in wanted] == [content.get(k) for k in wanted]
    for low, high in itertools.pairwise(wanted):
        assert _pairs(reader.range(low, high)) == [p for p in pairs if low <= p[0] < high]
    assert _pairs(reader.prefix(probes)) == [p for p in pairs if probes and p[0].startswith(tuple(probes))]


@given(st.lists(st.tuples(st.sampled_from([b"a", b"ab", b"b", b"c"]), st.binary(max_size=20)), max_size=40),
       st.integers(1, 300), st.none() | st.integers(1, 90))  # fmt: skip
def test_keys_that_are_there_more_than_once_keep_their_order(pairs, block_size, index_block_size):
    pairs.sort(key=lambda p: p[0])
    data = _write(pairs, unique=False, block_size=block_size, index_block_size=index_block_size)
    reader = HFileReader.from_buffer(data)
    assert _pairs(reader.scan()) == pairs
    for key in (b"a", b"ab", b"b", b"c"):
        want = [p for p in pairs if p[0] == key]
        assert _pairs(reader.lookup([key])) == want
        assert reader.get(key) == (want[0][1] if want else None)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["b", "a"], "'a' does not come after"),
        (["a", "b", "b"], "'b' is duplicated"),
        (["a", None], "a null key"),
        (["x" * 32768], "at most 32767"),
        # UTF-16 units, in which Java orders strings, have another order than bytes.
        (["😀", "￿"], "does not come after"),
    ],
)
def test_keys_that_cannot_be_written(keys, message):
    with pytest.raises(RecordKeyError, match=message):
        hfile_bytes(pa.array(keys), pa.array([b""] * len(keys)), schema=SCHEMA)


def test_order_holds_between_blocks_and_between_calls():
    writer = HFileWriter(io.BytesIO(), schema=SCHEMA, block_size=1)
    writer.append(pa.array(["a", "b"]), pa.array([b"1", b"2"]))
    with pytest.raises(RecordKeyError, match="'b' is duplicated"):
        writer.append(pa.array(["b"]), pa.array([b"3"]))


def test_values_that_cannot_be_written():
    with pytest.raises(SchemaError, match="null value"):
        hfile_bytes(pa.array(["a"]), pa.array([None], pa.binary()), schema=SCHEMA)
    with pytest.raises(SchemaError, match="1 keys and 2 values"):
        hfile_bytes(pa.array(["a"]), pa.array([b"", b""]), schema=SCHEMA)
    with pytest.raises(ValueError, match="gz or none"):
        hfile_bytes(pa.array(["a"]), pa.array([b""]), schema=SCHEMA, codec="lzo")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), "dictionary"]
)
def test_keys_of_every_type_and_slices(kind):
    texts = pa.array(["", "a", "b", "c", "d"])
    keys = texts.dictionary_encode() if kind == "dictionary" else texts.cast(kind)
    values = pa.array([b"0", b"1", b"2", b"3", b"4"])
    data = hfile_bytes(
        keys.slice(1, 3), pa.chunked_array([values.slice(1, 2), values.slice(3, 1)]), schema=SCHEMA
    )
    reader = HFileReader.from_buffer(data)
    assert _pairs(reader.scan()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert _pairs(reader.lookup(keys.slice(2))) == [(b"b", b"2"), (b"c", b"3")]
    assert _pairs(reader.lookup(pa.chunked_array([keys.slice(3, 1), keys.slice(1, 1)]))) == [
        (b"a", b"1"), (b"c", b"3"),
    ]  # fmt: skip


def test_a_filter_is_stored_and_other_meta_blocks_are_packed():
    out = io.BytesIO()
    writer = HFileWriter(out, schema=SCHEMA)
    writer.append(pa.array(["a"]), pa.array([b"1"]))
    text = b"YWFh" * 20_000
    writer.add_meta_block("other", text)
    writer.finish(bloom=Bloom("SIMPLE", text))
    reader = HFileReader.from_buffer(out.getvalue())
    assert (reader.meta_block("bloomFilter"), reader.meta_block("other")) == (text, text)
    assert len(text) < len(out.getvalue()) < len(text) + 10_000
    assert text[:30_000] in out.getvalue()


def test_what_stands_beside_the_entries():
    out = io.BytesIO()
    writer = HFileWriter(out, schema=SCHEMA, file_info={b"own": b"\0\1"})
    writer.append(pa.array(["a", "b"]), pa.array([b"1", b"22"]))
    writer.add_meta_block("other", b"xyz")
    stats = writer.finish(bloom=Bloom("SIMPLE", b"YQ=="), key_range=("a", "b"))
    reader = HFileReader.from_buffer(out.getvalue())
    assert (stats.first_key, stats.last_key, stats.data_blocks) == (b"a", b"b", 1)
    assert reader.meta_blocks == ["bloomFilter", "other"]
    assert (reader.meta_block("bloomFilter"), reader.meta_block("other")) == (b"YQ==", b"xyz")
    assert reader.schema == SCHEMA
    info = reader.file_info
    assert (info[b"minRecordKey"], info[b"maxRecordKey"], info[b"own"]) == (b"a", b"b", b"\0\1")
    assert info[b"bloomFilterTypeCode"] == b"SIMPLE"
    assert [b.magic for b in blocks(out.getvalue())] == [
        b"DATABLK*", b"METABLKc", b"METABLKc", b"IDXROOT2", b"IDXROOT2", b"FILEINF2",
    ]  # fmt: skip


def test_nothing_follows_the_trailer():
    out = io.BytesIO()
    writer = HFileWriter(out, schema=SCHEMA)
    writer.finish()
    whole = out.getvalue()
    with pytest.raises(ValueError, match="finished"):
        writer.finish()
    with pytest.raises(ValueError, match="finished"):
        writer.append(pa.array([b"a"]), pa.array([b"1"]))
    assert out.getvalue() == whole


def test_one_key_is_looked_up_as_a_key_and_not_by_its_letters():
    hfile = HFileReader.from_buffer(_write([(b"a", b"1"), (b"ab", b"2"), (b"b", b"3")]))
    assert _pairs(hfile.lookup("ab")) == _pairs(hfile.lookup(b"ab")) == [(b"ab", b"2")]
