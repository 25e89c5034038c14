"""Tables of versions 8 and 9 with a damaged timeline: a defined answer, or an error that names file and remedy."""

import pytest
from golden_tables import AS_OF, LAYOUT_2, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import CorruptFileError, HollowCommitError, InstantNotFoundError, MissingFileError
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.commit_metadata import read_commit


@pytest.fixture(params=LAYOUT_2)
def unpacked(request, tmp_path):
    """A function that gives a golden table by name, its folder and its answers."""

    def unpack(name):
        (table,) = golden(request.param, name)
        path = table.unpack(tmp_path)
        return HudiTable.open(str(path)), path, table

    return unpack


def newest_write(table):
    return table.timeline.completed_writes()[-1]


def files_of(path, instant):
    return list((path / ".hoodie/timeline").glob(f"{instant.time}[._]*"))


def test_files_that_are_no_instants_change_nothing(unpacked):
    read, path, table = unpacked("mor_avro_logs")
    after = str(int(newest_write(read).time) + 1)
    for name in (
        f"{after}_{after}.shredding",
        f"{after}.shredding.requested",
        "notes.txt",
        f"{after}_.commit",
    ):
        (path / ".hoodie/timeline" / name).write_bytes(b"?")
    assert_same_answer(read.read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())


@pytest.mark.req("IN-19")
@pytest.mark.parametrize("name", ["mor_avro_logs", "cow_partitioned"])
def test_a_write_that_lost_its_completed_file_is_an_open_one(unpacked, name):
    read, path, _ = unpacked(name)
    last, before = read.timeline.completed_writes()[-1], read.timeline.completed_writes()[-2]
    want = read.read(as_of=before.time, meta_columns=True).to_arrow()
    (path / last.path).unlink()
    assert_same_answer(read.read(meta_columns=True).to_arrow(), want)
    with pytest.raises(HollowCommitError) as e:
        read.read(as_of=last.time)
    assert e.value.instant == last.time
    # The range of completed writes goes up to the one before it, and a reader that goes on from there misses nothing.
    assert read.read_incremental("000").checkpoint == before.completion


@pytest.mark.parametrize("name", ["mor_avro_logs", "cow_partitioned"])
def test_what_an_instant_wrote_that_is_on_no_timeline_is_not_read(unpacked, name):
    read, path, _ = unpacked(name)
    last, before = read.timeline.completed_writes()[-1], read.timeline.completed_writes()[-2]
    want = read.read(as_of=before.time, meta_columns=True).to_arrow()
    for file in files_of(path, last):
        file.unlink()
    assert_same_answer(read.read(meta_columns=True).to_arrow(), want)


@pytest.mark.sampled(2)
def test_a_completed_write_without_content_is_an_error(unpacked):
    read, path, _ = unpacked("mor_avro_logs")
    last = newest_write(read)
    (path / last.path).write_bytes(b"")
    with pytest.raises(CorruptFileError) as e:
        read.read()
    assert last.path in str(e.value)
    assert e.value.remedy


@pytest.mark.parametrize("place", ["half", "a byte of the schema", "the end"])
@pytest.mark.sampled(3)
def test_a_completed_write_that_is_damaged_is_an_error(unpacked, place):
    read, path, _ = unpacked("mor_avro_logs")
    last = newest_write(read)
    data = bytearray((path / last.path).read_bytes())
    cut = {"half": len(data) // 2, "the end": len(data) - 1}.get(place)
    if cut is None:
        data[40] ^= 0xFF
        cut = len(data)
    (path / last.path).write_bytes(data[:cut])
    with pytest.raises(CorruptFileError) as e:
        read.read().to_arrow()
    assert last.path in str(e.value)
    assert e.value.remedy


@pytest.mark.req("QR-03")
def test_time_travel_between_instants_and_before_the_first(unpacked):
    read, _, table = unpacked("cow_partitioned")
    questions = sorted(table.questions(AS_OF), key=lambda q: q.instant)
    for question in questions:
        later = str(int(question.instant) + 1)
        assert_same_answer(read.read(as_of=later, meta_columns=True).to_arrow(), question.expected())
    first = read.timeline.completed_writes()[0].time
    before = str(int(first) - 1)
    with pytest.raises(InstantNotFoundError, match=first):
        read.read(as_of=before).to_arrow()
    none = read.read(as_of=before, on_missing="skip", meta_columns=True).to_arrow()
    assert none.num_rows == 0
    assert none.column_names == table.question(SNAPSHOT).expected().column_names


def test_a_history_that_cannot_be_read_stops_only_what_needs_it(unpacked):
    read, path, table = unpacked("cow_archived")
    (path / ".hoodie/timeline/history/manifest_4").write_bytes(b"{")
    assert_same_answer(read.read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())
    last = newest_write(read)
    assert read.read_incremental(str(int(last.completion) - 1)).count() > 0
    with pytest.raises(CorruptFileError) as e:
        read.read_incremental("000")
    assert e.value.file.endswith("history/manifest_4")


def test_begins_before_the_archived_range(unpacked):
    read, path, table = unpacked("cow_archived")
    first = read.timeline.completed_writes()[0]
    whole = table.question(SNAPSHOT).expected()
    assert read.read_incremental("19990101000000000").to_arrow().num_rows == whole.num_rows
    with pytest.raises(InstantNotFoundError) as e:
        read.read_incremental("000", on_missing="error")
    assert first.completion in e.value.remedy
    with pytest.warns(UserWarning, match="archived"):
        some = read.read_incremental("000", on_missing="skip", meta_columns=True).to_arrow()
    active = {i.time for i in read.timeline.completed_writes()}
    assert set(some.column("_hoodie_commit_time").to_pylist()) <= active
    assert 0 < some.num_rows < whole.num_rows
    # A file that a commit of the range wrote and that was cleaned: the whole table is read.
    names = [s.path for s in read_commit(read.storage, first).stats]
    for name in names:
        (path / name).unlink(missing_ok=True)
    assert read.read_incremental(str(int(first.completion) - 1)).to_arrow().num_rows > 0
    with pytest.raises(MissingFileError):
        read.read_incremental(str(int(first.completion) - 1), first.completion, on_missing="error").to_arrow()


def test_a_range_has_the_commits_that_were_completed_in_it_whenever_they_began(unpacked):
    """A slow commit: requested first, completed last."""
    read, path, _ = unpacked("cow_partitioned")
    writes = read.timeline.completed_writes()
    slow, last = writes[1], writes[-1]
    done = str(int(last.completion) + 5)
    (path / slow.path).rename(path / f".hoodie/timeline/{slow.time}_{done}.commit")
    found = read.read_incremental(last.completion, meta_columns=True)
    assert set(found.to_arrow().column("_hoodie_commit_time").to_pylist()) <= {slow.time}
    assert found.checkpoint == done
    before = read.read_incremental("000", last.completion, meta_columns=True).to_arrow()
    assert slow.time not in before.column("_hoodie_commit_time").to_pylist()


@pytest.mark.req("IN-19")
def test_changes_after_a_snapshot_begin_at_its_checkpoint(unpacked):
    read, path, _ = unpacked("cow_partitioned")
    writes = read.timeline.completed_writes()
    assert read.read().checkpoint == writes[-1].completion
    assert read.read_incremental(read.read().checkpoint).count() == 0
    # A slow commit: requested second, completed last. As of a later one it is in the snapshot, that one's
    # successors are not, and were completed before it.
    done = str(int(writes[-1].completion) + 5)
    (path / writes[1].path).rename(path / f".hoodie/timeline/{writes[1].time}_{done}.commit")
    assert read.read().checkpoint == done
    assert read.read(as_of=writes[2].time).checkpoint == writes[2].completion
