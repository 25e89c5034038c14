"""Archived instants of all versions: which there were, what they did, and what can be asked of their time."""

import itertools
import warnings

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import MissingFileError
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.archived_timeline import archived_instants, read_archived
from hudi_timeline.timeline.instant import WRITE_ACTIONS


@pytest.mark.req("TM-20")
@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
def test_every_commit_of_the_rows_is_on_the_timeline_or_in_the_archive(version, tmp_path):
    (table,) = golden(version, "cow_archived")
    read = HudiTable.open(str(table.unpack(tmp_path)))
    archived = archived_instants(read.storage, read.config)
    active = {i.time for i in read.timeline.completed_writes()}
    written = set(table.question(SNAPSHOT).expected().column("_hoodie_commit_time").to_pylist())
    assert written <= active | {i.time for i in archived}
    assert written - active
    operations = []
    for instant in archived:
        done = read_archived(read.storage, read.config, instant)
        if instant.action in WRITE_ACTIONS:
            operations.append(done.operation)
            assert all(s.file_id in s.path for s in done.stats)
            assert done.schema_text
        else:
            assert done.files_deleted == sum(len(p.deleted) for p in done.partitions.values()) > 0
    # What the table's making says, oldest first, as far as it is archived.
    made = [o["operation"].upper() for o in table.meta["operations"]]
    assert operations == made[: len(operations)]


@pytest.mark.req("IN-17")
@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
@pytest.mark.sampled(3)
def test_rows_of_a_range_of_archived_commits_are_never_left_out_unsaid(version, tmp_path):
    (table,) = golden(version, "cow_archived")
    read = HudiTable.open(str(table.unpack(tmp_path)))
    writes = [i for i in archived_instants(read.storage, read.config) if i.action in WRITE_ACTIONS]
    snapshot = read.read(meta_columns=True).to_arrow()
    given = 0
    for before, last in itertools.pairwise(writes):
        begin, end = (i.time if version == "v6" else i.completion for i in (before, last))
        scan = read.read_incremental(begin, end, on_missing="full_scan", meta_columns=True)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = scan.to_arrow()
            if version != "v6":
                how = {"order": "completion", "on_missing": "full_scan"}
                assert read.read_incremental(begin, end, meta_columns=True, **how).to_arrow().equals(found)
                said = said[: len(said) // 2]
        left = snapshot.filter(pc.field("_hoodie_commit_time") == last.time)
        if scan.complete:  # the cleaner still keeps that state
            assert not said
            keys = set(found.column("_hoodie_record_key").to_pylist())
            assert keys >= set(left.column("_hoodie_record_key").to_pylist())
            continue
        # As in Apache Hudi: of the files that the cleaner has removed there is what later ones took over.
        assert "are gone" in str(said[0].message)
        assert sorted(found.column("_hoodie_record_key").to_pylist()) == sorted(
            left.column("_hoodie_record_key").to_pylist()
        )
        given += found.num_rows
        if version != "v6":
            with pytest.raises(MissingFileError, match=r"is missing|were cleaned") as e:
                read.read_incremental(begin, end).to_arrow()
            assert "on_missing" in e.value.remedy
    assert given > 0


OVERLAPPING = [t for v in ("v8", "v9") for t in golden(v, "archived_overlapping")]


@pytest.mark.req("IN-05", "IN-18", "TM-20")
@pytest.mark.parametrize("table", OVERLAPPING, ids=str)
def test_a_write_that_took_long_and_was_archived_at_once_is_not_missed(table, tmp_path):
    read = HudiTable.open(str(table.unpack(tmp_path)))
    archived = {i.time: i.completion for i in archived_instants(read.storage, read.config)}
    (long,) = (t for t, at in archived.items() if at == max(archived.values()))
    before = max(at for t, at in archived.items() if t != long)
    assert sum(t > long for t in archived) == 3, "three began after it and were completed before it"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan = read.read_incremental(before, meta_columns=True)
        rows = scan.to_arrow()
    assert long in rows.column("_hoodie_commit_time").to_pylist()
    assert scan.complete


@pytest.mark.req("IN-08")
@pytest.mark.parametrize("table", OVERLAPPING, ids=str)
def test_following_checkpoints_through_archived_commits_gives_every_state_once(table, tmp_path):
    read = HudiTable.open(str(table.unpack(tmp_path)))
    done = sorted(i.completion for i in archived_instants(read.storage, read.config))
    done += [i.completion for i in read.timeline.completed_writes()]
    seen: dict[str, dict[str, object]] = {}
    for begin, end in itertools.pairwise(["000", *done]):
        for row in read.read_incremental(begin, end, meta_columns=True).to_arrow().to_pylist():
            seen[row["_hoodie_record_key"]] = row
    columns = ["id", "ts", "v", "_hoodie_commit_time"]
    want = read.read(columns).to_arrow()
    assert_same_answer(pa.Table.from_pylist(list(seen.values())).select(columns), want, ["id"])
