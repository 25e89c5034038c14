"""A table as a stream source: first and latest offset, and the rows between two.

An offset is a time of the timeline: the rows of a batch are those of an incremental query (start, end].  At a commit
that is still open reading stops until it is completed or rolled back, so that each change comes once.

Source: spec "Queries", section 10; HoodieStreamSource of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_format.errors import ConflictingOptionError
from hudi_format.storage.hadoop_options import hadoop_options, without_hadoop_options
from hudi_spark.reading.reader import changes_for
from hudi_timeline.options import ReadConfig, parse_read_options
from hudi_timeline.options.allowed_functions import check_allowed
from hudi_timeline.options.read_options import (
    AS_OF,
    BEGIN,
    BLOCK,
    COMPLETION,
    END,
    HOLLOW_POLICY,
    INCREMENTAL,
    ORDER,
    QUERY_TYPE,
    STABLE,
    START_OFFSET,
)
from hudi_timeline.options.table_options import MERGE
from hudi_timeline.reading.incremental.incremental_range import by_completion, is_start
from hudi_timeline.reading.scan import Scan
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.instant import parse_query_instant, zone_of

log = logging.getLogger("hudi")

EARLIEST, LATEST = "earliest", "latest"
START = "00000000000000"
"""The offset before every commit, as Apache Hudi writes it into checkpoints."""


@dataclass(frozen=True)
class TableStream:
    """A stream of a table's changes; picklable.

    Attributes:
        uri: the table's base path.
        options: of the read, the session's among them.
    """

    uri: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, uri: str, options: Mapping[str, str]) -> TableStream:
        """The stream of a read's options.

        Raises OptionError: options that cannot go with a stream, or are no read options.
        """
        names = {name.lower() for name in options}
        waits = names.isdisjoint((HOLLOW_POLICY, ORDER))
        given = {**options, str(HOLLOW_POLICY): BLOCK} if waits else dict(options)
        for key in (BEGIN, END, AS_OF):
            if key in names:
                raise ConflictingOptionError(
                    f"streams do not support {key}",
                    remedy=f"use {START_OFFSET}: earliest, latest or an instant.",
                    option=key,
                )
        stream = cls(uri, given)
        stream.config  # noqa: B018 - its errors are wanted here
        return stream

    @property
    def config(self) -> ReadConfig:
        given = without_hadoop_options(dict(self.options))
        # A stream is incremental, whatever the session says of queries; it has bounds of its own.
        plain = {k: v for k, v in given.items() if k.lower() != QUERY_TYPE}
        return parse_read_options({**plain, QUERY_TYPE: INCREMENTAL, BEGIN: START})

    def open(self) -> HudiTable:
        return HudiTable.open(self.uri, options=hadoop_options(dict(self.options)))

    def initial(self) -> str:
        """Initial offset by the options."""
        wanted = self.config.start_offset.strip()
        if wanted.lower() == EARLIEST:
            return START
        return self.latest() if wanted.lower() == LATEST else self._named(wanted)

    def latest(self) -> str:
        """Latest readable offset, not before the options' initial one."""
        wanted = self.config.start_offset.strip()
        found = self.open().latest_offset(options=dict(self.config.raw)) or START
        return max(found, self._named(wanted)) if wanted.isdigit() else found

    def _named(self, wanted: str) -> str:
        """Offset of an instant or date, in the stream's order.

        Raises:
            InstantNotFoundError: commits after a checkpoint of another order are archived.
        """
        config = self.config
        if wanted.isdigit() and config.start_offset_order is None:
            return wanted
        table = self.open()
        begin = wanted if wanted.isdigit() else parse_query_instant(wanted, zone_of(table.config.timezone))
        if config.start_offset_order is None:
            return begin
        own = COMPLETION if by_completion(config) or table.config.version.has_completion_times else STABLE
        found = table.convert_checkpoint(begin, order=config.start_offset_order, to=own)
        if found.repeated:
            log.info("%s: the stream returns the rows of %s again", self.uri, ", ".join(found.repeated))
        return START if is_start(found.checkpoint) else found.checkpoint

    def scan(self, start: str, end: str, columns: Sequence[str] | None = None) -> Scan:
        """The changes after `start` up to `end`; none where that is earlier, as after a restore."""
        return changes_for(self.open(), self.config, start, max(start, end), columns)


def with_allowed_merge(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options of a stream, with the table's merge function where this process allows it.

    Other processes plan the batches of a stream, and know nothing of what the driver allows.

    Raises:
        FunctionNotAllowedError: a function that only the table names.
    """
    table = HudiTable.open(uri, options=hadoop_options(dict(options)))
    config = table.config
    text = config.properties.get(MERGE)
    if not text or config.table_type != "MERGE_ON_READ" or any(n.lower() == MERGE for n in options):
        return dict(options)
    check_allowed(text, given=None, storage=table.storage)
    return {**options, MERGE: text}
