"""Files of a table that was overwritten, closed by its writers later: no call takes them for the new table's.

A task of a writer of the old table closes its file, which an object store shows then, when the new table is in its
place, and the process dies before it looks for its instant again.  The file's instant is older than the new table's
timeline, as archived instants are.
"""

import subprocess
import sys
import textwrap

import pytest

from hudi_format.errors import (
    ClockError,
    ConcurrentWriterError,
    CorruptFileError,
    InstantNotFoundError,
    OptionError,
)
from hudi_format.file_names import PARTITION_METADATA, parse_data_file
from hudi_format.schema.input_rows import as_reader
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.concurrency import markers
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.table_config import OVERWRITTEN_BY, OVERWRITTEN_UNTIL
from hudi_timeline.testing import MemoryStorage
from hudi_timeline.timeline.instant import next_instant
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
PLAIN = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    **LAZY,
}
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.datasource.write.operation": "upsert",
}
FEW = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}
KINDS = {
    "base files": {"hoodie.datasource.write.table.type": COW},
    "log files": {"hoodie.datasource.write.table.type": MOR},
    "buckets": {"hoodie.datasource.write.table.type": COW, **BUCKETS},
    "buckets of logs": {"hoodie.datasource.write.table.type": MOR, **BUCKETS},
}


def rows(v, *keys):
    """Rows of one value; "x0" is the key x in the partition p0."""
    return [{"id": k[0], "p": f"p{k[1]}", "v": v, "ts": v} for k in keys]


def write(storage, data, mode="append", validators=(), **more):
    given = {**PLAIN, "hoodie.datasource.write.operation": "upsert", **more}
    return execute(LocalEngine(1), storage, as_reader(data), given, mode=mode, validators=validators)


def read(storage, **how):
    found = HudiTable.open(storage).read(["id", "v"], **how).to_arrow().to_pylist()
    return sorted((r["id"], r["v"]) for r in found)


def data_files(storage):
    """Paths of all data files."""
    found = (
        f"{p}/{e.name}" for p, entries in walk(storage).items() for e in entries if parse_data_file(p, e.name)
    )
    return set(found)


def late_files(storage):
    """What closes late: data files of the table as it is, and partition metadata of folders of their own."""
    names = (f"{p}/{e.name}" for p, entries in walk(storage).items() for e in entries)
    return {n: storage.read(n) for n in names if not n.endswith(PARTITION_METADATA) or n.startswith("p9/")}


def instants_of(late):
    return {f.instant for p in late if (f := parse_data_file("", p.rpartition("/")[2])) is not None}


def closed(storage, late):
    """The late files are closed; returns the paths of the data files among them."""
    for path, content in late.items():
        storage.touch(path, content)
    return {p for p in late if not p.endswith(PARTITION_METADATA)}


def overwritten(kind):
    """A new table in the place of another, and the files that writers of that one close yet."""
    storage = MemoryStorage()
    write(storage, rows(0, "a0", "b1", "c9"), **KINDS[kind])
    write(storage, rows(1, "a0", "b1", "c9", "d0"), **KINDS[kind])  # log files, where there are any
    late = late_files(storage)
    assert ("log" in kind) == any(".log." in p for p in late)
    write(storage, rows(5, "a0", "e1"), "overwrite", **KINDS[kind])
    return storage, late


def sound(storage, late=()):
    """Nothing is found but the late files, as such."""
    findings = HudiTable.open(storage).verify(deep=True)
    assert {(f.code, f.path) for f in findings} == {("file-of-no-instant", p) for p in late}
    assert all(f.repairable for f in findings)


NEW = [("a", 5), ("e", 5)]
MORE = [("a", 6), ("e", 5), ("f", 6), ("g", 6)]


def more(storage, **options):
    write(storage, rows(6, "a0", "f1", "g9"), **options)


@pytest.mark.parametrize("kind", KINDS)
def test_late_files_are_not_read_are_reported_and_can_be_removed(kind):
    storage, late = overwritten(kind)
    paths = closed(storage, late)
    table = HudiTable.open(storage)
    assert read(storage) == NEW
    assert read(storage, filter="p = 'p9'") == []
    assert table.count() == 2
    assert table.get(["c", "d"]).num_rows == 0
    if kind == "base files":
        files = table.read().explain(verbose=True).files
        reasons = dict(zip(files["path"].to_pylist(), files["reason"].to_pylist(), strict=True))
        assert {reasons[p] for p in paths} == {"of the table that was overwritten"}
    sound(storage, paths)
    table.repair()
    assert not paths & data_files(storage)
    sound(storage)
    assert read(storage) == NEW


def _new_metadata_table(storage):
    more(storage, **{"hoodie.metadata.enable": "true"})
    assert HudiTable.open(storage).config.metadata_partitions


def _indexes(storage):
    more(storage, **{
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
    })  # fmt: skip


def _index_built_later(storage):
    _new_metadata_table(storage)
    HudiTable.open(storage).build_index("column_stats")


def _cleaning(storage):
    more(storage)
    write(storage, rows(6, "a0"))
    HudiTable.open(storage).clean(options={**PLAIN, "hoodie.cleaner.commits.retained": "1"})


def _archival(storage):
    more(storage)
    for _ in range(5):
        write(storage, rows(6, "a0"))
    table = HudiTable.open(storage)
    first = table.timeline.first_active
    table.compact(options=PLAIN) if table.table_type == MOR else None
    assert table.archive(options={**PLAIN, **FEW}).plan
    assert table.timeline.first_active > first


def _compaction(storage):
    more(storage)
    HudiTable.open(storage).compact(options=PLAIN)


def _savepoint_and_restore(storage):
    more(storage)
    table = HudiTable.open(storage)
    at = table.timeline.completed_writes()[-1].time
    table.savepoint(at)
    write(storage, rows(7, "a0"))
    table.restore(at)


def _deduplication(storage):
    more(storage)
    assert HudiTable.open(storage).duplicates().num_rows == 0


def _growth_of_small_files(storage):
    write(storage, rows(6, "f1", "g9"), **{"hoodie.datasource.write.operation": "insert"})
    write(storage, rows(6, "a0"))


ACTS = [
    more, _new_metadata_table, _indexes, _index_built_later, _cleaning, _archival, _compaction, _savepoint_and_restore,
    _deduplication, _growth_of_small_files,
]  # fmt: skip


def cases():
    for kind in KINDS:
        for act in ACTS:
            if act is _growth_of_small_files and "buckets" in kind:
                continue  # they have none
            if act is _compaction and "log" not in kind:
                continue
            yield pytest.param(kind, act, id=f"{kind}-{act.__name__.strip('_')}")


@pytest.mark.parametrize(("kind", "act"), list(cases()))
@pytest.mark.sampled(2)
def test_what_is_done_beside_late_files_is_what_would_be_done_without(kind, act):
    storage, late = overwritten(kind)
    twin = storage.copy_of()
    paths = closed(storage, late)
    act(twin)
    act(storage)
    assert read(storage) == read(twin) == MORE
    # Of the late files some may be gone by now; all others are as they would be without.
    mine, theirs = data_files(storage) - paths, data_files(twin)
    assert sorted(p.rpartition("/")[0] for p in mine) == sorted(p.rpartition("/")[0] for p in theirs)
    assert len(HudiTable.open(storage).timeline.instants) == len(HudiTable.open(twin).timeline.instants)
    sound(twin)
    sound(storage, paths & data_files(storage))


def test_an_erasure_has_their_keys_among_what_is_none_of_the_tables():
    storage, late = overwritten("base files")
    paths = closed(storage, late)
    report = HudiTable.open(storage).erasure_report(["c"])
    assert {r["path"] for r in report.traces.to_pylist()} == {p for p in paths if p.startswith("p9/")}
    assert not report.plan
    assert all("none of the table's" in why for why in report.by_hand.values())


@pytest.mark.parametrize("kind", ["base files", "log files"])
def test_earlier_states_and_ranges_of_instants_are_those_of_the_new_table(kind):
    storage, late = overwritten(kind)
    before = HudiTable.open(storage).timeline.completed_writes()[0].time
    twin = storage.copy_of()
    closed(storage, late)
    oldest = min(instants_of(late))
    for one in (storage, twin):
        more(one)

    def seen(one):
        table = HudiTable.open(one)
        out = [read(one, as_of=before)]
        for moment in (oldest, "2020-01-01"):
            try:
                out.append(read(one, as_of=moment))
            except InstantNotFoundError as e:
                out.append(e.message)
        for begin in ("00000000000000", oldest, before):
            found = table.read_incremental(begin).to_arrow().to_pylist()
            out.append(sorted((r["id"], r["v"]) for r in found))
        return out

    assert seen(storage) == seen(twin)
    assert seen(storage)[0] == NEW


def test_a_second_overwriting_leaves_nothing_of_either_table_before():
    storage, first = overwritten("base files")
    second = late_files(storage)
    until = HudiTable.open(storage).config.overwritten.until
    write(storage, rows(8, "z0"), "overwrite")
    paths = closed(storage, first) | closed(storage, second)
    assert HudiTable.open(storage).config.overwritten.until > until
    assert read(storage) == [("z", 8)]
    sound(storage, paths)


def renamed(late, instant):
    """The late files with another instant."""
    out = {}
    for path, content in late.items():
        file = parse_data_file("", path.rpartition("/")[2])
        out[path if file is None else path.replace(file.instant, instant)] = content
    return out


def begun(storage, late):
    """A write of the old table, begun by its pieces and with markers; its instant, and what its tasks close late."""
    config = table_config.load(storage)
    dying = begin_transaction(storage, config, operation="UPSERT", options=parse_transaction_options(LAZY))
    dying.inflight(None)
    return dying.instant, renamed(late, dying.instant)


def test_of_writers_that_began_beside_the_overwriting_nothing_is_read_after_an_archival_either():
    storage = MemoryStorage()
    write(storage, rows(0, "a0", "c9"))
    late, found = late_files(storage), {}

    def rival(change):
        found["instant"], found["late"] = begun(storage, late)
        return True

    done = write(storage, rows(5, "a0", "e1"), "overwrite", validators=[rival])
    assert done.instant < found["instant"]
    config = HudiTable.open(storage).config
    assert (config.overwritten.until, config.overwritten.by) == (found["instant"], done.instant)
    assert storage.info(f".hoodie/.overwritten_{found['instant']}_{done.instant}") is not None
    paths = closed(storage, found["late"]) | closed(storage, late)
    assert read(storage) == NEW
    sound(storage, paths)
    _archival(storage)
    table = HudiTable.open(storage)
    assert table.timeline.first_active > found["instant"]
    assert read(storage) == MORE  # the file of the first commit that nobody wrote to again is there
    assert done.instant in table.timeline.archived()
    sound(storage, paths & data_files(storage))


def test_a_writer_at_the_instant_of_the_overwriting_is_told_from_it():
    storage = MemoryStorage()
    write(storage, rows(0, "a0"))

    def rival(change):
        storage.create(f".hoodie/{change.instant}.commit.requested", b"")
        return True

    with pytest.raises(ConcurrentWriterError, match="same instant"):
        write(storage, rows(5, "a0"), "overwrite", validators=[rival])
    assert read(storage) == [("a", 0)]


@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_marked_late_files_go_with_the_next_write_that_removes_such(policy):
    storage, late = overwritten("log files")
    instant = max(instants_of(late))
    paths = closed(storage, late)
    for path in paths:
        partition, _, name = path.rpartition("/")
        markers.create(
            storage, instant, partition, name, markers.APPEND if ".log." in name else markers.CREATE
        )
    write(storage, rows(6, "a0"), **{"hoodie.clean.failed.writes.policy": policy})
    for _ in range(3):
        write(storage, rows(6, "a0"), **{"hoodie.clean.failed.writes.policy": policy})
    HudiTable.open(storage).compact(options=PLAIN)
    HudiTable.open(storage).archive(options={**PLAIN, **FEW})
    assert not paths & data_files(storage)
    assert not markers.list_instants(storage)
    assert read(storage) == [("a", 6), ("e", 5)]
    sound(storage)


# --- the table's first instant -------------------------------------------------------------------------------


def ahead(storage):
    """An instant of the old table that lies ahead of the clock, as one of a machine whose clock is wrong."""
    newest = HudiTable.open(storage).timeline.newest_time
    time = f"{int(newest[:4]) + 1}{newest[4:]}"
    empty = b'{"partitionToWriteStats": {}, "extraMetadata": {}, "operationType": "UPSERT"}'
    for suffix in ("commit.requested", "inflight", "commit"):
        storage.create(f".hoodie/{time}.{suffix}", empty if suffix == "commit" else b"")
    return time


def test_no_overwriting_has_an_instant_before_those_of_the_old_table():
    storage = MemoryStorage()
    write(storage, rows(0, "a0"))
    time = ahead(storage)
    with pytest.raises(ClockError) as raised:
        write(storage, rows(5, "a0"), "overwrite")
    assert raised.value.instant == time
    assert storage.info(".hoodie/.overwrite") is None
    assert read(storage) == [("a", 0)]


def test_a_given_instant_is_later_than_those_of_the_old_table():
    storage = MemoryStorage()
    first = write(storage, rows(0, "a0")).instant
    for given in (first, "20200101000000000"):
        with pytest.raises(OptionError, match="later than the table's newest"):
            write(storage, rows(5, "a0"), "overwrite", **{"hudi.write.instant": given})
    given = next_instant(first)
    assert write(storage, rows(5, "a0"), "overwrite", **{"hudi.write.instant": given}).instant == given
    assert read(storage) == [("a", 5)]


def test_of_an_old_table_that_cannot_be_read_late_files_are_known_too():
    storage = MemoryStorage()
    write(storage, rows(0, "a0", "c9"))
    late = late_files(storage)
    (known,) = instants_of(late)
    time = f"{int(known[:4]) + 1}{known[4:]}"
    storage.create(f".hoodie/{time}.commit", b"")
    with pytest.raises(ClockError):  # its instants are known by their names
        write(storage, rows(5, "a0", "e1"), "overwrite")
    storage.delete(f".hoodie/{time}.commit")
    storage.publish(f".hoodie/{known}.commit", b"")
    write(storage, rows(5, "a0", "e1"), "overwrite")
    paths = closed(storage, late)
    assert read(storage) == NEW
    sound(storage, paths)


def test_instants_of_the_new_table_are_later_than_the_last_of_the_old_one():
    storage, _ = overwritten("base files")
    config = table_config.load(storage)
    newest = HudiTable.open(storage).timeline.newest_time
    assert newest > config.overwritten.until
    soon = next_instant(next_instant(newest))
    table_config.update(storage, {OVERWRITTEN_UNTIL: soon, OVERWRITTEN_BY: newest})
    assert write(storage, rows(6, "a0")).instant > soon
    assert read(storage) == [("a", 6), ("e", 5)]
    assert config.overwritten.by == ""


# --- the properties ------------------------------------------------------------------------------------------


def test_the_properties_outlive_what_changes_others():
    storage, late = overwritten("base files")
    paths = closed(storage, late)
    table = HudiTable.open(storage)
    known = table.config.overwritten
    assert known.until
    table.downgrade()
    assert table.config.overwritten == known
    assert read(storage) == NEW
    table.upgrade()
    assert table.config.overwritten == known
    properties = dict(table.config.properties)
    for changed in ({}, {OVERWRITTEN_UNTIL: "20200101000000000"}):
        given = {k: v for k, v in properties.items() if not k.startswith("hudi.overwritten")} | changed
        with pytest.raises(OptionError, match="told from those of this one"):
            table.overwrite_properties(given, force=True)
    _new_metadata_table(storage)
    assert table.config.overwritten == known
    assert read(storage) == MORE
    sound(storage, paths)


def test_the_name_of_a_file_says_it_too_where_others_write_the_properties_anew():
    """As CREATE TABLE of Apache Hudi does."""
    storage, late = overwritten("base files")
    paths = closed(storage, late)
    known = HudiTable.open(storage).config.overwritten
    entries = {k: v for k, v in HudiTable.open(storage).config.properties.items() if k.startswith("hoodie.")}
    storage.publish(".hoodie/hoodie.properties", table_config.render(entries))
    table = HudiTable.open(storage)
    assert not table.config.overwritten.until
    assert table.timeline.overwritten == known
    assert read(storage) == NEW
    sound(storage, paths)
    more(storage)
    assert read(storage) == MORE
    # The next overwriting knows it, and leaves its own alone.
    write(storage, rows(8, "z0"), "overwrite")
    closed(storage, late)
    names = [e.name for e in storage.list(".hoodie") if e.name.startswith(".overwritten_")]
    assert names == [f".overwritten_{HudiTable.open(storage).config.overwritten.until}"]
    assert HudiTable.open(storage).config.overwritten.until > known.until
    assert read(storage) == [("z", 8)]


@pytest.mark.parametrize("value", ["x", "-1", "2026-01-01", "²"])
def test_a_property_that_is_no_instant_is_refused(value):
    storage, _ = overwritten("base files")
    text = storage.read(".hoodie/hoodie.properties")
    lines = [
        line for line in text.splitlines() if b"content checksum" not in line and b"hudi.over" not in line
    ]
    storage.publish(
        ".hoodie/hoodie.properties", b"\n".join([*lines, f"{OVERWRITTEN_UNTIL}={value}".encode(), b""])
    )
    with pytest.raises(CorruptFileError, match="is not an instant"):
        read(storage)


def test_a_table_that_took_no_place_has_no_such_property():
    storage = MemoryStorage()
    write(storage, rows(0, "a0"), "overwrite")
    assert not any("overwritten" in k for k in table_config.load(storage).properties)


# --- a process ------------------------------------------------------------------------------------------------

WRITER = """
    import os, sys
    from hudi_format.storage.open import open_storage
    from hudi_timeline import table_config
    from hudi_timeline.options.transaction_config import parse_transaction_options
    from hudi_timeline.transaction.transaction import begin_transaction

    storage = open_storage(sys.argv[1])
    options = parse_transaction_options({"hoodie.clean.failed.writes.policy": "LAZY"})
    writer = begin_transaction(storage, table_config.load(storage), operation="UPSERT", options=options)
    writer.inflight(None)
    name = next(e.name for e in storage.list("p0") if e.name.endswith(".parquet"))
    content = storage.read(f"p0/{name}")
    name = f"late-0_0-0-0_{writer.instant}.parquet"
    print(name, flush=True)
    sys.stdin.readline()  # by now the table is another one
    storage.create(f"p0/{name}", content)
    os._exit(9)
"""


def test_a_process_that_writes_to_the_old_table_and_dies_after_the_switch(tmp_path):
    storage = open_storage(tmp_path / "t")
    write(storage, rows(0, "a0", "b0"))
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path / "t")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        name = it.stdout.readline().strip()
        write(storage, rows(5, "a0", "e1"), "overwrite")
        it.communicate("go\n", timeout=60)
    assert it.returncode == 9
    assert storage.info(f"p0/{name}") is not None
    assert read(storage) == NEW
    sound(storage, {f"p0/{name}"})
