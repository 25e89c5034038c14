"""Every key generator: the same rows get the same keys and paths, and each writer goes on in the other's table."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

WRITE = "hoodie.datasource.write."
CLASS = WRITE + "keygenerator.class"
TIME = "hoodie.keygen.timebased."
CONSISTENT = {WRITE + "keygenerator.consistent.logical.timestamp.enabled": "true"}
ENCODED = {WRITE + "partitionpath.urlencode": "true"}
HIVE = {WRITE + "hive_style_partitioning": "true"}
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
IDS = ["k0", "k1", "k2"]


@dataclass(frozen=True)
class Case:
    """Rows by column, and options.  `readable`: whether Apache Hudi can read what it wrote itself."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    columns: dict[str, object] = field(default_factory=dict)
    readable: bool = True

    def __str__(self) -> str:
        return self.name

    def rows(self, text: str) -> pa.Table:
        columns = {"id": IDS, "p": ["x", None, ""], **self.columns}
        n = len(columns["id"])
        return pa.table({**columns, "ts": pa.array(range(n), pa.int64()), "v": [text] * n})


def dates(kind, pattern="yyyy/MM/dd HH", **more):
    return {
        CLASS: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        TIME + "timestamp.type": kind,
        TIME + "output.dateformat": pattern,
        **{TIME + k.replace("_", "."): v for k, v in more.items()},
    }


def longs(*values):
    return pa.array(values, pa.int64())


MOMENTS = pa.array(
    [datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None],
    pa.timestamp("us", "UTC"),
)
WITHOUT_NULL = MOMENTS.fill_null(datetime(1900, 1, 1, tzinfo=UTC))
WHEN = longs(1709632800123, -1, None)
CUSTOM = {CLASS: "org.apache.hudi.keygen.CustomKeyGenerator"}
CASES = [
    Case("simple"),
    Case("simple hive encoded", HIVE | ENCODED, {"p": ["a/b", "50%", None]}),
    Case("complex", {WRITE + "recordkey.field": "id,k", WRITE + "partitionpath.field": "p,q"},
         {"k": [None, "", "z"], "q": longs(1, None, 3)}),
    Case("complex of one key", {CLASS: "org.apache.hudi.keygen.ComplexKeyGenerator"}),
    Case("non-partitioned",
         {CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator", WRITE + "recordkey.field": "id,v"}),
    Case("global delete", {CLASS: "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"}),
    Case("percent signs", {}, {"p": ["a%20b", "100%", "%41"]}),
    Case("milliseconds", dates("EPOCHMILLISECONDS"), {"p": WHEN}),
    Case("milliseconds hive", dates("EPOCHMILLISECONDS", "yyyy-MM-dd", timezone="GMT+8:00") | HIVE, {"p": WHEN}, False),
    Case("seconds, zone", dates("UNIX_TIMESTAMP", output_timezone="America/New_York"),
         {"p": longs(1709632800, -1, None)}),
    Case("scalar days of dates", dates("SCALAR", timestamp_scalar_time_unit="DAYS"),
         {"p": pa.array([date(2024, 2, 29), date(1969, 12, 31), None])}),
    Case("dates as text", dates("DATE_STRING", "yyyyMMdd", input_dateformat="yyyy-MM-dd'T'HH:mm:ssZ;yyyy-MM-dd",
                                input_dateformat_list_delimiter_regex=";"),
         {"p": ["2024-02-29T01:02:03+0530", "1969-12-31", None]}),
    Case("timestamps, consistent", dates("EPOCHMILLISECONDS") | CONSISTENT, {"p": MOMENTS}),
    Case("custom",
         CUSTOM | {WRITE + "partitionpath.field": "p:SIMPLE,d:TIMESTAMP", TIME + "output.dateformat": "yyyyMMdd",
                   TIME + "timestamp.type": "EPOCHMILLISECONDS"}, {"d": WHEN}),
    Case("custom without partitions", CUSTOM | {WRITE + "partitionpath.field": ""}),
    Case("timestamp keys", {}, {"id": WITHOUT_NULL, "p": ["x", "y", "z"]}),
    Case("consistent timestamp keys", CONSISTENT, {"id": WITHOUT_NULL, "p": ["x", "y", "z"]}),
    Case("decimal keys", {},
         {"id": pa.array([Decimal("0.0000001"), Decimal("12.5000000"), Decimal("-1.0000000")]), "p": ["x", "y", "z"]}),
    Case("partition columns dropped", {WRITE + "drop.partition.columns": "true"}, {"p": longs(1, 2, None)}),
]  # fmt: skip


def _ours(path, table, options, operation):
    given = {**options, WRITE + "operation": operation, "hudi.partition.null.texts": "write"}
    execute(LocalEngine(), open_storage(str(path)), table, given)


def _keys(table):
    pairs = zip(
        table.column("_hoodie_record_key").to_pylist(),
        table.column("_hoodie_partition_path").to_pylist(),
        strict=True,
    )
    return sorted(pairs)


def _stored(path):
    """The table's properties that say how keys are made."""
    found = HudiTable.open(str(path)).config.properties
    words = ("keygen", "recordkey", "partition.fields", "hive_style", "urlencode", "drop.partition")
    return {k: v for k, v in found.items() if any(w in k for w in words)}


def _read(path):
    """Rows as the files hold them, whether or not their partition values can be told from the paths."""
    return HudiTable.open(str(path)).read_incremental("000", meta_columns=True).to_arrow()


@pytest.mark.req("KG-02", "KG-03")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_make_the_same_keys_and_go_on_in_each_other_s_table(tmp_path, apache, case):
    options = BASE | case.options
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    _ours(ours, case.rows("first"), options, "upsert")
    apache.write(theirs, case.rows("first"), options | {WRITE + "operation": "upsert"})
    want = _keys(_read(theirs))
    assert _keys(_read(ours)) == want
    assert _stored(ours) == _stored(theirs)
    # The other one updates every record: none is added, none is missed.
    apache.write(ours, case.rows("first"), options | {WRITE + "operation": "upsert"})
    _ours(theirs, case.rows("first"), options, "upsert")
    for path in (ours, theirs):
        assert _keys(_read(path)) == want
    _ours(ours, case.rows("first").slice(0, 1), options, "delete")
    apache.write(theirs, case.rows("first").slice(0, 1), options | {WRITE + "operation": "delete"})
    left = _keys(_read(ours))
    assert left == _keys(_read(theirs))
    assert len(left) == len(want) - 1
    if case.readable:
        for path in (ours, theirs):
            by = ["_hoodie_record_key", "_hoodie_partition_path"]
            mine = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
            other = apache.read(path)
            assert mine.column_names == other.column_names
            columns = [*by, *(n for n in mine.column_names if not n.startswith("_hoodie"))]
            order = [(c, "ascending") for c in by]
            assert (
                mine.select(columns).sort_by(order).to_pylist()
                == other.select(columns).sort_by(order).to_pylist()
            )


@pytest.mark.req("KG-03")
def test_made_up_keys_are_told_apart_and_used_by_both(tmp_path, apache):
    options = {k: v for k, v in BASE.items() if "recordkey" not in k}
    case = Case("made up")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for path in (ours, theirs):
        steps = [_ours, lambda *a: apache.write(a[0], a[1], a[2] | {WRITE + "operation": a[3]})]
        for write in steps if path == ours else steps[::-1]:
            write(path, case.rows("first"), options, "insert")
        stored = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
        keys = stored.column("_hoodie_record_key").to_pylist()
        assert len(set(keys)) == stored.num_rows == 6
        # Rows that were read are updated by their stored keys, and deleted.
        number = stored.schema.get_field_index("v")
        changed = stored.set_column(number, "v", pa.array(["new"] * 6))
        _ours(path, changed.slice(0, 3), options, "upsert")
        apache.write(path, changed.slice(3, 3), options | {WRITE + "operation": "upsert"})
        both = apache.read(path)
        assert sorted(both.column("_hoodie_record_key").to_pylist()) == sorted(keys)
        assert set(both.column("v").to_pylist()) == {"new"}
        _ours(path, both.slice(0, 1), options, "delete")
        assert apache.read(path).num_rows == 5
    assert _stored(ours) == _stored(theirs)


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("drop", ["true", "false"])
@pytest.mark.parametrize("first", ["upsert", "bulk_insert"])
@pytest.mark.slow
def test_virtual_keys_are_found_again_by_both(tmp_path, apache, first, drop):
    options = BASE | {"hoodie.populate.meta.fields": "false", WRITE + "drop.partition.columns": drop}
    if drop == "true":  # both together make Apache Hudi's row writer fail
        options[WRITE + "row.writer.enable"] = "false"
    case = Case("virtual", columns={"p": ["x", "y", None]})

    def theirs(path, table, options, operation):
        apache.write(path, table, options | {WRITE + "operation": operation})

    for name, writers in (("ours", (_ours, theirs)), ("theirs", (theirs, _ours))):
        path = tmp_path / name
        writers[0](path, case.rows("first"), options, first)
        writers[1](path, case.rows("second").slice(0, 2), options, "upsert")
        writers[0](path, case.rows("third").slice(1, 2), options, "upsert")
        writers[1](path, case.rows("").slice(2, 1), options, "delete")
        mine, other = HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), apache.read(path)
        assert mine.column_names == other.column_names
        assert mine.sort_by("id").to_pylist() == other.sort_by("id").to_pylist()
        assert mine.sort_by("id").column("v").to_pylist() == ["second", "third"]


# Columns that a TimestampBasedKeyGenerator takes, with the kind that it must be told.
TIMES = {
    "long": (pa.int64(), [1_500_000_000_000, 1_500_086_400_000], "EPOCHMILLISECONDS"),
    "int": (pa.int32(), [1_500_000_000, 1_500_086_400], "UNIX_TIMESTAMP"),
    "double": (pa.float64(), [1.5e9, 1.5000864005e9], "SCALAR"),
    "date": (pa.date32(), [date(2017, 7, 14), date(2017, 7, 15)], "EPOCHMILLISECONDS"),
    "decimal": (pa.decimal128(14, 2), [Decimal("1500000000.50"), Decimal("1500086400.00")], "UNIX_TIMESTAMP"),
    "text": (pa.string(), ["2017-07-14", "2017-07-15"], "DATE_STRING"),
}


@pytest.mark.req("KG-03", "QR-03")
@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("version", ["1.0.2", pytest.param("1.2.0", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_from_version_8_on_columns_of_formatted_times_are_text_in_snapshots(pool, tmp_path, version, kind):
    type_, values, told = TIMES[kind]
    apache = pool.get(version)
    options = BASE | dates(
        told, "yyyyMMdd", timestamp_scalar_time_unit="seconds", input_dateformat="yyyy-MM-dd"
    )
    options[WRITE + "table.type"] = "MERGE_ON_READ" if kind == "long" else "COPY_ON_WRITE"
    for n in (2, 1):  # the second time an update: a log file in merge-on-read tables
        rows = {"id": IDS[:n], "p": pa.array(values[:n], type_), "ts": longs(*[3 - n] * n), "v": [str(n)] * n}
        apache.write(tmp_path / "t", pa.table(rows), options)
    table = HudiTable.open(str(tmp_path / "t"))
    for query in ("snapshot", "read_optimized"):
        want = apache.read(tmp_path / "t", **{"hoodie.datasource.query.type": query})
        got = table.read(query=query, meta_columns=True).to_arrow()
        assert got.schema.field("p").type == want.schema.field("p").type == pa.string()
        assert sorted(zip(*(got[c].to_pylist() for c in ("id", "p", "v")), strict=True)) == sorted(
            zip(*(want[c].to_pylist() for c in ("id", "p", "v")), strict=True)
        )
        text = got.filter(pa.compute.equal(got["id"], IDS[0]))["p"][0].as_py()
        assert table.read(query=query, filter=f"p = '{text}'").to_arrow().num_rows == 1
    more = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
    want, got = (
        apache.read(tmp_path / "t", **more),
        table.read_incremental("000", meta_columns=True).to_arrow(),
    )
    assert got.schema.field("p").type == want.schema.field("p").type == pa.string()
    assert sorted(zip(*(got[c].to_pylist() for c in ("id", "p", "v")), strict=True)) == sorted(
        zip(*(want[c].to_pylist() for c in ("id", "p", "v")), strict=True)
    )
