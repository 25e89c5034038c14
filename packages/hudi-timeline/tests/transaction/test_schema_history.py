"""Schema history of commits: who goes on with it, and what of a stranger's is refused."""

import json

import pytest

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.transaction.schema_history import load_history, refuse_older_than_history

KEY = "latest_schema"


@pytest.fixture
def table(tmp_path):
    rows = [{"id": "a", "n": 1}]
    made = HudiTable.create(str(tmp_path / "t"), rows, record_keys="id")
    made.insert(rows)
    return made


def history(table):
    return load_history(load_snapshot(table.storage))


def newest_commit(table):
    name = table.timeline.completed_writes()[-1].path
    return json.loads(table.storage.read(name))["extraMetadata"]


def test_a_table_without_a_history_gets_none(table):
    table.upsert([{"id": "a", "n": 2, "new": 1}])
    assert not history(table)
    assert KEY not in newest_commit(table)


def test_each_commit_goes_on_and_new_columns_are_versions(table):
    first = table.alter().rename("n", "m").execute().instant
    assert [v.version for v in history(table).versions] == [0, int(first)]
    table.upsert([{"id": "b", "m": 2}])
    assert [v.version for v in history(table).versions] == [0, int(first)], "the same columns"
    assert json.loads(newest_commit(table)[KEY])["version_id"] == int(first)
    added = table.upsert([{"id": "c", "m": 2, "new": "x"}]).instant
    assert [v.version for v in history(table).versions] == [0, int(first), int(added)]
    assert history(table).most == 7
    meta = [f["name"] for f in json.loads(newest_commit(table)["schema"])["fields"]]
    assert meta[:5] == ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path",
                        "_hoodie_file_name"]  # fmt: skip


def test_files_that_count_for_nothing_are_removed_by_the_next_commit(table):
    table.alter().rename("n", "m").execute()
    table.storage.publish(".hoodie/.schema/20200101000000000.schemacommit", b"{}")
    table.storage.publish(".hoodie/.schema/29990101000000000.schemacommit.inflight", b"")
    table.upsert([{"id": "b", "m": 2}])
    names = [e.name for e in table.storage.list(".hoodie/.schema")]
    assert len(names) == 2
    assert not any(n.startswith(("2020", "2999")) for n in names)


def test_a_history_that_cannot_be_read_stops_a_write_before_it_begins(table):
    table.alter().rename("n", "m").execute()
    name = sorted(e.name for e in table.storage.list(".hoodie/.schema"))[-1]
    table.storage.publish(f".hoodie/.schema/{name}", b'{"schemas":7}')
    before = table.timeline
    for change in (
        lambda: table.upsert([{"id": "b", "m": 2}]),
        lambda: table.alter().drop("m").execute(),
    ):
        with pytest.raises(CorruptFileError) as raised:
            change()
        assert raised.value.file.endswith(name)
        assert raised.value.remedy
    assert table.timeline == before


def test_a_plan_of_before_a_change_is_not_executed_after_it(table):
    early = table.timeline.completed_writes()[-1].time
    refuse_older_than_history(load_snapshot(table.storage), early)
    table.alter().rename("n", "m").execute()
    with pytest.raises(UnsupportedError, match="planned before"):
        refuse_older_than_history(load_snapshot(table.storage), early)
