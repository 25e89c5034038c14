"""Methods of `HudiTable` for its table services: each is one call into the service that does it.

With `dry_run` a service only gives its plan.  What a call needs is imported by it: see `hudi_timeline.table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from hudi_format.storage.protocol import Storage

if TYPE_CHECKING:
    from hudi_timeline.services.archival import ArchiveResult
    from hudi_timeline.services.cleaning import CleanResult
    from hudi_timeline.services.compaction.compaction import CompactionResult, Runner
    from hudi_timeline.services.restore import RestoreResult
    from hudi_timeline.services.rollback import RollbackResult
    from hudi_timeline.services.table_service import ServiceContext
    from hudi_timeline.services.upgrade import UpgradeResult
    from hudi_timeline.timeline.action_metadata import CleanPlan, CompactionPlan
    from hudi_timeline.timeline.active_timeline import Timeline

Options: TypeAlias = Mapping[str, object] | None


class Maintenance:
    """Services of a table; the base of `HudiTable`."""

    _storage: Storage

    if TYPE_CHECKING:

        @property
        def timeline(self) -> Timeline: ...

        def _given(self, options: Options) -> dict[str, str]: ...

    def _service(self, options: Options, *, dry_run: bool = False) -> ServiceContext:
        from hudi_timeline.services.table_service import ServiceContext

        return ServiceContext.of(self._storage, self._given(options), dry_run=dry_run)

    def clean(
        self, *, plan: CleanPlan | None = None, dry_run: bool = False, options: Options = None
    ) -> CleanResult:
        """Delete file versions outside the retention policy; a write does this itself.

        Args:
            plan: of an earlier dry run; made anew if not given.
            options: `hoodie.cleaner.*`, for example `hoodie.cleaner.commits.retained`.

        Raises:
            UnsupportedError, CorruptFileError, MissingFileError: it would do harm; nothing was deleted.
        """
        from hudi_timeline.services import cleaning

        return cleaning.clean(self._service(options, dry_run=dry_run), dry_run=dry_run, plan=plan)

    def archive(self, *, dry_run: bool = False, options: Options = None) -> ArchiveResult:
        """Move old instants to the archive; a write does this itself.

        Options are `hoodie.keep.min.commits`, `hoodie.keep.max.commits` ...  After an error nothing was moved.
        """
        from hudi_timeline.services import archival

        return archival.archive(self._service(options, dry_run=dry_run), dry_run=dry_run)

    def compact(
        self, *, plan: CompactionPlan | None = None, mode: str = "schedule_and_execute", instant: str | None = None,
        only_if_due: bool = False, dry_run: bool = False, options: Options = None, run: Runner | None = None,
    ) -> CompactionResult:  # fmt: skip
        """Merge log files into new base files: execute the pending compactions, then plan one and execute it.

        Writers and readers go on meanwhile.  After an error the plan is pending as before, and can be executed again.

        Args:
            plan: of an earlier dry run; made anew if not given.
            mode: "schedule" or "execute" for one of the two.
            instant: of the pending plan to execute; all, oldest first, if not given.
            only_if_due: plan nothing before `hoodie.compact.inline.trigger.strategy` says so.
            options: `hoodie.compaction.*`, for example `hoodie.compaction.strategy`.
            run: runs the tasks, as a Spark session does (`hudi_spark.compact`); None for threads of this process.

        Raises:
            UnsupportedError: a copy-on-write table, one that would be harmed, or a plan of a newer program.
            CorruptFileError, MissingFileError: a file of a plan is damaged or gone; nothing is lost.
            ConcurrentWriterError: another process executes the plan, or an earlier write is still open.
        """
        from hudi_timeline.services.compaction import compaction

        return compaction.compact(
            self._service(options, dry_run=dry_run), mode=mode, plan=plan, instant=instant,
            only_if_due=only_if_due, dry_run=dry_run, run=run,
        )  # fmt: skip

    def savepoint(
        self, instant: str | None = None, *, user: str = "", comment: str = "", dry_run: bool = False,
        options: Options = None,
    ) -> str:  # fmt: skip
        """Create a savepoint, which protects a commit from cleaning and archival.

        Args:
            instant: of a completed commit; the newest if not given.  It is given back.

        Raises:
            InstantNotFoundError: there is no such commit on the active timeline.
            OptionError: it is savepointed already, or its files may be cleaned away.
        """
        from hudi_timeline.services import savepoints

        context = self._service(options, dry_run=dry_run)
        return savepoints.save(context, instant, user=user, comment=comment, dry_run=dry_run)

    def delete_savepoint(self, instant: str, *, dry_run: bool = False, options: Options = None) -> None:
        """Delete a savepoint; InstantNotFoundError where there is none."""
        from hudi_timeline.services import savepoints

        savepoints.give_up(self._service(options, dry_run=dry_run), instant, dry_run=dry_run)

    @property
    def savepoints(self) -> list[str]:
        """Savepointed commits, oldest first."""
        from hudi_timeline.services import savepoints

        return savepoints.savepoints(self.timeline)

    def restore(self, instant: str, *, dry_run: bool = False, options: Options = None) -> RestoreResult:
        """Restore the table to a commit; later writes are undone permanently.

        With writers that overlapped, a commit after `instant` may have begun before it: what it wrote is undone too.

        Args:
            instant: of a completed commit whose files are all there; savepoint one to keep them.

        Raises:
            InstantNotFoundError: there is no such commit on the active timeline.
            MissingFileError: files of that state were cleaned away.
            OptionError: a later commit is savepointed.
        """
        from hudi_timeline.services import restore

        return restore.restore(self._service(options), instant, dry_run=dry_run)

    def rollback(
        self, instant: str | None = None, *, dry_run: bool = False, options: Options = None
    ) -> RollbackResult:
        """Roll back the newest write, a pending one, or all dead ones, permanently.

        An inflight compaction goes back to its plan.  In log files a command block takes back what the write appended.

        Args:
            instant: of the write, completed or not.  Without it: all pending writes whose writers are dead, and
                rollbacks that were begun and not finished.

        Raises:
            InstantNotFoundError, ConcurrentWriterError: there is no such active instant, or its writer is alive.
            OptionError, UnsupportedError, MissingFileError: it is savepointed, later writes stand on it, or what was
                before it is cleaned away.
        """
        from hudi_timeline.services import rollback

        return rollback.rollback(self._service(options, dry_run=dry_run), instant, dry_run=dry_run)

    def upgrade(self, to: int = 6, *, dry_run: bool = False, options: Options = None) -> UpgradeResult:
        """Upgrade from version 5 to 6; Apache Hudi before 0.14 cannot read the table then.

        Failed writes are rolled back before.  A crash leaves a table of the old version; the same call goes on.

        Raises:
            UnsupportedError: another version; or log files are to go down, which version 5 would have in another form.
            ConcurrentWriterError: a write is running.
        """
        from hudi_timeline.services import upgrade

        return upgrade.change_version(self._service(options), to, up=True, dry_run=dry_run)

    def downgrade(self, to: int = 5, *, dry_run: bool = False, options: Options = None) -> UpgradeResult:
        """Downgrade from version 6 to 5, for Apache Hudi before 0.14; drops the metadata table.

        Errors and crashes as of `upgrade`.
        """
        from hudi_timeline.services import upgrade

        return upgrade.change_version(self._service(options), to, up=False, dry_run=dry_run)
