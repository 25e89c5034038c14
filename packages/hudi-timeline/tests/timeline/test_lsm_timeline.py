"""The history of layout 2: which files count, what is in them, and what damage to them gives."""

import json
import shutil

import pytest

from hudi_format.errors import CorruptFileError, InstantNotFoundError, MissingFileError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.reading.time_travel import has_archive
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.archived_timeline import (
    archived_instants,
    archived_write_between,
    archived_write_with_time,
    read_archived,
)
from hudi_timeline.timeline.avro_files import parse
from hudi_timeline.timeline.commit_metadata import parse_commit
from hudi_timeline.timeline.instant import WRITE_ACTIONS, Instant
from hudi_timeline.timeline.lsm_timeline import history_contents, history_files, history_instants

HISTORY = ".hoodie/timeline/history"


@pytest.fixture(params=["v8", "v9"])
def archived(request, golden_timelines_2, tmp_path):
    """A golden table whose timeline was archived, and its configuration."""
    folder = tmp_path / "t"
    shutil.copytree(golden_timelines_2 / request.param / "cow_archived", folder)
    storage = LocalStorage(str(folder))
    return storage, table_config.load(storage)


@pytest.mark.req("TM-22")
def test_the_history_has_every_instant_that_left_the_timeline(archived):
    storage, config = archived
    instants = archived_instants(storage, config)
    assert [i.action for i in instants].count("commit") == 8
    assert [i.action for i in instants].count("clean") == 4
    assert all(i.completed and i.time < i.completion for i in instants)
    active = {i.time for i in load_timeline(storage, config).instants}
    assert not active & {i.time for i in instants}
    assert max(i.time for i in instants) < min(active)
    assert has_archive(storage, config)


def test_what_an_archived_instant_held_is_still_there(archived):
    storage, config = archived
    for instant in archived_instants(storage, config):
        ((action, (done, plan)),) = history_contents(storage, config, instant.time).items()
        assert action == instant.action
        if action in WRITE_ACTIONS:
            assert parse_commit(done).stats
            assert plan is None
        else:
            assert parse("HoodieCleanMetadata", done)["partitionMetadata"]
            assert parse("HoodieCleanerPlan", plan)["policy"]


def test_only_files_of_the_range_are_opened(archived):
    storage, config = archived
    files = history_files(storage, config)
    for file in files[1:]:
        storage.publish(file.path, bytes(storage.info(file.path).size))
    found = history_instants(storage, config, until=files[0].last)
    assert {files[0].first, files[0].last} <= {i.time for i in found}
    with pytest.raises(CorruptFileError) as e:
        history_instants(storage, config)
    assert e.value.file == files[1].path


def test_the_newest_archived_write_of_a_range_by_either_time(archived):
    storage, config = archived
    writes = [i for i in archived_instants(storage, config) if i.action == "commit"]
    assert archived_write_between(storage, config, "0", None) == writes[-1]
    assert archived_write_between(storage, config, writes[2].time, writes[4].time) == writes[4]
    between = (writes[2].completion, writes[3].completion)
    found = archived_write_with_time(storage, config, *between, by_completion=True, unless=lambda _: False)
    assert found == (writes[3].completion, writes[3])
    assert archived_write_between(storage, config, writes[-1].time, None) is None


def test_an_older_manifest_and_files_that_none_lists_do_not_count(archived):
    storage, config = archived
    want = history_instants(storage, config)
    storage.publish(f"{HISTORY}/1_2_0.parquet", b"left over")
    storage.publish(f"{HISTORY}/manifest_9.tmp", b"left over")
    storage.publish(f"{HISTORY}/manifest_1", json.dumps({"files": [{"fileName": "1_2_0.parquet"}]}).encode())
    assert history_instants(storage, config) == want
    for version in (None, b"", b"x4"):
        storage.delete(f"{HISTORY}/_version_")
        if version is not None:
            storage.publish(f"{HISTORY}/_version_", version)
        assert history_instants(storage, config) == want


def test_a_table_that_never_archived_has_no_history(golden_timelines_2):
    storage = LocalStorage(str(golden_timelines_2 / "v9" / "cow_clustered"))
    config = table_config.load(storage)
    assert history_files(storage, config) == ()
    assert not has_archive(storage, config)


DAMAGE = {
    "a manifest that is gone": ("delete manifest_4", "manifest_4"),
    "no JSON": (b"{", "manifest_4"),
    "no object": (b"[]", "manifest_4"),
    "no list": (b'{"files": 4}', "manifest_4"),
    "no names": (b'{"files": [{}]}', "manifest_4"),
    "an endless file": (b'{"files": [{"fileName": "1_9_0.parquet", "fileLen": 1e999}]}', "manifest_4"),
    "a name that leads elsewhere": (
        b'{"files": [{"fileName": "../1_2_0.parquet", "fileLen": 1}]}',
        "manifest_4",
    ),
    "another size": ("cut", ".parquet"),
    "a file that is gone": ("delete file", ".parquet"),
}


@pytest.mark.parametrize(("what", "place"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_an_error_that_names_the_file(archived, what, place):
    storage, config = archived
    first = history_files(storage, config)[0].path
    if what == "cut":
        storage.publish(first, storage.read(first)[:-1])
    elif what == "delete file":
        storage.delete(first)
    elif what == "delete manifest_4":
        storage.delete(f"{HISTORY}/manifest_4")
    else:
        storage.publish(f"{HISTORY}/manifest_4", what)
    with pytest.raises((CorruptFileError, MissingFileError)) as e:
        history_instants(storage, config)
    assert place in e.value.file
    assert e.value.remedy


@pytest.mark.req("TM-20")
def test_what_archived_instants_did_as_typed_values(archived):
    storage, config = archived
    for instant in archived_instants(storage, config):
        done = read_archived(storage, config, instant)
        if instant.action == "clean":
            assert done.files_deleted == sum(len(p.deleted) for p in done.partitions.values())
        else:
            assert done.operation in ("INSERT", "UPSERT", "DELETE")
            assert all(s.path and s.num_writes + s.num_deletes for s in done.stats)
    with pytest.raises(InstantNotFoundError) as e:
        read_archived(storage, config, Instant("20200101000000000", "commit", "COMPLETED"))
    assert e.value.remedy
