"""A table remembers that its keys are unique over all partitions, whatever else writes to it."""

import json
import shutil

import pyarrow as pa
import pytest

from hudi_format.errors import ConflictingOptionError, HudiError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.services.replace_properties import overwrite_properties
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.testing.faulty_storage import CRASH, Crash, Fault, Faults
from hudi_timeline.timeline import archived_timeline
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning.index_choice import RECORDED, recorded_index, remembered_index

INDEX, SWITCH = "hoodie.index.type", {"hudi.index.allow.switch": "true"}
PROPERTY = table_config.INDEX
WRITE = "hoodie.datasource.write."
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
ARCHIVING = {
    "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1",
}  # fmt: skip
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
}


def rows(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


def make(path, **options):
    return HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        options=options,
    )  # fmt: skip


def stored(path):
    return HudiTable.open(str(path)).config.properties.get(PROPERTY)


def forget(path):
    """Properties that were made anew by another program."""
    table_config.update(open_storage(str(path)), {}, [PROPERTY])


def silence(path, newest=1):
    """The newest commits as another program's, which say nothing of an index."""
    for file in sorted((path / ".hoodie").glob("*commit"))[-newest:]:
        content = json.loads(file.read_bytes())
        content["extraMetadata"].pop(RECORDED, None)
        file.write_text(json.dumps(content))


def partitions(path):
    found = HudiTable.open(str(path)).read(meta_columns=True).to_arrow().to_pylist()
    return sorted((r["id"], r["_hoodie_partition_path"]) for r in found)


def move(path, to, ts, **options):
    """An upsert of key k into another partition, as whoever names no index does it."""
    return HudiTable.open(str(path)).upsert(rows(("k", to, ts)), options=options)


@pytest.mark.req("NEW-14", "IX-15")
@pytest.mark.parametrize(
    "first",
    [
        lambda path: make(path, **{INDEX: "GLOBAL_BLOOM"}).upsert(rows(("k", "a", 1))),
        lambda path: make(path).upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_BLOOM"}),
        lambda path: make(path).insert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_BLOOM"}),
        lambda path: execute(
            LocalEngine(1), open_storage(str(path)), rows(("k", "a", 1)), {**OPTIONS, INDEX: "GLOBAL_BLOOM"}
        ),
    ],
    ids=["created", "upserted", "inserted", "made-by-a-write"],
)
def test_a_global_index_is_gone_on_with_after_commits_of_others(path, first):
    first(path)
    assert stored(path) == "GLOBAL_BLOOM"
    for n in range(3):
        HudiTable.open(str(path)).insert(rows((f"n{n}", "a", 1)))
    silence(path, 4)
    result = move(path, "b", 5)
    assert result.lookup.index == "GLOBAL_BLOOM"
    assert ("k", "b") in partitions(path)
    assert ("k", "a") not in partitions(path)


@pytest.mark.req("NEW-14", "IX-15")
@pytest.mark.parametrize("silent", [0, 1, 3])
def test_commits_tell_the_index_where_the_properties_were_made_anew(path, silent):
    make(path).upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_SIMPLE"})
    for n in range(silent):
        HudiTable.open(str(path)).insert(rows((f"n{n}", "a", 1)))
    if silent:
        silence(path, silent)
    forget(path)
    with pytest.raises(ConflictingOptionError):
        move(path, "b", 5, **{INDEX: "SIMPLE"})
    assert move(path, "b", 5).lookup.index == "GLOBAL_SIMPLE"
    assert stored(path) == "GLOBAL_SIMPLE"


@pytest.mark.req("NEW-14", "IX-15")
def test_archived_commits_tell_it_too_and_are_asked_once(path):
    make(path).upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_SIMPLE"})
    for n in range(8):
        HudiTable.open(str(path)).upsert(rows((f"n{n}", "a", 1)), options=ARCHIVING)
    active = len(list((path / ".hoodie").glob("*.commit")))
    assert active < 6
    silence(path, active)
    forget(path)
    assert move(path, "b", 5).lookup.index == "GLOBAL_SIMPLE"
    assert stored(path) == "GLOBAL_SIMPLE"


@pytest.mark.req("NEW-14")
def test_an_archive_that_says_nothing_is_asked_once(path, monkeypatch):
    make(path).upsert(rows(("k", "a", 1)))
    for n in range(8):
        HudiTable.open(str(path)).upsert(rows((f"n{n}", "a", 1)), options=ARCHIVING)
        silence(path)
    forget(path)
    asked = []
    whole = archived_timeline.archived_extra
    monkeypatch.setattr(archived_timeline, "archived_extra", lambda *a: asked.append(a) or whole(*a))
    assert move(path, "b", 5).lookup.index == "SIMPLE"
    assert len(asked) == 1
    silence(path)
    move(path, "b", 6)
    assert len(asked) == 1
    assert stored(path) == "SIMPLE"


@pytest.mark.req("NEW-14")
def test_an_archive_that_cannot_be_read_stops_no_write(path, caplog):
    make(path).upsert(rows(("k", "a", 1)))
    for n in range(8):
        HudiTable.open(str(path)).upsert(rows((f"n{n}", "a", 1)), options=ARCHIVING)
    silence(path, 9)
    forget(path)
    for file in (path / ".hoodie" / "archived").glob(".commits_*"):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2] + b"\xff" * 40 + data[len(data) // 2 + 40 :])
    caplog.set_level("WARNING", "hudi")
    assert move(path, "b", 5).lookup.index == "SIMPLE"
    assert "not asked for the table's index" in caplog.text


@pytest.mark.req("NEW-14")
def test_a_table_that_never_said_an_index_is_written_as_apache_hudi_does(path):
    make(path).upsert(rows(("k", "a", 1)))
    silence(path)
    assert move(path, "b", 5).lookup.index == "SIMPLE"
    assert stored(path) is None
    assert partitions(path) == [("k", "a"), ("k", "b")]


@pytest.mark.req("NEW-14", "IX-15")
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite_table"])
@pytest.mark.parametrize("options", [{}, {INDEX: "BLOOM"}], ids=["none", "bloom"])
def test_operations_that_look_nothing_up_give_no_index_up(path, operation, options):
    make(path).upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_SIMPLE"})
    getattr(HudiTable.open(str(path)), operation)(rows(("k", "a", 1)), options=options)
    assert stored(path) == "GLOBAL_SIMPLE"
    forget(path)
    silence(path)
    getattr(HudiTable.open(str(path)), operation)(rows(("m", "a", 1)), options=options)
    with pytest.raises(ConflictingOptionError):
        move(path, "b", 5, **{INDEX: "SIMPLE"})


@pytest.mark.req("NEW-14", "IX-15")
def test_an_index_that_is_given_up_is_forgotten_for_good(path):
    make(path).upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_SIMPLE"})
    result = move(path, "b", 5, **SWITCH, **{INDEX: "BLOOM"})
    assert any("no longer" in w for w in result.warnings)
    assert stored(path) == "BLOOM"
    silence(path)
    assert move(path, "c", 6).lookup.index == "SIMPLE"
    assert move(path, "c", 7, **{INDEX: "GLOBAL_BLOOM"}).lookup.index == "GLOBAL_BLOOM"
    assert stored(path) == "GLOBAL_BLOOM"


@pytest.mark.req("NEW-14")
def test_a_table_that_takes_the_place_of_another_remembers_its_own(path):
    make(path).upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_SIMPLE"})
    execute(LocalEngine(1), open_storage(str(path)), rows(("k", "a", 1)), OPTIONS, mode="overwrite")
    assert stored(path) is None
    assert move(path, "b", 5).lookup.index == "SIMPLE"


@pytest.mark.req("NEW-14")
@pytest.mark.parametrize("word", ["hbase", "nonsense"])
def test_an_index_of_another_version_is_refused_by_name(path, word):
    table = make(path)
    table.insert(rows(("k", "a", 1)))
    table_config.update(open_storage(str(path)), {PROPERTY: word})
    for operation in ("upsert", "insert", "bulk_insert", "delete"):
        with pytest.raises(UnsupportedError, match=word.upper()) as e:
            getattr(table, operation)(rows(("k", "b", 2)))
        assert table_config.PROPERTIES_FILE in str(e.value)
    assert move(path, "b", 3, **SWITCH, **{INDEX: "SIMPLE"}).lookup.index == "SIMPLE"
    assert stored(path) == "SIMPLE"


@pytest.mark.req("NEW-14", "OP-11", "OP-12")
def test_downgrade_upgrade_and_new_properties_keep_the_index(path):
    table = make(path)
    table.upsert(rows(("k", "a", 1)), options={INDEX: "GLOBAL_SIMPLE"})
    silence(path)
    table.downgrade()
    assert stored(path) == "GLOBAL_SIMPLE"
    table.upgrade()
    assert stored(path) == "GLOBAL_SIMPLE"
    context = ServiceContext(open_storage(str(path)))
    same = dict(context.table.properties)
    assert not overwrite_properties(context, same).executed
    overwrite_properties(context, {**same, PROPERTY: "GLOBAL_BLOOM"})
    assert move(path, "b", 5).lookup.index == "GLOBAL_BLOOM"


@pytest.mark.req("NEW-14")
def test_a_crash_at_any_change_forgets_no_global_index(path, tmp_path):
    def upsert(folder, faults=None):
        storage = open_storage(str(folder))
        storage = storage if faults is None else faults.wrap(storage)
        return execute(
            LocalEngine(1), storage, rows(("k", "b", 5)),
            {**OPTIONS, WRITE + "operation": "upsert", INDEX: "GLOBAL_SIMPLE"},
        )  # fmt: skip

    make(path).insert(rows(("k", "a", 1)))
    seen = set()
    for number, (operation, pattern) in enumerate(
        [("publish", "*.backup"), ("delete", "*.properties"), ("create", "*.properties"), ("delete", "*.backup"),
         ("create", "*.commit"), ("delete_dir", "*.temp*")]
    ):  # fmt: skip
        for after in (False, True):
            folder = tmp_path / f"{number}-{after}"
            shutil.copytree(path, folder)
            faults = Faults(Fault(CRASH, operation=operation, path=pattern, after=after))
            with faults.process(), pytest.raises((Crash, HudiError)):
                upsert(folder, faults)
            for file in (folder / ".hoodie" / ".heartbeat").glob("*"):
                file.unlink()
            table = HudiTable.open(str(folder))
            done = table.read().to_arrow().column("p").to_pylist() == ["b"]
            remembered = recorded_index(table.config.properties)
            seen.add((done, remembered))
            if done:
                assert remembered == "GLOBAL_SIMPLE"
            assert move(folder, "c", 9).updated + 1  # the next write goes on
    assert seen == {(False, None), (False, "GLOBAL_SIMPLE"), (True, "GLOBAL_SIMPLE")}


@pytest.mark.req("NEW-14")
def test_a_write_that_fails_leaves_the_index_as_it_was(path):
    make(path).insert(rows(("k", "a", 1)))
    before = (path / ".hoodie" / "hoodie.properties").read_bytes()

    def no(change):
        raise ValueError("no")

    with pytest.raises(Exception, match="no"):
        HudiTable.open(str(path)).upsert(
            rows(("k", "b", 5)), options={INDEX: "GLOBAL_SIMPLE"}, validators=[no]
        )
    assert (path / ".hoodie" / "hoodie.properties").read_bytes() == before


@pytest.mark.req("NEW-14")
def test_properties_count_before_commits_and_words_that_are_no_index_do_not():
    none = iter(())
    assert recorded_index({}, none) is None
    assert recorded_index({PROPERTY: " global_simple "}, none) == "GLOBAL_SIMPLE"
    assert recorded_index({PROPERTY: "BLOOM"}, [{RECORDED: "GLOBAL_SIMPLE"}]) == "BLOOM"
    said = [{}, {RECORDED: "what"}, {RECORDED: "BLOOM"}, {RECORDED: "GLOBAL_SIMPLE"}]
    assert recorded_index({}, said) == "BLOOM"
    asked = iter([{RECORDED: "SIMPLE"}, {RECORDED: "GLOBAL_SIMPLE"}])
    assert recorded_index({}, asked) == "SIMPLE"
    assert next(asked) == {RECORDED: "GLOBAL_SIMPLE"}  # further ones were not asked


@pytest.mark.req("NEW-14")
def test_a_write_to_a_table_of_ours_reads_no_more_commits_for_it(path):
    make(path).upsert(rows(("k", "a", 1)))
    for n in range(4):
        HudiTable.open(str(path)).insert(rows((f"n{n}", "a", 1)))
    faults = Faults()
    storage = faults.wrap(open_storage(str(path)))
    snapshot = load_snapshot(storage)
    before = len(faults.log)
    assert remembered_index(snapshot, far=True) == ("SIMPLE", False)
    assert len(faults.log) - before == 1  # the newest commit, which the plan reads for the schema
