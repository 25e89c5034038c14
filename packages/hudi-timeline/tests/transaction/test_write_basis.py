"""What a write went by, compared with what is there: writes, rollbacks, restores and properties since then."""

import pytest

from hudi_format.errors import WriteConflictError
from hudi_timeline.table_config import METADATA_PARTITIONS, TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import COMMIT, COMPLETED, INFLIGHT, RESTORE, Instant
from hudi_timeline.transaction.write_basis import NOTHING, Basis, Changes

CONFIG = TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "6"})


def instants(*times, restores=(), pending=()):
    made = [Instant(t, COMMIT, COMPLETED) for t in times]
    made += [Instant(t, RESTORE, COMPLETED) for t in restores] + [
        Instant(t, COMMIT, INFLIGHT) for t in pending
    ]
    return Timeline.of_files(made)


def config(**more):
    return TableConfig({**CONFIG.properties, **{k.replace("_", "."): v for k, v in more.items()}})


BEFORE = Basis.of(CONFIG, instants("001", "003"))


def test_the_same_state_has_not_changed_though_writes_have_begun():
    changes = BEFORE.changes(CONFIG, instants("001", "003", pending=["004"]))
    assert not changes
    assert changes == Changes()


def test_writes_that_were_completed_count_whenever_they_began():
    changes = BEFORE.changes(CONFIG, instants("001", "002", "003", "005"))
    assert [i.time for i in changes.written] == ["002", "005"]
    assert changes.rival == "005"
    assert str(changes) == "commit 002 was completed, commit 005 was completed"


def test_what_was_archived_was_not_undone_and_what_is_missing_among_the_others_was():
    assert not BEFORE.changes(CONFIG, instants("003"))
    changes = BEFORE.changes(CONFIG, instants("001"))
    assert (changes.undone, changes.rival) == (("003",), "")
    assert str(changes) == "003 was rolled back"


def test_a_restore_is_named_for_all_that_it_undid():
    changes = BEFORE.changes(CONFIG, instants("001", restores=["004"]))
    assert (changes.undone, changes.restores, changes.rival) == (("003",), ("004",), "004")
    assert str(changes) == "the table was restored by 004"


def test_properties_count_but_for_those_of_the_metadata_table():
    now = config(hoodie_table_version="8", hoodie_new="x")
    assert BEFORE.changes(now, instants("001", "003")).properties == ("hoodie.new", "hoodie.table.version")
    assert not BEFORE.changes(
        TableConfig({**CONFIG.properties, METADATA_PARTITIONS: "files"}), instants("001", "003")
    )


def test_whoever_found_no_table_sees_all_of_it_as_new():
    changes = NOTHING.changes(CONFIG, instants("001"))
    assert [i.time for i in changes.written] == ["001"]
    assert changes.properties == ("hoodie.table.name", "hoodie.table.version")


def test_of_many_writes_the_newest_are_named_and_the_others_counted():
    changes = BEFORE.changes(CONFIG, instants("001", "003", *(f"01{n}" for n in range(6))))
    assert str(changes).startswith("3 writes were completed, commit 013 was completed")


def test_a_conflict_says_what_changed_and_who_did_it():
    changes = BEFORE.changes(CONFIG, instants("001", "003", "005"))
    with pytest.raises(WriteConflictError, match=r"commit 005 was completed\): its schema lacks x") as e:
        raise changes.conflict("its schema lacks x", table="/t", instant="004")
    assert (e.value.details["rival"], e.value.instant) == ("005", "004")
