"""Datasets of a table's files in other hands: streams of them begin without a deadlock, copies have their filters."""

import pickle
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import HudiTable, write_hudi

PROGRAM = Path(__file__).parents[1] / "support" / "dataset_streams.py"
ROWS = [{"id": n, "city": ("oslo", "pune")[n % 2], "fare": float(n)} for n in range(10)]


@pytest.fixture
def table(tmp_path):
    write_hudi(tmp_path / "t", ROWS, key="id", partition_by="city")
    return HudiTable.open(tmp_path / "t")


def ids(rows):
    return sorted(rows["id"].to_pylist())


@pytest.mark.parametrize("way", ["duckdb", "rows"])
def test_a_stream_begins_while_threads_of_arrow_open_files(tmp_path, way):
    command = [sys.executable, str(PROGRAM), str(tmp_path / "t"), way]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]


def test_duckdb_has_the_rows_of_a_dataset_with_its_filters(table):
    of_scan = table.read(filter="fare > 2").to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("all_rows", table.read(["id", "city"]).to_pyarrow_dataset())
        connection.register("filtered_rows", of_scan.filter(pc.field("id") < 8))
        assert connection.sql("SELECT sum(id), count(city) FROM all_rows").fetchall() == [(45, 10)]
        found = connection.sql(
            "SELECT id FROM filtered_rows WHERE city = 'oslo' ORDER BY id LIMIT 2"
        ).fetchall()
    assert found == [(4,), (6,)]


def test_a_dataset_that_duckdb_reads_is_pyarrows_for_all_others(table, tmp_path):
    dataset = table.read().to_pyarrow_dataset()
    scanner = dataset.scanner(columns=["id"], filter=pc.field("id") > 4)
    assert type(scanner) is ds.Scanner
    for number, data in enumerate((scanner, dataset, dataset.filter(pc.field("id") > 4))):
        ds.write_dataset(data, tmp_path / f"out{number}", format="parquet")
        assert len(ids(ds.dataset(tmp_path / f"out{number}").to_table())) == (10 if data is dataset else 5)
    assert scanner.count_rows() == 5


@pytest.mark.parametrize("filter", [None, "fare > 2"])
def test_a_copy_of_a_dataset_has_its_filters(table, filter):
    dataset = table.read(filter=filter).to_pyarrow_dataset()
    first = 0 if filter is None else 3
    assert ids(pickle.loads(pickle.dumps(dataset)).to_table()) == list(range(first, 10))
    once = dataset.filter(pc.field("id") < 8)
    twice = pickle.loads(pickle.dumps(once)).filter(pc.field("city") == "oslo")
    assert ids(once.to_table()) == list(range(first, 8))
    for found in (twice, pickle.loads(pickle.dumps(twice))):
        assert ids(found.to_table()) == [n for n in range(first, 8) if n % 2 == 0]


def test_the_files_are_written_by_the_table_alone(table):
    system = table.read().to_pyarrow_dataset().filesystem
    with pytest.raises(UnsupportedError, match="written by the table alone"):
        system.delete_dir("city")


@pytest.mark.parametrize("store", ["local", "memory"])
def test_a_script_ends_that_has_read_a_part_of_a_dataset(store, tmp_path):
    path = str(tmp_path / "t") if store == "local" else "memory://half-read/t"
    program = PROGRAM.with_name("half_read_dataset.py")
    ended = subprocess.run(
        [sys.executable, program, path], capture_output=True, text=True, check=False, timeout=300
    )
    assert (ended.returncode, ended.stdout) == (0, "3\n"), ended.stderr
