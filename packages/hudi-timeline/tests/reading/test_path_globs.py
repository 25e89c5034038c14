"""Reads of the files below given paths and patterns."""

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import InvalidOptionError
from hudi_timeline.reading.path_globs import PathSelection, base_of, file_filter

SCHEMA = pa.schema([("year", pa.string()), ("month", pa.string()), ("id", pa.string())])
PATHS = "hoodie.datasource.read.paths"


def row(year, month, id, written):
    return {"year": year, "month": month, "id": id, "_hoodie_commit_time": at(written)}


@pytest.fixture
def made(tmp_path):
    table = MadeTable(tmp_path / "a b" / "t", SCHEMA, partition_fields=("year", "month"))
    groups = {
        (f"{year}/{month}", file_id(n)): [row(year, month, str(n), 10)]
        for n, (year, month) in enumerate([("2023", "1"), ("2023", "12"), ("2024", "1"), ("2024", "[x]")])
    }
    table.commit(at(10), groups)
    return table


@pytest.mark.parametrize(
    ("paths", "want"),
    [
        ("{base}", ["0", "1", "2", "3"]),
        ("{base}/*", ["0", "1", "2", "3"]),
        ("{base}/*/*", ["0", "1", "2", "3"]),
        ("{base}/*/*/*", ["0", "1", "2", "3"]),
        ("{base}/2023", ["0", "1"]),
        ("{base}/2023/*,{base}/2024/1/", ["0", "1", "2"]),
        ("{base}/202[4-9]/?", ["2"]),
        ("{base}/*/1*", ["0", "1", "2"]),
        ("file://{base}/2024/\\[x\\]", ["3"]),
    ],
)
def test_files_below_paths_and_patterns(made, paths, want):
    given = paths.replace("{base}", str(made.path))
    scan = made.open().read(options={PATHS: given}, meta_columns=True)
    assert ids(scan.to_arrow()) == want
    files = scan.explain().files.to_pylist()
    assert sum(f["read"] for f in files) == len(want)
    assert len(files) == 4
    assert ids(made.open().read(filter="id > '1'", options={PATHS: given}, meta_columns=True).to_arrow()) == [
        i for i in want if i > "1"
    ]


@pytest.mark.parametrize(
    "path",
    ["{base}/*/*/*/*", "{base}/20", "{base}/.hoodie", "{base}/nope*", "{base}/2023/1/x.parquet,{base}/y"],
)
def test_paths_where_the_table_has_nothing_are_refused(made, path):
    given = path.replace("{base}", str(made.path))
    with pytest.raises(InvalidOptionError, match="no partition and no file at") as refused:
        made.open().read(options={PATHS: given}).to_arrow()
    assert f"{made.path}/2023/1" in str(refused.value)
    # Also where a filter has left out all partitions already.
    with pytest.raises(InvalidOptionError, match="no partition and no file at"):
        made.open().read(options={PATHS: given}, filter="year = '1999'").to_arrow()
    # One path of several is enough.
    assert ids(
        made.open().read(options={PATHS: f"{given},{made.path}/2023/1"}, meta_columns=True).to_arrow()
    ) == ["0"]


def test_a_partition_that_a_filter_leaves_out_is_none_that_is_not_there(made):
    options = {PATHS: f"{made.path}/2023"}
    assert made.open().read(options=options, filter="year = '2024'").count() == 0
    assert made.open().read(options=options, filter="id > '9'").count() == 0


@pytest.mark.parametrize("path", ["/elsewhere", "{base}2/x", "{base}/[a", "{base}/{{{{a"])
def test_what_is_no_pattern_below_the_table_is_refused(made, path):
    with pytest.raises(InvalidOptionError, match=r"path|below"):
        made.open().read(options={PATHS: path.format(base=made.path)})


def test_the_table_above_a_path():
    tables = {"s3://b/x/t", "/data/t"}.__contains__
    assert base_of("s3://b/x/t/2024/*/part-?", tables) == "s3://b/x/t"
    assert base_of("s3://b/x/t", tables) == "s3://b/x/t"
    assert base_of("s3://b/*/t", tables) is None
    assert base_of("/data/t/*", tables) == "/data/t"
    assert base_of("/data/*", tables) is None


def test_schemes_of_one_store_are_one():
    chosen = PathSelection.of(["s3a://b/t/x*"], "s3://b/t", PATHS)
    assert "x1/f.parquet" in chosen
    assert "y/f.parquet" not in chosen


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("/2024/*", "/t/2024/5/f", True),
        ("/2024/*", "/t/2023/5/f", False),
        ("{2023,2024}/?/f", "/t/2024/5/f", True),
        ("{2023,2024}/?/f", "/t/2025/5/f", False),
        ("[!3-9]/f", "/t/2/f", True),
        ("[3-9]/f", "/t/2/f", False),
        ("a.b", "/t/axb", False),
        ("\\*", "/t/*", True),
        ("\\*", "/t/x", False),
        ("", "/anything", True),
    ],
)
def test_patterns_of_whole_paths(glob, path, matches):
    assert file_filter(glob, "x")(path) is matches
