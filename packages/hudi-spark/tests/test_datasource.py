"""The data source that Spark 4 finds by itself.

What Spark does with it is seen by an ordinary script that knows nothing of us, in a process of its own; what the
source does, by calling it as Spark's helper processes do.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import plain_wrong_calls
import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, OptionError, SchemaError, UnsupportedError, WriteFailedError
from hudi_spark.runtime import settings
from hudi_spark.types import to_arrow_schema, to_spark_schema
from hudi_timeline import HudiTable
from interop.spark_worker import QUICK_JVM

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not settings.HAS_DATA_SOURCES, reason="PySpark before 4.0 has no Python data sources"),
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
    return _run(SCRIPT, folder)


def _run(script: Path, folder: Path) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    env["SPARK_LOCAL_IP"] = "127.0.0.1"  # the name of a machine has not always an address
    env["PYSPARK_PYTHON"] = sys.executable  # as in an activated environment
    env["JAVA_TOOL_OPTIONS"] = QUICK_JVM
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], env=env, cwd=folder, capture_output=True, text=True
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert found, done.stdout[-2000:] + done.stderr[-6000:]
    result: dict[str, Any] = json.loads(found[0].removeprefix("SEEN "))
    return result


def test_the_script_imports_nothing_of_ours(seen: dict[str, Any]) -> None:
    assert seen["modules"] == []


@pytest.mark.req("WR-01", "WR-22")
def test_two_appends_read_back_with_the_later_rows(seen: dict[str, Any]) -> None:
    got = seen["appends"]
    later = {8, 9, 10, 11}
    expected = [[f"k{n}", 2 if n in later else 1, f"c{n % 2}", n * 1.5] for n in range(12)]
    assert got["rows"] == sorted(expected)
    assert got["before"] == [["fare", "id"], 10]
    assert got["below"] == [".hoodie", "c0", "c1"], "nothing staged is left"


def test_columns_order_and_types_are_those_of_the_table(seen: dict[str, Any], folder: Path) -> None:
    table = HudiTable.open(str(folder / "appends"))
    assert seen["appends"]["schema"] == to_spark_schema(table.read(meta_columns=True).schema).jsonValue()


def test_all_types_come_back_whatever_the_time_zone(seen: dict[str, Any]) -> None:
    assert seen["types"] == {"same": True, "types": True}


def test_overwrite_replaces_and_a_view_takes_inserts(seen: dict[str, Any]) -> None:
    got = seen["overwrites"]
    assert got["ids"] == ["k20", "k21", "k22", "k30", "k31"]
    assert got["below"] == [".hoodie", "c0", "c1"]


def test_what_fails_says_why_and_changes_nothing(seen: dict[str, Any]) -> None:
    got = seen["overwrites"]
    assert "this row is bad" in got["task"]
    assert got["none"] == []
    assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in got["mode"]


def _as_it_should_be(name: str, got: dict[str, Any]) -> None:
    """One typed line of ours with the way, or the condition that Spark names; nothing is written."""
    if name in plain_wrong_calls.SPARKS_OWN:
        assert plain_wrong_calls.SPARKS_OWN[name] in got["text"]
    else:
        assert len(got["ours"]) == 1, got
        assert " Remedy: " in got["ours"][0], got
        assert len(got["ours"][0]) < 900, got
        assert got["lines"] <= 3 or "STREAM_FAILED" in got["text"], got  # with the stream's state below it
        assert "Traceback" not in got["text"], got
    assert got["left"] == got["tables"] == [], name


@pytest.mark.parametrize("name", plain_wrong_calls.IN_CI)
def test_a_wrong_call_without_our_import_is_one_line_of_ours(seen: dict[str, Any], name: str) -> None:
    _as_it_should_be(name, seen["wrong"][name])


@pytest.mark.slow
def test_all_wrong_calls_without_our_import(folder: Path) -> None:
    assert len(plain_wrong_calls.CALLS) - len(plain_wrong_calls.SPARKS_OWN) >= 180
    got = _run(Path(plain_wrong_calls.__file__), folder)
    assert set(got) == set(plain_wrong_calls.CALLS)
    for name in got:
        _as_it_should_be(name, got[name])


def test_a_table_of_the_catalog_is_refused_where_spark_asks() -> None:
    from hudi_spark.datasource import table_schema

    for name in ("OWNER", "location"):
        with pytest.raises(UnsupportedError, match="tables USING hudi") as e:
            table_schema({"path": "/t", name: "me"})
        assert "load(path)" in e.value.remedy


def test_looking_for_the_source_imports_nothing_heavy() -> None:
    script = """
        import sys, pyspark_hudi
        assert pyspark_hudi.DefaultSource.name() == "hudi"
        assert not [m for m in sys.modules if m.startswith(("hudi_spark", "hudi_timeline", "fsspec"))]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


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


def _read(options: dict[str, str], schema: pa.Schema | None = None) -> pa.Table:
    """The rows that Spark's tasks would get."""
    from hudi_spark.datasource import HudiReader, table_schema

    wanted = table_schema(options) if schema is None else to_spark_schema(schema)
    reader = HudiReader(options, wanted)
    batches = [b for p in pickle.loads(pickle.dumps(reader.partitions())) for b in reader.read(p)]
    return pa.Table.from_batches(batches, to_arrow_schema(wanted))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Path and instants of a table: rows k<n> to k<n+3> written at the n-th."""
    path = str(tmp_path_factory.mktemp("history") / "t")
    schema = pa.schema(
        [("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())]
    )
    table = HudiTable.create(path, schema, name="trips", record_keys=["id"], partition_fields=["city"])
    times = []
    for n in range(3):
        ids = range(n, n + 4)
        columns = [[f"k{i}" for i in ids], [n] * 4, [i * 1.5 for i in ids], [f"c{i % 2}" for i in ids]]
        times.append(table.upsert(pa.table(columns, schema=schema)).instant)
    return path, times


def test_time_travel_and_incremental_queries(history: tuple[str, list[str]]) -> None:
    path, (first, second, _) = history
    kind = {"path": path, "hoodie.datasource.query.type": "incremental"}
    begin, end = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
    assert _read({"path": path, "as.of.instant": first}).num_rows == 4
    assert _read({"path": path, "as.of.instant": second}).num_rows == 5
    changed = _read({**kind, begin: first, end: second})["id"].to_pylist()
    assert sorted(changed) == ["k1", "k2", "k3", "k4"]  # as the second commit wrote them
    assert _read({**kind, begin: first}).num_rows == 5
    with pytest.raises(OptionError, match="needs a begin"):
        _read(kind)


def test_columns_and_filter_are_options(history: tuple[str, list[str]]) -> None:
    path, times = history
    options = {"hudi.read.columns": "fare,id", "hudi.read.filter": "city = 'c1' and ts > 0"}
    rows = _read({"path": path, "as.of.instant": times[1], **options})
    assert rows.column_names == ["fare", "id"]
    assert sorted(rows["id"].to_pylist()) == ["k1", "k3"]


def test_a_schema_of_the_user_projects_and_widens(history: tuple[str, list[str]]) -> None:
    wanted = pa.schema([("city", pa.string()), ("ts", pa.float64()), ("other", pa.int32())])
    rows = _read({"path": history[0]}, wanted)
    assert rows.column_names == ["city", "ts", "other"]
    assert rows["other"].null_count == rows.num_rows == 6
    assert sorted(rows["ts"].to_pylist()) == [0.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    with pytest.raises(HudiError, match="fare"):
        _read({"path": history[0]}, pa.schema([("fare", pa.date32())]))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (pa.schema([("FARE", pa.float64())]), "FARE in .* differs from the table's column fare in case only"),
        (pa.schema([("fare", pa.date32())]), "cannot become date32"),
        (pa.schema([("fare", pa.struct([("a", pa.int32())]))]), "cannot become struct"),
    ],
)
def test_a_schema_that_the_table_cannot_have_is_refused_before_a_task_runs(
    history: tuple[str, list[str]], schema: pa.Schema, text: str
) -> None:
    from hudi_spark.datasource import HudiReader

    reader = HudiReader({"path": history[0]}, to_spark_schema(schema))
    with pytest.raises(SchemaError, match=text) as e:
        reader.partitions()
    assert "before writing" not in e.value.remedy


def test_an_unknown_column_of_a_schema_is_null_in_each_row(history: tuple[str, list[str]]) -> None:
    rows = _read({"path": history[0]}, pa.schema([("other", pa.string())]))
    assert (rows.num_rows, rows["other"].null_count) == (6, 6)


# --- streams ---------------------------------------------------------------------------------------------


def _stream(options: dict[str, str]) -> Any:
    from hudi_spark.datasource import HudiStreamReader, table_schema

    return HudiStreamReader(options, table_schema(options))


def test_what_is_incremental_without_a_begin_is_a_stream(history: tuple[str, list[str]]) -> None:
    from hudi_spark.datasource import HudiReader, table_schema

    path, times = history
    options = {"path": path, "hoodie.datasource.query.type": "incremental"}
    stream = _stream(options)
    assert stream.latestOffset() == {"commitTime": times[-1]}
    batches = [
        b for p in stream.partitions(stream.initialOffset(), stream.latestOffset()) for b in stream.read(p)
    ]
    assert sum(b.num_rows for b in batches) == 6
    with pytest.raises(OptionError, match="needs a begin"):
        HudiReader(options, table_schema(options))


@pytest.mark.parametrize("query", [{}, {"hoodie.datasource.query.type": "incremental"}])
@pytest.mark.parametrize(
    "option",
    ["as.of.instant", "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"],
)
def test_bounds_of_a_query_say_where_a_stream_begins(
    history: tuple[str, list[str]], query: dict[str, str], option: str
) -> None:
    path, times = history
    with pytest.raises(OptionError) as e:
        _stream({"path": path, option: times[0], **query}).initialOffset()
    assert "hoodie.datasource.streaming.startOffset" in e.value.remedy


def test_a_stream_looks_as_often_as_it_is_told(history: tuple[str, list[str]], monkeypatch: Any) -> None:
    from hudi_spark.streaming.table_stream import TableStream

    looks: list[int] = []
    monkeypatch.setattr(TableStream, "latest", lambda self: looks.append(1) or str(len(looks)))
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    often, seldom = (_stream({"path": history[0], **o}) for o in ({}, {"hudi.streaming.poll.seconds": "30"}))
    assert [often.latestOffset()["commitTime"] for _ in range(3)] == ["1", "2", "3"]
    assert seldom.latestOffset() == {"commitTime": "4"}
    now[0] += 29
    assert seldom.latestOffset() == {"commitTime": "4"}
    now[0] += 1
    assert seldom.latestOffset() == {"commitTime": "5"}


def test_staged_rows_that_someone_took_away_fail_the_write(tmp_path: Path) -> None:
    from hudi_spark.datasource import HudiWriter

    writer = HudiWriter({**TRIPS, "path": str(tmp_path / "t")}, to_spark_schema(_batch(0).schema), False)
    message = writer.write(iter([_batch(3)]))
    (tmp_path / "t" / message.path).unlink()
    with pytest.raises(WriteFailedError, match="staged rows"):
        writer.commit([message])
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_a_place_with_other_data_is_left_alone(tmp_path: Path) -> None:
    from hudi_spark.datasource import HudiWriter

    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(HudiError, match=r"holds something else than a Hudi table: notes\.txt"):
        HudiWriter({**TRIPS, "path": str(tmp_path)}, to_spark_schema(_batch(0).schema), False)
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"path": ""}, "no path is given"),
        ({"hoodie.tabel.name": "x"}, "hoodie.table.name"),
        ({"hudi.write.staging.limit.bytes": "much"}, "is not a number of bytes"),
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
    with pytest.raises(UnsupportedError, match=r"hudi_spark\.enable.*hudi\.write\.staging\.limit\.bytes"):
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
    from hudi_spark.datasource import HudiWriter

    writer = HudiWriter({**TRIPS, "path": str(tmp_path / "t")}, to_spark_schema(_batch(0).schema), True)
    message = pickle.loads(pickle.dumps(writer)).write(iter([_batch(3)]))
    pickle.loads(pickle.dumps(writer)).commit([pickle.loads(pickle.dumps(message))])
    assert HudiTable.open(str(tmp_path / "t")).read().count() == 3


@pytest.mark.req("SS-02")
def test_a_table_on_s3_is_reached_with_the_options_of_the_call(s3_server: Any) -> None:
    from hudi_spark.datasource import HudiWriter

    bucket = s3_server.new_bucket()
    place = {"path": f"s3a://{bucket}/t", **s3_server.hadoop_options}
    writer = HudiWriter({**TRIPS, **place}, to_spark_schema(_batch(0).schema), False)
    message = pickle.loads(pickle.dumps(writer)).write(iter([_batch(3)]))
    writer.commit([message])
    assert sorted(_read(place)["id"].to_pylist()) == ["0", "1", "2"]
    assert not [k for k in s3_server.keys(bucket) if "staging" in k]
