"""Conversion of incremental checkpoints between instant and completion time order.

Bounds are times of instants (orders "stable" and "start") or times at which commits were completed ("completion").
What was read up to one of the first is in most tables not what was completed up to any moment: the checkpoint of the
other order is the latest before which nothing is missed, and what is read once more is named.

Source: RFC-22, options 1 to 3 of incremental reads; release notes of 1.0 on checkpoints of tables that were upgraded.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_format.errors import InstantNotFoundError, InvalidOptionError
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.read_options import COMPLETION, STABLE, START_ORDER
from hudi_timeline.reading.incremental.incremental_range import completion_times, is_start
from hudi_timeline.reading.snapshot_query import START
from hudi_timeline.reading.stability import settled
from hudi_timeline.reading.time_travel import first_open_write, has_archive

ORDERS = (STABLE, START_ORDER, COMPLETION)


@dataclass(frozen=True, slots=True)
class ConvertedCheckpoint:
    """A checkpoint converted to another order.

    Attributes:
        checkpoint: the `begin` of the next read.
        repeated: commits whose rows that read gives although they were read before, oldest first.
    """

    checkpoint: str
    repeated: tuple[str, ...] = ()


def convert(snapshot: TableSnapshot, checkpoint: str, *, order: str, to: str) -> ConvertedCheckpoint:
    """The checkpoint of `order` converted to the order `to`, without missing a commit.

    Raises:
        InvalidOptionError: an order that does not exist.
        InstantNotFoundError: commits after the checkpoint are archived, so that it cannot be told.
    """
    for name in (order, to):
        if name not in ORDERS:
            raise InvalidOptionError(f"order={name!r} is unknown", remedy=f"use one of {', '.join(ORDERS)}.")
    if (order == COMPLETION) == (to == COMPLETION) or is_start(checkpoint):
        return ConvertedCheckpoint(START if is_start(checkpoint) else checkpoint)
    snapshot, last = settled(snapshot, None)
    completed = {i: at for i, at in completion_times(snapshot).items() if last is None or at <= last}
    by_completion = order == COMPLETION
    first = min((at if by_completion else i.time for i, at in completed.items()), default="")
    if checkpoint < first and has_archive(snapshot.storage, snapshot.config):
        raise InstantNotFoundError(
            f"the checkpoint {checkpoint} is before {first}, where the active timeline begins",
            table=snapshot.storage.uri,
            instant=checkpoint,
            remedy="begin at the start of the table with on_missing='full_scan', and keep the checkpoint of that read.",
            oldest=first,
        )
    read = {i for i, at in completed.items() if (at if by_completion else i.time) <= checkpoint}
    if by_completion:
        unread = [i.time for i in snapshot.timeline.completed_writes() if i not in read]
        # What is open will be completed later, and has a time of its own already.
        pending = first_open_write(snapshot.storage, snapshot.timeline)
        bound = min([*unread, *([] if pending is None else [pending.time])], default="~")
        found = max((i.time for i in read if i.time < bound), default=START)
        again = [i.time for i in read if i.time > found]
    else:
        bound = min((at for i, at in completed.items() if i not in read), default="~")
        found = max((completed[i] for i in read if completed[i] < bound), default=START)
        again = [i.time for i in read if completed[i] > found]
    return ConvertedCheckpoint(found, tuple(sorted(again)))
