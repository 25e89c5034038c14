"""Golden tables read through `HudiTable`: the answers are Apache Hudi's own."""

import warnings

import pytest
from golden_tables import (
    AS_OF,
    INCREMENTAL,
    MERGED_V5,
    MERGED_V6,
    READ_OPTIMIZED,
    READABLE_V6,
    SNAPSHOT,
    assert_same_answer,
    golden,
)

from hudi_format.errors import HudiError, InstantNotFoundError, MissingFileError, UnsupportedError
from hudi_timeline.table import HudiTable

READABLE_V5 = ["cow_complex_keys_hive_style_urlencoded", "cow_insert_overwrite", "cow_partitioned"]
TABLES = golden("v6", *READABLE_V6) + golden("v5", *READABLE_V5)
MERGED = golden("v6", *MERGED_V6) + golden("v5", *MERGED_V5)


def ask(table, question):
    if question.kind in (SNAPSHOT, READ_OPTIMIZED):
        return table.read(query=question.kind, meta_columns=True)
    if question.kind == AS_OF:
        return table.read(as_of=question.instant, meta_columns=True)
    return table.read_incremental(question.begin, question.end, meta_columns=True)


QUESTIONS = [(t, q) for t in TABLES for q in t.questions(SNAPSHOT, AS_OF, INCREMENTAL)]


@pytest.mark.req("QR-01", "QR-03", "QR-07", "TM-12")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
def test_an_answer_is_the_one_that_apache_hudi_gives(opened, table, question):
    keys = None if table.name != "virtual_keys" else table.meta["key_fields"].split(",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # instants of cow_archived are archived
        scan = ask(opened(table), question)
        assert_same_answer(scan.to_arrow(), question.expected(), keys)


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_stream_holds_the_rows_of_the_table(opened, table):
    question = table.question(SNAPSHOT)
    keys = None if table.name != "virtual_keys" else table.meta["key_fields"].split(",")
    scan = opened(table).read(meta_columns=True)
    assert_same_answer(scan.to_batches(batch_rows=7).read_all(), question.expected(), keys)
    assert scan.count() == question.expected().num_rows


UNANSWERED = [(t, name) for t in TABLES for name in t.unanswered()]


@pytest.mark.parametrize(("table", "name"), UNANSWERED, ids=[f"{t}-{n}" for t, n in UNANSWERED])
def test_what_apache_hudi_could_not_answer_is_refused_with_a_remedy(opened, table, name):
    with pytest.raises((InstantNotFoundError, MissingFileError, UnsupportedError)) as e:
        ask(opened(table), table.question(name)).to_arrow()
    assert e.value.remedy


def test_no_table_is_left_out():
    rest = [str(t) for v in ("v5", "v6") for t in golden(v) if t not in TABLES + MERGED]
    assert rest == ["v6-bootstrap_metadata_only", "v6-orc_cow"]  # these have tests of their own


def test_rows_of_archived_instants_are_missed_out_loud(opened):
    """Apache Hudi 0.15 silently gives the rows of active instants only; so do we, and say so."""
    (table,) = golden("v6", "cow_archived")
    read = opened(table)
    scan = read.read_incremental("000", meta_columns=True)
    with pytest.warns(UserWarning, match="archived"):
        assert scan.to_arrow().num_rows == 24
    assert not scan.complete


def test_a_full_scan_finds_the_rows_of_archived_instants(opened):
    (table,) = golden("v6", "cow_archived")
    options = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}
    scan = opened(table).read_incremental("000", options=options, meta_columns=True)
    snapshot = table.question(SNAPSHOT).expected()
    # Values come from the files and columns stand in the table's order.
    assert_same_answer(scan.to_arrow().select(snapshot.column_names), snapshot)
    assert scan.complete


def test_a_begin_between_archived_instants_names_the_oldest_that_can_be_read(opened):
    (table,) = golden("v6", "cow_archived")
    read = opened(table)
    with pytest.raises(InstantNotFoundError) as e:
        read.read_incremental("20261121053700000")
    assert read.timeline.first_active in str(e.value)


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_inspection_answers_for_every_table(opened, table):
    inspect = opened(table).inspect
    assert inspect.files().num_rows == inspect.stats().num_rows
    assert sum(inspect.partitions().column("files").to_pylist()) == inspect.files().num_rows
    rows = sum(inspect.stats().column("rows").to_pylist())
    assert rows == table.question(SNAPSHOT).expected().num_rows
    assert inspect.commits().num_rows <= inspect.timeline().num_rows
    latest = [s for s in inspect.file_slices().to_pylist() if s["latest"]]
    assert len(latest) == inspect.files().num_rows


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_row_is_found_by_its_key(opened, table):
    read = opened(table)
    if not read.config.populate_meta_fields:
        key = table.meta["key_fields"]
        one = table.question(SNAPSHOT).expected().column(key)[0].as_py()
        assert read.get([str(one), "no such key"], meta_columns=True).column(key).to_pylist() == [one]
        return
    rows = table.question(SNAPSHOT).expected()
    keys = rows.column("_hoodie_record_key").to_pylist()[::5]
    found = read.get([*keys, "no such key"], meta_columns=True)
    assert sorted(found.column("_hoodie_record_key").to_pylist()) == sorted(
        k for k in rows.column("_hoodie_record_key").to_pylist() if k in set(keys)
    )


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_truncated_base_file_is_an_error_and_never_left_out(table, tmp_path):
    read = HudiTable.open(str(table.unpack(tmp_path)))
    files = read.inspect.files().column("path").to_pylist()
    if not files:
        return
    path = tmp_path / table.name / files[0]
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(HudiError) as e:
        read.read().to_arrow()
    assert files[0] in str(e.value)
