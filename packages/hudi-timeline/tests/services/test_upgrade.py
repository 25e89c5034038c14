"""Upgrade and downgrade: plans first, refusals, crashes; rows stay what they were."""

import pyarrow as pa
import pytest
from converted_tables import cuts, opened, tree
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import ConcurrentWriterError, OptionError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.table_config import TYPE, VERSION


def version(made, to):
    table_config.update(LocalStorage(str(made.path)), {VERSION: str(to)})


@pytest.mark.req("OP-11", "OP-12", "NEW-08")
def test_a_table_goes_up_and_down_with_a_look_before(made):
    version(made, 5)
    plan = f"{at(3)}.compaction.requested"
    made.instant_file(plan, b"plan")
    (made.path / f".hoodie/.aux/{plan}").parent.mkdir(parents=True, exist_ok=True)
    (made.path / f".hoodie/.aux/{plan}").write_bytes(b"plan")
    before = tree(made)
    table = opened(made)
    planned = table.upgrade(dry_run=True)
    assert (tree(made), planned.executed) == (before, False)
    assert planned.steps == (f"delete .hoodie/.aux/{plan}", f"set {VERSION}=6")
    assert table.upgrade().steps == planned.steps
    assert opened(made).table_version == 6
    assert not (made.path / f".hoodie/.aux/{plan}").exists()
    assert opened(made).upgrade().steps == ()
    down = opened(made).downgrade()
    assert down.steps == (f"copy a plan to .hoodie/.aux/{plan}", f"set {VERSION}=5")
    assert (made.path / f".hoodie/.aux/{plan}").read_bytes() == b"plan"
    assert opened(made).config.properties["hoodie.table.metadata.partitions"] == ""
    assert ids(opened(made).read().to_arrow()) == ["a", "b"]


@pytest.mark.req("MG-06", "OP-11")
def test_a_timeline_of_seconds_goes_on_in_milliseconds(tmp_path):
    """Instants of 14 digits, of releases before 0.10, and those of 17 that follow the upgrade, are one order."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
    made = MadeTable(tmp_path / "t", schema, properties={VERSION: "5"})
    old = ["20210105093000", "20210105093001"]
    made.commit(old[0], {("p", file_id(1)): [{"id": "a", "v": 1}]})
    made.commit(old[1], {("p", file_id(2)): [{"id": "b", "v": 2}]})
    row = pa.table({"id": ["a"], "p": ["p"], "v": [3]}, schema)
    with pytest.raises(UnsupportedError, match="table version 5") as e:
        opened(made).upsert(row)
    assert "hudi upgrade" in e.value.remedy
    opened(made).upgrade()
    new = opened(made).upsert(row)
    assert (len(new.instant), new.updated) == (17, 1)
    table = opened(made)
    assert [i.time for i in table.timeline.completed_writes()] == [*old, new.instant]
    assert ids(table.read(as_of=old[0]).to_arrow()) == ["a"]
    assert ids(table.read(as_of="2021-01-05 09:30:00").to_arrow()) == ["a"]
    assert ids(table.read(as_of=old[1]).to_arrow()) == ["a", "b"]
    assert table.read(as_of=f"{old[1]}999").to_arrow().num_rows == 2
    assert ids(table.read_incremental(old[0]).to_arrow()) == ["a", "b"]
    assert ids(table.read_incremental(old[1]).to_arrow()) == ["a"]
    table.rollback(new.instant)
    assert sorted(opened(made).read().to_arrow()["v"].to_pylist()) == [1, 2]


@pytest.mark.req("OP-11")
def test_the_metadata_table_goes_up_along_and_is_deleted_on_the_way_down(made):
    version(made, 5)
    folder = made.path / ".hoodie/metadata"
    properties = {"hoodie.table.name": "t_metadata", VERSION: "5", TYPE: "MERGE_ON_READ"}
    table_config.create(LocalStorage(str(folder)), properties)
    assert opened(made).upgrade().steps == (f"set {VERSION}=6 in the metadata table", f"set {VERSION}=6")
    assert table_config.load(LocalStorage(str(folder))).version == 6
    assert "delete the metadata table (not in use)" in opened(made).downgrade().steps
    assert not folder.exists()


@pytest.mark.req("OP-11", "RC-02")
def test_failed_writes_are_rolled_back_before_and_live_ones_refuse_it(made):
    version(made, 5)
    made.instant_file(f"{at(3)}.commit.requested")
    made.instant_file(f"{at(3)}.inflight")
    made.base_file(at(3), "p", file_id(3), [{"id": "c", "v": 3}])
    beat = heartbeat.start(LocalStorage(str(made.path)), at(3), 60_000, 2)
    with pytest.raises(ConcurrentWriterError):
        opened(made).upgrade()
    beat.stop()
    assert f"roll back {at(3)} commit inflight" in opened(made).upgrade().steps
    assert opened(made).timeline.find(at(3)) is None
    assert not list(made.path.glob(f"p/*{at(3)}*"))


@pytest.mark.req("OP-11", "OP-12")
@pytest.mark.parametrize(
    ("before", "to", "remedy"), [(6, 4, "Apache Hudi 0.15"), (6, 8, "1.x"), (8, 6, "1.x"), (4, 6, "hudi-cli")]
)
def test_other_versions_are_refused_with_the_way_round(made, before, to, remedy):
    from hudi_timeline.services.upgrade import change_version

    version(made, before)
    with pytest.raises(UnsupportedError) as e:
        change_version(ServiceContext(LocalStorage(str(made.path))), to)
    assert remedy in e.value.remedy
    assert table_config.load(LocalStorage(str(made.path))).version == before


@pytest.mark.req("OP-11")
def test_an_upgrade_is_no_downgrade(made):
    with pytest.raises(OptionError, match="no upgrade") as e:
        opened(made).upgrade(5)
    assert "`hudi downgrade PATH`" in e.value.remedy


@pytest.mark.req("OP-11")
def test_an_upgrade_that_died_anywhere_is_carried_on(made):
    version(made, 5)
    made.instant_file(f"{at(3)}.compaction.requested", b"plan")
    (made.path / ".hoodie/.aux").mkdir(exist_ok=True)
    (made.path / f".hoodie/.aux/{at(3)}.compaction.requested").write_bytes(b"plan")

    def check():
        assert opened(made).table_version in (5, 6)
        opened(made).upgrade()
        assert opened(made).table_version == 6
        assert not (made.path / ".hoodie/hoodie.properties.backup").exists()
        assert not (made.path / f".hoodie/.aux/{at(3)}.compaction.requested").exists()

    assert cuts(made, lambda s: HudiTable._of(s).upgrade(), check) > 5
