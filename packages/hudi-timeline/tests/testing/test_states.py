"""Tables in every state that `hudi_timeline.testing` makes: read as specified, and written to where that can be."""

import pytest

from hudi_format.errors import (
    ConcurrentWriterError,
    HollowCommitError,
    InstantNotFoundError,
    MissingFileError,
)
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.testing import TableBuilder, make_state, state_names
from hudi_timeline.testing.fixtures import any_hudi_state, hudi_builder, hudi_faults, hudi_state  # noqa: F401
from hudi_timeline.testing.states import FIRST
from hudi_timeline.testing.table_builder import SCHEMA, kryo_delete_content

pytestmark = pytest.mark.req("NEW-23")


def rows(table, **more):
    found = table.read(["id", "v"], **more).to_arrow()
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def test_every_state_is_read_as_it_says(any_hudi_state):  # noqa: F811
    state = any_hudi_state
    assert state.about.endswith(".")
    table = HudiTable.open(state.built.uri)
    if state.name == "no commit":
        assert not table.timeline.completed_writes()
        return
    if state.error is not None:
        with pytest.raises(state.error):
            rows(table)
        return
    assert rows(table) == state.rows


def test_states_can_be_made_in_any_store(tmp_path):
    state = make_state("sound", LocalStorage(str(tmp_path)))
    assert rows(HudiTable.open(str(tmp_path))) == state.rows
    assert make_state("sound").table.verify() == []
    with pytest.raises(KeyError):
        make_state("no such state")


@pytest.mark.parametrize(
    "name",
    ["requested commit", "inflight commit", "replaced groups", "archived history", "savepoint", "pending clean",
     "clean without its plan", "pending rollback", "half updated properties"],
)  # fmt: skip
def test_a_copy_on_write_table_in_any_sound_state_takes_the_next_write_and_nothing_is_left(hudi_state, name):  # noqa: F811
    state = hudi_state(name)
    more = SCHEMA.empty_table().from_pylist([{"id": "k9", "v": 90, "ts": 1, "p": "p0"}], SCHEMA)
    state.table.upsert(more)
    assert rows(state.table) == {**state.rows, "k9": 90}
    assert [str(i) for i in state.table.timeline.instants if not i.completed] == []
    assert state.table.verify() == []


def test_a_running_writer_is_not_disturbed(hudi_state):  # noqa: F811
    state = hudi_state("running commit")
    with pytest.raises(ConcurrentWriterError):
        state.table.upsert(
            SCHEMA.empty_table().from_pylist([{"id": "k9", "v": 90, "ts": 1, "p": "p0"}], SCHEMA)
        )
    assert rows(state.table) == FIRST


def test_ranges_stop_before_a_hollow_commit(hudi_state):  # noqa: F811
    state = hudi_state("hollow commit")
    with pytest.raises(HollowCommitError):
        state.table.read_incremental("000").to_arrow()
    first = state.built.at("first")
    assert state.table.latest_offset() == first


def test_ranges_begin_after_what_is_archived(hudi_state):  # noqa: F811
    state = hudi_state("archived history")
    assert len(state.table.timeline.completed_writes()) < 8
    with pytest.raises(InstantNotFoundError):
        state.table.read_incremental(state.built.at("c1")).to_arrow()


def test_older_states_are_read_where_their_files_are(hudi_state):  # noqa: F811
    state = hudi_state("replaced groups")
    assert rows(state.table, as_of=state.built.at("first")) == FIRST
    state = hudi_state("pending compaction")
    assert rows(state.table, as_of=state.built.at("second")) == {**FIRST, "k1": 10}
    assert rows(state.table, query="read_optimized") == FIRST


def test_a_missing_file_is_told_or_passed_over(hudi_state):  # noqa: F811
    state = hudi_state("missing file")
    with pytest.raises(MissingFileError):
        rows(state.table)
    with pytest.warns(UserWarning, match="k|file"):
        assert rows(state.table, on_missing="skip") == {}


def test_kryo_deletes_are_those_that_apache_hudi_wrote():
    made = TableBuilder(table_type="MERGE_ON_READ")
    stat = made.log("first", kryo=["a", "key-2", "key-3"])
    block = LogFileReader(made.storage.read(stat.path)).blocks[0]
    found = read_deletes(block, memoryview(kryo_delete_content(["a", "key-2", "key-3"], "p0")))
    assert found.version == 1
    assert found.keys.to_pylist() == ["a", "key-2", "key-3"]
    assert found.partitions.to_pylist() == ["p0"] * 3


def test_a_table_of_ones_own_is_built_file_by_file_and_fails_on_purpose(hudi_builder, hudi_faults):  # noqa: F811
    made = hudi_builder(table_type="MERGE_ON_READ")
    made.commit("first", made.base("first", {"k1": 1, "k2": 2}))
    made.commit("second", made.log("second", {"k1": 5}))
    assert rows(made.table) == {"k1": 5, "k2": 2}
    faults = hudi_faults()
    assert rows(HudiTable._of(faults.wrap(made.storage))) == {"k1": 5, "k2": 2}
    assert faults.changes == 0
    assert faults.calls > 3


def test_each_state_has_a_test():
    assert len(state_names()) >= 20
