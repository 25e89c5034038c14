"""Streams over remote files: which ranges are fetched, and when an upload is there."""

import contextlib
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.storage.streams import TAIL_BYTES, open_ranges, open_upload

DATA = bytes(range(256)) * (3 * TAIL_BYTES // 256)


class Fetches:
    def __init__(self, data):
        self.data, self.asked = data, []

    def __call__(self, start, end):
        self.asked.append((start, end))
        return self.data[start:end]


def test_the_end_is_fetched_once_with_what_may_be_needed_next():
    fetch = Fetches(DATA)
    size = len(DATA)
    with open_ranges(fetch, size) as file:
        file.seek(size - 8)
        assert file.read(8) == DATA[-8:]
        file.seek(size - 1000)
        assert file.read(500) == DATA[-1000:-500]
        assert fetch.asked == [(size - TAIL_BYTES, size)]
        file.seek(10)
        assert file.read(5) == DATA[10:15]
        assert fetch.asked[1:] == [(10, 15)]
        file.seek(size)
        assert file.read(5) == b""


def test_a_whole_file_is_read_in_one_request():
    fetch = Fetches(DATA)
    with open_ranges(fetch, len(DATA)) as file:
        assert file.read() == DATA
    assert fetch.asked == [(0, len(DATA))]


def test_a_parquet_file_is_read_through_its_ranges():
    out = io.BytesIO()
    table = pa.table({"n": range(1000)})
    pq.write_table(table, out)
    with open_ranges(Fetches(out.getvalue()), len(out.getvalue())) as file:
        assert pq.read_table(file).equals(table)


def test_a_file_that_is_shorter_than_it_was_said_to_be_gives_what_there_is():
    with open_ranges(Fetches(b"abc"), 10) as file:
        file.seek(2)
        assert file.read(8) == b"c"
        assert file.read() == b""


class Store:
    def __init__(self, fails=False):
        self.fails, self.parts, self.closings, self.closed = fails, [], 0, False

    def write(self, data):
        self.parts.append(bytes(data))

    def close(self):
        self.closings += 1
        if self.fails:
            raise OSError("no")


class Told(Exception):
    pass


@contextlib.contextmanager
def guard():
    try:
        yield
    except OSError as e:
        raise Told from e


def test_an_upload_counts_its_bytes_and_ends_once():
    store = Store()
    with open_upload(store, guard) as file:
        file.write(b"abc")
        file.write(pa.py_buffer(b"de"))
        file.flush()
        assert file.tell() == 5
    file.close()
    assert b"".join(store.parts) == b"abcde"
    assert store.closings == 1


def test_a_failure_at_the_end_of_an_upload_is_told_once():
    store = Store(fails=True)
    file = open_upload(store, guard)
    file.write(b"abc")
    with pytest.raises(Told):
        file.close()
    file.close()
    assert store.closings == 1
