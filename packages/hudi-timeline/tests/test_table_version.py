"""`TableVersion`: a number that tells what depends on it.  `tests/golden/test_golden_versions.py` has its proof."""

import pickle

import pytest

from hudi_timeline.table_config import TableConfig
from hudi_timeline.table_version import READABLE_VERSIONS, WRITE_VERSION, TableVersion

ALL = range(10)


def test_it_is_the_number_that_the_properties_say():
    config = TableConfig({"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"})
    assert config.version == 8
    assert f"{config.version}" == "8"
    assert TableConfig({}).version == 0
    assert [TableVersion(n).label for n in (0, 6, 9, 10, -1)] == ["ZERO", "SIX", "NINE", "", ""]


@pytest.mark.parametrize(
    "version", [TableVersion(6), TableVersion(8), TableVersion(6, 2), TableVersion(0, 0)]
)
def test_it_pickles_with_its_layout(version):
    again = pickle.loads(pickle.dumps(version))
    assert (again, again.layout, type(again)) == (version, version.layout, TableVersion)


def test_what_is_written_can_be_read_and_agrees_with_itself():
    assert WRITE_VERSION.readable
    assert [n for n in ALL if TableVersion(n).readable] == list(READABLE_VERSIONS)
    for number in ALL:
        assert TableVersion(number).agrees


@pytest.mark.parametrize(
    ("number", "layout", "agrees"),
    [(6, 1, True), (6, 0, True), (6, 2, False), (8, 1, False), (8, 2, True), (9, 3, False), (0, 0, True)],
)
def test_a_layout_of_another_version_is_told(number, layout, agrees):
    assert TableVersion(number, layout).agrees is agrees


def test_where_files_lie_goes_by_the_layout_and_meaning_by_the_number():
    """`verify` looks at tables whose properties disagree."""
    mixed = TableVersion(6, 2)
    assert mixed.has_timeline_folder
    assert mixed.has_completion_times
    assert not mixed.has_merge_mode
