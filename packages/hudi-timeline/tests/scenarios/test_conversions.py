"""Upgrade, downgrade, another hoodie.properties, repairs: plans first, refusals, crashes; rows stay what they were."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, OptionError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.services import hudi_cli_repairs
from hudi_timeline.services.deduplicate import DedupeType, deduplicate
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.table_config import TYPE, VERSION
from hudi_timeline.testing import CRASH, Crash, Fault, Faults
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.instant import COMPACTION


@pytest.fixture
def made(tmp_path):
    table = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    table.commit(at(1), {("p", file_id(1)): [{"id": "a", "v": 1}]})
    table.commit(at(2), {("q", file_id(2)): [{"id": "b", "v": 2}]})
    return table


def opened(made):
    return HudiTable.open(str(made.path))


def tree(made):
    return {str(f.relative_to(made.path)): f.read_bytes() for f in made.path.rglob("*") if f.is_file()}


def version(made, to):
    table_config.update(LocalStorage(str(made.path)), {VERSION: str(to)})


# --- versions ------------------------------------------------------------------------------------------


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
    with pytest.raises(OptionError, match="no upgrade"):
        opened(made).upgrade(5)


def cuts(made, run, check):
    """`run` with the process ending before each of its storage calls that change something, then `check`."""
    saved = tree(made)
    number = 0
    while True:
        number += 1
        for path in made.path.rglob("*"):
            if path.is_file():
                os.unlink(path)
        for name, data in saved.items():
            (made.path / name).parent.mkdir(parents=True, exist_ok=True)
            (made.path / name).write_bytes(data)
        faults = Faults(Fault(CRASH, number=number))
        try:
            with faults.process():
                run(faults.wrap(LocalStorage(str(made.path))))
        except Crash:
            pass
        if not faults.struck:
            return number
        check()


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


# --- hoodie.properties ---------------------------------------------------------------------------------


@pytest.mark.req("OP-02", "OP-03", "TL-03", "NEW-08")
def test_the_type_changes_by_other_properties_with_a_look_before(made):
    table = opened(made)
    new = {k: v for k, v in table.config.properties.items() if k != table_config.CHECKSUM}
    new[TYPE] = "MERGE_ON_READ"
    before = tree(made)
    plan = table.overwrite_properties(new, dry_run=True)
    assert (tree(made), plan.executed) == (before, False)
    assert str(plan).splitlines() == [
        "+ hoodie.compaction.payload.class=org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        "+ hoodie.compaction.record.merger.strategy=eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        f"- {TYPE}=COPY_ON_WRITE",
        f"+ {TYPE}=MERGE_ON_READ",
    ]
    assert table.overwrite_properties(new).changes == plan.changes
    again = opened(made)
    assert again.table_type == "MERGE_ON_READ"
    assert again.config.properties[table_config.CHECKSUM] == table_config.checksum(new)
    new = dict(again.config.properties)
    assert ids(again.read().to_arrow()) == ["a", "b"]
    assert again.overwrite_properties({**new, TYPE: "COPY_ON_WRITE"}).executed
    assert not opened(made).overwrite_properties({**new, TYPE: "COPY_ON_WRITE"}).executed


@pytest.mark.req("OP-02")
def test_properties_that_do_not_fit_are_listed_all_at_once(made):
    table = opened(made)
    new = dict(table.config.properties)
    del new[table_config.NAME], new[table_config.ARCHIVE_FOLDER]
    new |= {VERSION: "8", TYPE: "SOMETHING", "hoodie.table.precombine.fied": "ts",
            table_config.HIVE_STYLE: "true"}  # fmt: skip
    before = tree(made)
    with pytest.raises(OptionError) as e:
        table.overwrite_properties(new)
    text = "\n".join(e.value.details["errors"])
    for words in (
        "hoodie.table.name is missing", f"{table_config.ARCHIVE_FOLDER}=archived is lost", f"{VERSION}: '6' -> '8'",
        "not 'SOMETHING'", "hoodie.table.precombine.fied is unknown, is hoodie.table.precombine.field",
        f"{table_config.HIVE_STYLE}: 'false' -> 'true' contradicts",
    ):  # fmt: skip
        assert words in text
    assert tree(made) == before
    new = {**table.config.properties, "my.own": "x"}
    with pytest.raises(OptionError, match="unknown"):
        table.overwrite_properties(new)
    assert table.overwrite_properties(new, force=True).warnings == ("my.own is unknown",)
    assert opened(made).config.properties["my.own"] == "x"


@pytest.mark.req("OP-03")
def test_writes_and_plans_that_are_not_finished_keep_the_type(made):
    table = opened(made)
    to = {t: {**table.config.properties, TYPE: t} for t in ("MERGE_ON_READ", "COPY_ON_WRITE")}
    made.instant_file(f"{at(3)}.commit.requested")
    with pytest.raises(UnsupportedError, match="1 writes are not finished"):
        table.overwrite_properties(to["MERGE_ON_READ"])
    (made.path / f".hoodie/{at(3)}.commit.requested").unlink()
    table.overwrite_properties(to["MERGE_ON_READ"])
    made.instant_file(f"{at(3)}.{COMPACTION}.requested", b"plan")
    with pytest.raises(UnsupportedError, match="compaction"):
        opened(made).overwrite_properties(to["COPY_ON_WRITE"])


@pytest.mark.req("OP-02")
def test_new_properties_are_there_or_not_wherever_the_process_died(made):
    new = {**opened(made).config.properties, TYPE: "MERGE_ON_READ"}

    def check():
        assert opened(made).table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
        opened(made).overwrite_properties(new)
        assert opened(made).table_type == "MERGE_ON_READ"

    assert cuts(made, lambda s: HudiTable._of(s).overwrite_properties(new), check) > 3


# --- repairs -------------------------------------------------------------------------------------------


def context(made):
    return ServiceContext(LocalStorage(str(made.path)))


@pytest.mark.req("NEW-08")
def test_partition_metadata_is_made_where_committed_files_have_none(made):
    (made.path / "q/.hoodie_partition_metadata").unlink()
    made.base_file(at(9), "r/s", file_id(9), [{"id": "x", "v": 1}])  # of no completed instant
    (made.path / "r/s/.hoodie_partition_metadata").unlink()
    made.instant_file(f"{at(9)}.commit.requested")
    before = tree(made)
    planned = hudi_cli_repairs.add_partition_metadata(context(made), dry_run=True)
    assert [r.path for r in planned] == ["q/.hoodie_partition_metadata"]
    assert tree(made) == before
    hudi_cli_repairs.add_partition_metadata(context(made))
    assert b"commitTime=" + at(2).encode() in (made.path / "q/.hoodie_partition_metadata").read_bytes()
    assert hudi_cli_repairs.add_partition_metadata(context(made)) == ()


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"nonsense"])
def test_cleanings_without_a_plan_are_taken_away(made, content):
    made.instant_file(f"{at(3)}.clean.requested", content)
    made.instant_file(f"{at(3)}.clean.inflight", content)
    assert len(hudi_cli_repairs.remove_corrupt_cleans(context(made), dry_run=True)) == 2
    assert all(r.done for r in hudi_cli_repairs.remove_corrupt_cleans(context(made)))
    assert load_timeline(LocalStorage(str(made.path)), opened(made).config).pending("clean") == ()


def test_empty_commits_are_shown_though_the_table_cannot_be_read(made):
    made.instant_file(f"{at(3)}.commit")
    with pytest.raises(CorruptFileError):
        opened(made).read()
    assert [i.time for i in hudi_cli_repairs.empty_commits(LocalStorage(str(made.path)))] == [at(3)]


def test_partition_metadata_becomes_parquet(made):
    assert len(hudi_cli_repairs.migrate_partition_metadata(context(made), dry_run=True)) == 2
    hudi_cli_repairs.migrate_partition_metadata(context(made))
    footer = pq.read_metadata(made.path / "q/.hoodie_partition_metadata.parquet").metadata
    assert (footer[b"commitTime"], footer[b"partitionDepth"]) == (at(2).encode(), b"1")
    assert opened(made).config.partition_metafile_base_format
    assert list_partitions(LocalStorage(str(made.path)), opened(made).config) == ["p", "q"]
    assert ids(opened(made).read().to_arrow()) == ["a", "b"]


@pytest.mark.req("OP-04", "OP-05")
def test_a_commit_says_what_it_wrote_and_how_large_a_row_is(made):
    inspect = opened(made).inspect
    (row,) = inspect.commit_partitions(at(2)).to_pylist()
    (file,) = inspect.commit_files(at(2)).to_pylist()
    size = (made.path / file["path"]).stat().st_size
    assert (row["partition"], row["rows_inserted"], row["files_added"], row["bytes_written"]) == (
        "q",
        1,
        1,
        size,
    )
    assert inspect.average_record_size() == inspect.average_record_size(at(2)) == size
    made.complete(at(3), [])
    assert inspect.average_record_size() == size
    assert inspect.average_record_size(at(3)) is None
    assert json.dumps(inspect.commit_partitions(at(3)).to_pylist()) == "[]"


@pytest.mark.req("NEW-08", "NEW-28")
@pytest.mark.parametrize(
    ("kind", "left"), [("insert_type", [1, 2, 3]), ("update_type", [2, 4, 5, 7]), ("upsert_type", [2, 5, 7])]
)
def test_rows_that_stand_twice_are_taken_out_by_a_commit(tmp_path, kind, left):
    made = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    first = [{"id": "a", "p": "p", "v": 1}, {"id": "b", "p": "p", "v": 2}, {"id": "c", "p": "p", "v": 3}]
    made.commit(at(1), {("p", file_id(1)): first})
    second = [{"id": "a", "p": "p", "v": 4}, {"id": "a", "p": "p", "v": 5}, {"id": "c", "p": "p", "v": 7}]
    made.commit(at(2), {("p", file_id(2)): second})
    before = tree(made)
    planned = deduplicate(context(made), "p", kind=DedupeType(kind), dry_run=True)
    assert tree(made) == before
    done = deduplicate(context(made), "p", kind=DedupeType(kind))
    assert (done.keys, done.rows, done.files) == (planned.keys, planned.rows, planned.files)
    found = opened(made).read().to_arrow()
    assert sorted(found.column("v").to_pylist()) == left
    assert set(found.column("_hoodie_commit_time").to_pylist()) <= {at(1), at(2)}
    assert opened(made).read(as_of=at(2)).to_arrow().num_rows == 6
    assert opened(made).verify() == []
    opened(made).rollback(done.instant)
    assert opened(made).read().to_arrow().num_rows == 6
    with pytest.raises(OptionError, match="no files"):
        deduplicate(context(made), "nowhere")
