"""Merge-on-read golden tables of versions 5 and 6: snapshots merge the logs, read_optimized leaves them out."""

import warnings
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import (
    AS_OF,
    CLEANED,
    INCREMENTAL,
    LAYOUT_2,
    MERGED_V5,
    MERGED_V6,
    READ_OPTIMIZED,
    SNAPSHOT,
    GoldenTable,
    assert_same_answer,
    golden,
)

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.file_slice.reader import read_file_slice
from hudi_format.model import FileSlice
from hudi_timeline.table import HudiTable

TABLES = golden("v6", *MERGED_V6) + golden("v5", *MERGED_V5)
QUESTIONS = [
    (t, q)
    for t in TABLES
    for q in t.questions(SNAPSHOT, READ_OPTIMIZED, AS_OF, INCREMENTAL)
    if (t.name, q.name) != CLEANED
]


def ask(table, question, **more):
    if question.kind == AS_OF:
        return table.read(as_of=question.instant, **more, meta_columns=True)
    if question.kind == INCREMENTAL:
        return table.read_incremental(question.begin, question.end, **more, meta_columns=True)
    return table.read(query=question.kind, **more, meta_columns=True)


def answer(table: GoldenTable, found: pa.Table) -> pa.Table:
    """What is compared: the downgrade to version 5 compacted the logs, so that rows lie in other files."""
    return found.drop_columns(["_hoodie_file_name"]) if table.version == "v5" else found


@pytest.mark.req("QR-01", "QR-02", "QR-03", "QR-05", "IN-16", "PM-12", "PM-14", "PM-15", "TM-09", "FS-10")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
def test_an_answer_is_the_one_that_apache_hudi_gives(opened, table, question):
    found = ask(opened(table), question).to_arrow()
    assert_same_answer(answer(table, found), answer(table, question.expected()))


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_the_stream_holds_the_rows_of_the_table(opened, table):
    want = table.question(SNAPSHOT).expected()
    scan = opened(table).read(meta_columns=True)
    assert_same_answer(answer(table, scan.to_batches(batch_rows=7).read_all()), answer(table, want))
    assert scan.count() == want.num_rows


# The ordering fields of the others are no numbers.
NUMBERED = [t for t in TABLES if not t.name.endswith("_ordering")]


@pytest.mark.req("QR-09")
@pytest.mark.parametrize("table", NUMBERED, ids=str)
@pytest.mark.sampled(8)
def test_columns_and_filters_see_the_merged_rows(opened, table):
    want = table.question(SNAPSHOT).expected()
    field = table.meta["ordering_field"] or "ts"
    middle = pc.quantile(want.column(field).cast(pa.int64()), 0.5).to_pylist()[0]
    columns = [want.column_names[-1], "_hoodie_record_key", "_hoodie_partition_path"]
    columns = list(dict.fromkeys(columns))
    for condition in (pc.field(field) > int(middle), pc.field(field) <= int(middle)):
        found = opened(table).read(columns, condition).to_arrow()
        assert_same_answer(found, want.filter(condition).select(columns))


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_every_row_is_found_by_its_key(opened, table):
    keys = table.question(SNAPSHOT).expected().column("_hoodie_record_key").to_pylist()
    found = opened(table).get([*keys[::3], "no such key"], meta_columns=True)
    wanted = set(keys[::3])
    assert sorted(found.column("_hoodie_record_key").to_pylist()) == sorted(k for k in keys if k in wanted)


def test_time_travel_to_a_cleaned_state_is_an_error_and_not_no_rows(opened):
    (table,) = golden("v6", CLEANED[0])
    with pytest.raises(MissingFileError) as e:
        opened(table).read(as_of=CLEANED[1].partition("_")[2]).to_arrow()
    assert "skip" in e.value.remedy


@pytest.mark.req("IN-17")
def test_what_is_left_of_a_cleaned_state_is_apache_hudis_answer_said_aloud(opened):
    (table,) = golden("v6", CLEANED[0])
    scan = opened(table).read(as_of=CLEANED[1].partition("_")[2], on_missing="skip", meta_columns=True)
    with pytest.warns(UserWarning, match="rows are missing"):
        found = scan.to_arrow()
    assert_same_answer(found, table.question(CLEANED[1]).expected())
    assert not scan.complete
    whole = opened(table).read(on_missing="skip", meta_columns=True)
    assert whole.complete
    assert whole.count() == table.question(SNAPSHOT).expected().num_rows


@pytest.mark.req("QR-09")
@pytest.mark.parametrize(
    "table", golden("v6", "mor_avro_logs", "mor_parquet_logs", "payload_PartialUpdateAvroPayload"), ids=str
)
def test_a_merge_reads_the_columns_that_are_asked_for_and_those_that_decide(opened, table):
    read = opened(table)
    config = read.config
    scan = read.read(["note"], "qty > 300")
    merged = [t for t in scan.plan_files() if t.logs is not None]
    assert merged
    decide = {"_hoodie_record_key", config.ordering_field, "_hoodie_is_deleted"}
    for task in merged:
        assert {"note", "qty"} <= set(task.merge_schema.names) <= {"note", "qty"} | decide
    assert scan.schema.names == ["note"]


COMPACTED = golden("v6", "mor_compacted_then_logs", "mor_avro_logs", "bucket_simple_mor", "mor_log_compacted")
COMPACTED += [t for v in LAYOUT_2 for t in golden(v, "mor_compacted_then_logs")]


@pytest.mark.req("IN-10")
@pytest.mark.parametrize("table", COMPACTED, ids=str)
def test_ranges_of_base_files_give_each_row_of_the_read_optimized_view_once(opened, table):
    """Rows that were compacted after the range in which they were committed too."""
    read = opened(table)
    # Rows that a later write copied name another file.
    view = (
        read.read(query=READ_OPTIMIZED, meta_columns=True)
        .to_arrow()
        .drop_columns(["_hoodie_file_name"])
        .to_pylist()
    )
    writes = read.timeline.completed_writes()
    times = sorted((i.completion or i.time) for i in writes)
    versions, late = [], False
    for begin, end in zip(["000", *times], [*times, None], strict=True):
        scan = read.read_incremental(begin, end, query=READ_OPTIMIZED, columns=list(view[0]))
        rows = scan.to_arrow().to_pylist()
        late |= table.version == "v6" and any(r["_hoodie_commit_time"] <= begin for r in rows)
        versions += rows
    keys = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_seqno")
    seen = [tuple(v[k] for k in keys) for v in versions]
    assert len(set(seen)) == len(seen)
    assert {tuple(v[k] for k in keys) for v in view} <= set(seen)
    newest = {tuple(v[k] for k in keys[:2]): v for v in versions}  # ranges in their order
    assert all(newest[tuple(v[k] for k in keys[:2])] == v for v in view)
    assert late == (table.version == "v6" and table.name == "mor_compacted_then_logs")


UNANSWERED = [(t, name) for t in TABLES for name in t.unanswered()]


@pytest.mark.req("IN-17", "IN-11")
@pytest.mark.parametrize(("table", "name"), UNANSWERED, ids=[f"{t}-{n}" for t, n in UNANSWERED])
def test_ranges_that_apache_hudi_could_not_answer(opened, table, name):
    """Cleaned files are an error that names the way out; marked deletes, on which Apache Hudi fails, do not show."""
    question = table.question(name)
    if table.name == "mor_cleaned":
        with pytest.raises(MissingFileError) as e:
            ask(opened(table), question).to_arrow()
        assert "fulltablescan" in e.value.remedy
        return
    found = {r["_hoodie_record_key"]: r for r in ask(opened(table), question).to_arrow().to_pylist()}
    assert found
    assert "D" not in {r["Op"] for r in found.values()}
    assert all(question.begin < r["_hoodie_commit_time"] <= (question.end or "~") for r in found.values())
    at_end = ask(opened(table), replace(question, kind=AS_OF, instant=question.end)) if question.end else None
    state = (at_end or opened(table).read(meta_columns=True)).to_arrow().to_pylist()
    for row in state:
        if question.begin < row["_hoodie_commit_time"]:
            assert row["_hoodie_record_key"] in found


def test_a_table_of_apache_hudi_is_written_on(tmp_path):
    (table,) = golden("v6", "mor_avro_logs")
    ours = HudiTable.open(str(table.unpack(tmp_path)))
    rows = ours.read(meta_columns=True).to_arrow()
    ours.delete(rows.slice(0, 3), options={"hoodie.compact.inline": "false"})
    left = set(rows.column("uuid").to_pylist()[3:])
    assert set(ours.read(["uuid"]).to_arrow().column("uuid").to_pylist()) == left


EVERY = TABLES + [t for v in LAYOUT_2 for t in golden(v)]


@pytest.mark.req("FS-02", "FS-10")
@pytest.mark.parametrize("table", EVERY, ids=str)
@pytest.mark.sampled(8)
def test_inspection_names_the_files_that_a_snapshot_reads(opened, table):
    read = opened(table)
    inspect, plan = read.inspect, read.read().plan
    files = {(f["path"], f["kind"]) for f in inspect.files().to_pylist()}
    assert files == {(p, "base") for p in plan.files.column("path").to_pylist()} | {
        (f.path, "log") for part in plan.logs for f in part.slice.log_files
    }
    partitions = inspect.partitions()
    assert sum(partitions.column("files").to_pylist()) == len(files)
    assert set(inspect.stats().column("path").to_pylist()) == {p for p, kind in files if kind == "base"}
    slices = inspect.file_slices().to_pylist()
    latest = [s for s in slices if s["latest"]]
    groups = {(f["partition"], f["file_id"]) for f in inspect.files().to_pylist()}
    assert len({(s["partition"], s["file_id"]) for s in latest}) == len(latest) == len(groups)
    assert {s["base_file"] for s in latest if s["base_file"]} == {
        p.rpartition("/")[2] for p, kind in files if kind == "base"
    }
    assert all(s["base_file"] or s["log_files"] for s in slices)
    assert (sum(s["log_files"] for s in slices) > 0) or not plan.logs


@pytest.mark.req("QR-01")
def test_the_plan_names_the_logs(opened):
    (table,) = golden("v6", "mor_avro_logs")
    scan = opened(table).read(meta_columns=True)
    read = [r["path"] for r in scan.explain().files.to_pylist() if r["read"]]
    logs = [f.path for part in scan.plan.logs for f in part.slice.log_files]
    assert logs
    assert set(logs) <= set(read)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        *(("v6", n) for n in ("mor_avro_logs", "mor_parquet_logs", "payload_PartialUpdateAvroPayload")),
        *((v, n) for v in ("v8", "v9") for n in ("mor_avro_logs", "mor_parquet_logs", "mor_partial_updates")),
    ],
)
def test_a_log_that_is_cut_or_gone_is_an_error_and_never_left_out(version, name, tmp_path):
    (table,) = golden(version, name)
    read = HudiTable.open(str(table.unpack(tmp_path)))
    path = read.read().plan.logs[0].slice.log_files[-1].path
    file = tmp_path / name / path
    whole = file.read_bytes()
    for cut in (1, len(whole) // 2, len(whole)):
        file.write_bytes(whole[:-cut])
        with pytest.raises(CorruptFileError) as e:
            read.read().to_arrow()
        assert path in str(e.value)
    file.unlink()
    with pytest.raises(MissingFileError) as e:
        read.read().to_arrow()
    assert path in str(e.value)


@pytest.mark.parametrize("name", ["mor_avro_logs", "mor_compacted_then_logs"])
def test_a_base_file_that_is_cut_is_an_error(name, tmp_path):
    (table,) = golden("v6", name)
    read = HudiTable.open(str(table.unpack(tmp_path)))
    path = read.read().plan.files.column("path").to_pylist()[0]
    file = tmp_path / name / path
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(HudiError) as e:
        read.read().to_arrow()
    assert path in str(e.value)


@pytest.mark.req("QR-01")
def test_one_slice_is_read_without_a_table(opened):
    (table,) = golden("v6", "mor_avro_logs")
    scan = opened(table).read(meta_columns=True)
    want = table.question(SNAPSHOT).expected()
    for part in scan.plan.logs:
        batches = list(
            read_file_slice(
                opened(table).storage, part.slice, scan.plan.merge, scan.schema, columns=["ts", "uuid"]
            )
        )
        found = pa.Table.from_batches(batches, pa.schema([scan.schema.field(n) for n in ("ts", "uuid")]))
        found = found.sort_by("uuid")
        of_slice = pc.starts_with(want.column("_hoodie_file_name"), part.slice.file_id)
        assert found.equals(want.filter(of_slice).select(["ts", "uuid"]).sort_by("uuid").cast(found.schema))
    empty, merge = FileSlice("", "x", "1"), scan.plan.merge
    assert sum(b.num_rows for b in read_file_slice(opened(table).storage, empty, merge, scan.schema)) == 0


def test_a_payload_of_the_users_is_refused_by_name(tmp_path):
    (table,) = golden("v6", "mor_avro_logs")
    path = table.unpack(tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("org.apache.hudi.common.model.Overwrite", "org.example.Overwrite")
    properties.write_text(text)
    with pytest.raises(UnsupportedError, match="OverwriteWithLatestAvroPayload"):
        HudiTable.open(str(path)).read().to_arrow()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert HudiTable.open(str(path)).read(query=READ_OPTIMIZED).count()


@pytest.mark.req("QR-06", "NEW-24", "PM-15")
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_spilled_snapshots_are_those_of_memory(opened, table):
    options = {"hoodie.memory.merge.max.size": "1"}
    assert (
        opened(table)
        .read(options=options, meta_columns=True)
        .to_arrow()
        .equals(opened(table).read(meta_columns=True).to_arrow())
    )


@pytest.mark.sampled(8)
@pytest.mark.req("QR-06", "QR-11", "NEW-24")
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_filters_of_spilled_snapshots_are_those_of_memory(opened, table):
    """Also where row groups are left out by their statistics: keys are read first, without the filter's columns."""
    read = opened(table)
    rows = read.read(meta_columns=True).to_arrow()
    ordering = read.config.ordering_field
    column = ordering if ordering in rows.column_names else rows.column_names[-1]
    value = rows[column][rows.num_rows // 2].as_py()
    for filter in (pc.field(column) == value, pc.field(column) > value, ~pc.field(column).is_valid()):
        found = read.read(
            filter=filter, options={"hoodie.memory.merge.max.size": "1"}, meta_columns=True
        ).to_arrow()
        assert_same_answer(found, rows.filter(filter))


@pytest.mark.req("NEW-04", "PM-15")
def test_a_merge_of_the_users_reads_logs_that_apache_hudi_wrote(opened):
    """Expressions that say what a payload of Apache Hudi does give its rows."""
    (table,) = golden("v6", "payload_DefaultHoodieRecordPayload")
    read = opened(table)
    by = read.config.ordering_field
    names = [n for n in read.schema.names if n not in ("_hoodie_is_deleted",)]
    fixed = {*read.config.record_key_fields, *read.config.partition_fields}
    merge = {n: "latest" for n in names if n not in fixed}
    assert by in merge
    want = read.read(meta_columns=False).to_arrow()
    found = read.read(meta_columns=False, options={"hudi.merge": merge}).to_arrow()
    key = read.config.record_key_fields[0]
    assert found.sort_by(key).equals(want.sort_by(key))


PARTITIONED = [t for t in TABLES if t.meta["partition_fields"] and "keygen" not in t.name]


@pytest.mark.req("QR-11")
@pytest.mark.parametrize("table", PARTITIONED, ids=str)
@pytest.mark.sampled(8)
def test_a_filter_on_the_partition_column_leaves_other_partitions_out(opened, table):
    opened_table = opened(table)
    column = table.meta["partition_fields"].split(",")[0]
    every = opened_table.read(meta_columns=True)
    rows = every.to_arrow()
    value = rows[column][0].as_py()
    scan = opened_table.read(filter=pc.field(column) == value, meta_columns=True)
    assert_same_answer(answer(table, scan.to_arrow()), answer(table, rows.filter(pc.field(column) == value)))
    read = {t["partition"] for t in scan.plan.files.to_pylist()} | {p.slice.partition for p in scan.plan.logs}
    there = {t["partition"] for t in every.plan.files.to_pylist()}
    assert len(read) < len(there) or len(there) < 2
