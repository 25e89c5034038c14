"""Parquet data sets become tables: in one commit, in part, or into a table that is there."""

import datetime
import json
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import (
    HudiError,
    MissingColumnError,
    MissingFileError,
    OptionError,
    SchemaError,
    TableExistsError,
    UnsupportedError,
)
from hudi_timeline import HudiTable
from hudi_timeline.cli.main import main
from hudi_timeline.writing.parquet_import import import_parquet

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "orders",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "month",
    WRITE + "hive_style_partitioning": "true",
}
DAY = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def rows(month, first=0):
    ids = [f"{month}-{n}" for n in range(first, first + 5)]
    return pa.table(
        {"id": ids, "n": pa.array(range(5), pa.int32()), "at": pa.array([DAY] * 5, pa.timestamp("us", "UTC"))}
    )


@pytest.fixture
def source(tmp_path):
    """Three months, one of them written with a new column and a wider type; and what other tools leave behind."""
    base = tmp_path / "orders"
    for month in ("01", "02", "03"):
        table = rows(month)
        if month == "03":
            table = table.set_column(1, "n", table["n"].cast(pa.int64())).append_column(
                "note", pa.array(["x"] * 5)
            )
        folder = base / "year=2024" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(table.slice(0, 3), folder / "part-0.parquet")
        pq.write_table(table.slice(3), folder / "part-1.parquet", use_deprecated_int96_timestamps=True)
        (folder / ".part-0.parquet.crc").write_bytes(b"crc")
    (base / "_SUCCESS").touch()
    return str(base)


def read(path):
    return HudiTable.open(path).read(meta_columns=False).to_arrow().sort_by("id")


@pytest.mark.req("MG-02")
def test_a_whole_data_set_is_rewritten_once(source, tmp_path):
    path = str(tmp_path / "table")
    result = import_parquet(source, path, OPTIONS)
    assert (result.operation, result.inserted) == ("bulk_insert", 15)
    assert result.partitions == ("month=01", "month=02", "month=03")
    got = read(path)
    assert got.schema.names[:3] == ["id", "n", "at"]
    assert got.schema.field("n").type == pa.int64()
    assert got["at"].unique().to_pylist() == [DAY]
    plain = ds.dataset(
        source,
        partitioning=ds.partitioning(
            pa.schema([("year", pa.string()), ("month", pa.string())]), flavor="hive"
        ),
    )
    wanted = plain.to_table(columns=["id", "n", "year", "month"]).sort_by("id")
    assert got.select(wanted.column_names).to_pylist() == wanted.to_pylist()
    assert got["note"].to_pylist() == [None] * 10 + ["x"] * 5
    with pytest.raises(TableExistsError):
        import_parquet(source, path, OPTIONS)
    assert read(path).num_rows == 15


@pytest.mark.req("MG-03", "MG-01")
def test_parts_are_imported_one_by_one_and_upserted(source, tmp_path):
    path = str(tmp_path / "table")
    # Of other months nothing but footers is read: this one's rows are damaged.
    damaged = tmp_path / "orders/year=2024/month=01/part-0.parquet"
    good = damaged.read_bytes()
    damaged.write_bytes(good[:4] + bytes(200) + good[204:])
    first = import_parquet(source, path, OPTIONS, where="month = '02'")
    assert (first.inserted, first.partitions) == (5, ("month=02",))
    damaged.write_bytes(good)
    second = import_parquet(source, path, OPTIONS, where="month > '02' and n < 2", upsert=True)
    assert (second.inserted, second.updated, second.partitions) == (2, 0, ("month=03",))
    third = import_parquet(source, path, OPTIONS, where="month > '02'", upsert=True)
    assert (third.inserted, third.updated) == (3, 2)
    assert read(path)["id"].to_pylist() == [f"{m}-{n}" for m in ("02", "03") for n in range(5)]


def _other_folders(base):
    pq.write_table(rows("x"), base / "at-the-top.parquet")


def _text(base):
    (base / "year=2024/month=01/readme.txt").write_text("no Parquet")


def _type(base):
    pq.write_table(rows("01").set_column(1, "n", pa.array([[1]] * 5)), base / "year=2024/month=01/z.parquet")


def _twice(base):
    pq.write_table(
        rows("01").append_column("year", pa.array(["2024"] * 5)), base / "year=2024/month=01/z.parquet"
    )


def _hudi(base):
    (base / ".hoodie").mkdir()
    (base / ".hoodie/hoodie.properties").touch()


@pytest.mark.parametrize(
    ("spoil", "where", "error"),
    [
        (_other_folders, None, SchemaError),
        (_text, None, UnsupportedError),
        (_type, None, SchemaError),
        (_twice, None, SchemaError),
        (_hudi, None, OptionError),
        (lambda base: None, "moth = '1'", MissingColumnError),
    ],
)
def test_what_is_no_data_set_is_refused_before_anything_is_written(source, tmp_path, spoil, where, error):
    spoil(tmp_path / "orders")
    with pytest.raises(error):
        import_parquet(source, str(tmp_path / "table"), OPTIONS, where=where)
    assert not (tmp_path / "table").exists()
    with pytest.raises(MissingFileError):
        import_parquet(str(tmp_path / "none"), str(tmp_path / "table"), OPTIONS)


@pytest.mark.req("MG-02", "OP-07")
def test_the_command_imports(source, tmp_path, monkeypatch, capsys):
    path = str(tmp_path / "table")
    given = ["--key", "id", "--partition", "month", "--ordering", "n", "-w", "month < '03'", "-o", "json"]
    monkeypatch.setattr(sys, "argv", ["hudi", "import", source, path, *given])
    with pytest.raises(SystemExit) as e:
        main()
    assert not e.value.code
    facts = json.loads(capsys.readouterr().out)
    assert (facts["inserted"], facts["partitions"], facts["files"]) == (10, 2, 2)
    config = HudiTable.open(path).config
    assert (config.name, config.ordering_field, config.partition_fields) == ("table", "n", ("month",))


# --- one file, patterns, CSV -------------------------------------------------------------------------------


def imported(source, path, **how):
    import_parquet(str(source), str(path), {"hoodie.table.name": "t", WRITE + "recordkey.field": "id"}, **how)
    return HudiTable.open(path).read(meta_columns=False).to_arrow().sort_by("id")


def test_one_file_and_a_pattern_of_names_are_data_sets_too(tmp_path, monkeypatch):
    for name in ("a-1", "a-2", "b-1"):
        pq.write_table(pa.table({"id": [name], "n": [1]}), tmp_path / f"{name}.parquet")
    assert imported(tmp_path / "a-1.parquet", tmp_path / "one")["id"].to_pylist() == ["a-1"]
    assert imported(tmp_path / "a-*.parquet", tmp_path / "some")["id"].to_pylist() == ["a-1", "a-2"]
    monkeypatch.chdir(tmp_path)
    assert imported("?-1.parquet", tmp_path / "here")["id"].to_pylist() == ["a-1", "b-1"]
    with pytest.raises(MissingFileError, match=r"no file is named c-\*.*a pattern such as"):
        imported(tmp_path / "c-*", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_csv_files_have_the_types_of_their_values(tmp_path):
    folder = tmp_path / "csv"
    folder.mkdir()
    (folder / "1.csv").write_text('id,n,fare,note,none\na,1,1.5,"",\nb,,2,,\n')
    (folder / "2.CSV").write_text("id,n,fare\nc,3,4\n")
    rows = imported(folder, tmp_path / "t")
    assert rows.schema.field("n").type == pa.int64()
    assert rows.select(["id", "n", "fare", "note", "none"]).to_pylist() == [
        {"id": "a", "n": 1, "fare": 1.5, "note": "", "none": None},
        {"id": "b", "n": None, "fare": 2.0, "note": None, "none": None},
        {"id": "c", "n": 3, "fare": 4.0, "note": None, "none": None},
    ]
    assert imported(folder / "1.csv", tmp_path / "u", where="n = 1")["id"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "text",
    ["id,n\na,1,2\n", "", "id,n\n" + "a,1\n" * 400_000 + "b,x\n"],
    ids=["more values than columns", "empty", "another type later"],
)
def test_files_that_are_no_csv_make_no_table(tmp_path, text):
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(SchemaError, match="no CSV"):
        imported(file, tmp_path / "t")
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


@pytest.mark.parametrize(
    ("name", "text", "message", "remedy"),
    [
        (
            "rows.csv",
            "id;v\n1;2\n",
            "the only column of the CSV file is 'id;v'",
            "ParseOptions(delimiter=';')",
        ),
        ("rows.csv", "id\tv\n1\t2\n", "values have '\\\\t' between them", r"ParseOptions(delimiter='\t')"),
        ("rows.ndjson", '{"id": 1}\n', "is no Parquet, and is not named .csv", "polars.read_ndjson(file)"),
        ("rows.csv.gz", "id,v\n1,2\n", "is no Parquet, and is not named .csv", "write_hudi()"),
    ],
)
def test_files_of_other_forms_are_told_from_damaged_ones(tmp_path, name, text, message, remedy):
    """A name that Avro does not allow was to be changed, and the file to be replaced by a whole one."""
    (tmp_path / name).write_text(text)
    with pytest.raises(HudiError, match=message) as e:
        import_parquet(
            str(tmp_path / name), str(tmp_path / "t"), {"hoodie.datasource.write.recordkey.field": "id"}
        )
    assert remedy in e.value.remedy
    assert e.value.file == name
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "text",
    [b"id,n\n\xff\xfe,1\n", "id,été\na,1\n".encode("latin-1"), b"id,n\n" + b"a,1\n" * 400_000 + b"\xe9,1\n"],
    ids=["a value", "a name", "a value later"],
)
def test_a_csv_file_of_another_encoding_than_utf_8_makes_no_table(tmp_path, text):
    file = tmp_path / "x.csv"
    file.write_bytes(text)
    with pytest.raises(SchemaError, match="UTF-8") as e:
        imported(file, tmp_path / "t")
    assert "iconv" in e.value.remedy
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


KILLED = """
import os, signal, sys
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.writing.parquet_import import import_parquet
Transaction.commit = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
import_parquet(sys.argv[1], sys.argv[2], eval(sys.argv[3]))
"""


@pytest.mark.req("RC-05")
@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
@pytest.mark.sampled(2)
def test_an_import_that_was_killed_is_rolled_back_as_any_write(source, tmp_path, policy):
    """What takes the place of a bootstrap here: with LAZY by a cleaning alone, and by no other writer."""
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.cleaner.policy.failed.writes": policy, "hoodie.clean.automatic": "false"}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(source), path, repr(options)], check=False)
    assert ended.returncode == -signal.SIGKILL
    (dead,) = HudiTable.open(path).timeline.pending_writes()
    assert list(Path(path).rglob("*.parquet"))
    import_parquet(source, path, options, upsert=True)
    table = HudiTable.open(path)
    assert table.timeline.pending_writes() == (() if policy == "EAGER" else (dead,))
    rows = table.count()
    table.clean(options=options)
    table = HudiTable.open(path)
    assert table.timeline.pending_writes() == ()
    assert table.count() == rows == 15
    assert [f for f in Path(path).rglob("*.parquet") if dead.time in f.name] == []
    assert table.verify(deep=True) == []
