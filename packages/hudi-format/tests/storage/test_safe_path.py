"""Paths that lead out of a table's folder, and those that only look as if they did."""

import pickle
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_format.storage.safe_path import check_below, is_plain, leads_out

OUT = ["..", "../x", "a/../b", "a/..", "a\\..\\b", "%2e%2e/x", "a/%2E./b", ".%2e", "a\0b", "a\ud800b"]
WITHIN = ["", "a", "a..b", "..a/b", "a/...", "%2e/a", "é/..é", "a b/c=d", "\udc80"]


@pytest.mark.parametrize("path", OUT)
def test_what_leads_out_is_refused_for_reads_too(path):
    assert leads_out(path)
    assert not is_plain(path)
    with pytest.raises(CorruptFileError, match="is not below the table's folder"):
        check_below(path, "/t")


@pytest.mark.parametrize("path", WITHIN)
def test_names_that_only_hold_points_are_within(path):
    assert not leads_out(path)
    assert check_below(path, "/t") == path


@pytest.mark.parametrize("path", [".", "/a", "a/", "a//b", "./a", "a/.", "a/./b"])
def test_what_is_changed_must_be_named_plainly(path):
    assert check_below(path, "/t") == path
    with pytest.raises(CorruptFileError):
        check_below(path, "/t", changes=True)


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b..", "%2e%2e"]), max_size=6).map("/".join))
def test_a_plain_path_stays_itself_and_below_when_it_is_normalised(path):
    if is_plain(path) and path:
        assert posixpath.normpath(path) == path
    if not leads_out(path):
        assert not posixpath.normpath(posixpath.join("root", path.lstrip("/"))).startswith("..")


def test_the_error_has_no_text_that_cannot_be_written():
    with pytest.raises(CorruptFileError) as e:
        check_below("a\0\ud800", "/t")
    assert "a" in str(e.value).encode().decode()
    pickle.loads(pickle.dumps(e.value))
