"""Schema history of commits: who goes on with it, and what of a stranger's is refused."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
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


EACH_TIME = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


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


@pytest.mark.req("TM-14", "TS-03")
def test_a_plan_of_before_a_new_column_is_executed_with_the_columns_of_its_time(tmp_path):
    """It kept every write with inline compaction from returning, and stayed until it was unscheduled by hand."""
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
    table = HudiTable.create(
        str(path), schema, name="t", table_type="MERGE_ON_READ", record_keys="id", ordering_fields="ts"
    )

    def put(rows, **options):
        table.upsert(rows, options={"hoodie.compact.inline": "false", **options})

    def held():
        return {r.pop("id"): r for r in table.read(meta_columns=False).to_arrow().to_pylist()}

    put([{"id": "a", "ts": 1, "n": 1}, {"id": "b", "ts": 1, "n": 1}])
    table.alter().rename("n", "m").execute()
    put([{"id": "a", "ts": 2, "m": 2}])
    planned = table.compact(mode="schedule").scheduled
    wide = pa.table({"id": ["b"], "ts": [3], "m": pa.array([2.5]), "later": ["x"]})
    put(wide, **{"hudi.write.types": "data"})
    want = {
        "a": {"ts": 2, "m": 2.0, "later": None},
        "b": {"ts": 3, "m": 2.5, "later": "x"},
    }
    assert held() == want
    table.upsert([{"id": "c", "ts": 4, "m": 4.5, "later": "y"}], options=EACH_TIME)
    want["c"] = {"ts": 4, "m": 4.5, "later": "y"}
    assert (table.timeline.pending("compaction"), held()) == ((), want)
    (base,) = path.glob(f"*_{planned}.parquet")
    made = pq.read_schema(base)
    assert (made.names[-3:], made.field("m").type) == (["id", "ts", "m"], pa.int32())
    then = table.read(as_of=planned, meta_columns=False).to_arrow()
    assert then.sort_by("id").to_pylist() == [
        {"id": "a", "ts": 2, "m": 2},
        {"id": "b", "ts": 1, "m": 1},
    ]
    put([{"id": "a", "ts": 5, "m": 5.5, "later": "z"}])
    want["a"] = {"ts": 5, "m": 5.5, "later": "z"}
    table.compact()
    assert held() == want
    assert table.verify(deep=True) == []
