"""Conflicts by rows: keys of several writers, what they read, and what they replace.

Apache Hudi compares file groups, so that two writers which add the same key make two rows of it.  With
`hudi.write.conflict.detection=keys` a write's keys are compared with those that others wrote since it began, of the
same partition, or of all with an index over all of them.

Two writes that share no file group may also fit no serial order: rows that another one added, committed and showed to
readers are missed by an update whose filter they pass, and kept by an overwrite of their partition.  So a filter is
asked again in the file groups that others wrote since, of the partitions that it allows; and an overwrite replaces
also what came into its partitions.  The same goes for keys that were looked up: `delete` leaves out those that it does
not find, and an insert that skips known keys those that it finds.

Most of what has to be read is read before the lock is taken: under it only what was committed in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import (
    HudiError,
    MissingFileError,
    OptionError,
    SchemaError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.file_names import parse_log_file
from hudi_format.file_slice.cdc_images import logged_keys
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.fork_safe import cached_property
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.payloads import IS_DELETED, payload_rule
from hudi_format.model import WriteStat
from hudi_format.parquet.reader import read_keys
from hudi_format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import GLOBAL_KINDS
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.transaction_options import BY_KEYS, CONFLICT_DETECTION, OVERLAPPING
from hudi_timeline.options.write_options import ADDS_ROWS, DUP_POLICY, REPLACING
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.task import ReadTask
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.commit_metadata import SCHEMA_NEUTRAL, CommitMetadata
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.transaction.conflict_report import written_keys
from hudi_timeline.transaction.conflict_resolution import Rivals
from hudi_timeline.transaction.conflict_strategies import FileGroup
from hudi_timeline.transaction.retries import LOOK_AGAIN
from hudi_timeline.transaction.schema_history import ALTER_SCHEMA
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.transaction.write_basis import Basis, Changes
from hudi_timeline.writing.planning.write_plan import Plan, drops_duplicates, fails_on_known_keys
from hudi_timeline.writing.routing import covered_by

_UPSERT = f"use the operation upsert, which updates them, or set {DUP_POLICY}=drop to skip them."
_SHOWN = 5
# Of all partitions, where keys are unique over them.
_EVERYWHERE = ""
# Table services write rows as they are.
_KEEPS_ROWS = SCHEMA_NEUTRAL

Keys = Mapping[str, pa.Array]  # by partition


def refuse_unknown(plan: Plan) -> None:
    """Refuse detection by keys where files do not hold them.

    Raises:
        UnsupportedError: the table fills no meta columns.
    """
    if plan.config.transaction.detection == BY_KEYS and plan.virtual:
        raise UnsupportedError(
            f"{CONFLICT_DETECTION}={BY_KEYS} needs the record keys in the files, and the table fills no meta columns",
            table=plan.storage.uri,
            remedy=f"leave {CONFLICT_DETECTION} out.",
            option=CONFLICT_DETECTION,
        )


@dataclass(frozen=True)
class LookedUp:
    """Keys that a write looked up, beside those that it writes.

    Attributes:
        deleted: gives those of others' keys that the write deletes; None where it deletes none by key.
        dropped: file groups that have keys which the write dropped because they are known.
    """

    deleted: Callable[[Keys], Sequence[str]] | None = None
    dropped: frozenset[FileGroup] = frozenset()

    @classmethod
    def of(
        cls, plan: Plan, deleted: Callable[[Keys], Sequence[str]], dropped: frozenset[FileGroup]
    ) -> LookedUp:
        """Keys of a write whose rows do not say themselves where they stand."""
        if plan.config.prepped:
            return cls()
        return cls(deleted if _may_delete(plan) else None, dropped)


class KeyCheck:
    """Comparison of a write's keys with those of its rivals; each file is read once."""

    def __init__(
        self,
        plan: Plan,
        transaction: Transaction,
        stats: Sequence[WriteStat],
        counts: Mapping[str, int],
        looked: LookedUp,
        first: Basis | None = None,
    ) -> None:
        self._plan = plan
        self._instant = transaction.instant
        self._basis = Basis.of(transaction.snapshot.config, transaction.snapshot.timeline)
        self._stats = stats
        self._looked = looked
        self._partitions = {s.partition for s in stats} | {*counts}
        self._everywhere = plan.index in GLOBAL_KINDS
        # What a deletion finds again it deletes; an insert that looks keys up skips them, or fails.
        self._once = drops_duplicates(plan) or fails_on_known_keys(plan)
        self._compares = bool(stats) and (plan.config.transaction.detection == BY_KEYS or self._once)
        # What only adds finds nothing that others added between two of its tries.
        self._blind = self._compares and not self._once and plan.operation in ADDS_ROWS
        # A table that is made anew has nothing of what the first try found.
        self._since = self._basis if first is None or plan.replaced else first
        self._ours: Keys | None = None
        self._theirs: dict[str, Keys] = {}

    @property
    def _reads(self) -> bool:
        """Whether the keys of others are looked at."""
        return self._compares or self._looked.deleted is not None

    @classmethod
    def of(
        cls,
        plan: Plan,
        transaction: Transaction,
        stats: Sequence[WriteStat],
        counts: Mapping[str, int] | None = None,
        looked: LookedUp | None = None,
        first: Basis | None = None,
    ) -> KeyCheck | None:
        """Check of a write, with what can be read before the lock; None where it needs none.

        Args:
            counts: its rows by partition.
            first: the basis of the write's first try.

        Raises:
            WriteConflictError: others wrote some of the keys after the first try looked and before this one began.
        """
        made = cls(plan, transaction, stats, counts or {}, looked or LookedUp(), first)
        if not (made._reads or made._looked.dropped):
            return None
        if made._blind:
            made._refuse_since_first(transaction.snapshot)
        now = transaction.now()
        for rival in made._basis.changes(now.config, now.timeline).written if made._reads else ():
            with suppress(MissingFileError):  # one of file groups goes before it
                made._keys_of(rival, now.commits.get(rival), now.config)
        return made

    def check(self, commits: Mapping[Instant, CommitMetadata], changes: Changes, config: TableConfig) -> None:
        """Compare with what others committed.

        Args:
            commits: of others since the write began.

        Raises:
            WriteConflictError: they wrote some of the same keys, elsewhere, or deleted some that were dropped; or it
                cannot be known any more which ones they wrote.
            CorruptFileError, StorageError: reading their files.
        """
        self._refuse_same(commits, config)
        self._refuse_lost(commits, changes)

    def _refuse_same(self, commits: Mapping[Instant, CommitMetadata], config: TableConfig) -> None:
        """Refuse keys that others wrote too; errors as `check`."""
        for rival, commit in commits.items() if self._reads else ():
            try:
                theirs = self._keys_of(rival, commit, config)
            except MissingFileError as e:
                raise self._cleaned(rival, e) from e
            if not theirs:
                continue
            if self._compares:
                if self._ours is None:
                    self._ours = self._by_partition(self._instant, self._stats, config)
                for partition, keys in self._ours.items():
                    other = theirs.get(partition)
                    both = (
                        [] if other is None else pc.filter(keys, pc.is_in(keys, value_set=other)).to_pylist()
                    )
                    if both:
                        raise self._conflict(rival, both)
            if self._looked.deleted is not None and (gone := self._looked.deleted(theirs)):
                raise self._conflict(rival, gone, deleted=True)

    def judge(self, error: WriteConflictError, current: Callable[[], TableSnapshot]) -> None:
        """Refusal of another try after a conflict, where it may add keys of others a second time.

        One of file groups is found before the keys are compared.

        Args:
            current: gives the table after the conflict was found.
        """
        if not self._blind or not error.retry_safe:
            return
        try:
            self._refuse_since_first(current())
        except (HudiError, OSError) as e:
            error.message = f"{error.message}; {e.message if isinstance(e, HudiError) else e}"
            error.remedy = _UPSERT
            keys = e.details.get("keys", []) if isinstance(e, WriteConflictError) else []
            error.details.update(retry_safe=False, keys=keys)

    def _refuse_since_first(self, now: TableSnapshot) -> None:
        """Refuse keys that others wrote from the first look at the table to a later state of it.

        Raises:
            WriteConflictError: there are some, or what others wrote is not told any more.
        """
        since = self._since.changes(now.config, now.timeline)
        if not since:
            return
        if since.untold or self._forgotten(now):
            error = since.conflict(
                "what others wrote since it first looked is archived, so that its record keys cannot be compared",
                table=self._plan.storage.uri,
                instant=self._instant,
                remedy=_UPSERT,
            )
            error.details["retry_safe"] = False
            raise error
        self._refuse_same({i: now.commits.get(i) for i in since.written}, now.config)

    def _forgotten(self, now: TableSnapshot) -> bool:
        """Whether writes that were completed since the first look may be archived."""
        known = max(self._since.writes, default="")
        return known < now.timeline.first_active and bool(known or archived_instants(now.storage, now.config))

    def _refuse_lost(self, commits: Mapping[Instant, CommitMetadata], changes: Changes) -> None:
        """Refuse deletions in file groups whose keys were dropped as known: some may be unknown by now."""
        known = set(self._looked.dropped)
        if not known:
            return
        for commit in commits.values():  # what is clustered stands elsewhere
            if commit.operation in _KEEPS_ROWS and known & commit.replaced_groups:
                known |= commit.file_groups()
        for rival, commit in commits.items():
            if commit.operation in _KEEPS_ROWS:
                continue
            shrunk = {
                (s.partition, s.file_id) for s in commit.stats if s.num_deletes
            } | commit.replaced_groups
            if hit := shrunk & known:
                error = changes.conflict(
                    f"{rival.time} deleted rows of partition {min(hit)[0] or '.'}, where keys were skipped as known",
                    table=self._plan.storage.uri,
                    instant=self._instant,
                )
                error.details[LOOK_AGAIN] = True
                raise error

    def _keys_of(self, rival: Instant, commit: CommitMetadata, config: TableConfig) -> Keys:
        found = self._theirs.get(rival.time)
        if found is None:
            stats = [s for s in commit.stats if self._everywhere or s.partition in self._partitions]
            if commit.operation in _KEEPS_ROWS:
                stats = []
            found = self._theirs[rival.time] = self._by_partition(rival.time, stats, config)
        return found

    def _by_partition(self, instant: str, stats: Sequence[WriteStat], config: TableConfig) -> Keys:
        by: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by.setdefault(_EVERYWHERE if self._everywhere else stat.partition, []).append(stat)
        keys_of = self._virtual_keys if self._plan.virtual else written_keys
        read = {p: keys_of(self._plan.storage, config, instant, of) for p, of in by.items()}
        return {p: keys for p, keys in read.items() if keys is not None and len(keys)}

    def _virtual_keys(
        self, storage: Storage, config: TableConfig, instant: str, stats: Sequence[WriteStat]
    ) -> pa.Array:
        """Record keys of a write's files, which do not say who wrote them: of base files those of all rows."""
        spec = config.record_key_spec()
        merge = SliceMerge(
            rule=payload_rule(None), scope=BlockScope(instants=frozenset([instant])), key_spec=spec
        )
        found: list[pa.Array] = []
        for stat in stats:
            partition, _, name = stat.path.rpartition("/")
            log = parse_log_file(partition, name)
            if log is None:
                found += read_keys(storage, stat.path, spec).cast(pa.string()).chunks
            else:
                found.append(logged_keys(storage, [log], merge, self._plan.schema))
        return pc.unique(pa.chunked_array(found, pa.string()))

    def _cleaned(self, rival: Instant, missing: MissingFileError) -> WriteConflictError:
        """Conflict with a write whose files are gone: with the table as it is now its keys are looked up."""
        plan = self._plan
        safe = self._once or plan.operation not in ADDS_ROWS
        error = WriteConflictError(
            f"{rival.action} {rival.time} wrote {missing.file}, which was cleaned since, so that its record keys "
            "cannot be compared",
            table=plan.storage.uri,
            instant=self._instant,
            remedy="run the write again; it then looks at what is there." if safe else _UPSERT,
            rival=rival.time,
            retry_safe=safe,
        )
        error.details[LOOK_AGAIN] = self._once or self._looked.deleted is not None
        return error

    def _conflict(self, rival: Instant, keys: Sequence[str], *, deleted: bool = False) -> WriteConflictError:
        plan = self._plan
        safe = deleted or self._once or plan.operation not in ADDS_ROWS
        remedy = "run the write again; it then updates the other one's rows."
        if deleted:
            remedy = "run the write again; it then deletes the other one's rows."
        elif self._once:
            remedy = "run the write again; it then finds the other one's rows."
        elif not safe:
            remedy = _UPSERT
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        error = WriteConflictError(
            f"{rival.action} {rival.time} wrote {len(keys)} of the same record keys first, to other file groups: "
            f"{', '.join(keys[:_SHOWN])}{more}",
            table=plan.storage.uri,
            instant=self._instant,
            remedy=remedy,
            rival=rival.time,
            keys=list(keys[:_SHOWN]),
            retry_safe=safe,
        )
        error.details[LOOK_AGAIN] = deleted or self._once
        return error


def _may_delete(plan: Plan) -> bool:
    """Whether rows may be deletes of their keys."""
    names, rule = plan.input_schema.names, plan.rule
    if plan.operation != "upsert":
        return plan.operation == "delete"
    if plan.config.delete_field and rule.delete_fields:
        return plan.config.delete_field in names
    return IS_DELETED in names or rule.delete_field in names


@dataclass(frozen=True)
class ReadRows:
    """Rows of the table that a write was computed from.

    Attributes:
        scan: of them, as they were read.
        again: the same rows of the table as it is now.
        every_written: whether each row of the scan is written or deleted, so that the file groups of others have none.
        lacking: partitions in which the write adds what it did not find, so that deletions of others count too.
    """

    scan: Scan
    again: Callable[[], Scan] = field(repr=False)
    every_written: bool = True
    lacking: Set[str] = frozenset()

    @cached_property
    def basis(self) -> Basis:
        """The table that they were read from."""
        return Basis.of(self.scan.snapshot.config, self.scan.snapshot.timeline)

    def outlive(self, stale: Changes, now: TableSnapshot, plan: Plan) -> bool:
        """Whether they are what would be read now, as others wrote to other partitions only.

        A filter that does not say the partition may hold for rows that came to one of which nothing was read.

        Args:
            stale: since they were read.
            now: the table when the write begins.

        Raises:
            MissingFileError, CorruptFileError, StorageError: reading what the table lists.
        """
        if stale.undone or stale.restores or stale.properties or stale.untold or plan.index in GLOBAL_KINDS:
            return False
        if max(self.basis.writes, default="") < now.timeline.first_active:
            return False  # what others did since may be archived by now
        if plan.config.transaction.mode not in OVERLAPPING or now.schema != self.scan.snapshot.schema:
            return False
        commits = [now.commits.get(i) for i in stale.written]
        touched = frozenset(group for c in commits for group in c.file_groups())
        read = (task for task in self.scan.plan_files() if isinstance(task, ReadTask))
        mine = {task.partition for task in read} | self.lacking
        if any(c.operation == ALTER_SCHEMA for c in commits) or mine & {
            partition for partition, _ in touched
        }:
            return False
        return not touched or not self.again().of_file_groups(touched).plan_files()


class ReadCheck:
    """Comparison of a filter with what others wrote; each of their commits is looked at once."""

    def __init__(self, read: ReadRows, plan: Plan, instant: str) -> None:
        self._read = read
        self._plan = plan
        self._instant = instant
        self._seen: set[str] = set()
        self._found: WriteConflictError | None = None

    @classmethod
    def of(cls, read: ReadRows | None, plan: Plan, transaction: Transaction) -> ReadCheck | None:
        """Check of a write, with what can be read before the lock; None for one that read nothing."""
        if read is None:
            return None
        made = cls(read, plan, transaction.instant)
        if plan.config.transaction.mode in OVERLAPPING:
            now = transaction.now()
            basis = Basis.of(transaction.snapshot.config, transaction.snapshot.timeline)
            changes = basis.changes(now.config, now.timeline)
            try:
                made.check({i: now.commits.get(i) for i in changes.written}, changes)
            except WriteConflictError as e:
                made._found = e  # one of file groups goes before it
        return made

    def check(self, commits: Mapping[Instant, CommitMetadata], changes: Changes) -> None:
        """Look for rows of others in the range that was read.

        Args:
            commits: of others since the write began.

        Raises:
            WriteConflictError: there are some; the rows are to be read again.
            MissingFileError, CorruptFileError, StorageError: reading their files.
        """
        if self._found is not None:
            raise self._found
        new = {
            i: c for i, c in commits.items() if i.time not in self._seen and c.operation not in _KEEPS_ROWS
        }
        for rival, commit in new.items():
            shrunk = {s.partition for s in commit.stats if s.num_deletes} | {*commit.replaced}
            if hit := shrunk & self._read.lacking:
                raise self._conflict(
                    changes,
                    f"{rival.time} deleted rows of partition {min(hit) or '.'}, and rows that are not there are added",
                )
        groups = frozenset((s.partition, s.file_id) for c in new.values() for s in c.stats)
        if groups:
            self._refuse_rows(groups, [i.time for i in new], changes)
        self._seen |= {i.time for i in new}

    def _refuse_rows(self, groups: frozenset[FileGroup], times: list[str], changes: Changes) -> None:
        """Refuse rows in the range that these writes brought into these file groups."""
        try:
            scan = self._read.again()
            config = scan.snapshot.config
            columns = [RECORD_KEY] if config.populate_meta_fields else config.record_key_fields
            mine = (
                None if self._read.every_written else pc.field(COMMIT_TIME).isin(pa.array(times, pa.string()))
            )
            roots = list(dict.fromkeys(c.partition(".")[0] for c in columns))
            found = scan.of_file_groups(groups).narrowed(roots, mine).head(_SHOWN)
        except (SchemaError, OptionError) as e:
            raise self._conflict(
                changes, f"its filter does not go with the table any more: {e.message}"
            ) from e
        if found.num_rows:
            keys = [str(k) for k in found.column(0).to_pylist()]
            error = self._conflict(
                changes, f"rows that it has not read pass its filter now, such as {', '.join(keys)}"
            )
            error.details["keys"] = keys
            raise error

    def _conflict(self, changes: Changes, why: str) -> WriteConflictError:
        return changes.conflict(why, table=self._plan.storage.uri, instant=self._instant, read_again=True)


def also_replaced(
    plan: Plan, instant: str, counts: Mapping[str, int], metadata: CommitMetadata, rivals: Rivals
) -> CommitMetadata:
    """Metadata of an overwrite that also replaces what others have added to its partitions.

    So it comes after them.

    Args:
        instant: of the write.
        counts: its rows by partition.
        metadata: what it is about to publish.

    Raises:
        WriteConflictError: they have later instants, or new buckets.
    """
    if plan.operation not in REPLACING:
        return metadata
    added: dict[FileGroup, Instant] = {}
    gone = set(metadata.file_groups())
    for rival, commit in rivals.commits.items():
        added.update(dict.fromkeys(((s.partition, s.file_id) for s in commit.stats), rival))
        gone |= commit.replaced_groups
    covered = covered_by(plan, counts, {p for p, _ in added})
    groups = sorted(g for g in added if g not in gone and g[0] in covered)
    if not groups:
        return metadata
    newest = max(added[g].time for g in groups)
    why = ""
    if newest > instant:
        # A file group is not replaced before its first file is written.
        why = f"{newest}, a later instant, was completed first, and added file groups to what is replaced"
    elif plan.bucket is not None and plan.bucket.by_partition:
        why = f"{newest} added buckets to a partition that is replaced"
    if why:
        raise rivals.changes.conflict(why, table=plan.storage.uri, instant=instant)
    replaced = {p: list(ids) for p, ids in metadata.replaced.items()}
    for partition, file_id in groups:
        replaced.setdefault(partition, []).append(file_id)
    return replace(metadata, replaced={p: tuple(ids) for p, ids in replaced.items()})
