"""Base files as other engines write Parquet: reads, writes and services go on as with files of this project."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import HudiTable, scan_hudi

INSTANT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("p", pa.string()),
        ("ts", INSTANT),
        ("text", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("deep", pa.struct([("at", INSTANT), ("tags", pa.list_(pa.string()))])),
    ]
)
TEXTS = (
    "_hoodie_commit_time",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "_hoodie_record_key",
    "k",
    "text",
)
FORMS = {
    "INT96": {"use_deprecated_int96_timestamps": True},
    "INT96 and Arrow's schema": {"use_deprecated_int96_timestamps": True, "store_schema": True},
    "deltas": {"use_dictionary": False, "column_encoding": dict.fromkeys(TEXTS, "DELTA_BYTE_ARRAY")},
    "deltas of lengths": {
        "use_dictionary": False,
        "column_encoding": dict.fromkeys(TEXTS, "DELTA_LENGTH_BYTE_ARRAY"),
        "data_page_version": "2.0",
        "write_page_index": True,
    },
    "lists of two levels": {"use_compliant_nested_type": False, "row_group_size": 2, "compression": "lz4"},
    "codes of Arrow": {"store_schema": True, "kind": pa.dictionary(pa.int32(), pa.string())},
    "long text of Arrow": {"store_schema": True, "kind": pa.large_string(), "row_group_size": 2},
    "views of Arrow": {"store_schema": True, "kind": pa.string_view()},
}


def rewrite(path, form, folder="."):
    """The base files in another form of Parquet, of which the commits know."""
    form = {"store_schema": False, **form}
    kind = form.pop("kind", None)
    sizes = {}
    for file in Path(path, folder).rglob("*.parquet"):
        if ".hoodie" in file.parts:
            continue
        rows = pq.read_table(file, partitioning=None)
        for n, field in enumerate(rows.schema if kind is not None else ()):
            if field.type == pa.string():
                rows = rows.set_column(n, field.with_type(kind), rows.column(n).cast(kind))
        pq.write_table(rows, file, **form)
        sizes[file.name] = file.stat().st_size
    for commit in Path(path, ".hoodie").glob("*commit"):
        told = json.loads(commit.read_text())
        for stats in told["partitionToWriteStats"].values():
            for stat in stats:
                stat["fileSizeInBytes"] = sizes.get(Path(stat["path"]).name, stat["fileSizeInBytes"])
        commit.write_text(json.dumps(told))


def row(n, step):
    at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=step, microseconds=n)
    deep = None if n % 3 == 0 else {"at": at, "tags": ["a", "b"][: n % 3]}
    text = None if n % 4 == 0 else "some text"
    return {"k": f"k{n}", "p": "xy"[n % 2], "ts": at, "text": text, "price": Decimal(n) / 4, "deep": deep}


def in_order(rows):
    return sorted(rows, key=lambda r: r["k"])


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled(4)
def test_reads_writes_and_services_go_on(tmp_path, form, table_type, index):
    options = {"hoodie.index.type": index, "hoodie.compact.inline": "false"}
    options |= {"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, SCHEMA, record_keys="k", partition_fields="p", ordering_fields="ts", table_type=table_type,
        options=options,
    )  # fmt: skip
    there = {n: row(n, 0) for n in range(12)}
    table.upsert(pa.Table.from_pylist([*there.values()], SCHEMA), options=options)
    rewrite(path, FORMS[form])

    def check():
        table = HudiTable.open(path)
        wanted = in_order(there.values())
        assert in_order(table.read().to_arrow().to_pylist()) == wanted
        assert table.read().to_arrow().schema == SCHEMA
        late = pc.field("ts") >= pa.scalar(datetime(2024, 1, 2, tzinfo=UTC), INSTANT)
        found = table.read(filter=late).to_arrow().to_pylist()
        assert in_order(found) == [r for r in wanted if r["ts"] >= datetime(2024, 1, 2, tzinfo=UTC)]
        assert in_order(table.get(["k1", "k4"]).to_pylist()) == [r for r in wanted if r["k"] in ("k1", "k4")]

    check()
    for step in (1, 2):
        changed = {n: row(n, step) for n in (step, 4, 11 + step)}
        there |= changed
        table.upsert(pa.Table.from_pylist([*changed.values()], SCHEMA), options=options)
        check()
        if step == 1:
            rewrite(path, FORMS[form])
            check()
    table.delete(pa.Table.from_pylist([there.pop(5)], SCHEMA), options=options)
    check()
    if table_type == "MERGE_ON_READ":
        table.compact(options=options)
        check()
    changes = table.read_changes("000", images="struct").to_arrow().to_pylist()
    last = {(c["after"] or c["before"])["k"]: c["after"] for c in changes}
    assert in_order(r for r in last.values() if r) == in_order(there.values())
    assert [f for f in table.verify(deep=True) if f.severity == "error"] == []


@pytest.mark.parametrize("form", FORMS)
def test_other_engines_have_the_same_rows_or_a_refusal(tmp_path, form):
    path = str(tmp_path / "t")
    table = HudiTable.create(path, SCHEMA, record_keys="k", partition_fields="p", ordering_fields="ts")
    there = [row(n, n % 4) for n in range(12)]
    table.upsert(pa.Table.from_pylist(there, SCHEMA))
    rewrite(path, FORMS[form], "y")  # one file is as it was: their schemas are the same, but for Arrow's
    scan = HudiTable.open(path).read()
    some = [r["k"] for r in there if r["text"] and r["ts"] >= datetime(2024, 1, 2, tzinfo=UTC)]
    with duckdb.connect() as connection:
        relation = scan.to_duckdb(connection)
        asked = "select k from t where text = 'some text' and ts >= timestamptz '2024-01-02 00:00:00+00' order by k"
        assert relation.query("t", asked).fetchall() == [(k,) for k in sorted(some)]
    frame = scan_hudi(path).filter(
        pl.col("text") == "some text", pl.col("ts") >= datetime(2024, 1, 2, tzinfo=UTC)
    )
    assert sorted(frame.collect()["k"]) == sorted(some)
    if "INT96" in form or "kind" in FORMS[form]:
        with pytest.raises(UnsupportedError, match="is no dataset of files"):
            scan.to_pyarrow_dataset()
        return
    dataset = scan.to_pyarrow_dataset()
    assert in_order(dataset.to_table().to_pylist()) == in_order(there)
    found = dataset.to_table(filter=pc.field("text") == "some text")["k"].to_pylist()
    assert sorted(found) == sorted(r["k"] for r in there if r["text"])
