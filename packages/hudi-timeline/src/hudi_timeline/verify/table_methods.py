"""`verify` and `repair` of `HudiTable`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hudi_format.storage.protocol import Storage
from hudi_timeline.options.user_options import call_options

if TYPE_CHECKING:
    from hudi_timeline.verify.check_keys import ScanOf
    from hudi_timeline.verify.findings import Finding
    from hudi_timeline.verify.repair import RepairPlan, RepairResult


class VerifyMethods:
    """Mixed into `HudiTable`.  Both import what they do: a process that only reads needs none of it."""

    if TYPE_CHECKING:  # what HudiTable has
        _storage: Storage
        _options: Mapping[str, str]
        read: ScanOf

    def verify(self, *, deep: bool = False, workers: int | None = None) -> list[Finding]:
        """Everything that is wrong with the table, worst first; [] for a sound one.  Nothing is changed.

        The timeline's states and files, names, block framing, sizes and counts against commits, checksums of
        hoodie.properties, the metadata table against storage, plans, the archive, and what writers left behind.
        What a dead write left that the next one rolls back is no fault.

        Args:
            deep: also read all data: rows against statistics, key ranges and bloom filters, every log block decoded,
                keys that are there twice, the metadata table's indexes against rows.
            workers: how many files to look at at once; None for a number that fits the machine and the store.
        """

        from hudi_timeline.verify.verify import verify

        return verify(self._storage, deep=deep, workers=workers, scan_of=self.read)

    def repair(
        self,
        *,
        plan: RepairPlan | None = None,
        dry_run: bool = False,
        deep: bool = False,
        only: Collection[str] | None = None,
        keep: bool = True,
        options: Mapping[str, object] | None = None,
    ) -> RepairResult:
        """Put right what `verify` finds, as far as there is a safe way; the plan says where there is none, and why.

        Under the table's lock, and not while a writer is at work.  What is taken away or replaced is kept in
        `.hoodie/.repair_backup_<time>/`, with the plan.  After a crash run it again.

        Args:
            plan: of an earlier dry run: only what is in it is done, and only what is still so.
            dry_run: give the plan (files to create, to replace, to move away) and change nothing.
            deep: also by what a deep verification finds.
            only: codes of findings, or paths, to repair; None for all.
            keep: False to delete what is taken away.
            options: of the lock: `hoodie.write.lock.*`.

        Raises:
            ConcurrentWriterError: a writer is at work.
            LockError; OptionError: a code that there is not.
        """
        from hudi_timeline.verify.repair import repair

        return repair(
            self._storage, plan=plan, dry_run=dry_run, deep=deep, only=only, keep=keep, scan_of=self.read,
            options=call_options(self._options, options, self._storage.uri),
        )  # fmt: skip
