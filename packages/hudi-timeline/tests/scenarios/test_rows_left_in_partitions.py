"""Rows that a global index left in their partition as its column changed: every door has the value of the path."""

import contextlib
import random

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_timeline import HudiTable, UnsupportedError

STAYS = {
    "GLOBAL_SIMPLE": {"hoodie.simple.index.update.partition.path": "false"},
    "GLOBAL_BLOOM": {"hoodie.bloom.index.update.partition.path": "false"},
    "RECORD_INDEX": {"hoodie.metadata.record.index.enable": "true"},
}
VALUES = {
    "text": (pa.string(), ["x", "y", "z w", "p=x", None]),
    "number": (pa.int32(), [-1, 0, 7, None]),
    "truth": (pa.bool_(), [True, False]),
}
SERVICES = {"COPY_ON_WRITE": ["nothing", "clean"], "MERGE_ON_READ": ["nothing", "compact", "clean"]}


def rows_of(data, columns=("k", "p", "v")):
    table = data if isinstance(data, pa.Table) else data.to_arrow()
    return sorted((tuple(r[c] for c in columns) for r in table.to_pylist()), key=repr)


@pytest.mark.sampled(24)
@pytest.mark.req("IX-06", "IX-08", "IX-12", "QR-10", "QR-12")
@pytest.mark.parametrize("hive", ["true", "false"], ids=["hive", "bare"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("index", STAYS)
def test_a_filter_finds_what_a_read_shows(tmp_path, index, values, kind, hive):
    rng = random.Random(f"{index} {values} {kind} {hive}")
    type_, choices = VALUES[values]
    schema = pa.schema([("k", pa.string()), ("p", type_), ("o", pa.int64()), ("v", pa.int64())])
    options = {
        "hoodie.index.type": index,
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.compact.inline": "false",
        **STAYS[index],
    }
    table = HudiTable.create(
        str(tmp_path), schema, name="t", table_type=kind, record_keys=["k"], partition_fields=["p"],
        ordering_fields=["o"], options=options,
    )  # fmt: skip
    first, newest = {}, {}
    for step in range(6):
        keys = rng.sample([f"k{n}" for n in range(12)], 5)
        rows = [{"k": k, "p": rng.choice(choices), "o": step, "v": rng.randrange(100)} for k in keys]
        table.upsert(pa.Table.from_pylist(rows, schema), options=options)
        for row in rows:
            first.setdefault(row["k"], row["p"])
            newest[row["k"]] = row["v"]
        service = rng.choice(SERVICES[kind])
        if service == "compact":
            table.compact()
        elif service == "clean":
            table.clean()
    whole = rows_of(table.read())
    assert [(k, v) for k, _, v in whole] == sorted(newest.items())
    # What no path says is as the files have it: of a null or a named text there, the row's own.
    left = {k: p for k, p, _ in whole if first[k] is not None and "=" not in str(first[k])}
    assert left == {k: p for k, p in first.items() if k in left}

    def passing(test):
        return [r for r in whole if test(r[1])]

    for value in choices:
        if value is None:
            is_null = pc.field("p").is_null()
            assert rows_of(table.read(filter=is_null)) == passing(lambda p: p is None)
            assert table.read(filter=is_null).count() == len(passing(lambda p: p is None))
            continue
        one = passing(lambda p, v=value: p == v)
        others = passing(lambda p, v=value: p is not None and p != v)
        equal = pc.field("p") == pa.scalar(value, type_)
        assert rows_of(table.read(filter=equal)) == one
        assert table.read(filter=equal).count() == len(one)
        assert rows_of(table.read(filter=~equal)) == others
        assert rows_of(table.read(filter=pc.field("p").isin([value]))) == one
        # Polars evaluates itself what it gives to no source, and no dataset can be made of rows that are merged.
        lazy = table.read().to_polars_lazy()
        assert rows_of(lazy.filter(pl.col("p") == value).collect().to_arrow()) == one
        assert rows_of(lazy.filter(pl.col("p") != value).collect().to_arrow()) == others
        relation = table.read().to_duckdb()
        assert rows_of(relation.filter(duckdb.ColumnExpression("p") == value).to_arrow_table()) == one
        with contextlib.suppress(UnsupportedError):  # where a file has rows of which its path does not tell
            assert rows_of(table.read().to_pyarrow_dataset().to_table(filter=equal)) == one
    keys = sorted(newest)[:4]
    assert rows_of(table.get(keys)) == [r for r in whole if r[0] in keys]


LEFT = "another p than the partition that the record of that key is in"
UPDATE_PATH = "hoodie.record.index.update.partition.path"


def warned(result):
    return [w for w in result.warnings if LEFT in w]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_that_are_left_unasked_are_a_warning(tmp_path, kind):
    schema = pa.schema([("k", pa.string()), ("p", pa.string()), ("o", pa.int64())])
    options = {"hoodie.index.type": "RECORD_INDEX", **STAYS["RECORD_INDEX"]}
    table = HudiTable.create(
        str(tmp_path), schema, name="t", table_type=kind, record_keys=["k"], partition_fields=["p"],
        ordering_fields=["o"], options=options,
    )  # fmt: skip

    def upsert(places, order, **how):
        rows = [{"k": k, "p": p, "o": order} for k, p in places.items()]
        return table.upsert(pa.Table.from_pylist(rows, schema), **{"options": options, **how})

    assert not warned(upsert({"a": "x", "b": "x", "c": "y"}, 1))
    assert not warned(upsert({"a": "x", "c": "y", "new": "z"}, 2))
    moved = {"a": "y", "b": "x", "c": "nowhere", "newer": "x"}
    for how in ({"dry_run": True}, {}):
        (text,) = warned(upsert(moved, 3, **how))
        assert text.startswith("2 rows have another p than")
        assert f"{UPDATE_PATH}=true moves such records" in text
    assert rows_of(table.read(), ("k", "p")) == [
        ("a", "x"), ("b", "x"), ("c", "y"), ("new", "z"), ("newer", "x"),
    ]  # fmt: skip
    gone = pa.Table.from_pylist([{"k": "b", "p": "elsewhere", "o": 4}], schema)
    assert not warned(table.delete(gone, options=options))
    assert not warned(upsert(moved, 5, options={**options, UPDATE_PATH: "false"}))
    assert not warned(upsert(moved, 6, options={**options, UPDATE_PATH: "true"}))
    assert not warned(upsert(moved, 7))  # they have moved
    assert rows_of(table.read(), ("k", "p"))[0] == ("a", "y")


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_rows_that_an_option_leaves_are_none(tmp_path, index):
    schema = pa.schema([("k", pa.string()), ("p", pa.string()), ("o", pa.int64())])
    options = {"hoodie.index.type": index, **STAYS[index]}
    table = HudiTable.create(
        str(tmp_path), schema, name="t", record_keys=["k"], partition_fields=["p"], ordering_fields=["o"],
        options=options,
    )  # fmt: skip
    for p in "xy":
        result = table.upsert(pa.table([["a"], [p], [1]], schema=schema), options=options)
        assert not warned(result)
    assert rows_of(table.read(), ("k", "p")) == [("a", "x")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("logged", [True, False], ids=["logged", "found by files"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", STAYS)
def test_a_range_and_its_changes_tell_what_was_written(tmp_path, index, kind, logged):
    """As with Apache Hudi (tests/interop/test_index.py); the newest state has the value of the path."""
    schema = pa.schema([("k", pa.string()), ("p", pa.string()), ("o", pa.int64())])
    options = {"hoodie.index.type": index, "hoodie.compact.inline": "false", **STAYS[index]}
    if logged:
        options |= {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
        }
    table = HudiTable.create(
        str(tmp_path), schema, name="t", table_type=kind, record_keys=["k"], partition_fields=["p"],
        ordering_fields=["o"], options=options,
    )  # fmt: skip
    first = table.upsert(pa.table([["a", "b"], ["x", "y"], [1, 1]], schema=schema), options=options).instant
    table.upsert(pa.table([["a"], ["y"], [2]], schema=schema), options=options)
    assert rows_of(table.read(), ("k", "p", "o")) == [("a", "x", 2), ("b", "y", 1)]
    assert rows_of(table.read_incremental(first), ("k", "p", "o")) == [("a", "y", 2)]
    (change,) = table.read_changes(first, images="struct").to_arrow().to_pylist()
    assert [change["op"], change["before"]["p"], change["after"]["p"]] == ["u", "x", "y"]
    if kind == "MERGE_ON_READ":
        table.compact()
        assert rows_of(table.read_incremental(first), ("k", "p", "o")) == [("a", "y", 2)]
