"""Golden tables read through Spark: the answers are Apache Hudi's own, with its columns, order and types."""

import warnings

import pytest
from golden_tables import (
    AS_OF,
    CLEANED,
    INCREMENTAL,
    MERGED_V6,
    READ_OPTIMIZED,
    READABLE_V6,
    SNAPSHOT,
    assert_same_answer,
    golden,
)

pytestmark = pytest.mark.spark

TABLES = golden("v6", *READABLE_V6)
MERGED = golden("v6", *MERGED_V6)


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
        if question.end is not None:
            reader = reader.option("hoodie.datasource.read.end.instanttime", question.end)
    return reader.load(path)


QUESTIONS = [(t, q) for t in TABLES for q in t.questions(SNAPSHOT, AS_OF, INCREMENTAL)]
QUESTIONS += [
    (t, q)
    for t in MERGED
    for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF)
    if (t.name, q.name) != CLEANED
]


@pytest.mark.req("QR-01", "QR-03", "QR-07")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
def test_spark_gives_the_answer_that_apache_hudi_gives(spark, to_arrow, unpacked, table, question):
    keys = None if table.name != "virtual_keys" else table.meta["key_fields"].split(",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        frame = load(spark, unpacked(table), question)
    assert_same_answer(to_arrow(frame), question.expected(), keys)
