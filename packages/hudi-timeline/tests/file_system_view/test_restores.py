"""What restores have undone, by what their plans say, and where these say nothing."""

import pytest

from hudi_timeline.file_system_view.restores import Restores
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.instant import RESTORE


@pytest.mark.parametrize(
    ("targets", "writes", "undone", "surely"),
    [
        ({"50": "20"}, ("20", "60"), {"30", "40"}, {"30", "40"}),
        ({"50": "20"}, ("20",), {"30", "40"}, {"30", "40"}),  # what was written between is archived
        ({}, ("20", "60"), {"20", "30", "40"}, set()),
        ({}, ("35", "60"), {"40"}, set()),  # an older one has left that
    ],
)
def test_what_was_undone(targets, writes, undone, surely):
    restores = Restores(("50",), targets, writes)
    asked = ("10", "20", "30", "40", "50", "60") if targets else ("20", "30", "40", "50", "60")
    assert {i for i in asked if restores.undid(i)} == undone
    assert {i for i in asked if restores.surely_undid(i)} == surely


def _restores(made):
    return Restores.of(made.storage, load_snapshot(made.storage).timeline)


def test_a_tables_own_restores_say_where_they_went():
    made = TableBuilder()
    for name, value in (("saved", 1), ("gone", 2)):
        made.commit(name, made.base(name, {"a": value}))
    assert _restores(made) == Restores((), {}, ())
    done = made.table.restore(made.at("saved"))
    found = _restores(made)
    assert (found.times, dict(found.targets)) == ((done.instant,), {done.instant: made.at("saved")})
    assert [found.undid(made.at(n)) for n in ("saved", "gone")] == [False, True]


def test_a_restore_without_its_plan_says_nothing():
    made = TableBuilder()
    made.commit("first", made.base("first", {"a": 1}))
    made.storage.create(made.path_of(made.at("restore"), RESTORE, "COMPLETED"), b"")
    found = _restores(made)
    assert (found.times, found.targets) == ((made.at("restore"),), {})
