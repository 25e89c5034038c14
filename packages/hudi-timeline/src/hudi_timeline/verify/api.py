"""`verify` of `HudiTable`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_format.storage import Storage
from hudi_timeline.verify.finding import Finding
from hudi_timeline.verify.keys import ScanOf
from hudi_timeline.verify.run import verify


class VerifyMethods:
    """Mixed into `HudiTable`."""

    if TYPE_CHECKING:  # what HudiTable has
        _storage: Storage
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
        return verify(self._storage, deep=deep, workers=workers, scan_of=self.read)
