"""The file-system view: which base files count."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.file_names import parse_base_file
from hudi_format.model import VisibleInstants
from hudi_format.storage.protocol import FileInfo
from hudi_timeline.file_system_view.base_files import (
    CommittedBaseFile,
    FileView,
    base_files,
    check_written,
    file_slices,
    paths_of,
)

VISIBLE = VisibleInstants(frozenset({"10", "20", "30"}), "10")


def view_of(**listing):
    return FileView.of_listing({p: [FileInfo(n, False, 7) for n in names] for p, names in listing.items()})


def latest(view, **arguments):
    return paths_of(view.latest(VISIBLE, **arguments)).to_pylist()


def test_the_newest_file_of_each_group_counts():
    view = view_of(
        p=["f-0_0-0-0_10.parquet", "f-0_0-0-0_30.parquet", "g-0_0-0-0_20.parquet"], q=["f-0_1-1-1_20.parquet"]
    )
    assert latest(view) == ["p/f-0_0-0-0_30.parquet", "p/g-0_0-0-0_20.parquet", "q/f-0_1-1-1_20.parquet"]


def test_files_of_open_instants_are_invisible():
    assert latest(view_of(p=["f-0_0-0-0_10.parquet", "f-0_0-0-0_25.parquet"])) == ["p/f-0_0-0-0_10.parquet"]


def test_files_older_than_the_timeline_are_visible():
    assert latest(view_of(p=["f-0_0-0-0_05.parquet"])) == ["p/f-0_0-0-0_05.parquet"]


def test_time_travel_leaves_later_files_and_replacements_out():
    view = view_of(p=["f-0_0-0-0_10.parquet", "f-0_0-0-0_30.parquet", "g-0_0-0-0_10.parquet"])
    replaced = {("p", "g-0"): "20"}
    assert latest(view, replaced=replaced) == ["p/f-0_0-0-0_30.parquet"]
    assert latest(view, replaced=replaced, as_of="15") == ["p/f-0_0-0-0_10.parquet", "p/g-0_0-0-0_10.parquet"]


def test_a_replaced_group_is_told_by_partition_and_file_id():
    view = view_of(p=["f-0_0-0-0_10.parquet"], q=["f-0_0-0-0_10.parquet"])
    assert latest(view, replaced={("p", "f-0"): "20"}) == ["q/f-0_0-0-0_10.parquet"]


def test_a_leftover_of_a_task_that_ran_twice_does_not_count(caplog):
    view = view_of(
        p=["f-0_0-0-0_10.parquet", "f-0_0-0-1_10.parquet", "h-0_0-0-1_10.parquet", "old-0_0-0-0_05.parquet"]
    )
    with caplog.at_level(logging.WARNING):
        kept = latest(view, committed={"p/f-0_0-0-0_10.parquet"})
    assert kept == ["p/f-0_0-0-0_10.parquet", "p/old-0_0-0-0_05.parquet"]
    assert "h-0_0-0-1_10.parquet" in caplog.text


def test_files_of_a_table_without_partitions_have_no_folder():
    assert paths_of(
        FileView.of_listing({"": [FileInfo("f-0_0_10.parquet", False, 1)]}).files
    ).to_pylist() == ["f-0_0_10.parquet"]


def test_an_empty_listing_gives_an_empty_view():
    assert latest(FileView.of_listing({})) == []
    assert latest(FileView.of_listing({"p": []})) == []


def test_slices_are_made_of_files():
    (piece,) = file_slices(view_of(p=["f-0_1-2-3_10.parquet"]).files)
    assert (piece.partition, piece.file_id, piece.base_instant) == ("p", "f-0", "10")
    assert piece.base_file.size == 7
    assert piece.base_file.write_token == "1-2-3"


def test_log_files_are_counted_and_are_no_base_files():
    view = view_of(p=[".f-0_10.log.1_0-0-0", "f-0_0_10.parquet", ".hoodie_partition_metadata"])
    assert view.log_files == 1
    assert view.files.num_rows == 1


NAMES = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"\A\.?[a-z0-9-]{1,9}_[0-9-]{1,5}_[0-9]{1,17}\.(parquet|orc|hfile|log|crc)\Z"),
)


@given(st.lists(NAMES.filter(lambda n: "/" not in n and "\n" not in n and n.isprintable()), max_size=20))
def test_names_are_taken_apart_as_one_by_one(names):
    names = sorted(set(names))
    found = base_files(FileView.of_listing({"p": [FileInfo(n, False, 3) for n in names]}).files)
    one_by_one = [parse_base_file("p", n, 3) for n in names]
    assert found == [b for b in one_by_one if b is not None]


GROUPS = st.lists(
    st.tuples(
        st.sampled_from("pq"),
        st.sampled_from(["f-0", "g-0"]),
        st.sampled_from(["05", "10", "15", "20", "30"]),
    ),
    unique=True,
    max_size=20,
)


@given(GROUPS, st.one_of(st.none(), st.sampled_from(["05", "10", "18", "30"])))
def test_the_view_agrees_with_a_dictionary(files, as_of):
    want = {}
    for partition, group, instant in sorted(files):
        if instant in VISIBLE and (as_of is None or instant <= as_of):
            want[partition, group] = f"{partition}/{group}_0_{instant}.parquet"
    listing = {p: [f"{g}_0_{i}.parquet" for q, g, i in files if q == p] for p in "pq"}
    assert latest(view_of(**listing), as_of=as_of) == [want[k] for k in sorted(want)]


def test_a_committed_file_that_is_not_there_is_an_error():
    view = view_of(p=["f-0_0_10.parquet"]).latest(VISIBLE)
    newest = {("p", "f-0"): CommittedBaseFile("p/f-0_0_20.parquet", 7, "20")}
    with pytest.raises(MissingFileError) as e:
        check_written(view, newest, None, "/t")
    assert (e.value.file, e.value.instant, e.value.table) == ("p/f-0_0_20.parquet", "20", "/t")


def test_a_committed_file_of_another_size_is_an_error():
    view = view_of(p=["f-0_0_10.parquet"]).latest(VISIBLE)
    with pytest.raises(CorruptFileError, match="7 bytes, its commit says 9"):
        check_written(view, {("p", "f-0"): CommittedBaseFile("p/f-0_0_10.parquet", 9, "10")}, ["p"], "/t")


def test_partitions_that_were_not_listed_are_not_checked():
    newest = {("p", "f-0"): CommittedBaseFile("p/f-0_0_20.parquet", 7, "20")}
    check_written(view_of(q=[]).latest(VISIBLE), newest, ["q"], "/t")


def test_a_newer_archived_file_beside_a_savepointed_commit_is_right():
    visible = VisibleInstants(frozenset({"05", "30"}), "30")
    newest = view_of(p=["f-0_0_05.parquet", "f-0_0_08.parquet"]).latest(visible)
    check_written(newest, {("p", "f-0"): CommittedBaseFile("p/f-0_0_05.parquet", 9, "05")}, None, "/t")
    assert paths_of(newest).to_pylist() == ["p/f-0_0_08.parquet"]
