"""Values that the packages pass to each other."""

from hudi_format.model import NOT_OVERWRITTEN, OverwrittenInstants, VisibleInstants


def test_visible_instants_include_what_was_archived():
    visible = VisibleInstants(frozenset({"5", "7"}), "5")
    assert "5" in visible
    assert "3" in visible
    assert "6" not in visible
    assert "9" not in visible


def test_instants_of_an_overwritten_table_are_not_visible_though_older():
    others = OverwrittenInstants(until="4", by="2")
    visible = VisibleInstants(frozenset({"3", "7"}), "5", others)
    assert [i for i in "12345678" if i in visible] == ["2", "3", "7"]
    assert [i for i in "12345678" if i in others] == ["1", "3", "4"]
    assert 1 not in others
    assert [i for i in ("", "1", "9") if i in NOT_OVERWRITTEN] == []
