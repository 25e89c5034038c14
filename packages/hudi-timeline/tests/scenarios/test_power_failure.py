"""After a power failure at any moment: the table opens, has the rows of some commit not before the last one that
returned, is sound, and takes the next write."""

import os
import random

import pyarrow as pa
import pytest

from hudi_format.errors import HudiError, InvalidOptionError
from hudi_format.schema.input_rows import as_reader
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.testing.disk import Disk
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

LONG = os.environ.get("HUDI_SOAK") == "1"
MOMENTS = int(os.environ.get("HUDI_POWER_FAILURES") or (400 if LONG else 8))
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
ALONE = {**OPTIONS, "hoodie.table.services.enabled": "false"}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.001)


def rows(v, n=4):
    return [{"id": f"k{i}", "p": f"x{i % 2}/y", "v": v, "ts": v} for i in range(n)]


def write(storage, data, mode="append", operation="upsert", **options):
    given = {**OPTIONS, **options, "hoodie.datasource.write.operation": operation}
    return execute(LocalEngine(1), storage, as_reader(data), given, mode=mode)


def content(storage):
    found = HudiTable._of(storage).read().to_arrow().to_pylist()
    return tuple(sorted((r["id"], r["v"]) for r in found))


def commits(t):
    return sorted(t.inspect.commits().column("instant").to_pylist())


def made(storage):
    """A table of six versions, in which every service has something to do."""
    for v in range(6):
        write(storage, rows(v), **ALONE)


# What is done to the table, step by step; each step returns before the next begins.
OPERATIONS = {
    "first writes": lambda s, o: [lambda: write(s, rows(0), **o), lambda: write(s, rows(1, 3), **o)],
    "upserts": lambda s, o: [lambda: write(s, rows(7), **o), lambda: write(s, rows(8, 3), **o)],
    "bulk_insert": lambda s, o: [
        lambda: write(s, [{"id": "b", "p": "new/y", "v": 1, "ts": 1}], operation="bulk_insert", **o)
    ],
    "insert_overwrite": lambda s, o: [lambda: write(s, rows(7, 1), operation="insert_overwrite", **o)],
    "delete": lambda s, o: [lambda: write(s, rows(9, 2), operation="delete", **o)],
    "overwrite": lambda s, o: [lambda: write(s, rows(7, 3), "overwrite", **o)],
    "clean and archive": lambda s, o: [
        lambda: HudiTable._of(s).clean(options={**OPTIONS, **o}),
        lambda: HudiTable._of(s).archive(options={**OPTIONS, **o}),
    ],
    "savepoint": lambda s, o: [lambda: HudiTable._of(s).savepoint(options=o)],
    "rollback": lambda s, o: [lambda: HudiTable._of(s).rollback(commits(HudiTable._of(s))[-1], options=o)],
    "restore": lambda s, o: [lambda: HudiTable._of(s).restore(commits(HudiTable._of(s))[-3], options=o)],
    "downgrade": lambda s, o: [lambda: HudiTable._of(s).downgrade(options=o)],
}


def run(path, name, options):
    """Do it on a disk that remembers; the disk, and by moment the states that a table may then have."""
    disk = Disk(str(path))
    storage = disk.storage()
    states = [()]
    if name != "first writes":
        made(storage)
        states = [content(storage)]
    begun = len(disk.events)
    possible = []
    for step in OPERATIONS[name](storage, options):
        before = states[-1]
        start = len(disk.events)
        step()
        after = content(storage)
        # Undoing several commits shows each state on the way.
        between = [tuple((f"k{i}", v) for i in range(4)) for v in range(3, 6)] if name == "restore" else []
        possible.append((start, [before, after, *between]))
        states.append(after)
    possible.append((len(disk.events), [states[-1]]))
    return disk, begun, possible


def problems_after(disk, moment, seed, allowed, path, name):
    disk.image(str(path), moment, random.Random(seed))
    storage = open_storage(path)
    try:
        if allowed[0] == () and storage.info(".hoodie/hoodie.properties") is None:
            return []  # before there was a table
        # An overwriting in the middle of its switch, or a restore, is finished by the next call.
        unfinished = name in ("overwrite", "restore", "downgrade")
        try:
            found = content(storage)
        except HudiError as e:
            found = e
        if not (found in allowed or (unfinished and isinstance(found, HudiError))):
            return [f"reads {found}"]
        if name == "restore" and HudiTable._of(storage).timeline.pending("restore"):
            HudiTable._of(storage).restore(commits(HudiTable._of(storage))[3])
        if name == "downgrade" and HudiTable._of(storage).config.version == 5:
            HudiTable._of(storage).upgrade()
        write(storage, [{"id": "z", "p": "x0/y", "v": 1, "ts": 1}])
        now = tuple(r for r in content(storage) if r[0] != "z")
        if now not in allowed:
            return [f"has {now} after the next write"]
        return [str(f) for f in HudiTable._of(storage).verify(deep=True) if f.severity.name == "ERROR"]
    except Exception as e:  # noqa: BLE001 - each is a finding, told with its moment
        return [f"{type(e).__name__}: {e}"]


def failures(tmp_path, name, options):
    disk, begun, possible = run(tmp_path / "t", name, options)
    chance = random.Random(f"{name} {MOMENTS}")
    last = len(disk.events)
    moments = [last, last, *(chance.randrange(begun, last) for _ in range(MOMENTS))]
    bad = []
    for number, moment in enumerate(moments):
        allowed = [states for start, states in possible if start <= moment][-1]
        found = problems_after(disk, moment, f"{name} {number}", allowed, tmp_path / "image", name)
        bad += [f"{name}, moment {moment} of {begun} to {last}: {p}" for p in found]
    return bad


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.sampled(6)
def test_what_is_published_outlives_a_power_failure(tmp_path, name):
    bad = failures(tmp_path, name, {})
    assert not bad, "\n".join(bad[:10])


def test_without_flushing_a_power_failure_takes_what_was_published(tmp_path):
    disk, _, possible = run(tmp_path / "t", "upserts", {"hudi.durability": "none"})
    moment, allowed = possible[-1]
    assert any(
        problems_after(disk, moment, seed, allowed, tmp_path / "image", "upserts") for seed in range(8)
    )


@pytest.mark.parametrize("call", ["write", "clean"])
def test_a_durability_that_is_none_is_refused(tmp_path, call):
    storage = open_storage(tmp_path / "t")
    write(storage, rows(1))
    never = {"hudi.durability": "never"}
    act = {
        "write": lambda: write(storage, rows(2), **never),
        "clean": lambda: HudiTable._of(storage).clean(options=never),
    }
    with pytest.raises(InvalidOptionError):
        act[call]()
