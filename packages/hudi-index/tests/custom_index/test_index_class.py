"""Index classes by their names."""

import pytest

from hudi_format.errors import InvalidOptionError
from hudi_index import CustomIndex
from hudi_index.custom_index.index_class import ENTRY_POINTS, installed_indexes, load_index
from hudi_index.custom_index.sqlite_index import SqliteIndex


def test_a_class_is_found_by_module_and_by_the_entry_point_of_an_installed_package(tmp_path, monkeypatch):
    assert load_index(" sqlite ") is SqliteIndex
    assert load_index("hudi_index.custom_index.sqlite_index:SqliteIndex") is SqliteIndex
    assert installed_indexes() == ["sqlite"]
    info = tmp_path / "made-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\nmade = made_index:Made\nsqlite = made_index:Made\nbroken = made_index:Other\n"
    )
    (tmp_path / "made_index.py").write_text(
        "from hudi_index import CustomIndex\nclass Made(CustomIndex):\n"
        "    def __init__(self, arguments): ...\n    def locator(self, table): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = load_index("made")
    assert issubclass(found, CustomIndex)
    assert found.__name__ == "Made"
    assert load_index("sqlite") is SqliteIndex  # no package takes the name
    with pytest.raises(InvalidOptionError, match="broken"):
        load_index("broken")


@pytest.mark.parametrize(
    "name", ["nothing", "", ":", "os:", "os:nothing", ".x:y", "os:path", "builtins:dict"]
)
def test_what_is_no_index_class_is_refused(name):
    with pytest.raises(InvalidOptionError) as caught:
        load_index(name)
    assert caught.value.remedy
