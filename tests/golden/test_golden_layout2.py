"""Golden tables of versions 8 and 9, which Apache Hudi 1.0.2 and 1.2.0 wrote: the answers are Apache Hudi's own."""

import warnings

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import (
    AS_OF,
    INCREMENTAL,
    LAYOUT_2,
    READ_OPTIMIZED,
    SNAPSHOT,
    assert_same_answer,
    begin_of,
    golden,
    of_the_files,
)

from hudi_format.errors import InstantNotFoundError, MissingFileError, UnsupportedError
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.instant import zone_of

TABLES = [t for v in LAYOUT_2 for t in golden(v)]
MERGED = [t for t in TABLES if t.merged]


def ask(table, question):
    if question.kind == AS_OF:
        return table.read(as_of=question.instant, meta_columns=True)
    return table.read(query=question.kind, meta_columns=True)


QUESTIONS = [(t, q) for t in TABLES for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF)]


@pytest.mark.req("QR-01", "QR-02", "QR-03", "FS-11", "FS-13", "PM-12")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
def test_an_answer_is_the_one_that_apache_hudi_gives(opened, table, question):
    assert_same_answer(ask(opened(table), question).to_arrow(), question.expected())


CHANGES = [(t, q) for t in TABLES for q in t.questions(INCREMENTAL)]


@pytest.mark.req("QR-07", "TM-22")
@pytest.mark.parametrize(("table", "question"), CHANGES, ids=[f"{t}-{q.name}" for t, q in CHANGES])
@pytest.mark.sampled(8)
def test_the_rows_of_a_range_of_completion_times_are_those_that_apache_hudi_gives(opened, table, question):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out, where instants are archived either
        found = (
            opened(table)
            .read_incremental(begin_of(table, question), question.end, meta_columns=True)
            .to_arrow()
        )
    assert_same_answer(found, of_the_files(table, question.expected()))


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_the_stream_holds_the_rows_of_the_table(opened, table):
    want = table.question(SNAPSHOT).expected()
    scan = opened(table).read(meta_columns=True)
    assert_same_answer(scan.to_batches(batch_rows=7).read_all(), want)
    assert scan.count() == want.num_rows


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_columns_filters_and_keys_see_the_rows_of_the_table(opened, table):
    want = table.question(SNAPSHOT).expected()
    field = table.meta["ordering_field"] or "ts"
    middle = pc.quantile(want.column(field).cast(pa.int64()), 0.5).to_pylist()[0]
    columns = list(dict.fromkeys([want.column_names[-1], "_hoodie_record_key", "_hoodie_partition_path"]))
    for condition in (pc.field(field) > int(middle), pc.field(field) <= int(middle)):
        found = opened(table).read(columns, condition).to_arrow()
        assert_same_answer(found, want.filter(condition).select(columns))
    keys = want.column("_hoodie_record_key").to_pylist()
    found = (
        opened(table)
        .get([*keys[::3], "no such key"], meta_columns=True)
        .column("_hoodie_record_key")
        .to_pylist()
    )
    assert sorted(found) == sorted(k for k in keys if k in set(keys[::3]))


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_write_is_refused_with_the_version_that_is_written(opened, table):
    with pytest.raises(UnsupportedError) as e:
        opened(table).delete(table.question(SNAPSHOT).expected())
    assert e.value.details["feature"] == f"table version {table.version[1:]}"
    assert "version 6" in e.value.remedy


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_inspection_says_when_commits_were_completed(opened, table):
    inspect, zone = opened(table).inspect, zone_of(opened(table).config.timezone)
    times = {r["instant"]: r["completion"] for r in inspect.timeline().to_pylist()}
    done = [r for r in inspect.commits().to_pylist() if r["state"] == "COMPLETED"]
    assert done
    for row in done:
        assert times[row["instant"]] > row["instant"]
        assert f"{row['completed_at'].astimezone(zone):%Y%m%d%H%M%S}" == times[row["instant"]][:14]
        assert row["operation"] != "UNKNOWN"


UNANSWERED = [(t, name) for t in TABLES for name in t.unanswered()]


@pytest.mark.parametrize(("table", "name"), UNANSWERED, ids=[f"{t}-{n}" for t, n in UNANSWERED])
def test_what_apache_hudi_could_not_answer_is_refused_with_a_remedy(opened, table, name):
    with pytest.raises((InstantNotFoundError, MissingFileError)) as e:
        ask(opened(table), table.question(name)).to_arrow()
    assert e.value.remedy


@pytest.mark.parametrize("version", LAYOUT_2)
@pytest.mark.parametrize("name", ["cow_partitioned", "mor_compacted_then_logs"])
def test_a_base_file_that_is_gone_is_an_error_and_no_older_one_is_read(version, name, tmp_path):
    (table,) = golden(version, name)
    read = HudiTable.open(str(table.unpack(tmp_path)))
    path = read.read().plan.files.column("path").to_pylist()[0]
    (tmp_path / name / path).unlink()
    with pytest.raises(MissingFileError) as e:
        read.read().to_arrow()
    assert path in str(e.value)
