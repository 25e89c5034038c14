"""Golden tables read through Spark: the answers are Apache Hudi's own, with its columns, order and types."""

import warnings
from dataclasses import replace

import pytest
from golden_tables import (
    AS_OF,
    CDC,
    CLEANED,
    INCREMENTAL,
    LAYOUT_2,
    MERGED_V6,
    READ_OPTIMIZED,
    READABLE_V6,
    ROOT,
    SNAPSHOT,
    assert_same_answer,
    assert_same_changes,
    begin_of,
    golden,
    of_the_files,
)

from hudi_spark.reading import logged_slices
from hudi_timeline.table import HudiTable

pytestmark = pytest.mark.spark

# Files other than Parquet, and skeletons joined with their source files, which Python workers read.
OTHERS = golden("v6", "bootstrap_metadata_only", "orc_cow")
TABLES = golden("v6", *READABLE_V6) + OTHERS
MERGED = golden("v6", *MERGED_V6)


@pytest.fixture(autouse=True)
def however_small(monkeypatch):
    """Spark's own scan reads base rows of slices with logs, as of large tables."""
    monkeypatch.setattr(logged_slices, "LEAST_BYTES", 0)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Paths of tables, unpacked once."""
    paths = {}

    def path_of(table):
        if table not in paths:
            paths[table] = str(table.unpack(tmp_path_factory.mktemp(str(table))))
        return paths[table]

    return path_of


def load(spark, path, question):
    reader = spark.read.format("hudi")
    if question.kind in (SNAPSHOT, READ_OPTIMIZED):
        reader = reader.option("hoodie.datasource.query.type", question.kind)
    elif question.kind == AS_OF:
        reader = reader.option("as.of.instant", question.instant)
    else:
        reader = reader.option("hoodie.datasource.query.type", "incremental")
        reader = reader.option("hoodie.datasource.read.begin.instanttime", question.begin)
        if question.kind == CDC:
            reader = reader.option("hoodie.datasource.query.incremental.format", "cdc")
        if question.end is not None:
            reader = reader.option("hoodie.datasource.read.end.instanttime", question.end)
    return reader.load(path)


def first_of_each_kind(questions):
    """Parameters of which CI runs the first question of each kind to each table: the others take Spark the same way."""
    seen, out = set(), []
    for table, question in questions:
        marks = [pytest.mark.slow] if (table, question.kind) in seen else []
        seen.add((table, question.kind))
        out.append(pytest.param(table, question, id=f"{table}-{question.name}", marks=marks))
    return out


QUESTIONS = [(t, q) for t in TABLES for q in t.questions(SNAPSHOT, AS_OF, INCREMENTAL)]
QUESTIONS += [
    (t, q)
    for t in MERGED
    for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF, INCREMENTAL)
    if (t.name, q.name) != CLEANED
]


@pytest.mark.sampled(16, values=False)
@pytest.mark.req("QR-01", "QR-03", "QR-07")
@pytest.mark.parametrize(("table", "question"), first_of_each_kind(QUESTIONS))
def test_spark_gives_the_answer_that_apache_hudi_gives(spark, to_arrow, unpacked, table, question):
    keys = None if table.name != "virtual_keys" else table.meta["key_fields"].split(",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        frame = load(spark, unpacked(table), question)
    assert_same_answer(to_arrow(frame), question.expected(), keys)


def of_layout_2(spark, to_arrow, unpacked, table, question):
    if question.kind == INCREMENTAL:
        question = replace(question, begin=begin_of(table, question))
    want = question.expected()
    if question.kind == INCREMENTAL:
        want = of_the_files(table, want)
    assert_same_answer(to_arrow(load(spark, unpacked(table), question)), want)


# Of versions 8 and 9 what Spark does itself: the types and places of columns, and both kinds of ranges.
LAYOUT_2_QUESTIONS = [
    (t, q)
    for v in LAYOUT_2
    for t in golden(v)
    for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF, INCREMENTAL)
]
QUICK = (
    "all_types_cow", "all_types_mor", "cow_complex_keys_hive_style_urlencoded", "cow_insert_overwrite",
    "mor_partial_updates",
)  # fmt: skip
CHOSEN = [
    (t, q)
    for t, q in LAYOUT_2_QUESTIONS
    if t.name in QUICK and (q.kind != AS_OF or t.name == "cow_insert_overwrite")
]
REST = [x for x in LAYOUT_2_QUESTIONS if x not in CHOSEN]


@pytest.mark.sampled(8)
@pytest.mark.req("QR-01", "QR-03", "QR-07", "FS-11")
@pytest.mark.parametrize(("table", "question"), CHOSEN, ids=[f"{t}-{q.name}" for t, q in CHOSEN])
def test_spark_gives_the_answer_of_versions_8_and_9(spark, to_arrow, unpacked, table, question):
    of_layout_2(spark, to_arrow, unpacked, table, question)


@pytest.mark.slow  # minutes; plain Python gives the same answers of the same plans in every run
@pytest.mark.parametrize(("table", "question"), REST, ids=[f"{t}-{q.name}" for t, q in REST])
def test_spark_gives_every_other_answer_of_versions_8_and_9(spark, to_arrow, unpacked, table, question):
    of_layout_2(spark, to_arrow, unpacked, table, question)


VECTORS = golden("own_types_v9", "vectors_cow", "vectors_mor")


@pytest.mark.req("QR-01", "SE-01")
@pytest.mark.parametrize("table", VECTORS, ids=str)
def test_spark_gives_vectors_as_lists_of_numbers(spark, to_arrow, unpacked, table):
    of_layout_2(spark, to_arrow, unpacked, table, table.question(SNAPSHOT))


CHANGES = [(t, q) for t in TABLES + MERGED for q in t.questions(CDC)]
CHANGES_2 = [(t, q) for v in LAYOUT_2 for t in golden(v) for q in t.questions(CDC)]


@pytest.mark.req("IN-13")
@pytest.mark.parametrize(("table", "question"), first_of_each_kind(CHANGES + CHANGES_2))
@pytest.mark.sampled(4)
def test_spark_gives_the_changes_that_apache_hudi_gives(spark, to_arrow, unpacked, table, question):
    frame = load(spark, unpacked(table), question)
    replaced_at = {i["requested"] for i in table.meta["instants"] if i["action"] == "replacecommit"}
    assert frame.columns == ["op", "ts_ms", "before", "after"]
    assert_same_changes(to_arrow(frame), question.expected(), replaced_at)


def test_every_answer_is_asked_for():
    """But the one that stands for rows of a cleaned state, which is an error here (tests/golden)."""
    asked = {(t.version, t.name, q.name) for t, q in QUESTIONS + LAYOUT_2_QUESTIONS + CHANGES + CHANGES_2}
    there = {
        (v, folder.name.removesuffix(".expected"), file.stem)
        for v in ("v6", *LAYOUT_2)
        for folder in (ROOT / v).glob("*.expected")
        for file in folder.glob("*.parquet")
    }
    assert there - asked == {("v6", *CLEANED)}


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("table", golden("v6", "mor_avro_logs") + golden("v9", "mor_parquet_logs"), ids=str)
@pytest.mark.sampled(2)
def test_half_a_log_file_of_a_completed_commit_is_an_error_and_no_fewer_rows(spark, tmp_path, table):
    path = table.unpack(tmp_path)
    rows = spark.read.format("hudi").load(str(path)).count()
    log = next(
        f
        for part in HudiTable.open(str(path)).read().plan.logs
        for f in part.slice.log_files
        if part.committed[f.path]
    )
    whole = (path / log.path).read_bytes()
    torn = (path / log.path).with_name(log.name.replace(f".log.{log.version}_", f".log.{log.version + 7}_"))
    torn.write_bytes(whole[: len(whole) // 2])  # of a task that was tried twice: no commit names it
    assert spark.read.format("hudi").load(str(path)).count() == rows
    (path / log.path).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Exception, match="committed data is damaged at byte") as e:
        spark.read.format("hudi").load(str(path)).collect()
    assert "HUDI-E0401" in str(e.value)
    assert log.path in str(e.value)
