"""A writer that dies before or after any of its storage calls, and the writer that comes next.

The storage stops the world at its n-th change; for every n the table must show the old or the new state,
the next writer must mend it, and nothing may be left over.  One level below tests/scenarios: no rows, only
instants and files.
"""

from pathlib import Path

import pytest

from hudi_format.file_names import parse_base_file
from hudi_format.model import WriteStat
from hudi_format.storage.local import LocalStorage
from hudi_timeline import metadata_config, table_config
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.transaction import transaction
from hudi_timeline.transaction.transaction import begin_transaction

PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "p",
}
pytestmark = pytest.mark.req("RC-01", "RC-04", "TM-03")


def group(number):
    return f"aa{number:06x}-1111-1111-1111-1111111111aa-0"


def write_file(tx, number, attempt=0, prev="null"):
    name = f"{group(number)}_0-1-{attempt}_{tx.instant}.parquet"
    markers.create(tx.storage, tx.instant, "p", name, "CREATE" if prev == "null" else "MERGE")
    tx.storage.touch(f"p/{name}", b"rows")
    return WriteStat(group(number), f"p/{name}", "p", prev_commit=prev)


def start(storage, action="commit"):
    return begin_transaction(
        storage, table_config.load(storage), action=action, operation="UPSERT", options=TransactionConfig()
    )


def upsert(storage):
    """Rewrites group 1, adds group 2, and has a second attempt to delete."""
    tx = start(storage)
    tx.inflight({})
    prev = tx.snapshot.timeline.completed_writes()[-1].time
    stats = [write_file(tx, 1, prev=prev), write_file(tx, 2)]
    write_file(tx, 2, attempt=1)
    tx.commit(stats, schema_text="{}")


def overwrite(storage):
    tx = start(storage, "replacecommit")
    tx.inflight({})
    tx.commit([write_file(tx, 2)], replaced={"p": [group(1)]}, schema_text="{}")


def failing(storage):
    """Ends with a rollback of its own."""
    with start(storage) as tx:
        tx.inflight({})
        write_file(tx, 1)
        write_file(tx, 2)


def state(storage):
    """The file groups that a reader sees, each with its place in the order of commits."""
    timeline = load_timeline(storage, table_config.load(storage, pause=lambda s: None))
    visible = timeline.visible()
    order = {i.time: n for n, i in enumerate(timeline.completed_writes())}
    replaced = {
        g
        for i in timeline.completed_writes()
        for ids in read_commit(storage, i).replaced.values()
        for g in ids
    }
    groups = {}
    for entry in storage.list("p"):
        base = parse_base_file("p", entry.name)
        if base is not None and base.instant in visible and base.file_id not in replaced:
            groups[base.file_id] = max(groups.get(base.file_id, -1), order[base.instant])
    return groups


def leftovers(storage):
    timeline = load_timeline(storage, table_config.load(storage))
    visible = timeline.visible()
    found = [str(i) for i in timeline.instants if not i.completed]
    found += [e.name for e in storage.list("p") if parse_base_file("p", e.name).instant not in visible]
    found += markers.list_instants(storage) + heartbeat.list_instants(storage)
    found += [p.name for p in Path(storage.uri).rglob("*.tmp")]
    found += [
        e.name for e in storage.list(".hoodie") if e.name in ("lock", "metadata", "hoodie.properties.backup")
    ]
    return found


OLD = {group(1): 0}
OUTCOMES = {
    "upsert": (upsert, {group(1): 1, group(2): 1}),
    "overwrite": (overwrite, {group(2): 1}),
    "failing": (failing, OLD),
}


def prepare(storage, situation):
    """A table with one commit, and what a dead writer left."""
    with start(storage) as tx:
        tx.inflight({})
        tx.commit([write_file(tx, 1)], schema_text="{}")
    if situation == "dead writer":
        dead = start(storage)
        dead.inflight({})
        write_file(dead, 7)
        write_file(dead, 8)
        heartbeat.abandon(storage)
    if situation == "metadata table":
        table_config.update(storage, {metadata_config.METADATA_PARTITIONS: "files"})
        storage.publish(".hoodie/metadata/files/x", b"x")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("situation", ["clean", "dead writer", "metadata table"])
@pytest.mark.parametrize("operation", sorted(OUTCOMES))
@pytest.mark.sampled(6)
def test_a_crash_at_any_change_leaves_the_old_or_the_new_state_and_is_mended(
    tmp_path, operation, situation, after
):
    run, new = OUTCOMES[operation]
    seen = set()
    for at in range(1, 200):
        path = str(tmp_path / f"t{at}")
        table_config.create(LocalStorage(path), PROPERTIES)
        storage = LocalStorage(path)
        prepare(storage, situation)
        faults = Faults(Fault(CRASH, operation=CHANGES, nth=at, after=after))
        with faults.process():
            run(faults.wrap(storage))
        found = state(storage)
        assert found in (OLD, new), f"change {at}"
        seen.add(found == new)
        if not faults.dead:
            break
        with start(storage) as tx:  # the next writer
            tx.inflight({})
            tx.commit([write_file(tx, 90)], schema_text="{}")
        mended = state(storage)
        assert mended.pop(group(90)) == max(mended.values()) + 1
        assert mended == found, f"change {at}, after the next write"
        assert leftovers(storage) == [], f"change {at}"
    else:
        pytest.fail("more changes than were tried")
    assert True in seen
    assert (False in seen) == (operation != "failing")
    assert leftovers(storage) == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.sampled(2)
def test_crashes_one_after_the_other_while_mending_are_mended_in_the_end(tmp_path, after):
    """Each writer dies one change later than the one before it, all on one table."""
    path = str(tmp_path / "t")
    table_config.create(LocalStorage(path), PROPERTIES)
    storage = LocalStorage(path)
    prepare(storage, "dead writer")
    for at in range(1, 60):
        before = state(storage)
        faults = Faults(Fault(CRASH, operation=CHANGES, nth=at, after=after))
        with faults.process():
            upsert(faults.wrap(storage))
        now = state(storage)
        assert now == before or max(now.values()) == max(before.values()) + 1
    with start(storage) as tx:
        tx.inflight({})
        tx.commit([write_file(tx, 90)], schema_text="{}")
    assert leftovers(storage) == []
    assert transaction.EAGER == "EAGER"
