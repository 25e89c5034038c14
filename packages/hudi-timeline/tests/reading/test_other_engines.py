"""Scans that Polars, DuckDB and pyarrow query: the same rows, and nothing read that the query does not need."""

import datetime
import functools
import gc
import pickle
import weakref

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from hudi_format.errors import (
    CorruptFileError,
    InstantNotFoundError,
    MissingColumnError,
    MissingFileError,
    UnsupportedError,
)
from hudi_timeline import HudiTable, read_hudi, scan_hudi, write_hudi
from hudi_timeline.reading import other_engines
from hudi_timeline.reading.other_engines import PolarsSource
from hudi_timeline.reading.scan import Scan

CITIES = ("oslo", "pune", "rome")
ROWS = [{"id": n, "city": CITIES[n % 3], "fare": n / 2 if n % 5 else None} for n in range(90)]
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


def made(path, table_type=COW):
    write_hudi(path, ROWS, key="id", partition_by="city", table_type=table_type)
    write_hudi(path, [{"id": 3, "city": "oslo", "fare": 100.0}])
    return HudiTable.open(path)


@pytest.fixture(scope="module", params=[COW, MOR])
def table(request, tmp_path_factory):
    return made(tmp_path_factory.mktemp("engines") / "t", request.param)


@pytest.fixture
def narrowed(monkeypatch):
    """Columns and filters that scans were narrowed to."""
    seen = []
    plain = Scan.narrowed

    def narrowed(scan, columns, filter):
        found = plain(scan, columns, filter)
        seen.append((found.schema.names, filter is not None, found.files.num_rows))
        return found

    monkeypatch.setattr(Scan, "narrowed", narrowed)
    return seen


WANTED = sorted(r["id"] for r in ROWS if r["city"] == "oslo" and (r["id"] == 3 or (r["fare"] or 0) > 10))


def test_polars_reads_only_the_columns_and_files_of_its_query(table, narrowed):
    lazy = scan_hudi(table.uri)
    query = lazy.filter((pl.col("city") == "oslo") & (pl.col("fare") > 10)).select("id")
    assert sorted(query.collect()["id"].to_list()) == WANTED
    ((names, filtered, files),) = narrowed
    assert set(names) <= {"id", "city", "fare"}
    assert filtered
    assert files == 1
    narrowed.clear()
    by_fare = lazy.filter(pl.col("fare") > 44).select("id").collect()
    assert sorted(by_fare["id"].to_list()) == [3, 89]
    # Log files are merged by the scan, which leaves out what it can; the plan is made once.
    assert [filtered for _, filtered, _ in narrowed] == [False, True][: 2 if table.table_type == MOR else 1]
    assert lazy.select(pl.len()).collect().item() == 90
    assert lazy.head(7).collect().height == 7
    assert set(lazy.collect_schema()) == {"id", "fare", "city"}
    # What pyarrow has no expression for is asked afterwards.
    odd = lazy.filter(pl.col("city").str.to_uppercase() == "OSLO").collect()
    assert odd.height == 30


@pytest.fixture
def polars_reads(monkeypatch):
    """Names of the files that Polars read itself, by call."""
    calls = []
    plain = pl.scan_parquet

    @functools.wraps(plain)
    def scan_parquet(paths, **how):
        calls.append([p.name for p in paths])
        return plain(paths, **how)

    monkeypatch.setattr(pl, "scan_parquet", scan_parquet)
    return calls


def test_polars_reads_files_itself_where_they_say_what_the_scan_does(tmp_path, polars_reads, monkeypatch):
    path = str(tmp_path / "t")
    write_hudi(path, ODD, key="id", partition_by="p")

    def own(scan, condition=None):
        """How often Polars reads; its rows are those of the scan in any case."""
        polars_reads.clear()
        lazy = scan.to_polars_lazy()
        assert lazy.collect_schema() == scan.to_polars().schema
        got, want = lazy, scan.to_polars()
        if condition is not None:
            got, want = got.filter(condition), want.filter(condition)
        by = ["id"] if "id" in scan.schema.names else scan.schema.names
        assert got.collect().sort(by).equals(want.sort(by))
        return len(polars_reads)

    assert own(read_hudi(path)) == 1
    assert own(read_hudi(path, meta_columns=True), pl.col("small") > 1) == 1
    assert own(read_hudi(path, columns=["yes", "t"])) == 1
    assert own(read_hudi(path, filter="small > 1")) == 0
    assert own(HudiTable.open(path).read_incremental("000", HudiTable.open(path).read().checkpoint)) == 0
    monkeypatch.setattr(other_engines, "_BYTES_AT_ONCE", 1)
    assert own(read_hudi(path)) == len(read_hudi(path).plan_files()) > 1
    more = ODD.slice(0, 1).set_column(0, "id", pa.array(["d"])).set_column(1, "p", pa.array(["z"]))
    write_hudi(path, more.append_column("new", pa.array([1])))
    new = pl.col("new")
    for condition in (None, new.is_null(), new > 0, (new > 0) | (pl.col("small") > 1)):
        assert own(read_hudi(path), condition) == len(read_hudi(path).plan_files()), (
            "older files have no `new`"
        )


def test_files_that_polars_has_in_other_types_are_tried_once(tmp_path, polars_reads, monkeypatch):
    path = str(tmp_path / "t")
    write_hudi(path, [{"id": 1, "v": 1}, {"id": 2, "v": 2}], key="id")
    write_hudi(path, [{"id": 3, "v": 1.5}], operation="insert", options={
        "hudi.write.types": "data", "hoodie.parquet.small.file.limit": "0"})  # fmt: skip
    monkeypatch.setattr(other_engines, "_BYTES_AT_ONCE", 1)
    for _ in range(2):
        assert sorted(scan_hudi(path).collect().rows()) == [(1, 1.0), (2, 2.0), (3, 1.5)]
        assert scan_hudi(path).filter(pl.col("v") > 1).sort("id").collect()["v"].to_list() == [2.0, 1.5]
        assert 1 <= len(polars_reads) <= 2
    assert scan_hudi(path).select("id").sort("id").collect()["id"].to_list() == [1, 2, 3]
    assert len(polars_reads) > 2, "other columns have the same types"


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_nan_is_in_conditions_what_it_is_in_polars(tmp_path, table_type):
    """Greater than all numbers, and equal to itself; pyarrow has it neither way."""
    path = str(tmp_path / "t")
    rows = [
        {"id": 1, "city": "oslo", "fare": float("nan"), "box": {"x": float("nan")}},
        {"id": 2, "city": "oslo", "fare": 20.0, "box": {"x": 1.0}},
        {"id": 3, "city": "rome", "fare": None, "box": None},
        {"id": 4, "city": "rome", "fare": -1.0, "box": {"x": -1.0}},
    ]
    write_hudi(path, rows, key="id", partition_by="city", table_type=table_type)
    write_hudi(path, rows[:1] + rows[3:])
    want = read_hudi(path).to_polars()
    fare, city, x = pl.col("fare"), pl.col("city"), pl.col("box").struct.field("x")
    for condition in (
        fare > 10, fare >= 20, fare == float("nan"), fare != 20, ~(fare < 5), fare.is_nan(),
        (fare > 10) & (city == "oslo") & (pl.col("id") < 2), (fare > 10) | (city == "rome"), x > 0,
        fare < float("nan"), fare <= float("nan"), (pl.col("id") < float("nan")) & (city == "oslo"),
        ~(fare > float("nan")), fare.is_in([float("nan"), 20.0]), fare.is_between(0, float("nan")),
    ):  # fmt: skip
        got = scan_hudi(path).filter(condition).collect().sort("id")
        assert got.equals(want.filter(condition).sort("id")), str(condition)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_both_zeros_are_one_number_in_conditions_of_polars(tmp_path, table_type):
    """They are two in a set of pyarrow."""
    path = str(tmp_path / "t")
    rows = [{"id": n, "city": "oslo", "fare": fare} for n, fare in enumerate([0.0, -0.0, 1.0])]
    write_hudi(path, rows, key="id", partition_by="city", table_type=table_type)
    write_hudi(path, rows[:2])
    fare, id = pl.col("fare"), pl.col("id")
    for zero in (0.0, -0.0):
        for condition in (
            fare.is_in([zero, 5.0]),
            fare == zero,
            fare.is_in([zero]),
            (id < 0) | fare.is_in([zero]),
        ):
            found = scan_hudi(path).filter(condition).collect()["id"].to_list()
            assert sorted(found) == [0, 1], str(condition)
        assert scan_hudi(path).filter(~fare.is_in([zero])).collect()["id"].to_list() == [2]


def test_polars_takes_its_condition_from_the_first_rows_alone_where_it_asks_so(table):
    first = table.read(meta_columns=False).head(5).column("id").to_pylist()
    lazy = scan_hudi(table.uri)
    assert lazy.head(5).collect()["id"].to_list() == first
    assert lazy.head(5).filter(pl.col("id").is_in(first[3:])).collect().height == 2
    assert lazy.filter(pl.col("id") > first[0]).head(4).select("fare").collect().height == 4


def test_polars_gets_the_error_of_a_file_that_is_gone(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    write_hudi(path, ROWS, key="id", partition_by="city")
    file = sorted((tmp_path / "t").rglob("*.parquet"))[0]
    lazy, later = scan_hudi(path), scan_hudi(path)
    checked = PolarsSource._own_files

    def gone_meanwhile(source, scan):
        files = checked(source, scan)
        file.unlink()
        return files

    monkeypatch.setattr(PolarsSource, "_own_files", gone_meanwhile)
    # Releases of Polars before 2 say an error of ours in one of theirs.
    with pytest.raises((MissingFileError, pl.exceptions.ComputeError), match="HUDI-E0402") as e:
        lazy.collect()
    monkeypatch.undo()
    assert file.name in str(e.value)
    with pytest.raises((MissingFileError, pl.exceptions.ComputeError), match="HUDI-E0402") as e:
        later.collect()
    assert file.name in str(e.value)


def test_a_polars_that_passes_over_conditions_is_refused(table, monkeypatch):
    monkeypatch.setattr(pl, "__version__", "1.23.1")
    with pytest.raises(ImportError, match=r"needs Polars 1\.24 or newer, and 1\.23\.1 is installed"):
        scan_hudi(table.uri)


def test_a_conditions_nulls_are_left_out_as_in_polars(table):
    rows = pl.DataFrame(table.read(meta_columns=False))
    fare = pl.col("fare")
    for condition in (fare > 10, fare != 3.5, fare.is_null(), pl.col("id").is_in([1, 2])):
        got = scan_hudi(table.uri).filter(condition).collect().sort("id")
        assert got.equals(rows.filter(condition).sort("id").select(got.columns))


def test_duckdb_answers_from_a_relation(table):
    relation = table.read(meta_columns=False).to_duckdb(duckdb.connect())
    got = relation.filter("city = 'oslo' and fare > 10").project("id").order("id").fetchall()
    assert [n for (n,) in got] == WANTED
    assert relation.aggregate("count(*), sum(fare)").fetchall() == [
        (90, sum(r["fare"] or 0 for r in ROWS) - 1.5 + 100)
    ]


ODD = pa.table(
    {
        "id": ["a", "b", "c"],
        "p": ["x", "y", "y"],
        "t": pa.array([0, None, 2**40], pa.timestamp("us", "UTC")),
        "day": pa.array([0, -1, None], pa.date32()),
        "money": pa.array(["1.50", None, "-2.25"]).cast(pa.decimal128(9, 2)),
        "bytes": pa.array([b"\xff\x00", b"", None]),
        "yes": [True, None, False],
        "small": pa.array([1, 2, None], pa.int32()),
        "f": pa.array([float("nan"), -0.0, None], pa.float32()),
    }
)


def by_duckdb(relation):
    """Whether DuckDB reads files itself: its releases write READ_PARQUET or PARQUET_SCAN."""
    return "parquet" in relation.explain().lower()


def own_scan(scan, connection=None):
    """Whether DuckDB reads the files itself; its rows are those of the dataset in any case."""
    relation = scan.to_duckdb(connection or duckdb.connect())
    want = duckdb.connect().from_arrow(scan.to_pyarrow_dataset())
    want = want.project(", ".join(f'"{n}"' for n in scan.schema.names))
    assert relation.columns == want.columns == scan.schema.names
    assert relation.types == want.types
    assert sorted(map(str, relation.fetchall())) == sorted(map(str, want.fetchall()))
    return by_duckdb(relation)


def test_duckdb_reads_files_itself_where_they_say_what_the_scan_does(tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, ODD, key="id", partition_by="p")
    assert own_scan(read_hudi(path))
    assert own_scan(read_hudi(path, meta_columns=True))
    assert own_scan(read_hudi(path, columns=["yes", "t"]))
    assert not own_scan(read_hudi(path, filter="small > 1"))
    assert not own_scan(HudiTable.open(path).read_incremental("000", HudiTable.open(path).read().checkpoint))
    closed = duckdb.connect(config={"enable_external_access": "false"})
    assert not own_scan(read_hudi(path), closed)
    more = ODD.slice(0, 1).set_column(0, "id", pa.array(["d"])).set_column(1, "p", pa.array(["z"]))
    write_hudi(path, more.append_column("new", pa.array([1])))
    assert not own_scan(read_hudi(path)), "older files have no column `new`"
    assert own_scan(read_hudi(path, columns=["id", "small"]))


@pytest.mark.parametrize("place", ["files", "dataset", "memory"])
def test_nan_is_in_conditions_what_it_is_in_duckdb(tmp_path, place):
    nan = float("nan")
    numbers = {"f": pa.array([nan, 1.0, 2.0, None, -0.0]), "g": pa.array([nan, 1, 1, 1, 1], pa.float32())}
    rows = pa.table({"id": list("abcde"), **numbers, "n": range(5)})
    write_hudi(tmp_path, rows, key="id", table_type=MOR if place == "memory" else COW)
    if place == "memory":
        write_hudi(tmp_path, rows.slice(0, 2))
    scan = read_hudi(tmp_path, ["id", "f", "g"], "n >= 0" if place == "dataset" else None)
    relation = scan.to_duckdb(duckdb.connect())
    assert relation.columns == ["id", "f", "g"]
    assert relation.types == duckdb.connect().from_arrow(scan.to_arrow()).types

    def meeting(condition):
        return "".join(sorted(r[0] for r in relation.filter(condition).project("id").fetchall()))

    conditions = [
        "f < 3",
        "f > 1.5",
        "f > 3",
        "f = 'nan'",
        "NOT f < 3",
        "f IS NULL",
        "f = 0",
        "isnan(g)",
        "g < 3",
    ]
    assert [*map(meeting, conditions)] == ["bce", "ac", "a", "a", "a", "d", "e", "a", "bcde"]
    assert str(relation.aggregate("max(f), min(f), max(g)").fetchall()) == "[(nan, -0.0, nan)]"


@pytest.mark.parametrize("partition", ["a*", "a?", "[a]", "{a,b}", "k=v", "a b", "a'b"])
def test_names_of_files_are_no_patterns(tmp_path, partition):
    path = str(tmp_path / "t")
    write_hudi(
        path, [{"id": "1", "p": partition, "v": 1}, {"id": "2", "p": "a", "v": 2}], key="id", partition_by="p"
    )
    own_scan(read_hudi(path))
    assert read_hudi(path).to_duckdb(duckdb.connect()).filter("id = '1'").fetchall() == [("1", partition, 1)]


def test_nested_values_come_by_way_of_arrow(tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, [{"id": "1", "tags": ["a"], "box": {"x": 1}}], key="id")
    assert not own_scan(read_hudi(path))
    assert own_scan(read_hudi(path, columns=["id"]))


def test_a_relation_keeps_its_files_from_cleanings(tmp_path):
    path = str(tmp_path / "t")
    for n in range(2):
        write_hudi(path, [{"id": "1", "v": n}], key="id")
    relation = read_hudi(path).to_duckdb(duckdb.connect()).filter("v = 1").project("id")
    assert by_duckdb(relation)
    table = HudiTable.open(path)
    for n in range(2, 4):
        table.upsert([{"id": "1", "v": n}])
    few = {"hoodie.cleaner.commits.retained": "1"}
    gc.collect()
    table.clean(options=few)
    assert relation.fetchall() == [("1",)]
    del relation
    gc.collect()
    assert table.clean(options=few).deleted


# What a person makes of a relation, by which files are still to be read as the relation itself is gone.
DERIVED = {
    "an SQL query over it": lambda relation, connection: connection.sql(
        "SELECT id FROM relation WHERE v >= 0"
    ),
    "an SQL query under a name": lambda relation, _: relation.query(
        "kept", "SELECT id FROM kept WHERE v >= 0"
    ),
    "a running statement": lambda relation, connection: connection.execute(
        "SELECT id FROM relation WHERE v >= 0"
    ),
    "a view": lambda relation, connection: (
        relation.create_view("kept"),
        connection.sql("SELECT id FROM kept"),
    )[1],
    "a stream of Arrow": lambda relation, _: batches_of(
        relation.filter("v >= 0 AND city = 'a'").project("id"), 1
    ),
    "a join with itself": lambda relation, _: (
        relation.set_alias("a").join(relation.set_alias("b"), "a.id = b.id").project("a.id")
    ),
}


def batches_of(relation, rows):
    """A reader; releases before 2 call it otherwise."""
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return reader(rows)


@pytest.mark.parametrize("way", DERIVED)
def test_what_is_made_of_a_relation_keeps_the_files(tmp_path, way):
    path = str(tmp_path / "t")
    rows = pa.table({"id": range(20), "v": range(20), "city": ["a"] * 20})
    write_hudi(path, rows, key="id")
    scan = read_hudi(path)
    alive = weakref.ref(scan)
    connection = duckdb.connect()
    relation = scan.to_duckdb(connection)
    assert by_duckdb(relation)
    made = DERIVED[way](relation, connection)
    del scan, relation
    gc.collect()
    assert alive() is not None
    found = made.read_all()["id"].to_pylist() if isinstance(made, pa.RecordBatchReader) else made.fetchall()
    assert len(found) == 20
    del made
    connection.close()
    gc.collect()
    assert alive() is None


def test_a_connection_that_looks_at_no_variables_gets_the_rows_otherwise(tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, [{"id": "1", "v": 1.0}], key="id")
    connection = duckdb.connect(config={"python_enable_replacements": "false"})
    assert read_hudi(path).to_duckdb(connection).fetchall() == [("1", 1.0)]


def test_names_of_columns_that_this_scan_uses_itself_are_the_table_s(tmp_path):
    path = str(tmp_path / "t")
    row = {"id": 1, "none": 2.5, "NULL": "x", "hudi_scan_of_these_files": 4}
    write_hudi(path, [row], key="id")
    relation = read_hudi(path).to_duckdb(duckdb.connect())
    assert by_duckdb(relation)
    assert dict(zip(relation.columns, *relation.fetchall(), strict=True)) == row


def test_a_dataset_has_the_rows_of_the_scan_or_says_why_not(table):
    scan = table.read(filter="fare > 10")
    if table.table_type == MOR:
        with pytest.raises(UnsupportedError, match=r"log files.*to_arrow\(\)"):
            scan.to_pyarrow_dataset()
        return
    dataset = scan.to_pyarrow_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.to_table(columns=["id"], filter=pc.field("city") == "oslo")["id"].to_pylist() == WANTED
    whole = dataset.to_table().select(scan.schema.names)
    assert whole.sort_by("id").equals(scan.to_arrow().sort_by("id"))
    assert dataset.count_rows() == scan.count()
    with pytest.raises(UnsupportedError, match="written by the table alone"):
        dataset.filesystem.delete_file("x")


def test_rows_that_a_path_or_an_older_file_has_in_another_form_are_no_dataset(tmp_path):
    keygen = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    write_hudi(tmp_path / "p", [{"id": 1, "at": 0}], key="id", partition_by="at", options=keygen)
    with pytest.raises(UnsupportedError, match="partition paths"):
        read_hudi(tmp_path / "p").to_pyarrow_dataset()
    write_hudi(tmp_path / "w", [{"id": 1, "p": "a", "v": 1}], key="id", partition_by="p")
    wide = {"hudi.write.types": "data"}
    write_hudi(tmp_path / "w", [{"id": 2, "p": "b", "v": 1.5}], options=wide)
    with pytest.raises(UnsupportedError, match="column v as int64"):
        read_hudi(tmp_path / "w").to_pyarrow_dataset()
    rows = read_hudi(tmp_path / "w").to_duckdb(duckdb.connect()).order("id").project("v").fetchall()
    assert rows == [(1.0,), (1.5,)]
    assert sorted(scan_hudi(tmp_path / "w").select("v").collect()["v"].to_list()) == [1.0, 1.5]


def test_an_empty_table_is_one_for_every_engine(tmp_path):
    table = HudiTable.create(tmp_path / "t", ROWS, record_keys="id")
    assert scan_hudi(table.uri).collect().height == 0
    assert table.read().to_pyarrow_dataset().count_rows() == 0
    assert table.read().to_duckdb(duckdb.connect()).fetchall() == []
    assert table.head().num_rows == 0


# --- a scan itself -----------------------------------------------------------------------------------------


def test_a_scan_is_looked_at_by_familiar_names(table):
    scan = table.read(["id", "fare"], "city = 'oslo'")
    assert len(scan) == scan.count() == 30
    assert scan
    assert list(next(iter(scan))) == ["id", "fare"]
    assert sum(1 for _ in scan) == 30
    assert scan.head(4).num_rows == scan.limit(4).num_rows == 4
    assert scan.head(0).num_rows == 0
    assert scan.head(1000).num_rows == 30
    assert scan.select("id").schema.names == ["id"]
    assert scan.select(["city", "id"]).to_arrow()["city"].unique().to_pylist() == ["oslo"]
    assert len(scan.narrowed(None, "fare > 10")) == len(WANTED)
    with pytest.raises(MissingColumnError, match="'fares'"):
        scan.select("fares")
    with pytest.raises(ValueError, match="below 0"):
        scan.head(-1)
    assert pickle.loads(pickle.dumps(scan.select("id"))).count() == 30
    assert pl.DataFrame(scan).height == 30
    assert duckdb.sql("select count(*) from scan").fetchall() == [(30,)]
    frame = scan.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    assert str(frame["id"].dtype) == "Int64"


def test_a_table_is_looked_at_by_familiar_names(table):
    assert table.count() == 90
    assert table.count("city = 'oslo'") == 30
    assert table.head(3).num_rows == 3
    assert set(table.to_pandas("id").columns) == {"id"}
    assert table.to_polars(filter="city = 'rome'").height == 30
    history = table.history()
    assert history["instant"].to_pylist() == sorted(history["instant"].to_pylist(), reverse=True)
    assert history.num_rows == 2
    assert table.history(1)["operation"].to_pylist() == ["UPSERT"]


def test_results_and_dates_stand_for_moments(tmp_path):
    path = tmp_path / "t"
    first = write_hudi(path, ROWS[:3], key="id")
    second = write_hudi(path, ROWS[3:5])
    table = HudiTable.open(path)
    assert table.read(as_of=first).count() == 3
    assert table.read_incremental(first).count() == 2
    tomorrow = datetime.date.today() + datetime.timedelta(days=1)
    assert table.read(as_of=tomorrow).count() == 5
    assert table.read(as_of=f"{tomorrow} 00:00").count() == 5
    with pytest.raises(InstantNotFoundError):
        table.read(as_of=7)
    assert table.savepoint(first) == first.instant
    table.delete_savepoint(first)
    assert table.vacuum(dry_run=True).plan.count == table.clean(dry_run=True).plan.count
    assert table.rollback(second, dry_run=True).undone == (second.instant,)
    table.restore(first)
    assert table.count() == 3


@pytest.mark.parametrize("hive", ["false", "true"])
def test_values_that_paths_have_otherwise_are_those_of_a_read(tmp_path, hive):
    """Of paths that Apache Hudi writes without encoding, and of what is null in them."""
    options = {"hoodie.datasource.write.hive_style_partitioning": hive, "hudi.partition.null.texts": "write"}
    for nth, value in enumerate(["a%20b", "city=x", "", "__HIVE_DEFAULT_PARTITION__", "50%", None, "oslo"]):
        rows = pa.table({"id": [1], "city": pa.array([value], pa.string())})
        write_hudi(tmp_path / str(nth), rows, key="id", partition_by="city", options=options)
        scan = HudiTable.open(tmp_path / str(nth)).read()
        wanted = scan.to_arrow().to_pylist()
        relation = scan.to_duckdb(duckdb.connect())
        assert [dict(zip(relation.columns, r, strict=True)) for r in relation.fetchall()] == wanted, value
        try:
            dataset = scan.to_pyarrow_dataset()
        except UnsupportedError:
            assert wanted[0]["city"] != value, value
        else:
            assert dataset.to_table().to_pylist() == wanted, value


def test_values_of_several_columns_are_those_of_a_read(tmp_path):
    options = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    row = {"id": 1, "a": "x/b=q", "b": "z"}
    write_hudi(
        tmp_path,
        [row],
        key="id",
        partition_by=["a", "b"],
        options=options | {"hudi.partition.null.texts": "write"},
    )
    scan = HudiTable.open(tmp_path).read()
    relation = scan.to_duckdb(duckdb.connect())
    assert [
        dict(zip(relation.columns, r, strict=True)) for r in relation.fetchall()
    ] == scan.to_arrow().to_pylist()


@pytest.mark.parametrize("filter", [None, "fare > 10"])
def test_a_relation_without_columns_is_refused(table, filter):
    with pytest.raises(UnsupportedError, match="the scan has none") as e:
        table.read([], filter).to_duckdb(duckdb.connect())
    assert "count()" in e.value.remedy


def test_files_of_one_schema_are_opened_once(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    for city in CITIES:
        write_hudi(path, [{"id": 1, "city": city, "fare": 1.0}], key="id", partition_by="city")
    opened = []
    plain = other_engines.open_parquet
    monkeypatch.setattr(other_engines, "open_parquet", lambda *a, **k: opened.append(a) or plain(*a, **k))
    monkeypatch.setattr(other_engines, "_FORMS", {})
    assert own_scan(read_hudi(path))
    assert own_scan(read_hudi(path))
    assert len(opened) == 1, "for DuckDB and pyarrow's dataset, whoever asks again"
    write_hudi(path, [{"id": 2, "city": "oslo", "fare": 1.0, "new": 1}])
    opened.clear()
    read_hudi(path, ["id", "city"]).to_duckdb(duckdb.connect())
    assert len(opened) == 2, "one for each schema"


def test_a_damaged_footer_is_an_error_that_names_the_file(tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, ROWS, key="id", partition_by="city")
    file = sorted((tmp_path / "t").rglob("*.parquet"))[-1]
    data = bytearray(file.read_bytes())
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[begin : begin + 4] = b"\xff" * 4
    file.write_bytes(data)
    with pytest.raises(CorruptFileError) as e:
        read_hudi(path).to_duckdb(duckdb.connect())
    assert e.value.file.endswith(file.name)
