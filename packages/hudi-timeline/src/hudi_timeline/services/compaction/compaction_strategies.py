"""Compaction strategies: partitions that are looked at, operations that are taken.

Each is a class of Apache Hudi by its name; several narrow one another's choice in the order given, as in release 1.0.

Source: org.apache.hudi.table.action.compact.strategy of Apache Hudi 0.15, and PartitionRegexBasedCompactionStrategy
and CompositeCompactionStrategy of 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta

from hudi_format.errors import UnsupportedError
from hudi_timeline.options.compaction_config import (
    BOUNDED_IO,
    BOUNDED_PARTITIONS,
    BY_LOG_COUNT,
    BY_LOG_SIZE,
    BY_PARTITION_REGEX,
    DAY_BASED,
    UNBOUNDED,
    UNBOUNDED_PARTITIONS,
    CompactionConfig,
)
from hudi_timeline.options.service_options import COMPACTION_STRATEGY
from hudi_timeline.timeline.action_metadata import CompactionOperation

TOTAL_IO_MB, READ_MB, WRITE_MB = "TOTAL_IO_MB", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB"
LOG_BYTES, LOG_FILES = "TOTAL_LOG_FILES_SIZE", "TOTAL_LOG_FILES"
"""Metrics of an operation, by their names in plans."""

Operations = Sequence[CompactionOperation]

_DAY = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,2})\Z", re.ASCII)


def choose_partitions(partitions: Iterable[str], config: CompactionConfig, today: date) -> list[str]:
    """Partitions in which slices are looked for.

    Args:
        today: in the table's time zone.

    Raises:
        UnsupportedError: a strategy by days, and a partition that is none.
    """
    chosen = sorted(partitions)
    for name in config.strategy_names:
        chosen = _PARTITIONS[name](chosen, config, today) if name in _PARTITIONS else chosen
    return chosen


def choose_operations(
    operations: Operations, config: CompactionConfig, today: date
) -> list[CompactionOperation]:
    """Operations of a plan, in its order; errors as `choose_partitions`."""
    chosen = list(operations)
    for name in config.strategy_names:
        chosen = _OPERATIONS[name](chosen, config, today) if name in _OPERATIONS else chosen
    return chosen


# --- by size ---------------------------------------------------------------------------------------------


def _by_log_size(operations: Operations, config: CompactionConfig, _: date) -> list[CompactionOperation]:
    large = [o for o in operations if o.metrics[LOG_BYTES] >= config.log_file_size]
    return _bounded(sorted(large, key=lambda o: -o.metrics[LOG_BYTES]), config)


def _by_log_count(operations: Operations, config: CompactionConfig, _: date) -> list[CompactionOperation]:
    many = [o for o in operations if o.metrics[LOG_FILES] >= config.log_file_count]
    return _bounded(sorted(many, key=lambda o: -o.metrics[LOG_FILES]), config)


def _by_io(operations: Operations, config: CompactionConfig, _: date) -> list[CompactionOperation]:
    return _bounded(operations, config)


def _bounded(operations: Operations, config: CompactionConfig) -> list[CompactionOperation]:
    """Operations up to the one that reaches the limit of bytes read and written: one at least."""
    chosen, left = [], float(config.target_io_mb)
    for operation in operations:
        if left <= 0:
            break
        left -= operation.metrics[TOTAL_IO_MB]
        chosen.append(operation)
    return chosen


# --- by day ----------------------------------------------------------------------------------------------


def day_of(partition: str) -> date:
    """Day of a partition `yyyy/MM/dd`, with or without `name=` before each part.

    Raises:
        UnsupportedError: another partition.
    """
    plain = "/".join(part.rpartition("=")[2] for part in partition.split("/"))
    match = _DAY.match(plain)
    try:
        if match is not None:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise UnsupportedError(
        f"the partition {partition!r} is no day as yyyy/MM/dd, which the strategy by days needs",
        remedy=f"set {COMPACTION_STRATEGY} to {BY_LOG_SIZE}, or to {BY_PARTITION_REGEX} with a pattern.",
        option=COMPACTION_STRATEGY,
    )


def _newest_days(partitions: list[str], config: CompactionConfig, _: date) -> list[str]:
    return sorted(partitions, key=day_of, reverse=True)[: config.target_partitions]


def _is_recent(partition: str, config: CompactionConfig, today: date) -> bool:
    return day_of(partition) >= today - timedelta(days=config.target_partitions)


def _recent(partitions: list[str], config: CompactionConfig, today: date) -> list[str]:
    return sorted((p for p in partitions if _is_recent(p, config, today)), key=day_of, reverse=True)


def _not_recent(partitions: list[str], config: CompactionConfig, today: date) -> list[str]:
    return [p for p in partitions if not _is_recent(p, config, today)]


def _matching(partitions: list[str], config: CompactionConfig, _: date) -> list[str]:
    pattern = re.compile(config.partition_regex or "")
    return [p for p in partitions if pattern.fullmatch(p)]


def _of_partitions(choose: Callable[[list[str], CompactionConfig, date], list[str]]) -> _Choice:
    """Operations of the partitions that are chosen, in their order."""

    def operations_of(
        operations: Operations, config: CompactionConfig, today: date
    ) -> list[CompactionOperation]:
        by_partition: dict[str, list[CompactionOperation]] = {}
        for operation in operations:
            by_partition.setdefault(operation.partition, []).append(operation)
        return [o for p in choose(list(by_partition), config, today) for o in by_partition[p]]

    return operations_of


_Choice = Callable[[Operations, CompactionConfig, date], list[CompactionOperation]]
_PARTITIONS: dict[str, Callable[[list[str], CompactionConfig, date], list[str]]] = {
    DAY_BASED: _newest_days,
    BOUNDED_PARTITIONS: _recent,
    UNBOUNDED_PARTITIONS: _not_recent,
    BY_PARTITION_REGEX: _matching,
}
_OPERATIONS: dict[str, _Choice] = {
    BY_LOG_SIZE: _by_log_size,
    BY_LOG_COUNT: _by_log_count,
    BOUNDED_IO: _by_io,
    UNBOUNDED: lambda operations, config, today: list(operations),
    **{name: _of_partitions(choose) for name, choose in _PARTITIONS.items()},
}
