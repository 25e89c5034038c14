"""Markers: paths, both layouts, and names that must not lead out of the table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.markers import Marker, list_markers, marker_path, own_files

T = "20260101000000000"
FILE = f"11111111-1111-1111-1111-111111111111-0_0-1-2_{T}.parquet"
OTHER = "22222222-2222-2222-2222-222222222222-0_1-1-2_20250101000000000.parquet"
pytestmark = pytest.mark.req("WR-25")


def test_paths_are_those_of_apache_hudi():
    assert marker_path(T, "a/b", FILE, "CREATE") == f".hoodie/.temp/{T}/a/b/{FILE}.marker.CREATE"
    assert marker_path(T, "", FILE, "MERGE") == f".hoodie/.temp/{T}/{FILE}.marker.MERGE"
    with pytest.raises(ValueError, match="io_type"):
        marker_path(T, "", FILE, "WRITE")


def test_markers_of_any_depth_are_found(storage):
    assert not markers.has_markers(storage, T)
    assert list_markers(storage, T) == []
    for partition, io_type in (("", "CREATE"), ("p", "MERGE"), ("a=1/b=x y", "CREATE")):
        markers.create(storage, T, partition, FILE, io_type)
        assert storage.info(marker_path(T, partition, FILE, io_type)) is not None
    assert list_markers(storage, T) == [
        Marker("", FILE, "CREATE"), Marker("a=1/b=x y", FILE, "CREATE"), Marker("p", FILE, "MERGE")
    ]  # fmt: skip
    assert markers.list_instants(storage) == [T]
    markers.delete(storage, T)
    assert not markers.has_markers(storage, T)
    markers.delete(storage, T)


def test_batched_markers_of_the_timeline_server_are_read(storage):
    root = f".hoodie/.temp/{T}"
    storage.publish(f"{root}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.publish(f"{root}/MARKERS0", f"p/{FILE}.marker.CREATE\nq/{FILE}.marker.MERGE\n".encode())
    storage.publish(f"{root}/MARKERS11", f"{FILE}.marker.CREATE\np/{FILE}.mark".encode())
    assert list_markers(storage, T) == [
        Marker("", FILE, "CREATE"), Marker("p", FILE, "CREATE"), Marker("q", FILE, "MERGE")
    ]  # fmt: skip


@pytest.mark.req("CC-16")
def test_markers_of_one_partition_are_found_without_the_others(storage):
    root = f".hoodie/.temp/{T}"
    for partition in ("", "p", "p/q"):
        markers.create(storage, T, partition, FILE, "MERGE")
    storage.publish(f"{root}/MARKERS0", f"p/{OTHER}.marker.CREATE\nr/{OTHER}.marker.MERGE\n".encode())
    assert list_markers(storage, T, partition="p") == [
        Marker("p", FILE, "MERGE"),
        Marker("p", OTHER, "CREATE"),
    ]
    assert list_markers(storage, T, partition="") == [Marker("", FILE, "MERGE")]
    assert list_markers(storage, T, partition="r") == [Marker("r", OTHER, "MERGE")]
    assert list_markers(storage, T, partition="none") == []
    assert {markers.file_id_of(n) for n in (FILE, f".{FILE[:38]}_{T}.log.1_0-1-2")} == {FILE[:38]}


@pytest.mark.parametrize(
    "line",
    ["../x.parquet", "a/../../x.parquet", "/etc/x.parquet", ".hoodie/x.parquet", "a//x.parquet", "..", "/x",
     "a/\x00", ".hoodie"],
)  # fmt: skip
def test_a_marker_that_leads_out_of_the_table_is_an_error(storage, line):
    storage.publish(f".hoodie/.temp/{T}/MARKERS0", f"{line}.marker.CREATE\n".encode())
    with pytest.raises(CorruptFileError, match="not a data file of the table"):
        list_markers(storage, T)


def test_only_base_and_cdc_files_of_the_instant_itself_may_be_deleted():
    found = [
        Marker("p", FILE, "CREATE"),
        Marker("p", FILE, "APPEND"),
        Marker("p", OTHER, "MERGE"),
        Marker("p", ".hoodie_partition_metadata", "CREATE"),
        Marker("p", f".{FILE[:36]}-0_{T}.log.1_0-1-2", "CREATE"),
        Marker("p", f".{FILE[:36]}-0_{T}.log.1_0-1-2.cdc", "APPEND"),
        Marker("p", f".{FILE[:36]}-0_20250101000000000.log.1_0-1-2.cdc", "APPEND"),
    ]
    assert own_files(found, T) == [found[0], found[5]]


@given(st.text(max_size=60))
def test_no_line_gives_a_path_outside_the_table(line):
    try:
        marker = markers._parse(line, "MARKERS0")
    except CorruptFileError:
        return
    if marker is not None:
        assert not any(part in ("", ".", "..") for part in marker.path.split("/"))
        assert marker.path.split("/")[0] != ".hoodie"
