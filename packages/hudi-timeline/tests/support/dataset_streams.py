"""Streams of a table's dataset, one after the other: `python dataset_streams.py PATH WAY`.

Some files are left out by statistics, others are read: each beginning has to do with several of them at once.
"""

import sys

import duckdb
import pyarrow.compute as pc

from hudi_format.schema.input_rows import as_reader
from hudi_timeline import read_hudi, write_hudi

FILES, TIMES = 24, 150


def by_duckdb(dataset, n):
    with duckdb.connect() as connection:
        connection.register("rows_of_table", dataset)
        query = f"SELECT id FROM rows_of_table WHERE id >= 8 OR id = {n % 8}"
        return len(connection.sql(query).fetchall())


def as_rows_to_write(dataset, n):
    id = pc.field("id")
    return as_reader(dataset.filter((id >= 8) | (id == n % 8))).read_all().num_rows


def main(path, way):
    rows = [{"id": n, "city": f"c{n}", "fare": float(n)} for n in range(FILES)]
    write_hudi(path, rows, key="id", partition_by="city")
    for n in range(TIMES):
        found = {"duckdb": by_duckdb, "rows": as_rows_to_write}[way](read_hudi(path).to_pyarrow_dataset(), n)
        assert found == FILES - 7, found


if __name__ == "__main__":
    main(*sys.argv[1:])
