"""The thread that follows a table for a stream, without Spark."""

import threading

import pyarrow as pa
import pytest

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_spark.streaming.offset_files import ERROR
from hudi_spark.streaming.spark35_stream import StreamFollower, load_stream
from hudi_spark.streaming.table_stream import START
from hudi_timeline import HudiTable
from hudi_timeline.options.read_options import POLL_SECONDS


class Stream:
    uri = "a table"

    def __init__(self, *offsets):
        self.offsets = list(offsets)

    def initial(self):
        return START

    def latest(self):
        if not self.offsets:
            raise ValueError("no such thing")
        return self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]


class Query:
    isActive = True


def steps(folder):
    return sorted(f.name.removesuffix(".hudi").split("_", 1)[1] for f in folder.iterdir())


def test_a_query_finds_no_steps_of_an_earlier_one(tmp_path):
    follower = StreamFollower(Stream("1", "2", "3"), "abcdefabcdef", str(tmp_path), poll_s=60)
    for last in ("1", "2", "3"):
        follower.begin(None)
        follower.step()
        assert steps(tmp_path) == [f"{START}_{START}", f"{START}_{last}"]
        query = Query()
        follower.follow(query)
        query.isActive = False


def test_a_frame_has_one_query_at_a_time(tmp_path):
    follower = StreamFollower(Stream("1"), "abcdefabcdef", str(tmp_path), poll_s=0.001)
    follower.begin(None)
    query = Query()
    follower.follow(query)
    with pytest.raises(UnsupportedError, match="one query at a time"):
        follower.begin(None)
    query.isActive = False
    thread = follower.thread
    follower.begin(None)
    assert not thread.is_alive()
    assert steps(tmp_path) == [f"{START}_{START}"]


def test_an_error_that_nobody_expects_fails_the_query_and_does_not_stall_it(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda given: seen.append(given.exc_value))
    before = set(threading.enumerate())
    StreamFollower(Stream(), "x", str(tmp_path), poll_s=0.001, last="1").follow(Query())
    for thread in set(threading.enumerate()) - before:
        thread.join(300)
    texts = [open_storage(str(tmp_path)).read(f.name) for f in tmp_path.iterdir()]
    assert texts == [f"{ERROR}no such thing\n".encode()]
    assert [str(e) for e in seen] == ["no such thing"]


@pytest.mark.spark
@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "soon"])
def test_the_wait_between_two_looks_is_a_number_of_seconds(spark, text, path):
    HudiTable.create(path, pa.schema([("id", pa.string())]), name="t", record_keys="id")
    with pytest.raises(InvalidOptionError, match=POLL_SECONDS):
        load_stream(spark, path, {POLL_SECONDS: text})
