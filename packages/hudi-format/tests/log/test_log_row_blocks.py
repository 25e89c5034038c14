"""Rows into data blocks of each type, one log file for each commit, and names that tell which commit."""

import pyarrow as pa
import pytest

from hudi_format.errors import OptionError, RecordKeyError
from hudi_format.log.blocks import BlockType
from hudi_format.log.reader import LogFileReader
from hudi_format.log.row_blocks import block_type
from hudi_format.log.rows import BlockRows
from hudi_format.log.writer import LogWriter
from hudi_format.names import parse_log_file
from hudi_format.schema.avro import to_avro
from hudi_format.storage import open_storage

KEY = "_hoodie_record_key"
ROWS = pa.table(
    {
        KEY: [f"k{n * 7919 % 1000:04d}" for n in range(1000)],
        "a": pa.array([None if n % 9 == 0 else n for n in range(1000)], pa.int64()),
        "ü": [f"text {n}" * (n % 5) for n in range(1000)],
        "list": [[n, None] if n % 3 else None for n in range(1000)],
    }
)
SCHEMA = to_avro(ROWS.schema, "t")


def writer(storage, instant="7", **more):
    return LogWriter(storage, "p", "f-0", "5", instant=instant, schema=SCHEMA, write_token="0-1-2", **more)


def read(storage, path):
    """(type, rows) of each block."""
    out = []
    with LogFileReader.open(storage, path) as log:
        for b in log.blocks:
            of = BlockRows(ROWS.schema, None, 1 << 30).read(b, log.content(b))
            out.append((b.type, pa.concat_tables(of)))
    return out


@pytest.mark.req("LF-15", "LF-16", "LF-17", "LF-18")
@pytest.mark.parametrize(
    ("option", "kind"),
    [("avro", BlockType.AVRO_DATA), ("PARQUET", BlockType.PARQUET_DATA), ("hfile", BlockType.HFILE_DATA)],
)
@pytest.mark.parametrize("most", [1 << 20, 9000])
def test_rows_come_back_from_blocks_of_the_type_that_the_option_chose(tmp_path, option, kind, most):
    storage = open_storage(str(tmp_path))
    with writer(storage, max_block_size=most) as log:
        log.append_rows(ROWS, block_type(option))
        (written,) = log.close()
    blocks = read(storage, written.file.path)
    assert {b for b, _ in blocks} == {kind}
    assert (len(blocks) == 1) == (most == 1 << 20)
    found = pa.concat_tables(rows for _, rows in blocks)
    if kind is BlockType.HFILE_DATA:
        for _, rows in blocks:
            assert rows[KEY].to_pylist() == sorted(rows[KEY].to_pylist())
        assert found.sort_by(KEY).equals(ROWS.sort_by(KEY))
    else:
        assert found.equals(ROWS)


@pytest.mark.req("LF-18")
def test_without_the_option_base_files_decide_and_another_text_is_refused():
    assert block_type(None) is block_type("", "orc") is BlockType.AVRO_DATA
    assert block_type("", "hfile") is BlockType.HFILE_DATA
    with pytest.raises(OptionError, match="avro, parquet, hfile"):
        block_type("orc")


@pytest.mark.req("LF-16")
def test_a_row_without_a_key_goes_into_no_hfile(tmp_path):
    rows = ROWS.set_column(0, KEY, pa.array([None] * 1000, pa.string()))
    with writer(open_storage(str(tmp_path))) as log, pytest.raises(RecordKeyError):
        log.append_rows(rows, BlockType.HFILE_DATA)


@pytest.mark.req("FS-12", "FS-08")
def test_a_second_commit_leaves_the_first_ones_log_file_as_it_is(tmp_path):
    """Where files do not grow, which are all stores but HDFS, each commit has files of its own."""
    storage = open_storage(str(tmp_path))
    files, bytes_before = [], {}
    for instant in ("7", "8", "9"):
        with writer(storage, instant) as log:
            log.append_rows(ROWS.slice(0, 10))
            log.append_deletes(pa.array(["k0001"]))
            (written,) = log.close()
        assert {p: (tmp_path / p).read_bytes() for p in bytes_before} == bytes_before
        bytes_before[written.file.path] = (tmp_path / written.file.path).read_bytes()
        files.append(written.file)
    assert [f.version for f in files] == [1, 2, 3]
    for file, instant in zip(files, ("7", "8", "9"), strict=True):
        with LogFileReader.open(storage, file.path) as log:  # and a reader takes several blocks in one file
            assert [(b.type.name, b.instant) for b in log.blocks] == [
                ("AVRO_DATA", instant),
                ("DELETE", instant),
            ]


@pytest.mark.req("FS-13")
def test_names_of_logs_hold_the_slice_or_the_commit_and_both_are_read():
    """Version 6 names the slice's base instant, version 8 the instant that wrote the file."""
    of_slice = parse_log_file("p", ".f-0_20240101000000000.log.3_0-1-2")
    of_commit = parse_log_file("p", ".f-0_20240202000000000.log.1_0-1-2")
    assert (of_slice.instant, of_slice.version) == ("20240101000000000", 3)
    assert (of_commit.instant, of_commit.version) == ("20240202000000000", 1)
    assert of_slice.file_id == of_commit.file_id == "f-0"


@pytest.mark.req("SE-02", "LF-16")
@pytest.mark.parametrize(
    ("option", "digits", "top", "inside"),
    [
        ("avro", False, 0.10000000149011612, 0.30000001192092896),  # Apache Hudi 0.15.0 and 1.0.2
        ("avro", True, 0.1, 0.3),  # Apache Hudi 1.2.0
        ("parquet", False, 0.1, 0.3),
    ],
)
def test_floats_of_a_log_that_are_doubles_now(tmp_path, option, digits, top, inside):
    old = pa.schema(
        [(KEY, pa.string()), ("f", pa.float32()), ("l", pa.list_(pa.struct([("g", pa.float32())])))]
    )
    new = pa.schema(
        [(KEY, pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.struct([("g", pa.float64())])))]
    )
    rows = pa.table([["a", "b"], [0.1, None], [[{"g": 0.3}, None], None]], schema=old)
    storage = open_storage(str(tmp_path))
    with LogWriter(
        storage, "p", "f-0", "5", instant="7", schema=to_avro(old, "t"), write_token="0-1-2"
    ) as log:
        log.append_rows(rows, block_type(option))
        (written,) = log.close()
    with LogFileReader.open(storage, written.file.path) as file:
        (b,) = file.blocks
        found = pa.concat_tables(BlockRows(new, None, 1 << 30, digits).read(b, file.content(b)))
    assert found.schema.types == new.types
    assert found["f"].to_pylist() == [top, None]
    assert found["l"].to_pylist() == [[{"g": inside}, None], None]
