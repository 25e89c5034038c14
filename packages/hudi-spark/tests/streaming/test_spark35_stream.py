"""The thread that follows a table for a stream, without Spark."""

import threading

import pytest

from hudi_format.storage.open import open_storage
from hudi_spark.streaming.offset_files import ERROR
from hudi_spark.streaming.spark35_stream import Follower


class Stream:
    uri = "a table"

    def latest(self):
        raise ValueError("no such thing")


class Query:
    isActive = True


@pytest.mark.req("IN-14")
def test_an_error_that_nobody_expects_fails_the_query_and_does_not_stall_it(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda given: seen.append(given.exc_value))
    before = set(threading.enumerate())
    Follower(Stream(), "x", str(tmp_path), poll_s=0.001, last="1").follow(Query())
    for thread in set(threading.enumerate()) - before:
        thread.join(300)
    texts = [open_storage(str(tmp_path)).read(f.name) for f in tmp_path.iterdir()]
    assert texts == [f"{ERROR}no such thing\n".encode()]
    assert [str(e) for e in seen] == ["no such thing"]
