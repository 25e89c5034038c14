"""Filters on floating-point columns: Apache Hudi leaves no file out that has a row of the answer, by our statistics."""

import math

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop import ours

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
    WRITE + "keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.float64()), ("y", pa.float32())])
FILES = (
    {"a": 1.5, "b": 2.5},
    {"c": 1.5, "d": 2.5, "e": 3.5},
    {"f": math.nan, "g": -4.0},
    {"h": None, "i": math.inf},
)
ASKED = {
    "x = 2.5": "bd",
    "x = 2.5 AND ts = 1": "bd",
    "x > 3.0D": "ei",  # without NaN, whose row group Spark's own filter of Parquet leaves out
    "y >= 3.5": "ei",
    "x < 0": "g",
    "x <= 1.5 OR y = 3.5": "aceg",
    "NOT (y = 1.5) AND x < 3": "bdg",
    "x IS NULL": "h",
}


@pytest.mark.req("MT-04")
def test_no_file_with_a_row_of_the_answer_is_left_out(tmp_path, apache):
    path = tmp_path / "t"
    HudiTable.create(str(path), SCHEMA, name="t", record_keys="id", ordering_fields="ts")
    for values in FILES:
        rows = [{"id": k, "ts": 1, "x": v, "y": v} for k, v in values.items()]
        ours.write(path, "insert", pa.Table.from_pylist(rows, SCHEMA), options=OPTIONS)
    given = ", ".join(f"'{name}' '{value}'" for name, value in {"path": str(path), **SKIPPING}.items())
    apache.sql(f"CREATE OR REPLACE TEMPORARY VIEW with_floats USING hudi OPTIONS ({given})")
    found = {
        where: "".join(
            sorted(apache.sql(f"SELECT id FROM with_floats WHERE {where}").column("id").to_pylist())
        )
        for where in ASKED
    }
    assert found == ASKED
