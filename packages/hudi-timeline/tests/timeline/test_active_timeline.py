"""The active timeline: layout filter, what is pending, what is visible, the table's schema."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.model import OverwrittenInstants, WriteStat
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering, latest_schema, load_timeline
from hudi_timeline.timeline.avro_files import render
from hudi_timeline.timeline.commit_metadata import CommitMetadata, read_commit
from hudi_timeline.timeline.instant import Instant, parse_instant_file


def put(storage, *names, data=b"{}"):
    for name in names:
        storage.publish(f".hoodie/{name}", data)


def timeline_of(*names):
    return Timeline.of_files(filter(None, map(parse_instant_file, names)))


def states(timeline):
    return [str(i) for i in timeline.instants]


@pytest.mark.req("TM-02")
def test_an_instant_has_the_highest_state_that_has_a_file():
    timeline = timeline_of("1.commit.requested", "1.inflight", "1.commit", "2.commit.requested", "2.inflight")
    assert states(timeline) == ["1 commit completed", "2 commit inflight"]
    assert len(timeline.files) == 5


@pytest.mark.req("TM-04")
def test_a_compaction_and_the_commit_it_becomes_are_one_instant():
    timeline = timeline_of(
        "1.compaction.requested", "1.compaction.inflight", "1.commit", "2.compaction.requested"
    )
    assert states(timeline) == ["1 commit completed", "2 compaction requested"]
    assert [i.time for i in timeline.completed_writes()] == ["1"]
    assert timeline.pending_writes() == ()
    assert [i.time for i in timeline.pending("compaction")] == ["2"]


@pytest.mark.req("TM-11")
def test_a_savepoint_and_its_commit_are_two_instants_of_one_time():
    timeline = timeline_of("1.commit", "1.savepoint.inflight", "1.savepoint", "2.commit")
    assert states(timeline) == ["1 commit completed", "1 savepoint completed", "2 commit completed"]
    assert timeline.find("1").action == "commit"


def test_every_golden_timeline_loads_and_is_complete(golden_timelines):
    for folder in sorted(golden_timelines.glob("v?/*")):
        storage = LocalStorage(str(folder))
        timeline = load_timeline(storage, table_config.load(storage))
        if folder.name not in ("empty_table",):
            assert timeline.completed_writes()
        assert timeline.pending_writes() == ()
        visible = timeline.visible()
        assert all(i.time in visible for i in timeline.completed_writes())
        assert timeline.newest_time == max((i.time for i in timeline.files), default="")
        for instant in timeline.completed_writes():
            assert instant.mtime_ms > 0


def test_a_golden_clustering_is_told_from_an_overwrite(golden_timelines):
    found = {}
    for name in ("cow_clustered", "cow_insert_overwrite"):
        storage = LocalStorage(str(golden_timelines / "v6" / name))
        timeline = load_timeline(storage, table_config.load(storage))
        found[name] = [is_clustering(storage, timeline, i) for i in timeline.of("replacecommit")]
    assert found == {"cow_clustered": [True], "cow_insert_overwrite": [False, False, False]}


@pytest.mark.req("TM-20")
def test_what_is_older_than_the_timeline_is_visible_and_pending_is_not():
    visible = timeline_of("3.commit.requested", "4.commit", "5.inflight", "6.replacecommit").visible()
    assert [t for t in "1234567" if t in visible] == ["1", "2", "4", "6"]


def test_cleans_and_rollbacks_older_than_the_first_commit_do_not_hide_archived_commits():
    timeline = timeline_of("1.clean", "2.rollback", "5.commit")
    assert timeline.first_active == "5"
    assert "3" in timeline.visible()


@pytest.mark.req("TM-11")
def test_a_savepointed_commit_that_stayed_does_not_hide_commits_archived_after_it():
    timeline = timeline_of("1.commit", "1.savepoint", "5.commit")
    assert timeline.first_active == "5"
    assert "3" in timeline.visible()


def test_instants_of_an_overwritten_table_are_not_archived_ones(storage):
    config = table_config.update(storage, {"hudi.overwritten.until": "3", "hudi.overwritten.by": "2"})
    put(storage, "5.commit.requested", "5.inflight", "5.commit", "6.commit.requested")
    timeline = load_timeline(storage, config)
    assert timeline.overwritten == config.overwritten == OverwrittenInstants("3", "2")
    for one in (timeline, timeline.with_files(timeline.files)):
        assert [i for i in "1234567" if i in one.archived()] == ["2", "4"]
        assert [i for i in "1234567" if i in one.visible()] == ["2", "4", "5"]
    # The same entries are those of another table without it.
    plain = table_config.load(storage).properties.items()
    config = table_config.TableConfig({k: v for k, v in plain if "overwritten" not in k})
    assert [i for i in "1234567" if i in load_timeline(storage, config).archived()] == ["1", "2", "3", "4"]


def test_an_empty_timeline_sees_nothing():
    assert "1" not in Timeline().visible()
    assert Timeline().newest_time == ""
    assert Timeline().first_active == ""


def test_temporary_files_of_dead_writers_are_passed_over(storage):
    put(storage, ".20260101000000000.commit.0a1b.tmp", "20260101000000000.commit.tmp")
    (timeline,) = [load_timeline(storage, table_config.load(storage))]
    assert timeline == Timeline()


@pytest.mark.req("TM-08", "NEW-37")
@pytest.mark.parametrize("action", ["commit", "deltacommit", "replacecommit"])
def test_an_empty_completed_file_is_an_error_with_a_remedy(storage, action):
    put(storage, f"20260101000000000.{action}", data=b"")
    with pytest.raises(CorruptFileError, match="empty") as e:
        load_timeline(storage, table_config.load(storage))
    assert e.value.instant == "20260101000000000"
    assert "delete" in e.value.remedy
    instant = Instant("20260101000000000", action, "COMPLETED", f"20260101000000000.{action}")
    with pytest.raises(CorruptFileError, match="empty"):
        read_commit(storage, instant)


def test_an_empty_clean_is_tolerated(storage):
    put(storage, "20260101000000000.clean", data=b"")
    assert len(load_timeline(storage, table_config.load(storage)).of("clean")) == 1


def test_an_empty_inflight_file_is_an_empty_commit(storage):
    put(storage, "20260101000000000.inflight", data=b"")
    (instant,) = load_timeline(storage, table_config.load(storage)).instants
    assert read_commit(storage, instant) == CommitMetadata()


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"null", b'{"partitionToWriteStats": 3}'])
def test_a_completed_file_of_nonsense_is_an_error_that_names_it(storage, content):
    put(storage, "20260101000000000.commit", data=content)
    (instant,) = load_timeline(storage, table_config.load(storage)).instants
    with pytest.raises(CorruptFileError) as e:
        read_commit(storage, instant)
    assert e.value.file == ".hoodie/20260101000000000.commit"
    assert e.value.instant == "20260101000000000"


def test_a_file_that_went_away_is_a_missing_file(storage):
    with pytest.raises(MissingFileError):
        read_commit(storage, Instant("1", "commit", "COMPLETED", "1.commit"))


@pytest.mark.parametrize(("version", "layout"), [("6", "2"), ("8", "1"), ("9", "3")])
def test_a_layout_that_is_not_of_the_version_is_refused(storage, version, layout):
    config = table_config.update(
        storage, {"hoodie.table.version": version, "hoodie.timeline.layout.version": layout}
    )
    with pytest.raises(UnsupportedError, match=f"version {version}"):
        load_timeline(storage, config)


def test_a_request_that_vanishes_is_no_clustering(storage):
    put(storage, "1.replacecommit.requested", data=render("HoodieRequestedReplaceMetadata", {}))
    timeline = load_timeline(storage, table_config.load(storage))
    storage.delete(".hoodie/1.replacecommit.requested")
    assert not is_clustering(storage, timeline, timeline.instants[0])


SCHEMA = '{{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{0}]}}'
ID = '{"name":"id","type":["null","string"],"default":null}'
V = '{"name":"v","type":["null","long"],"default":null}'
META = '{"name":"_hoodie_commit_time","type":["null","string"],"doc":"","default":null}'


def commit(schema, operation="UPSERT"):
    return CommitMetadata(
        extra={"schema": SCHEMA.format(schema)} if schema else {},
        operation=operation,
        is_replace=operation == "CLUSTER",
    ).to_json()


def schema_of(storage, as_of=None):
    config = table_config.load(storage)
    schema = latest_schema(storage, load_timeline(storage, config), config, as_of)
    return schema.names if schema is not None else None


@pytest.mark.req("TM-18", "SE-07")
def test_the_newest_commit_with_a_schema_decides(storage):
    assert schema_of(storage) is None
    put(storage, "1.commit", data=commit(ID))
    put(storage, "2.commit", data=commit(f"{META},{ID},{V}"))
    put(storage, "3.replacecommit", data=commit(ID, operation="CLUSTER"))
    put(storage, "4.commit", data=commit(""))
    put(storage, "5.inflight", data=commit(META))
    assert schema_of(storage) == ["id", "v"]
    assert schema_of(storage, as_of="1") == ["id"]
    assert schema_of(storage, as_of="0") is None


def test_the_schema_of_creation_serves_until_a_commit_has_one(storage):
    table_config.update(storage, {"hoodie.table.create.schema": SCHEMA.format(V)})
    assert schema_of(storage) == ["v"]
    put(storage, "1.commit", data=commit(ID))
    assert schema_of(storage) == ["id"]


def test_a_schema_of_creation_that_is_damaged_is_an_error_that_says_where_and_what_to_do(storage):
    table_config.update(storage, {"hoodie.table.create.schema": SCHEMA.format(V)[:-3]})
    with pytest.raises(CorruptFileError) as e:
        schema_of(storage)
    assert (e.value.table, e.value.file) == (storage.uri, table_config.PROPERTIES_FILE)
    assert "hudi verify" in e.value.remedy


def test_dropped_partition_columns_are_added_as_text(storage):
    table_config.update(storage, {"hoodie.datasource.write.drop.partition.columns": "true"})
    put(storage, "1.commit", data=commit(ID))
    assert schema_of(storage) == ["id", "p"]


def test_golden_schemas_have_no_meta_columns(golden_timelines):
    for name in (
        "all_types_cow",
        "cow_insert_overwrite",
        "empty_table",
        "empty_first_write",
        "schema_on_read",
    ):
        names = schema_of(LocalStorage(str(golden_timelines / "v6" / name)))
        assert names
        assert not any(n.startswith("_hoodie") for n in names)


def test_without_any_text_the_newest_base_file_tells_the_schema(storage):
    columns = pa.schema([("_hoodie_commit_time", pa.string()), ("id", pa.string()), ("v", pa.int64())])
    (Path(storage.uri) / "p").mkdir()
    pq.write_table(columns.empty_table(), f"{storage.uri}/p/f.parquet", store_schema=False)
    written = CommitMetadata({"p": (WriteStat("f", "p/f.parquet", "p"),)})
    put(storage, "1.commit", data=written.to_json())
    put(storage, "2.commit", data=CommitMetadata().to_json())
    assert schema_of(storage) == ["id", "v"]


def test_files_of_some_instants_and_whether_one_is_there_are_known_without_asking_for_others(
    tmp_path, monkeypatch
):
    table = HudiTable.create(
        str(tmp_path / "t"), pa.schema([("id", pa.string()), ("v", pa.int64())]), name="t", record_keys=["id"]
    )
    for v in range(4):
        table.upsert(pa.table({"id": ["a"], "v": [v]}))
    storage = LocalStorage(str(tmp_path / "t"))
    timeline = load_timeline(storage, table_config.load(storage))
    first = timeline.instants[0]
    whole = [f for f in timeline.files if f.time == first.time]
    assert len(whole) == 3
    asked, info = [], LocalStorage.info

    def noted(self, path):
        asked.append(path)
        return info(self, path)

    monkeypatch.setattr(LocalStorage, "info", noted)
    assert all(timeline.has_file(f.file_name) for f in whole)
    assert not timeline.has_file(f"{first.time}.rollback.inflight")
    assert asked == []
    assert list(timeline.files_of({(first.time, first.comparable_action)})) == whole
    assert len(asked) == 2
    asked.clear()
    table.upsert(pa.table({"id": ["a"], "v": [4]}))
    before = tuple(f"/{i.time}" for i in timeline.instants)
    assert [p for p in asked if p.endswith(("requested", "inflight")) and any(b in p for b in before)] == []
