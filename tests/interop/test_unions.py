"""Columns that are unions of several types: Apache Hudi 0.15 reads what this project adds to a table of its own."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from interop import ours
from interop.rows import assert_same_rows

GOLDEN = Path(__file__).parents[1] / "golden" / "unions_v6"
LOGS = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.enable": "false"}


@pytest.mark.req("SE-01")
@pytest.mark.parametrize("name", ["union_mor", "union_parquet_logs"])
def test_apache_hudi_reads_them_from_logs_and_base_files(tmp_path, apache, name):
    zipfile.ZipFile(GOLDEN / f"{name}.zip").extractall(tmp_path)
    path = tmp_path / name
    rows = ours.read(path)
    rows = rows.select([n for n in rows.column_names if not n.startswith("_hoodie_")])
    mixed = [{"id": r["id"], "ts": 9} for r in rows.to_pylist()]
    for n, row in enumerate(mixed):  # some keys are new; every value comes to another key
        row |= {
            k: v for k, v in rows.slice(len(mixed) - 1 - n, 1).to_pylist()[0].items() if k not in ("id", "ts")
        }
        row["id"] += "n" * (n % 3 == 0)
    blocks = "parquet" if "parquet" in name else "avro"
    ours.table(path).upsert(
        pa.Table.from_pylist(mixed, rows.schema), options=LOGS | {"hoodie.logfile.data.block.format": blocks}
    )
    logged = ours.read(path)
    assert logged.num_rows == len(mixed) + 3
    columns = [n for n in logged.column_names if n not in ("_hoodie_file_name", "_hoodie_commit_seqno")]
    assert_same_rows(apache.read(path).select(columns), logged.select(columns), ["id"])
    assert ours.table(path).compact().executed
    assert_same_rows(ours.read(path).select(columns), logged.select(columns), ["id"])
    assert_same_rows(apache.read(path).select(columns), logged.select(columns), ["id"])
    optimized = {"hoodie.datasource.query.type": "read_optimized"}
    assert_same_rows(apache.read(path, **optimized).select(columns), logged.select(columns), ["id"])
