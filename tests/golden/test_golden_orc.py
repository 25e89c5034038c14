"""ORC base files: golden tables whose Parquet files were turned into ORC, so that the answers are known."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from golden_tables import AS_OF, INCREMENTAL, READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_timeline.table import HudiTable

(WRITTEN,) = golden("v6", "orc_cow")  # by Apache Hudi
TABLES = golden("v6", "all_types_cow", "all_types_mor", "cow_partitioned", "mor_avro_logs")
FILE_NAME = "_hoodie_file_name"


def as_orc(path):
    """The table with ORC base files in the place of its Parquet files."""
    sizes = {}
    for file in path.rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        target = file.with_suffix(".orc")
        # ORC's plain timestamps have no zone; Apache Hudi's mean an instant.
        plain = [
            pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema
        ]
        arrays = [
            rows.column(n).cast(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else rows.column(n)
            for n, f in enumerate(rows.schema)
        ]
        po.write_table(pa.table(arrays, schema=pa.schema(plain)), target, compression="zlib")
        sizes[file.relative_to(path).as_posix()] = target.stat().st_size
        file.unlink()
    for file in [
        *path.glob(".hoodie/*.commit"),
        *path.glob(".hoodie/*.deltacommit"),
        *path.glob(".hoodie/*.replacecommit"),
    ]:
        commit = json.loads(file.read_text())
        for stats in commit["partitionToWriteStats"].values():
            for stat in stats:
                if stat["path"] in sizes:
                    stat["fileSizeInBytes"] = sizes[stat["path"]]
                    stat["path"] = stat["path"].removesuffix(".parquet") + ".orc"
        file.write_text(json.dumps(commit))
    properties = path / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("file.format=PARQUET", "file.format=ORC"))
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    tables = {}

    def open_table(table):
        if table not in tables:
            path = as_orc(table.unpack(tmp_path_factory.mktemp(str(table))))
            tables[table] = HudiTable.open(str(path))
        return tables[table]

    return open_table


QUESTIONS = [
    (t, q)
    for t in TABLES
    for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF, *([INCREMENTAL] if "cow" in t.name else []))
]


@pytest.mark.req("TL-13")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
def test_the_answers_are_those_of_the_parquet_files(opened, table, question):
    read = opened(table)
    if question.kind == AS_OF:
        scan = read.read(as_of=question.instant, meta_columns=True)
    elif question.kind == INCREMENTAL:
        scan = read.read_incremental(question.begin, question.end, meta_columns=True)
    else:
        scan = read.read(query=question.kind, meta_columns=True)
    assert_same_answer(scan.to_arrow(), question.expected())


@pytest.mark.req("TL-13")
@pytest.mark.parametrize("question", WRITTEN.questions(), ids=lambda q: q.name)
def test_a_table_of_apache_hudi_has_its_answers(tmp_path, question):
    read = HudiTable.open(str(WRITTEN.unpack(tmp_path)))
    if question.kind == AS_OF:
        scan = read.read(as_of=question.instant, meta_columns=True)
    elif question.kind == INCREMENTAL:
        scan = read.read_incremental(question.begin, question.end, meta_columns=True)
    else:
        scan = read.read(meta_columns=True)
    assert_same_answer(scan.to_arrow(), question.expected())


def test_columns_filters_counts_and_small_batches(opened):
    table = TABLES[2]
    read = opened(table)
    want = table.question(SNAPSHOT).expected()
    assert read.read().count() == want.num_rows
    assert_same_answer(read.read(meta_columns=True).to_batches(batch_rows=7).read_all(), want)
    condition = pc.field("ts") > pc.quantile(want["ts"], 0.5).to_pylist()[0]
    found = read.read(["_hoodie_record_key", "_hoodie_partition_path", "ts"], condition).to_arrow()
    assert_same_answer(found, want.filter(condition).select(found.column_names))


def test_rows_are_found_by_their_keys_and_footers_are_not_looked_at(opened):
    for table in TABLES[2:]:
        keys = table.question(SNAPSHOT).expected().column("_hoodie_record_key").to_pylist()[::3]
        found = opened(table).get([*keys, "no such key"], meta_columns=True)
        assert sorted(found.column("_hoodie_record_key").to_pylist()) == sorted(keys)
    with pytest.raises(UnsupportedError, match="footers"):
        opened(TABLES[2]).inspect.stats()


def test_a_file_that_is_cut_is_an_error(tmp_path):
    path = as_orc(TABLES[2].unpack(tmp_path))
    read = HudiTable.open(str(path))
    name = read.read().plan.files.column("path").to_pylist()[0]
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    with pytest.raises(CorruptFileError, match="ORC") as e:
        read.read().to_arrow()
    assert name in str(e.value)


@pytest.mark.req("TL-13")
def test_a_write_is_refused_with_the_reason(opened):
    read = opened(TABLES[2])
    with pytest.raises(UnsupportedError, match="ORC") as e:
        read.upsert(TABLES[2].question(SNAPSHOT).expected())
    assert "footer" in e.value.remedy
