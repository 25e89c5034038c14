"""Tables whose schema changed, read as a whole: what the answers of Apache Hudi alone do not pin."""

import json
import shutil

import pyarrow.compute as pc
import pytest
from golden_tables import SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import CorruptFileError, SchemaError, UnsupportedError
from hudi_timeline.table import HudiTable

OPTION = "hoodie.schema.on.read.enable"
NAMES = ("schema_history_cow", "schema_history_mor", "schema_on_read")
EVOLVED = golden("v6", *NAMES)


@pytest.fixture
def opened(tmp_path):
    def open_table(table):
        return HudiTable.open(str(table.unpack(tmp_path)))

    return open_table


@pytest.mark.req("SE-04")
@pytest.mark.parametrize("table", EVOLVED, ids=str)
def test_filters_and_columns_go_by_the_names_of_today(opened, table):
    want = table.question(SNAPSHOT).expected()
    read = opened(table)
    key = "_hoodie_record_key"
    for name in set(want.column_names) & {"title", "rider_new", "qty", "spare", "extra", "big"}:
        for value in pc.unique(want[name]).drop_null().to_pylist()[:3]:
            condition = pc.field(name) == value
            found = read.read([name, key, "_hoodie_partition_path"], condition).to_arrow()
            assert_same_answer(found, want.filter(condition).select(found.column_names))
    assert read.read().count() == want.num_rows
    assert read.read(columns=[key]).to_arrow().num_rows == want.num_rows


@pytest.mark.req("SE-04")
@pytest.mark.parametrize("table", EVOLVED, ids=str)
def test_an_instant_is_read_in_its_own_schema(opened, table):
    read = opened(table)
    first = read.timeline.completed_writes()[0].time
    names = read.read(as_of=first, meta_columns=True).schema.names
    before = {"name", "spare"} if "spare" in names else {"rider", "note"}
    after = {"title", "rider_new", "extra"}
    assert before <= set(names)
    assert not after & set(names)
    assert (
        read.read(as_of=first, meta_columns=True).to_arrow().column(min(before)).null_count
        < read.read(as_of=first).count()
    )


@pytest.mark.req("SE-04")
def test_by_name_on_request_older_files_have_nulls_for_what_was_renamed(opened):
    (table,) = golden("v6", "schema_history_flat")
    read = opened(table)
    by_id = read.read(meta_columns=True).to_arrow()
    scan = read.read(options={OPTION: "false"}, meta_columns=True)
    with pytest.raises(SchemaError, match="spare"):  # text in the file, a number under that name now
        scan.to_arrow()
    by_name = read.read([n for n in scan.schema.names if n != "spare"], options={OPTION: "false"}).to_arrow()
    assert by_id["title"].null_count < len(by_id)
    assert by_name["title"].null_count == len(by_name)
    # As in Apache Hudi, which then takes partition columns out of the path and puts them last.
    assert by_name.column_names[-1] == "part"
    assert read.read(options={OPTION: "true"}, meta_columns=True).to_arrow().equals(by_id)


def test_a_lost_history_is_made_of_the_commits(opened, tmp_path):
    (table,) = golden("v6", "schema_history_cow")
    read = opened(table)
    want = table.question(SNAPSHOT).expected()
    shutil.rmtree(tmp_path / table.name / ".hoodie" / ".schema")
    assert_same_answer(read.read(meta_columns=True).to_arrow(), want)


def test_a_damaged_history_is_an_error(opened, tmp_path):
    (table,) = golden("v6", "schema_history_cow")
    read = opened(table)
    file = sorted((tmp_path / table.name / ".hoodie" / ".schema").glob("*.schemacommit"))[-1]
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(CorruptFileError) as e:
        read.read().to_arrow()
    assert file.name in str(e.value)
    assert OPTION in e.value.remedy


def test_a_commit_that_lost_the_history_is_refused(opened, tmp_path):
    (table,) = golden("v6", "schema_history_cow")
    read = opened(table)
    last = read.timeline.completed_writes()[-1]
    file = tmp_path / table.name / last.path
    commit = json.loads(file.read_text())
    del commit["extraMetadata"]["latest_schema"]
    file.write_text(json.dumps(commit))
    with pytest.raises(UnsupportedError, match=last.time):
        read.read()
    assert read.read(options={OPTION: "false"}).count() == table.question(SNAPSHOT).expected().num_rows


@pytest.mark.req("SE-02")
def test_rows_from_before_a_column_was_added_or_widened_are_read_with_the_others(opened):
    (table,) = golden("v6", "schema_evolution_add_promote")
    read = opened(table)
    found = read.read(meta_columns=True).to_arrow()
    assert_same_answer(found, table.question(SNAPSHOT).expected())
    first = read.timeline.completed_writes()[0].time
    added = set(found.column_names) - set(read.read(as_of=first, meta_columns=True).schema.names)
    assert added
    old = found.filter(pc.field("_hoodie_commit_time") == first)
    assert all(old[n].null_count == len(old) for n in added)
    assert any(found[n].null_count < len(found) for n in added)


@pytest.mark.req("SE-04")
@pytest.mark.parametrize("question", ["snapshot", "read_optimized"])
def test_a_struct_of_which_nothing_is_left(opened, question):
    """Null in rows of an older base file, one of nulls in records of an older log, as in Apache Hudi."""
    (table,) = golden("structs_v6", "struct_replaced_mor")
    expected = table.question(question).expected()
    assert_same_answer(opened(table).read(query=question, meta_columns=True).to_arrow(), expected)
    structs = dict(zip(expected["id"].to_pylist(), expected["s"].to_pylist(), strict=True))
    assert structs["k00"] == ({"c": None} if question == "snapshot" else None)


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("which", ["newest", "older"])
def test_a_history_that_cannot_be_read_is_told_with_the_commit_that_has_it(tmp_path, which):
    (table,) = golden("v6", "schema_history_cow")
    path = table.unpack(tmp_path)
    commits = sorted(p for p in (path / ".hoodie").glob("*.commit") if b'"latest_schema"' in p.read_bytes())
    file = commits[-1 if which == "newest" else -2]
    said = json.loads(file.read_bytes())
    said["extraMetadata"]["latest_schema"] = "x"
    file.write_text(json.dumps(said))
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises(CorruptFileError, match="schema history") as e:
        HudiTable.open(str(path)).read().to_arrow()
    assert (e.value.file, e.value.instant) == (f".hoodie/{file.name}", file.stem)
