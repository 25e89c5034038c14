"""Reads as of an instant."""

from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids, states

from hudi_format.errors import HollowCommitError, InstantNotFoundError
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline import avro_files

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string())])


def rows(*names):
    return [{"id": n, "p": "a"} for n in names]


@pytest.fixture
def made(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA)
    table.commit(at(10), {("a", file_id(0)): rows("1")})
    table.commit(at(20), {("a", file_id(0)): rows("1", "2")})
    table.commit(at(30), {("a", file_id(1)): rows("3")}, replaced={"a": (file_id(0),)})
    return table


def held(table, moment):
    return ids(table.open().read(as_of=moment).to_arrow())


@pytest.mark.req("QR-03")
@pytest.mark.parametrize(
    ("moment", "want"),
    [
        (at(10), ["1"]),
        (at(15), ["1"]),
        (at(20), ["1", "2"]),
        (at(29), ["1", "2"]),
        (at(30), ["3"]),
        ("2026-01-01 00:00:20", ["1", "2"]),
        ("2026-01-01 00:00:19.999", ["1"]),
        ("2026-01-02", ["3"]),
        (datetime(2026, 1, 1, 0, 0, 20), ["1", "2"]),
        (datetime(2026, 1, 1, 0, 0, 20, tzinfo=UTC), ["1", "2"]),
        (datetime(2026, 1, 1, 2, 0, 10, tzinfo=timezone(timedelta(hours=2))), ["1"]),
    ],
)
def test_the_table_as_it_was(made, moment, want):
    assert held(made, moment) == want


@pytest.mark.req("QR-03")
@pytest.mark.parametrize("moment", [at(5), "2025-12-31", datetime(2025, 12, 31, 23, 59)])
def test_before_the_first_commit_is_an_error_that_names_it(made, moment):
    with pytest.raises(InstantNotFoundError, match=f"first commit is of {at(10)}") as e:
        held(made, moment)
    assert e.value.details["oldest"] == at(10)
    assert at(10) in e.value.remedy
    assert "on_missing" in e.value.remedy
    skipped = made.open().read(as_of=moment, on_missing="skip").to_arrow()
    assert skipped.num_rows == 0
    assert skipped.column_names == ["id", "p"]


def test_a_table_without_commits_has_none_to_be_before(tmp_path):
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"])
    assert table.read(as_of="2025-12-31").count() == 0


def test_the_schema_is_the_one_of_that_time(made):
    made.schema = pa.schema([*SCHEMA, ("w", pa.string())])
    made.commit(at(40), {("a", file_id(2)): [{"id": "4", "p": "a", "w": "x"}]})
    assert "w" not in made.open().read(as_of=at(30)).to_arrow().column_names
    assert "w" in made.open().read(as_of=at(40)).to_arrow().column_names


@pytest.mark.req("QR-04")
def test_a_time_after_an_open_commit_is_refused(made):
    made.instant_file(f"{at(25)}.commit.requested")
    assert held(made, at(24)) == ["1", "2"]
    for moment in (at(25), at(30)):
        with pytest.raises(HollowCommitError) as e:
            held(made, moment)
        assert e.value.instant == at(25)


def clean(table, instant, earliest):
    record = {
        "startCleanTime": instant,
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 1,
        "earliestCommitToRetain": earliest,
        "lastCompletedCommitTimestamp": instant,
        "partitionMetadata": {},
    }
    table.instant_file(f"{instant}.clean", avro_files.render("HoodieCleanMetadata", record))


@pytest.mark.req("QR-03")
def test_a_time_that_was_cleaned_names_the_oldest_that_can_be_read(made):
    clean(made, at(31), at(20))
    assert held(made, at(20)) == ["1", "2"]
    with pytest.raises(InstantNotFoundError) as e:
        held(made, at(19))
    assert e.value.details["oldest"] == at(20)
    assert at(20) in e.value.remedy


def test_a_clean_by_file_versions_allows_times_of_the_active_timeline(made):
    clean(made, at(31), "")
    assert held(made, at(10)) == ["1"]
    with pytest.raises(InstantNotFoundError):
        held(made, at(9))


def archived(table, *others):
    """The first commit is in the archive only, with other instants."""
    table.archive(1, *states(at(10)), *others)
    for file in (table.path / ".hoodie").glob(f"{at(10)}*"):
        file.unlink()


@pytest.mark.req("QR-03")
def test_a_time_that_was_archived_is_read_where_no_clean_ever_ran(made):
    archived(made)
    assert held(made, at(20)) == ["1", "2"]
    assert held(made, at(15)) == ["1"]
    with pytest.raises(InstantNotFoundError, match=f"first commit is of {at(10)}"):
        held(made, at(9))


@pytest.mark.req("QR-03")
def test_a_time_that_was_archived_has_the_columns_of_that_time(tmp_path):
    """Neither those that the table was created with, nor those of now."""
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"]
    )
    options = {
        "hoodie.clean.automatic": "false", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }  # fmt: skip
    done, row = [], {"id": "1", "p": "a"}
    for n in range(6):
        row = row | ({f"x{n}": n} if n in (1, 4) else {})
        done.append((table.upsert(pa.Table.from_pylist([row]), options=options).instant, dict(row)))
    assert HudiTable.open(table.uri).timeline.completed_writes()[0].time > done[2][0]
    for instant, was in done:
        assert table.read(as_of=instant, meta_columns=False).to_arrow().to_pylist() == [was]


@pytest.mark.req("QR-03")
def test_a_time_before_an_archived_clean_is_refused(made):
    archived(made, *states(at(12), "clean"))
    assert held(made, at(20)) == ["1", "2"]
    with pytest.raises(InstantNotFoundError) as e:
        held(made, at(15))
    assert e.value.details["oldest"] == at(20), "this one does not say what it kept"


def test_an_archive_that_says_nothing_may_have_had_a_clean(made):
    archived(made)
    (made.path / ".hoodie" / "archived" / ".commits_.archive.1_1-0-1").write_text("")
    with pytest.raises(InstantNotFoundError):
        held(made, at(15))


def test_a_time_that_is_none_is_refused(made):
    with pytest.raises(InstantNotFoundError, match="point in time"):
        held(made, "last tuesday")


@pytest.fixture
def numbered(tmp_path):
    """Commits whose instants are numbers, no times, as tests of Apache Hudi and other writers make them."""
    table = MadeTable(tmp_path / "numbered", SCHEMA)
    for number in ("001", "002", "010"):
        table.commit(number, {("a", file_id(int(number))): rows(number)})
    return table


@pytest.mark.req("TM-06")
def test_instants_need_not_be_times(numbered):
    table = numbered.open()
    assert [i.time for i in table.timeline.completed_writes()] == ["001", "002", "010"]
    assert [held(numbered, n) for n in ("001", "002", "010")] == [
        ["001"],
        ["001", "002"],
        ["001", "002", "010"],
    ]
    between = table.read_incremental("001", "002").to_arrow()
    assert ids(between) == ["002"]
    assert table.read().stability.upto == "010"
    assert {f.code for f in table.verify(deep=True)} <= {"timeline-instant-time"}, (
        "it warns of them, and reads them"
    )


@pytest.mark.req("TM-06")
def test_a_number_that_is_no_instant_of_the_table_is_no_state_of_it(numbered):
    for number in ("003", "2", "2026"):
        with pytest.raises(InstantNotFoundError, match="cannot read"):
            held(numbered, number)


@pytest.mark.req("TM-06")
def test_the_next_instant_after_numbers_is_a_time_and_later_than_all_of_them(numbered):
    """New ones are a logical clock too: the wall clock's, or the next after the newest, so that no two are equal."""
    table = numbered.open()
    table.savepoint("002")
    first, second = (table.upsert([{"id": n, "p": "a"}]).instant for n in "xy")
    assert "010" < first < second
    assert len(first) == 17
    assert held(numbered, "010") == ["001", "002", "010"]
    table.restore("002")
    assert ids(table.read().to_arrow()) == ["001", "002"]
    assert {f.code for f in table.verify(deep=True)} <= {"timeline-instant-time"}, (
        "it warns of them, and reads them"
    )
