"""How an HFile is fetched: few ranged reads, neighbours together."""

import io
import itertools

import pyarrow as pa
import pytest

from hudi_format.errors import MissingFileError
from hudi_format.hfile.reader import TAIL_BYTES, HFileReader
from hudi_format.hfile.writer import HFileWriter
from hudi_format.storage.open import open_storage

SCHEMA = '{"type":"string"}'


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


class _Counting:
    """A storage that counts its ranged reads."""

    def __init__(self, storage):
        self._storage = storage
        self.reads = []

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def read_range(self, path, start, length):
        self.reads.append((start, length))
        return self._storage.read_range(path, start, length)


@pytest.mark.parametrize(("block_size", "index_block_size"), [(2000, None), (2000, 4000), (300, None)])
def test_one_cold_key_takes_at_most_three_ranged_reads(tmp_path, block_size, index_block_size):
    keys = [b"key-%07d-%s" % (i, b"x" * 60) for i in range(20_000)]
    pairs = [(k, b"value-of-" + k) for k in keys]
    (tmp_path / "f").write_bytes(
        _write(pairs, codec="none", block_size=block_size, index_block_size=index_block_size)
    )
    storage = _Counting(open_storage(str(tmp_path)))
    reader = HFileReader.open(storage, "f")
    assert (reader.trailer.load_on_open_offset < reader.trailer.file_info_offset - TAIL_BYTES) == (
        block_size == 300
    )
    assert reader.get(keys[777]) == pairs[777][1]
    assert len(storage.reads) <= 3
    before = len(storage.reads)
    assert reader.get(keys[777]) == pairs[777][1]
    assert len(storage.reads) == before, "its block is in the cache"
    assert sum(length for _, length in storage.reads) < (tmp_path / "f").stat().st_size / 2


def test_blocks_that_lie_together_are_read_together(tmp_path):
    pairs = [(b"key-%06d" % i, b"v" * 100) for i in range(20_000)]
    (tmp_path / "f").write_bytes(_write(pairs, codec="none", block_size=4000))
    storage = _Counting(open_storage(str(tmp_path)))
    reader = HFileReader.open(storage, "f")
    assert reader.scan().num_rows == 20_000
    assert len(storage.reads) <= 3
    storage.reads.clear()
    assert reader.lookup(k for k, _ in pairs[::100]).num_rows == 200
    assert len(storage.reads) <= 2


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MissingFileError):
        HFileReader.open(open_storage(str(tmp_path)), "none.hfile")
    with pytest.raises(MissingFileError):
        HFileReader.open(open_storage(str(tmp_path)), "none.hfile", size=5000)
