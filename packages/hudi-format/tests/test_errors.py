"""Error classes: codes, one line each, and pickling."""

import pickle
import sys

import pytest

from hudi_format import errors
from hudi_format.errors import CorruptFileError, HudiError, MissingFileError
from hudi_format.storage.open import open_storage


@pytest.mark.req("NEW-36")
def test_every_error_has_its_own_code_one_line_and_survives_pickling():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, HudiError)]
    assert len({c.code for c in classes}) == len(classes)
    for cls in classes:
        error = cls("what", table="t", instant="1", file="f", remedy="do this.", column="c")
        copy = pickle.loads(pickle.dumps(error))
        assert str(copy) == str(error) == f"[{cls.code}] what (table t, instant 1, file f) Remedy: do this."
        assert copy.details == {"column": "c"}


def test_values_of_several_lines_or_of_no_valid_text_make_one_line_that_can_be_printed():
    error = HudiError("what 'a\n  b'", remedy="do\r\nthis: \ud800.")
    assert str(error) == "[HUDI-E0000] what 'a b' Remedy: do this: \\ud800."
    assert str(error).encode()
    assert pickle.loads(pickle.dumps(error)).message == error.message


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize("kind", [CorruptFileError, MissingFileError])
def test_damage_or_loss_of_a_file_always_says_what_to_do(kind):
    error = kind("what")
    assert error.remedy == ""
    placed = pickle.loads(pickle.dumps(error.at(file="f")))
    assert placed.remedy == kind.usual_remedy
    assert str(placed).endswith(f"(file f) Remedy: {kind.usual_remedy}")
    placed.advise("do this.")
    placed.advise("do that.")
    assert placed.remedy == "do this."
    assert HudiError("what", file="f").remedy == ""


def test_a_notebook_shows_the_error_first_and_the_callers_line():
    """IPython asks an exception for its own lines; without them a cell shows every frame of ours."""
    with pytest.raises(HudiError) as raised:
        open_storage("nothing://here")
    raised.value.add_note("rolled back")
    lines = raised.value._render_traceback_()
    assert lines[0] == f"{type(raised.value).__name__}: {raised.value}"
    own = [line for line in lines if line.startswith("  line")]
    assert len(own) == 1
    assert own[0].endswith(f'of {sys._getframe().f_code.co_name}: open_storage("nothing://here")')
    assert "Note: rolled back" in lines
