"""Compaction options of a call, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.errors import ConflictingOptionError, UnsupportedError
from hudi_timeline.options import file_options as file
from hudi_timeline.options import service_options as service
from hudi_timeline.options import table_options
from hudi_timeline.options.config_key import given_value, value_of
from hudi_timeline.options.registry import ParsedOptions, canonical

BY_LOG_SIZE = "LogFileSizeBasedCompactionStrategy"
BY_LOG_COUNT = "LogFileNumBasedCompactionStrategy"
BOUNDED_IO = "BoundedIOCompactionStrategy"
UNBOUNDED = "UnBoundedCompactionStrategy"
DAY_BASED = "DayBasedCompactionStrategy"
BOUNDED_PARTITIONS = "BoundedPartitionAwareCompactionStrategy"
UNBOUNDED_PARTITIONS = "UnBoundedPartitionAwareCompactionStrategy"
BY_PARTITION_REGEX = "PartitionRegexBasedCompactionStrategy"
STRATEGIES = (
    BY_LOG_SIZE, BY_LOG_COUNT, BOUNDED_IO, UNBOUNDED, DAY_BASED, BOUNDED_PARTITIONS, UNBOUNDED_PARTITIONS,
    BY_PARTITION_REGEX,
)  # fmt: skip


@dataclass(frozen=True)
class CompactionConfig(file.FileConfig):
    """Compaction options; the defaults are Apache Hudi's.

    Each field is the value of its option; what it means stands there.

    Attributes:
        strategies: full names of classes, of those in `STRATEGIES`.
    """

    inline: bool | None = given_value(service.COMPACT_INLINE)
    schedule_inline: bool = value_of(service.COMPACT_SCHEDULE_INLINE)
    asynchronous: bool | None = given_value(service.COMPACT_ASYNC)
    trigger: str = value_of(service.COMPACTION_TRIGGER)
    delta_commits: int = value_of(service.COMPACTION_DELTA_COMMITS)
    delta_seconds: int = value_of(service.COMPACTION_DELTA_SECONDS)
    strategies: tuple[str, ...] = value_of(service.COMPACTION_STRATEGY)
    target_io_mb: int = value_of(service.COMPACTION_TARGET_IO_MB)
    log_file_size: int = value_of(service.COMPACTION_LOG_FILE_SIZE)
    log_file_count: int = value_of(service.COMPACTION_LOG_FILE_COUNT)
    target_partitions: int = value_of(service.COMPACTION_TARGET_PARTITIONS)
    partition_regex: str | None = given_value(service.COMPACTION_PARTITION_REGEX)
    log_compact_inline: bool | None = given_value(service.LOG_COMPACT_INLINE)
    log_compact_blocks: int = value_of(service.LOG_COMPACT_BLOCKS)
    fail_writes: bool = value_of(service.FAIL_ON_SERVICES)
    memory: int | None = given_value(service.COMPACTION_MEMORY)
    merge: str | None = given_value(table_options.MERGE)
    merge_memory: int | None = given_value(table_options.MEMORY_MAX)
    spill_path: str = value_of(table_options.SPILL_PATH, otherwise="")
    spill_compress: bool = value_of(table_options.SPILL_COMPRESS)

    @property
    def compacts_inline(self) -> bool:
        """Whether a batch write compacts afterwards: also where no option says when compactions run."""
        if self.inline is None:
            return self.asynchronous is None and not self.schedule_inline
        return self.inline

    @property
    def strategy_names(self) -> tuple[str, ...]:
        """Names of the strategies without their package."""
        return tuple(name.removeprefix(service.STRATEGY_PACKAGE) for name in self.strategies)


def compaction_config(given: ParsedOptions) -> CompactionConfig:
    """Compaction options of a call.

    Raises:
        UnsupportedError: a strategy that only a JVM can load.
        ConflictingOptionError: a pattern of partitions without the strategy that goes by it, or the other way round;
            compactions that are to be executed, and to be planned only.
    """
    config = CompactionConfig(**file.given_file_values(CompactionConfig, given.parsed))
    for name, short in zip(config.strategies, config.strategy_names, strict=True):
        if short not in STRATEGIES:
            raise UnsupportedError(
                f"{service.COMPACTION_STRATEGY} names {name}, a class that needs a JVM",
                remedy=f"use {', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}.",
                option=service.COMPACTION_STRATEGY,
                value=name,
            )
    if config.inline and config.schedule_inline:
        raise ConflictingOptionError(
            f"{service.COMPACT_INLINE}=true executes what {service.COMPACT_SCHEDULE_INLINE}=true only plans",
            remedy="set one of them.",
            option=service.COMPACT_SCHEDULE_INLINE,
        )
    by_regex = BY_PARTITION_REGEX in config.strategy_names
    if by_regex and not config.partition_regex:
        raise ConflictingOptionError(
            f"{BY_PARTITION_REGEX} has no pattern to go by",
            remedy=f"set {service.COMPACTION_PARTITION_REGEX}.",
            option=service.COMPACTION_PARTITION_REGEX,
        )
    if config.partition_regex and not by_regex:
        raise ConflictingOptionError(
            f"{service.COMPACTION_PARTITION_REGEX} is given, and {service.COMPACTION_STRATEGY} does not go by it",
            remedy=f"set {service.COMPACTION_STRATEGY}={BY_PARTITION_REGEX}, or that and others with commas between "
            "them.",
            option=service.COMPACTION_PARTITION_REGEX,
        )
    return config


def refuse_without_logs(
    config: CompactionConfig, table_type: str | None, merge: str | None = None, *, table: str
) -> None:
    """Raise UnsupportedError where a write is to compact a table that it cannot compact so.

    Args:
        merge: the table's own merge of the user's, if it has one.
    """
    if config.log_compact_inline and (merge or config.merge):
        raise UnsupportedError(
            f"{service.LOG_COMPACT_INLINE}=true, and a merge of the user's ({table_options.MERGE}) meets the base row "
            "record by record",
            table=table,
            remedy="leave it out: compactions merge such logs.",
            option=service.LOG_COMPACT_INLINE,
            value="true",
        )
    asked = (
        (config.inline, service.COMPACT_INLINE),
        (config.schedule_inline, service.COMPACT_SCHEDULE_INLINE),
        (config.log_compact_inline, service.LOG_COMPACT_INLINE),
    )
    option = next((key for wanted, key in asked if wanted), None)
    if (table_type or "").upper() == "MERGE_ON_READ" or option is None:
        return
    raise UnsupportedError(
        f"{option}=true requests compaction, and a copy-on-write table has no log files",
        table=table,
        remedy="leave it out.",
        option=option,
        value="true",
    )


def parse_compaction_options(options: Mapping[str, str]) -> CompactionConfig:
    """Compaction options of a service called on its own.

    Raises:
        UnknownOptionError, InvalidOptionError: as for writes.
        UnsupportedError, ConflictingOptionError: as `compaction_config`.
    """
    return compaction_config(canonical(options))
