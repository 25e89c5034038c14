"""The services of `HudiTable`: cleaning, archival, savepoints.  A write runs the first two by itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from hudi_format.errors import InstantNotFoundError, OptionError
from hudi_format.storage.protocol import Storage
from hudi_timeline import feature_gate
from hudi_timeline.file_system_view.snapshot import snapshot_of
from hudi_timeline.options.service_config import parse_service_options
from hudi_timeline.options.user_options import call_options
from hudi_timeline.timeline.active_timeline import load_timeline

if TYPE_CHECKING:
    from hudi_timeline.services.archival import ArchiveResult
    from hudi_timeline.services.clean_planner import CleanPlan
    from hudi_timeline.services.cleaning import CleanResult
    from hudi_timeline.services.replace_properties import PropertiesChange
    from hudi_timeline.services.restore import RestoreResult
    from hudi_timeline.services.rollback import RollbackResult
    from hudi_timeline.services.table_service import ServiceContext
    from hudi_timeline.services.upgrade import UpgradeResult


class ServiceMethods:
    """Mixed into `HudiTable`.  Each method imports its service: a process that only reads needs none."""

    if TYPE_CHECKING:  # what HudiTable has
        _storage: Storage
        _options: Mapping[str, str]

    def _context(
        self, options: Mapping[str, object] | None, *, change: bool = True
    ) -> tuple[ServiceContext, dict[str, str]]:
        from hudi_timeline.services.table_service import ServiceContext

        given = call_options(self._options, options, self._storage.uri)
        context = ServiceContext(self._storage, given)
        if not change:  # a dry run is refused what the run itself would be
            timeline = load_timeline(self._storage, context.table)
            feature_gate.check_service(self._storage, context.table, timeline, given)
        return context, given

    def clean(
        self,
        *,
        plan: CleanPlan | None = None,
        dry_run: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> CleanResult:
        """Delete the files of versions that the policy does not keep; a write does this by itself.

        Args:
            plan: of an earlier dry run; made anew if not given.
            dry_run: give the plan and change nothing.
            options: `hoodie.cleaner.*`, for example `hoodie.cleaner.commits.retained`.

        Raises:
            UnsupportedError: a table that a cleaning would harm.
            CorruptFileError, MissingFileError: what the plan depends on cannot be read; nothing was deleted.
        """
        from hudi_timeline.services import cleaning

        context, given = self._context(options, change=not dry_run)
        return cleaning.clean(context, parse_service_options(given), dry_run=dry_run, plan=plan)

    def archive(self, *, dry_run: bool = False, options: Mapping[str, object] | None = None) -> ArchiveResult:
        """Move old instants from the active timeline into the archive; a write does this by itself.

        Args:
            dry_run: give the plan and change nothing.
            options: `hoodie.keep.min.commits`, `hoodie.keep.max.commits` ...

        Raises:
            UnsupportedError, CorruptFileError: nothing was moved.
        """
        from hudi_timeline.services import archival

        context, given = self._context(options, change=not dry_run)
        return archival.archive(context, parse_service_options(given), dry_run=dry_run)

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        dry_run: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> str:
        """Keep a commit: neither cleaning nor archival touches what it is made of until `delete_savepoint`.

        Args:
            instant: of a completed commit; the newest if not given.
            dry_run: say which commit it would be, and change nothing.

        Returns:
            The instant.

        Raises:
            InstantNotFoundError: there is no such commit on the active timeline.
            OptionError: it is savepointed already, or its files may be cleaned away.
        """
        from hudi_timeline.services import savepoints

        context, _ = self._context(options, change=not dry_run)
        with nullcontext() if dry_run else context.locked():
            timeline = load_timeline(self._storage, context.table)
            commits = timeline.completed_writes()
            if instant is None and not commits:
                raise InstantNotFoundError(
                    "there is no commit to savepoint", table=self._storage.uri, remedy="write to it first."
                )
            at = commits[-1].time if instant is None else instant
            snapshot = snapshot_of(self._storage, context.table, timeline, at)
            savepoints.create(snapshot, at, user=user, comment=comment, dry_run=dry_run)
        return at

    def delete_savepoint(
        self, instant: str, *, dry_run: bool = False, options: Mapping[str, object] | None = None
    ) -> None:
        """Give a savepoint up: cleaning and archival may take what it kept.

        Args:
            dry_run: only make sure that it could be.

        Raises:
            InstantNotFoundError: there is no such savepoint.
        """
        from hudi_timeline.services import savepoints

        context, _ = self._context(options, change=not dry_run)
        with nullcontext() if dry_run else context.locked():
            timeline = load_timeline(self._storage, context.table)
            savepoints.delete(self._storage, timeline, instant, dry_run=dry_run)

    def restore(
        self, instant: str, *, dry_run: bool = False, options: Mapping[str, object] | None = None
    ) -> RestoreResult:
        """Take the table back to a commit; all writes after it are undone for good.

        With writers that overlapped, a commit after `instant` may have begun before it: what it wrote is undone too.

        Args:
            instant: of a completed commit whose files are all there; savepoint one to keep them.
            dry_run: say what would be undone and change nothing.

        Raises:
            InstantNotFoundError: there is no such commit on the active timeline.
            MissingFileError: files of that state were cleaned away.
            OptionError: a later commit is savepointed.
        """
        from hudi_timeline.services import restore

        context, _ = self._context(options)
        return restore.restore(context, instant, dry_run=dry_run)

    def rollback(
        self,
        instant: str | None = None,
        *,
        dry_run: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> RollbackResult:
        """Undo the newest write, a pending one, or all that died; what it wrote is gone for good.

        A compaction that is inflight goes back to its plan.  In the log files of a merge-on-read table a command block
        takes back what the write appended.

        Args:
            instant: of the write, completed or not.  Without it: all pending writes whose writers are dead, and
                rollbacks that were begun and not finished.
            dry_run: give the plan and change nothing.

        Raises:
            InstantNotFoundError: there is no such instant on the active timeline.
            ConcurrentWriterError: its writer is alive.
            OptionError, UnsupportedError, MissingFileError: it is savepointed, later writes stand on it, or what was
                before it is cleaned away.
        """
        from hudi_timeline.services import rollback

        context, _ = self._context(options, change=not dry_run)
        return rollback.rollback(context, instant, dry_run=dry_run)

    def upgrade(
        self, to: int = 6, *, dry_run: bool = False, options: Mapping[str, object] | None = None
    ) -> UpgradeResult:
        """Take a table of version 5 up to 6.  Upgrade its readers first: Apache Hudi before 0.14 does not read it then.

        Failed writes are rolled back before.  A crash leaves a table of version 5; the same call goes on.

        Args:
            dry_run: say what would be done and change nothing.

        Raises:
            UnsupportedError: another version.
            ConcurrentWriterError: a write is running.
        """
        return self._change_version(to, True, dry_run, options)

    def downgrade(
        self, to: int = 5, *, dry_run: bool = False, options: Mapping[str, object] | None = None
    ) -> UpgradeResult:
        """Take a table of version 6 down to 5, for readers of Apache Hudi before 0.14; its metadata table is deleted.

        Args:
            dry_run: say what would be done and change nothing.

        Raises:
            UnsupportedError: another version, or log files that version 5 would have in another form.
            ConcurrentWriterError: a write is running.
        """
        return self._change_version(to, False, dry_run, options)

    def _change_version(
        self, to: int, up: bool, dry_run: bool, options: Mapping[str, object] | None
    ) -> UpgradeResult:
        from hudi_timeline.services import upgrade

        context, _ = self._context(options)
        before = context.table.version
        if to != before and (to > before) != up:
            raise OptionError(
                f"to take a table from version {before} to {to} is no {'upgrade' if up else 'downgrade'}",
                table=self._storage.uri,
                remedy=f"call {'downgrade' if up else 'upgrade'}().",
            )
        return upgrade.change_version(context, to, dry_run=dry_run)

    def overwrite_properties(
        self, new: Mapping[str, str], *, dry_run: bool = False, force: bool = False
    ) -> PropertiesChange:
        """Put `new` in the place of all entries of hoodie.properties; the checksum is computed.

        A table becomes merge on read by `hoodie.table.type` alone; the way back is refused where log files hold rows
        that are in no base file.

        Args:
            dry_run: say what would change and change nothing.
            force: take also lost and unknown entries, and those that contradict the table's files.

        Raises:
            OptionError: entries that do not fit; `details["errors"]` lists them.
            UnsupportedError: rows would be hidden.
        """
        from hudi_timeline.services import replace_properties

        context, _ = self._context(None)
        return replace_properties.overwrite_properties(context, new, dry_run=dry_run, force=force)

    @property
    def savepoints(self) -> list[str]:
        """The commits that are savepointed, oldest first."""
        from hudi_timeline.services import savepoints
        from hudi_timeline.services.table_service import ServiceContext

        context = ServiceContext(self._storage, {})
        return savepoints.savepoints(load_timeline(self._storage, context.table))
