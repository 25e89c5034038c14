"""Builds of indexes as the timeline tells of them."""

import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.storage.open import open_storage
from hudi_timeline.timeline.action_metadata import (
    IndexedPartition,
    IndexMetadata,
    IndexPlan,
    parse_action,
    render_action,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.index_builds import begun_plan, completed_builds, kept_while_built, pending_builds
from hudi_timeline.timeline.instant import INDEXING, REQUESTED, Instant, parse_instant_file

PLAN = IndexPlan(
    (IndexedPartition("column_stats", "20240101000000000"), IndexedPartition("files", "20240101000000000"))
)
TIMES = ("20240102000000000", "20240103000000000")


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path))


def timeline(storage):
    found = (parse_instant_file(e.name, size=e.size) for e in storage.list(".hoodie"))
    return Timeline.of_files(i for i in found if i is not None)


def put(storage, time, state, content):
    name = f"{time}.indexing" + (f".{state}" if state else "")
    storage.create(f".hoodie/{name}", content)


def test_a_plan_is_read_as_it_was_written():
    assert parse_action(INDEXING, REQUESTED, render_action(PLAN)) == PLAN


def test_a_plan_is_requested_then_begun_then_done(storage):
    put(storage, TIMES[0], "requested", render_action(PLAN))
    (build,) = pending_builds(storage, timeline(storage))
    assert (build.partitions, build.is_begun, build.made_at("files")) == (
        ("column_stats", "files"),
        False,
        "",
    )
    assert kept_while_built(storage, timeline(storage), ["column_stats"]) == set()
    begun = begun_plan(PLAN, {"column_stats": TIMES[0] + "004"})
    put(storage, TIMES[0], "inflight", render_action(begun))
    (build,) = pending_builds(storage, timeline(storage))
    assert (build.partitions, build.is_begun, build.made_at("column_stats")) == (
        ("column_stats",), True, TIMES[0] + "004"
    )  # fmt: skip
    assert kept_while_built(storage, timeline(storage), ["column_stats", "files"]) == {"column_stats"}
    assert completed_builds(storage, timeline(storage)) == {}
    put(storage, TIMES[0], "", render_action(IndexMetadata(begun.partitions)))
    assert pending_builds(storage, timeline(storage)) == ()
    assert completed_builds(storage, timeline(storage)) == {"column_stats": TIMES[0] + "004"}
    put(storage, TIMES[1], "requested", render_action(PLAN))  # it is to be made again
    assert completed_builds(storage, timeline(storage)) == {}


def test_a_build_of_apache_hudi_is_not_begun_here(storage):
    put(storage, TIMES[0], "requested", render_action(PLAN))
    put(storage, TIMES[0], "inflight", b"")
    (build,) = pending_builds(storage, timeline(storage))
    assert (build.partitions, build.is_begun) == (("column_stats", "files"), False)
    assert kept_while_built(storage, timeline(storage), ["column_stats"]) == set()


def test_a_plan_that_cannot_be_read_is_a_typed_error(storage):
    put(storage, TIMES[0], "requested", b"nothing of Avro")
    with pytest.raises(CorruptFileError):
        pending_builds(storage, timeline(storage))


def test_a_plan_that_is_gone_since_is_none(storage):
    gone = Timeline.of_files([Instant(TIMES[0], INDEXING, REQUESTED, f"{TIMES[0]}.indexing.requested")])
    assert [b.partitions for b in pending_builds(storage, gone)] == [()]
