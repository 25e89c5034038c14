"""Values that the packages pass to each other."""

from hudi_format.model import VisibleInstants


def test_visible_instants_include_what_was_archived():
    visible = VisibleInstants(frozenset({"5", "7"}), "5")
    assert "5" in visible
    assert "3" in visible
    assert "6" not in visible
    assert "9" not in visible
