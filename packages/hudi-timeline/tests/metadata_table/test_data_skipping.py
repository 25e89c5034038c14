"""Statistics that rule a file out, and those that must not; whole reads are compared in tests/golden."""

import math
import random
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import LibraryError
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.open import open_storage
from hudi_index.metadata_table.records import schema_of
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.metadata_table import data_skipping
from hudi_timeline.metadata_table.data_skipping import DataSkipping, Skipped, admitted

SCHEMA = pa.schema([("i", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.binary())])
MEMBERS = {"i": "member1", "f": "member4", "s": "member6", "b": "member5"}
N, F, S, B = (pc.field(n) for n in SCHEMA.names)


def record(column, low, high, nulls=0, values=10, deleted=False, size=100):
    def side(v):
        return None if v is None else {MEMBERS[column]: {"value": v}}

    payload = {
        "fileName": "x", "columnName": column, "minValue": side(low), "maxValue": side(high),
        "valueCount": values, "nullCount": nulls, "isDeleted": deleted,
        "totalUncompressedSize": size,
    }  # fmt: skip
    return {"key": column, "type": 3, "ColumnStatsMetadata": payload}


def may_pass(filter, *records):
    table = pa.Table.from_pylist(list(records), schema_of("column_stats"))
    (answer,) = admitted(filter, SCHEMA, table, {n: [n] for n in SCHEMA.names})
    return answer


TEN = record("i", 10, 20)


@pytest.mark.parametrize(
    ("filter", "records"),
    [
        (N > 20, [TEN]),
        (N == 9, [TEN]),
        (N.isin([1, 2, 30]), [TEN]),
        (N.is_null(), [TEN]),
        ((N > 15) & (S == "c"), [TEN, record("s", "a", "b")]),
        ((N > 25) | (S == "c"), [TEN, record("s", "a", "b")]),
        (N > 20, [record("i", 10, 20, nulls=4)]),
        (N > 20, [record("i", 10, 20, nulls=None)]),
        (F < 1.0, [record("f", 1.0, 2.0)]),
    ],
)
def test_a_file_is_ruled_out(filter, records):
    assert not may_pass(filter, *records)


@pytest.mark.parametrize(
    ("filter", "records"),
    [
        (N >= 20, [TEN]),
        (N > 20, []),
        (N > 20, [record("i", 10, 20, deleted=True)]),
        (N > 20, [record("i", None, None, nulls=10)]),
        (N.is_null(), [record("i", 10, 20, nulls=1)]),
        (N.is_null(), [record("i", 10, 20, nulls=None)]),
        (N.is_null(), [record("i", 10, 20, nulls=-1)]),
        ((N > 25) | (S == "c"), [TEN]),
        (B > b"c", [record("b", b"a", b"b")]),
        (F == -0.0, [record("f", 0.0, 2.0)]),
        (F == 0.0, [record("f", -2.0, -0.0)]),
        # A NaN may be among the rows, and Spark takes it for more than any number.
        (F > 5.0, [record("f", 1.0, 2.0)]),
        (F != F, [record("f", 1.0, 2.0)]),
        (pc.is_nan(F), [record("f", 1.0, 2.0)]),
        (math.nan == F, [record("f", math.nan, math.nan)]),
        (F < 1.0, [record("f", math.nan, 2.0)]),
        (S == "\U0001f600", [record("s", "a", "\uffff")]),
    ],
)
def test_a_file_is_read_that_may_have_a_row(filter, records):
    assert may_pass(filter, *records)


def test_each_file_is_asked_by_its_own_record():
    rows = [{**record("i", n, n), "key": f"k{n}"} for n in range(5)]
    table = pa.Table.from_pylist(rows, schema_of("column_stats"))
    keys = {"i": ["k3", "absent", "k0", "k4"]}
    assert admitted(N >= 3, SCHEMA, table, keys) == [True, True, False, True]
    assert admitted(N >= 3, SCHEMA, table.slice(0, 0), keys) == [True] * 4


@pytest.mark.parametrize("seed", range(4))
def test_many_files_are_asked_in_groups_with_the_same_answer(seed):
    chosen = random.Random(seed)
    count = 700 + seed
    rows = []
    for n in range(count):
        low, text = chosen.randrange(1000), chosen.choice("abcdef")
        if chosen.random() < 0.9:
            row = record("i", low, low + chosen.randrange(50), nulls=chosen.choice([0, 0, 1, None]))
            rows.append({**row, "key": f"i{n}"})
        if chosen.random() < 0.7:
            rows.append({**record("s", text, text + "z", deleted=chosen.random() < 0.1), "key": f"s{n}"})
    table = pa.Table.from_pylist(rows, schema_of("column_stats"))
    keys = {c: [f"{c}{n}" for n in range(count)] for c in "is"}
    for filter in (N == 500, (N < 20) & (S == "c"), (N > 900) | (S == "a"), N.is_null(), S == "x", N > 5000):
        one_by_one = []
        for start in range(0, count, 100):
            part = {c: of[start : start + 100] for c, of in keys.items()}
            one_by_one += admitted(filter, SCHEMA, table, part)
        assert admitted(filter, SCHEMA, table, keys) == one_by_one
    assert admitted(N > 5000, SCHEMA, table, {"i": keys["i"]}).count(False) > 500


def test_times_beyond_the_year_9999_are_asked_in_groups_too():
    day = pa.schema([("d", pa.date32())])
    rows = []
    for n in range(600):
        far = {"member7": {"value": 10**7 if n == 3 else n}}
        payload = {
            "fileName": "x", "columnName": "d", "minValue": {"member7": {"value": n}}, "maxValue": far,
            "valueCount": 1, "nullCount": 0, "isDeleted": False,
        }  # fmt: skip
        rows.append({"key": f"d{n}", "type": 3, "ColumnStatsMetadata": payload})
    table = pa.Table.from_pylist(rows, schema_of("column_stats"))
    keys = {"d": [f"d{n}" for n in range(600)]}
    later = pc.field("d") > pa.scalar(700, pa.int32()).cast(pa.date32())
    assert [n for n, read in enumerate(admitted(later, day, table, keys)) if read] == [3]


def test_of_a_slice_the_base_file_goes_and_its_logs_stay_together():
    base = BaseFile("p", "b.parquet", "b", "1", "t", 1)
    logs = tuple(LogFile("p", n, "b", "1", v, "t", 1) for v, n in ((1, ".b_1.log.1"), (2, ".b_1.log.2")))
    part = FileSlice("p", "b", "1", base, logs)
    every = {f.path: "column_stats" for f in (base, *logs)}
    assert Skipped(every).slices([part]) == []
    assert Skipped({base.path: "x"}).slices([part]) == [FileSlice("p", "b", "1", None, logs)]
    assert Skipped({base.path: "x", logs[0].path: "x"}).slices([part]) == [
        FileSlice("p", "b", "1", None, logs)
    ]
    assert Skipped({logs[0].path: "x"}).slices([part]) == [part]


class Index:
    """A metadata table whose partitions have one record each for a column of what is asked for."""

    def __init__(self, record, *partitions):
        self.record, self.partitions = record, partitions

    def lookup(self, partition, keys):
        rows = [self.record | {"key": key} for key in keys]
        return pa.Table.from_pylist(rows, schema_of("column_stats"))

    def is_current(self):
        return True


def skipped(*args):
    """Indexes that rule out a file of some row groups for a value, by a record of its column."""
    return set(skipping(*args).by.values())


def skipping(monkeypatch, folder, groups, told, partition, value, meanwhile=lambda file: None):
    name = told["key"]
    rows = [pa.table({name: pa.array(values, SCHEMA.field(name).type)}) for values in groups]
    # As Parquet's writer in Java, it says no bounds of a row group with a text that is too long for one.
    with pq.ParquetWriter(folder / "f.parquet", rows[0].schema) as file:
        for group in rows:
            file.write_table(group)
    meanwhile(folder / "f.parquet")
    index = Index(told, partition)
    monkeypatch.setattr(data_skipping.MetadataTable, "of", lambda snapshot: index)
    config = SimpleNamespace(
        metadata_partitions=(partition,), bootstrap_base_path="", populate_meta_fields=True,
        version=SimpleNamespace(names_logs_by_own_instant=True),
    )  # fmt: skip
    snapshot = SimpleNamespace(config=config, storage=open_storage(str(folder)), evolution=None, as_of=None)
    filter = pc.field(name) == value
    part = FileSlice("", "f", "1", BaseFile("", "f.parquet", "f", "1", "t", 1), ())
    return DataSkipping(snapshot, SCHEMA, filter, (name,), ((filter, (name,)),)).skipped([part])


LONG = "x" * 5000


@pytest.mark.parametrize("nulls", [1, None])
def test_bounds_of_some_row_groups_alone_rule_no_file_out(monkeypatch, tmp_path, nulls):
    """Apache Hudi takes a row group without bounds for one of nulls."""
    told = record("s", "m", "n", nulls=nulls, size=5100)
    args = (monkeypatch, tmp_path)
    assert skipped(*args, [["m"], ["n"], [LONG]], told, "column_stats", LONG) == set()
    # Where its footer has bounds of each row group, nulls are nulls.
    assert skipped(*args, [["m"], ["n"], [None]], told, "column_stats", "z") == {"column_stats"}
    # A record without nulls is not doubted, whatever the footer says.
    sure = record("s", "m", "n", nulls=0, size=5100)
    assert skipped(*args, [["m"], ["n"], [LONG]], sure, "column_stats", "z") == {"column_stats"}


@pytest.mark.parametrize("low", [0.0, -5.0])
def test_zeros_that_stand_for_the_bounds_of_nan_rule_no_file_out(monkeypatch, tmp_path, low):
    told = record("f", low, 0.0)
    args = (monkeypatch, tmp_path)
    # Arrow leaves bounds out where there is NaN alone.
    assert skipped(*args, [[math.nan, math.nan], [-5.0]], told, "column_stats", 1.5) == set()
    assert skipped(*args, [[0.0, -5.0]], told, "column_stats", 1.5) == {"column_stats"}
    assert skipped(*args, [[0.0]], told, "partition_stats", 1.5) == set()


@pytest.mark.parametrize(
    ("nulls", "size", "out"),
    [(1, 5100, False), (None, 5100, False), (1, -1, False), (1, 4096, True), (0, 5100, True)],
)
def test_bounds_of_some_files_alone_rule_no_partition_out(monkeypatch, tmp_path, nulls, size, out):
    told = record("s", "m", "n", nulls=nulls, size=size)
    found = skipped(monkeypatch, tmp_path, [["x"]], told, "partition_stats", "x")
    assert found == ({"partition_stats"} if out else set())


@pytest.mark.parametrize(
    "meanwhile", [lambda f: f.unlink(), lambda f: f.write_bytes(b"PAR1 and no more PAR1")]
)
def test_a_file_in_doubt_whose_footer_cannot_be_read_is_left_to_the_reader(monkeypatch, tmp_path, meanwhile):
    told = record("s", "m", "n", nulls=1, size=5100)
    args = (monkeypatch, tmp_path, [["m"], ["n"], [None]], told, "column_stats", "z")
    assert skipping(*args).by == {"f.parquet": "column_stats"}
    found = skipping(*args, meanwhile)
    assert (found.by, found.warnings) == ({}, ())


@pytest.mark.req("QR-10")
@pytest.mark.parametrize("skipping", ["false", "true"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_filter_that_fails_of_values_that_no_row_has_is_answered(tmp_path, table_type, skipping):
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    rows = [{"id": str(n), "city": ("1", "2", "sf")[n % 3], "fare": float(n)} for n in range(6)]
    path = str(tmp_path)
    write_hudi(path, rows, key="id", partition_by="city", table_type=table_type, options=options)
    table = HudiTable.open(path)

    def scan(filter):
        return table.read(filter=filter, options={"hoodie.enable.data.skipping": skipping, **options})

    # Statistics leave NaN out, so that each file may have it, of which there is no whole number.
    whole = scan(pc.field("fare").cast(pa.int64()) > 2)
    assert sorted(whole.to_arrow().column("id").to_pylist()) == ["3", "4", "5"]
    assert not any(whole.explain(prove=True).files.column("missed").drop_null().to_pylist())
    with pytest.raises(LibraryError, match="could not evaluate the filter"):
        scan(pc.field("city").cast(pa.int64()) > 1).to_arrow()
