"""Faults planted into locks, order, fences, renames, retries and re-checks, each with the acts that show it."""

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from hudi_format.errors import HudiError, StorageError
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.heartbeat import Heartbeat, Liveness
from hudi_timeline.metadata_table.mirror import Mirrored
from hudi_timeline.services import archival, cleaning, pending_cleans, restore, rollback, savepoints
from hudi_timeline.services.compaction import compaction, compaction_executor, pending_plans, plan_execution
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.testing import (
    CRASH,
    FAIL,
    Fault,
    Follower,
    MemoryStorage,
    SteppedLock,
    Violation,
    interleavings,
)
from hudi_timeline.testing.interleavings import Act
from hudi_timeline.testing.workload import BY_KEYS, OPTIONS, Case
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction import (
    conflict_resolution,
    retries,
    rollback_guard,
    schema_rebase,
    transaction,
)
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.transaction.write_basis import Basis, Changes
from hudi_timeline.writing.latest_slices import LatestSlices
from hudi_timeline.writing.replanning import Replanner
from hudi_timeline.writing.row_conflicts import KeyCheck

EAGER = {
    **OPTIONS, "hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.cleaner.policy.failed.writes": "EAGER",
}  # fmt: skip
MOR = "MERGE_ON_READ"
# --- locks


def no_lock(patch):
    patch.setattr(SteppedLock, "try_acquire", lambda self: True)
    patch.setattr(SteppedLock, "verify", lambda self: None)


def the_lock_ends_before_the_commit_is_published(patch):
    checked = Transaction._check_ours

    def check_ours(self, *args):
        found = checked(self, *args)
        self._lock.lock.release()
        return found

    patch.setattr(Transaction, "_check_ours", check_ours)
    patch.setattr(SteppedLock, "verify", lambda self: None)


def services_take_no_lock(patch):
    locked = ServiceContext.locked

    class Free:
        @contextmanager
        def held(self):
            yield

        def verify(self):
            return

    def free(self, **kwargs):
        self.lock = Free()
        return locked(self, **kwargs)

    patch.setattr(ServiceContext, "locked", free)


# --- order


def instants_do_not_grow(patch):
    """A reader in the order of instants has passed them."""
    given = []

    def older(timeline, *args, **kwargs):
        given.append(None)
        return f"{20200101000000000 - len(given)}"

    patch.setattr(transaction, "new_instant", older)


def archival_removes_completed_files_first(patch):
    """Where it dies then, a write that was completed is pending, and rolled back."""

    def remove(storage, plan):
        for file in sorted(plan.files, key=lambda f: not f.completed):
            storage.delete(file.path)

    patch.setattr(archival, "remove_instants", remove)


def compactions_are_planned_beside_open_writes(patch):
    for module in (compaction, pending_plans):
        patch.setattr(module, "open_writes", lambda *args: [])
    patch.setattr(compaction, "running_writes", lambda *args: iter(()))  # what one that is overdue waits for
    patch.setattr(pending_plans, "refuse_overtaken", lambda *args: None)
    patch.setattr(compaction_executor, "refuse_overtaken", lambda *args: None)
    patch.setattr(compaction_executor, "_check_ours", lambda *args: None)
    patch.setattr(plan_execution, "_refuse_taken_away", lambda *args: None)
    patch.setattr(conflict_resolution, "_check_groups", lambda *args: None)


# --- fences


def no_fence_for_a_writer_that_was_taken_for_dead(patch):
    taken_for_dead(patch)
    patch.setattr(Timeline, "has_file", lambda self, name: True)
    patch.setattr(heartbeat.Heartbeat, "check", lambda self: None)
    patch.setattr(rollback_guard, "refuse_alive", lambda *args: None)


def taken_for_dead(patch):
    """Each beginning writer rolls back all others."""
    patch.setattr(heartbeat, "liveness", lambda *args, **kwargs: Liveness(False, None, "said so"))


def a_compaction_that_was_taken_back_is_completed(patch):
    for module in (compaction_executor, pending_plans):
        patch.setattr(module, "refuse_alive", lambda *args: None)
    patch.setattr(compaction_executor, "_check_ours", lambda *args: None)
    patch.setattr(plan_execution, "_refuse_taken_away", lambda *args: None)
    patch.setattr(Heartbeat, "check", lambda self: None)


def a_restore_does_not_wait_for_writers(patch):
    patch.setattr(restore, "refuse_alive", lambda *args: None)
    patch.setattr(Timeline, "has_file", lambda self, name: True)
    patch.setattr(heartbeat.Heartbeat, "check", lambda self: None)
    patch.setattr(conflict_resolution, "check", no_rivals)


def no_rivals(instant, metadata, changes, before, now, strategy):
    return conflict_resolution.Rivals(Changes(), {}, now)


# --- renames: how files appear


def a_rename_that_did_nothing_counts_as_done(patch):
    """Another's file is there, and nobody is told."""
    created = MemoryStorage.create

    def create(self, path, data):
        with suppress(FileExistsError):
            created(self, path, data)

    patch.setattr(MemoryStorage, "create", create)
    patch.setattr(transaction, "new_instant", lambda timeline, *args, **kwargs: "20990101000000000")


def a_rename_replaces_what_is_there(patch):
    """Of a store whose clients take the same instant."""
    patch.setattr(MemoryStorage, "create", lambda self, path, data: self.touch(path, data))
    patch.setattr(transaction, "new_instant", lambda timeline, *args, **kwargs: "20990101000000000")


def rows_are_published_before_they_are_written(patch):
    """A file of which a reader may see the name before the content."""
    touched = MemoryStorage.touch

    def touch(self, path, data=b""):
        if path.endswith(".parquet") and self.uri in interleavings._simulated:
            touched(self, path, data[: len(data) // 2])
            return
        touched(self, path, data)

    patch.setattr(MemoryStorage, "touch", touch)


# --- retries


def a_retry_keeps_its_first_slices(patch):
    """What was looked up for the try that lost is written upon by the next one."""
    found, kept = LatestSlices.of, {}

    def of(snapshot, partitions=None):
        return kept.setdefault((snapshot.storage.uri, threading.get_ident()), found(snapshot, partitions))

    patch.setattr(LatestSlices, "of", of)


def rows_that_were_read_are_not_read_again(patch):
    planned = Replanner.__call__

    def call(self, plan, transaction):
        return planned(Replanner(self.engine, self.data, self.config, self.check), plan, transaction)

    patch.setattr(Replanner, "__call__", call)
    patch.setattr(conflict_resolution, "_check_groups", lambda *args: None)


def a_commit_whose_answer_was_lost_is_done_again(patch):
    """The store did it and said that it failed; the whole write is run again."""
    patch.setattr(transaction, "create_own", lambda storage, path, content: storage.create(path, content))
    tried = retries.retried

    def again(options, write, **kwargs):
        try:
            return tried(options, write, **kwargs)
        except (StorageError, HudiError):
            return tried(options, write, **kwargs)

    from hudi_timeline.writing import writes

    patch.setattr(writes, "retried", again)


def a_commit_that_never_arrived_counts_as_done(patch):

    def create(storage, path, content):
        with suppress(FileExistsError, StorageError):
            storage.create(path, content)

    patch.setattr(transaction, "create_own", create)


# --- re-checks under the lock


def no_conflicts(patch):
    patch.setattr(conflict_resolution, "_check_groups", lambda *args: None)


def replaced_groups_do_not_count(patch):
    patch.setattr(
        CommitMetadata, "file_groups",
        lambda self: frozenset((s.partition, s.file_id) for s in self.stats),
    )  # fmt: skip


def only_newer_instants_are_rivals(patch):
    """A rival that began earlier and ended meanwhile is overlooked."""
    found = Basis.changes

    def changes(self, config, timeline):
        all_of_them = found(self, config, timeline)
        newest = max((i.time for i in timeline.instants if not i.completed), default="")
        written = tuple(i for i in all_of_them.written if i.time > newest)
        return Changes(written, all_of_them.undone, all_of_them.restores, all_of_them.properties)

    patch.setattr(Basis, "changes", changes)


def nothing_is_looked_at_again(patch):
    patch.setattr(schema_rebase, "beside_others", lambda i, metadata, *args: (metadata, ()))


def new_keys_are_not_compared(patch):
    """Apache Hudi's own limit: two writers that add one key leave two rows."""
    patch.setattr(KeyCheck, "check", lambda *args: None)


def a_rivals_column_is_not_taken_over(patch):
    patch.setattr(schema_rebase, "_rebased", lambda instant, metadata, *args: (metadata, ""))
    patch.setattr(Replanner, "__call__", lambda self, plan, transaction: plan)


def a_cleaning_is_not_compared_with_what_is_needed(patch):
    patch.setattr(cleaning, "_refuse_needed", lambda *args: None)
    for module in (restore, savepoints, rollback):
        patch.setattr(module, "take_back", lambda *args, **kwargs: None)
    patch.setattr(cleaning, "is_pending", lambda *args: True)
    patch.setattr(pending_cleans, "planned_names", lambda *args: {})


def a_rollback_does_not_look_for_later_writes(patch):
    patch.setattr(rollback, "refuse_needed", lambda *args, **kwargs: None)


def a_metadata_table_that_a_rival_made_is_not_written(patch):
    mirrored = transaction.mirror.mirror_write

    def mirror(now, instant, metadata, indexes):
        began = [i for i in now.timeline.instants if i.time == instant]
        built = now.config.metadata_partitions
        rival = [
            i for i in now.timeline.completed_writes() if i.mtime_ms > (began[0].mtime_ms if began else 0)
        ]
        if built and rival:
            return Mirrored(now.config, ())
        return mirrored(now, instant, metadata, indexes)

    patch.setattr(transaction.mirror, "mirror_write", mirror)


# --- the table


@dataclass(frozen=True)
class Planted:
    """A planted fault and what shows it.

    Attributes:
        of: what it is a mutation of.
        plant: makes it.
        actors: acts by actor, by name.
        within: seeds of which one has to show it.
        before: acts that are done before.
        harmless: a mutation under which the code is still right, as it has a second guard.
    """

    of: str
    plant: object
    actors: dict
    table_type: str = "COPY_ON_WRITE"
    options: dict = field(default_factory=lambda: OPTIONS)
    faults: dict = field(default_factory=dict)
    before: tuple = ()
    within: int = 150
    harmless: object = None

    @property
    def name(self):
        return self.plant.__name__

    def run(self, seed, switches=None):
        """One interleaving; Violation where it is not right."""
        actors, follower = dict(self.actors), None
        if "reader" in actors:
            follower = Follower()
            poll = Act(follower.poll, name="poll")
            actors["reader"] = [poll] * len(actors["reader"])
        try:
            case = Case(actors, self.table_type, self.options, self.faults, before=self.before)
            outcome = case.run(seed, switches=switches)
            if follower is not None:
                follower.check(outcome)
        except (HudiError, OSError) as e:  # the table cannot be read at all, or no error of ours
            raise Violation(f"seed {seed}: {e!r}") from e
        return outcome

    def found(self):
        """The first seed that shows it; None for none."""
        for seed in range(self.within):
            try:
                self.run(seed)
            except Violation:
                return seed
        return None


def two(one, other):
    return {"one": [one], "two": [other]}


COMMITTED = ".hoodie/*[0-9].commit"
LOST_PUT = {"one": [Fault(FAIL, operation="create", path=COMMITTED)]}
LOST_ANSWER = {"one": [Fault(FAIL, operation="create", path=COMMITTED, after=True)]}
KILLED_ARCHIVING = {"one": [Fault(CRASH, operation="delete", path=COMMITTED, nth=2, after=True)]}

PLANTED = (
    Planted("lock", no_lock, two("upsert", "upsert")),
    Planted("lock", the_lock_ends_before_the_commit_is_published, two("upsert", "upsert")),
    Planted("lock", services_take_no_lock, two("upsert", "rollback")),
    Planted("order", instants_do_not_grow, {**two("upsert", "insert"), "reader": ["poll", "poll"]}),
    Planted("order", archival_removes_completed_files_first,
            {"one": ["archive"], "two": ["read", "rollback_dead", "rollback_dead"]}, faults=KILLED_ARCHIVING),
    Planted("order", compactions_are_planned_beside_open_writes, two("upsert", "compact"), MOR),
    Planted("fence", no_fence_for_a_writer_that_was_taken_for_dead, two("upsert", "upsert"), options=EAGER,
            harmless=taken_for_dead),
    Planted("fence", a_compaction_that_was_taken_back_is_completed,
            {"plan": ["schedule_compaction", "execute_compaction"], "two": ["execute_compaction"]}, MOR),
    Planted("fence", a_restore_does_not_wait_for_writers, two("upsert", "restore")),
    Planted("rename", a_rename_that_did_nothing_counts_as_done, two("upsert", "insert")),
    Planted("rename", a_rename_replaces_what_is_there, two("upsert", "insert")),
    Planted("rename", rows_are_published_before_they_are_written, two("upsert", "read")),
    Planted("retry", a_retry_keeps_its_first_slices, {"one": ["upsert", "upsert"], "two": ["upsert_new"]}),
    Planted("retry", rows_that_were_read_are_not_read_again, two("update", "delete")),
    Planted("retry", a_commit_whose_answer_was_lost_is_done_again, two("insert", "upsert"), faults=LOST_ANSWER),
    Planted("retry", a_commit_that_never_arrived_counts_as_done, two("insert", "upsert"), faults=LOST_PUT),
    Planted("re-check", no_conflicts, two("upsert", "delete")),
    Planted("re-check", replaced_groups_do_not_count, two("insert_overwrite_table", "upsert")),
    Planted("re-check", only_newer_instants_are_rivals, two("upsert", "upsert")),
    Planted("re-check", nothing_is_looked_at_again, two("upsert", "insert_overwrite")),
    Planted("re-check", new_keys_are_not_compared, two("upsert_new", "upsert_new"), options=BY_KEYS),
    Planted("re-check", a_rivals_column_is_not_taken_over, two("add_column", "insert")),
    Planted("re-check", a_cleaning_is_not_compared_with_what_is_needed,
            two("clean", "restore"), before=("delete_savepoint", "upsert")),
    Planted("re-check", a_rollback_does_not_look_for_later_writes, two("rollback", "upsert")),
    Planted("re-check", a_metadata_table_that_a_rival_made_is_not_written, two("metadata_on", "insert")),
)  # fmt: skip
