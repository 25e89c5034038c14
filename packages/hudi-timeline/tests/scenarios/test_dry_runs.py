"""Every operation that changes a table by itself says first what it would do: nothing is changed; then just that."""

import shutil

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
CLEAN = {"hoodie.cleaner.commits.retained": "2"}
ARCHIVE = {**CLEAN, "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table of eight commits, of which the first ones can be archived, with a foreign file in a partition."""
    path = tmp_path_factory.mktemp("made") / "t"
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])
    for step in range(8):
        table.upsert(rows(step), options=OFF)
    table.clean(options=CLEAN)
    table.upsert(rows(8), options=OFF)
    (path / "a/part-00000.parquet").write_bytes(b"PAR1")
    return path


def of_plans(plans):
    return [f.partition("/t/")[2] for p in plans for r in p.requests for f in r.files]


def names(plan):
    return [f"{p}/{n}" for p, several in plan.files.items() for n in several]


# By operation: how it is called, and the data files that its result says it deletes.
OPERATIONS = {
    "clean": (lambda t, **o: t.clean(options=CLEAN, **o), lambda r: names(r.plan)),
    "archive": (lambda t, **o: t.archive(options=ARCHIVE, **o), lambda r: [f.path for f in r.plan.files]),
    "restore": (lambda t, **o: t.restore(t.timeline.completed_writes()[-3].time, **o), lambda r: r.files),
    "rollback": (
        lambda t, **o: t.rollback(t.timeline.completed_writes()[-1].time, **o),
        lambda r: of_plans(r.plans),
    ),
    "savepoint": (lambda t, **o: t.savepoint(**o), lambda r: []),
    "repair": (lambda t, **o: t.repair(**o), lambda r: [s.path for s in r.plan.steps if s.kind == "move"]),
    "downgrade": (lambda t, **o: t.downgrade(**o), lambda r: []),
}
# Files of the timeline that go although no plan lists them one by one: they are of the instants that it lists.
INSTANTS = {"restore", "rollback"}


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.req("NEW-08")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_dry_run_changes_nothing_and_tells_the_files(made, tmp_path, name):
    path = tmp_path / "t"
    shutil.copytree(made, path)
    run, deleted = OPERATIONS[name]
    table = HudiTable.open(str(path))
    before = tree(path)
    planned = run(table, dry_run=True)
    assert tree(path) == before
    done = run(table)
    gone = {
        n for n in before.keys() - tree(path).keys() if not (name in INSTANTS and n.startswith(".hoodie/"))
    }
    assert sorted(deleted(planned)) == sorted(deleted(done)) == sorted(gone)
    assert bool(gone) == (name not in ("savepoint", "downgrade"))
    assert tree(path) != before


@pytest.mark.req("NEW-08")
def test_a_savepoint_is_given_up_after_a_dry_run(made, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(made, path)
    table = HudiTable.open(str(path))
    saved = table.savepoint()
    before = tree(path)
    table.delete_savepoint(saved, dry_run=True)
    assert tree(path) == before
    table.delete_savepoint(saved)
    assert table.savepoints == []
