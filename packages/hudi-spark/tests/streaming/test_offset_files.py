"""Offset files of a stream, and what a query's checkpoint tells of them."""

import json

import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.storage.local import LocalStorage
from hudi_spark.streaming.offset_files import ERROR, OffsetFile, create, finished, given_out, stream_id

STREAM = stream_id("/t", "hudi")
FIRST, SECOND = (
    OffsetFile(STREAM, "000", "20260101000000000"),
    OffsetFile(STREAM, "20260101000000000", "20260102000000000"),
)


@pytest.fixture
def checkpoint(tmp_path):
    return LocalStorage(str(tmp_path / "checkpoint"))


def logged(storage, batch, *names, source="0", suffix=""):
    lines = [
        json.dumps({"path": f"file:///spool/a%20b/{n}", "timestamp": 1, "batchId": batch}) for n in names
    ]
    storage.touch(f"sources/{source}/{batch}{suffix}", "\n".join(["v1", *lines]).encode())


def test_a_name_says_which_changes_it_stands_for():
    assert OffsetFile.parse(FIRST.name) == FIRST
    for other in (FIRST.name + ".crc", "x" + FIRST.name, "part-0.parquet", FIRST.name.upper()):
        assert OffsetFile.parse(other) is None


def test_a_stream_keeps_its_id_and_another_table_or_format_has_another():
    assert stream_id("/t", "hudi") == STREAM
    assert len({STREAM, stream_id("/u", "hudi"), stream_id("/t", "cdc")}) == 3


def test_what_was_given_out_is_in_the_logs_of_all_sources(checkpoint):
    logged(checkpoint, 0, FIRST.name, "part-0.parquet")
    logged(checkpoint, 9, SECOND.name, source="1", suffix=".compact")
    checkpoint.touch("sources/0/.1.tmp", b"half")
    found = sorted(given_out(checkpoint), key=lambda i: i.source)
    assert [(i.source, i.batch, i.marker) for i in found] == [("0", 0, FIRST), ("1", 9, SECOND)]
    assert found[0].path == f"file:///spool/a b/{FIRST.name}"
    assert list(given_out(LocalStorage(checkpoint.uri + "/nothing"))) == []


def test_a_line_that_cannot_be_read_is_corrupt_and_one_of_another_source_is_passed_over(checkpoint):
    checkpoint.touch("sources/0/0", b'v1\n{"topic": "t", "offset": 5}\n\n')
    assert list(given_out(checkpoint)) == []
    checkpoint.touch("sources/0/1", b'v1\n{"path": "file:///x", "batch')
    with pytest.raises(CorruptFileError, match="restore the checkpoint"):
        list(given_out(checkpoint))


def test_the_newest_batch_that_was_finished_is_told_by_source(checkpoint):
    assert finished(checkpoint) == {}
    for batch in (0, 10, 9):
        checkpoint.touch(f"commits/{batch}", b"v1\n{}")
    checkpoint.touch("offsets/10", b'v1\n{"batchWatermarkMs":0}\n{"logOffset":4}\n-\n{"other":1}')
    assert finished(checkpoint) == {"0": 4}


def test_a_file_is_made_once_with_its_name_or_an_error_in_one_line(tmp_path):
    create(str(tmp_path), FIRST.name)
    create(str(tmp_path), FIRST.name, "later")
    create(str(tmp_path), SECOND.name, "two\nlines  of it")
    assert (tmp_path / FIRST.name).read_text() == f"{FIRST.name}\n"
    assert (tmp_path / SECOND.name).read_text() == f"{ERROR}two lines of it\n"
