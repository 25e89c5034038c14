"""`format("hudi")` on a session that knows nothing of us: an ordinary script in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, UnsupportedError
from hudi_spark import compat
from hudi_spark.types import to_arrow_schema, to_spark_schema
from hudi_timeline import HudiTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not compat.HAS_DATA_SOURCES, reason="PySpark before 4.0 has no Python data sources"),
]
SCRIPT = Path(__file__).parent / "support" / "plain_session.py"
TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@pytest.fixture(scope="module")
def seen(folder: Path) -> dict[str, Any]:
    """What the script saw, by scenario."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    env["PYSPARK_PYTHON"] = sys.executable  # as in an activated environment
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)], env=env, cwd=folder, capture_output=True, text=True
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert found, done.stdout[-2000:] + done.stderr[-6000:]
    result: dict[str, Any] = json.loads(found[0].removeprefix("SEEN "))
    return result


def test_the_script_imports_nothing_of_ours(seen: dict[str, Any]) -> None:
    assert seen["modules"] == []


@pytest.mark.req("WR-01")
def test_two_appends_read_back_with_the_later_rows(seen: dict[str, Any]) -> None:
    got = seen["appends"]
    later = {8, 9, 10, 11}
    expected = [[f"k{n}", 2 if n in later else 1, f"c{n % 2}", n * 1.5] for n in range(12)]
    assert got["rows"] == sorted(expected)
    assert got["upper"] == 12


def test_columns_order_and_types_are_those_of_the_table(seen: dict[str, Any], folder: Path) -> None:
    table = HudiTable.open(str(folder / "appends"))
    assert seen["appends"]["schema"] == to_spark_schema(table.read().schema).jsonValue()


def test_staging_is_gone_and_what_a_killed_write_left_does_no_harm(seen: dict[str, Any]) -> None:
    assert seen["appends"]["below"] == [".hoodie", ".hoodie_staging_0f", "c0", "c1"]
    assert seen["overwrites"]["below"] == [".hoodie", "c0", "c1"]


def test_time_travel_and_incremental_queries(seen: dict[str, Any]) -> None:
    got = seen["queries"]
    assert (got["first"], got["second"]) == (4, 5)
    assert got["changes"] == ["k1", "k2", "k3", "k4"]  # as the second commit wrote them
    assert got["since"] == 5
    assert "needs a begin" in got["contradiction"]


def test_columns_and_filter_are_options(seen: dict[str, Any]) -> None:
    assert seen["queries"]["columns"] == ["fare", "id"]
    assert seen["queries"]["chosen"] == [[1.5, "k1"], [4.5, "k3"]]


def test_a_schema_of_the_user_projects_and_widens(seen: dict[str, Any]) -> None:
    got = seen["schemas"]
    assert got["columns"] == ["city", "ts", "other"]
    assert got["rows"] == [["c0", 1.0, None]] * 2 + [["c1", 1.0, None]] * 2
    assert "HUDI-E" in got["narrow"]
    assert "fare" in got["narrow"]


def test_all_types_come_back_whatever_the_time_zone(seen: dict[str, Any]) -> None:
    assert seen["types"] == {"same": True, "types": True}


def test_overwrite_replaces_and_a_view_takes_inserts(seen: dict[str, Any]) -> None:
    assert seen["overwrites"]["replaced"] == 3
    assert seen["overwrites"]["inserted"] == 5


def test_a_failed_task_leaves_nothing(seen: dict[str, Any]) -> None:
    assert "this row is bad" in seen["failures"]["task"]
    assert seen["failures"]["below"] == []


def test_more_than_the_limit_names_the_way_round_and_changes_nothing(seen: dict[str, Any]) -> None:
    got = seen["failures"]
    assert "hudi_spark.enable(spark)" in got["limit"]
    assert "hudi.write.staging.limit.bytes" in got["limit"]
    assert got["rows"] == 5
    assert got["below_after"] == [".hoodie", "c0", "c1"]


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("no_path", "no path is given"),
        ("no_table", "HUDI-E0101"),
        ("option", "hoodie.table.name"),
        ("foreign", "holds something else than a Hudi table: notes.txt"),
        ("mode", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_refusals_say_why(seen: dict[str, Any], case: str, text: str) -> None:
    assert text in seen["refusals"][case]


def test_refusals_leave_the_path_alone(seen: dict[str, Any]) -> None:
    assert seen["refusals"]["new_below"] == []
    assert seen["refusals"]["foreign_below"] == ["notes.txt"]


# --- without a session -----------------------------------------------------------------------------------


def test_the_declared_schema_is_the_one_spark_compares_with() -> None:
    from pyspark.sql.pandas import types as of_spark

    inner = pa.struct([("x", pa.list_(pa.timestamp("us", tz="UTC"))), ("y", pa.decimal128(20, 3))])
    kinds = [
        pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
        pa.timestamp("us"), pa.timestamp("us", tz="UTC"), inner, pa.map_(pa.string(), inner),
    ]  # fmt: skip
    schema = to_spark_schema(pa.schema([(f"c{n}", kind) for n, kind in enumerate(kinds)]))
    assert to_arrow_schema(schema).equals(of_spark.to_arrow_schema(schema, timezone="UTC"))


def _batch(rows: int) -> pa.RecordBatch:
    columns = {"id": [str(n) for n in range(rows)], "city": ["a"] * rows}
    return pa.record_batch(columns, schema=pa.schema([("id", pa.string()), ("city", pa.string())]))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"path": ""}, "no path is given"),
        ({"hoodie.tabel.name": "x"}, "hoodie.table.name"),
        ({"hudi.write.staging.limit.bytes": "much"}, "is no number of bytes"),
        ({"hoodie.datasource.write.recordkey.field": "idd"}, "record key column 'idd' is not in the data"),
        ({"hoodie.datasource.hive_sync.enable": "true"}, "HUDI-E"),
    ],
)
def test_a_write_is_refused_before_a_row_is_evaluated(
    tmp_path: Path, changes: dict[str, str], text: str
) -> None:
    from hudi_spark.datasource import HudiWriter

    options = {**TRIPS, "path": str(tmp_path / "t"), **changes}
    with pytest.raises(HudiError, match=text):
        HudiWriter(options, to_spark_schema(_batch(0).schema), False)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "no path is given"),
        ({"paths": '["a", "b"]'}, "several paths"),
        ({"path": "nowhere", "hoodie.tabel.name": "x"}, "hoodie.table.name"),
        ({"path": "nowhere"}, "HUDI-E0101"),
    ],
)
def test_a_read_is_refused_with_our_errors(options: dict[str, str], text: str) -> None:
    from hudi_spark.datasource import table_schema

    with pytest.raises(HudiError, match=text):
        table_schema(options)


def test_a_task_counts_what_the_others_staged_once_per_task(tmp_path: Path) -> None:
    from hudi_spark.datasource import HudiWriter

    batch = _batch(1000)
    options = {**TRIPS, "path": str(tmp_path / "t"), "hudi.write.staging.limit.bytes": str(3 * batch.nbytes)}
    writer = HudiWriter(options, to_spark_schema(batch.schema), False)
    writer.write(iter([batch]))
    other = tmp_path / "t" / writer.folder
    for attempt in (7, 8):  # the first was killed
        (other / f"5-{attempt}.arrow").write_bytes(bytes(batch.nbytes))
    message = writer.write(iter([batch]))
    with pytest.raises(UnsupportedError, match=r"hudi_spark\.enable"):
        writer.write(iter([batch, batch, batch]))
    writer.commit([message, None])
    assert HudiTable.open(str(tmp_path / "t")).read().count() == 1000
    assert not other.exists()


def test_a_write_without_rows_stages_nothing(tmp_path: Path) -> None:
    from hudi_spark.datasource import HudiWriter

    writer = HudiWriter({**TRIPS, "path": str(tmp_path / "t")}, to_spark_schema(_batch(0).schema), False)
    assert writer.write(iter([])).path == ""
    writer.abort([None])
    assert not (tmp_path / "t").exists()


def test_writers_and_their_messages_travel_by_pickle(tmp_path: Path) -> None:
    import pickle

    from hudi_spark.datasource import HudiWriter

    writer = HudiWriter({**TRIPS, "path": str(tmp_path / "t")}, to_spark_schema(_batch(0).schema), True)
    message = pickle.loads(pickle.dumps(writer)).write(iter([_batch(3)]))
    pickle.loads(pickle.dumps(writer)).commit([pickle.loads(pickle.dumps(message))])
    assert HudiTable.open(str(tmp_path / "t")).read().count() == 3
