"""Plan an incremental query of a merge-on-read table that looks at base files alone.

A row turns up in the read-optimized view when its slice is compacted, which may be long after its commit.  So the
base files count that completed instants of the range wrote, and of their rows those that the base file before, the
newest at the range's begin, cannot have: a log record is later than the base file whose slice it was written to.
Consecutive ranges give every version of a row that the view ever shows once, except that rows of a clustering's
files come again where the groups that it replaced had base files of different ages.

Source: RFC-22, "Incremental reads"; MergeOnReadIncrementalRelation of Apache Hudi 0.15 for which files count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_format.model import BaseFile
from hudi_format.names import parse_base_file
from hudi_timeline.listing import list_partition_files
from hudi_timeline.scan.incremental import IncrementalSource, completion_times, is_start
from hudi_timeline.scan.plan import INCREMENTAL, ScanPlan
from hudi_timeline.view import Group


@dataclass(frozen=True, slots=True)
class OptimizedIncrementalSource(IncrementalSource):
    """An incremental query of base files: plans and explains itself."""

    def _planned(self) -> ScanPlan:
        written, _ = self._written()
        files = self._existing(written)
        plan = replace(self._of_range(files), commit_time_range=None, commit_times=None)
        return replace(plan, since=self._since(files))

    def _full_scan(self) -> ScanPlan:
        """All rows of the view: when a row came into it is not known."""
        return replace(self._whole(self.snapshot), kind=INCREMENTAL)

    def _since(self, files: list[BaseFile]) -> dict[str, str]:
        """By path of a file, the instant up to which its rows were in the view when the range began; "" for none."""
        if is_start(self.range.begin):
            return {}
        before = self._bases_at_begin({f.partition for f in files})
        replaced: dict[tuple[str, str], list[str]] = {}
        for instant in self.range.instants:
            for partition, file_ids in self.snapshot.commits.get(instant).replaced.items():
                ages = [before.get((partition, i), "") for i in file_ids]
                replaced.setdefault((partition, instant.time), []).extend(ages)
        out = {}
        for file in files:
            own = before.get((file.partition, file.file_id))
            # What was written in the place of other groups may have rows of each.
            ages = [own] if own is not None else replaced.get((file.partition, file.instant), [""])
            out[file.path] = min(ages, default="")
        return out

    def _bases_at_begin(self, partitions: set[str]) -> dict[Group, str]:
        """The instant of the newest base file that each group had when the range began."""
        snapshot, begin = self.snapshot, self.range.begin
        visible = snapshot.visible()
        completed = {i.time: at for i, at in completion_times(snapshot).items()}
        out: dict[Group, str] = {}
        for partition, found in list_partition_files(snapshot.storage, partitions).items():
            for entry in found:
                base = parse_base_file(partition, entry.name, entry.size)
                if base is None or base.instant not in visible:
                    continue
                # Of what is archived all was completed before; what is being filled will be.
                other = "~" if base.instant in visible.completed else ""
                at = completed.get(base.instant, other) if self.range.by_completion else base.instant
                if at <= begin:
                    group = (partition, base.file_id)
                    out[group] = max(out.get(group, ""), base.instant)
        return out


__all__ = ["OptimizedIncrementalSource"]
