"""Wrong rows, arguments and options: each a typed error with its code, and the table byte for byte as it was."""

import shutil

import pytest
from bad_input import assert_same, content, make, rows
from bad_input_cases import CHOICES, ROWS

from hudi_format.errors import HudiError
from hudi_timeline import HudiTable


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "table"
    make(path)
    return path


@pytest.mark.req("NEW-15", "NEW-36")
@pytest.mark.parametrize("bad", [*ROWS, *CHOICES], ids=str)
def test_what_is_wrong_has_a_code_and_changes_nothing(template, tmp_path, bad):
    path = tmp_path / "table"
    shutil.copytree(template, path)
    table = HudiTable.open(str(path))
    before = content(path)
    with pytest.raises(HudiError) as e:
        bad.act(table)
    error = e.value
    assert error.code == bad.code, f"{type(error).__name__}: {error}"
    assert "\n" not in str(error)
    assert error.remedy or error.details, str(error)
    assert_same(before, content(path), begun=bad.begun)
    assert not list(tmp_path.rglob("out*"))
    if bad.begun:  # and the next write goes on
        assert table.upsert(rows("a")).updated == 1


def test_there_are_sixty_of_them_and_more():
    assert len({b.name for b in (*ROWS, *CHOICES)}) >= 60
