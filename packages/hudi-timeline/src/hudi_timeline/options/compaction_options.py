"""Options of compaction: when it is due, what it takes, and when it runs."""

from __future__ import annotations

import re

from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.option_types import BOOLEAN, WHOLE, OptionType, choice, java_class, whole

STRATEGY_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
NUM_COMMITS, NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST"
TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME = "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"

_strategy = java_class(STRATEGY_PACKAGE)


def _classes(text: str) -> tuple[str, ...]:
    """Strategies, which release 1.0 composes with a comma."""
    return tuple(_strategy.parse(part) for part in text.split(","))


def _pattern(text: str) -> str:
    """A regular expression; Java's and Python's agree on what stands in partition paths."""
    try:
        re.compile(text)
    except re.error as e:
        raise ValueError(text) from e
    return text


# What belongs together of a declaration stands in one line.
# fmt: off
INLINE = ConfigKey(
    "hoodie.compact.inline", BOOLEAN, "false",
    doc=(
        "A write to a merge-on-read table runs the compactions that are planned, and plans and runs one where it is "
        "due. true for batch writes if not given, as of Apache Hudi's datasource."
    )
)
SCHEDULE_INLINE = ConfigKey(
    "hoodie.compact.schedule.inline", BOOLEAN, "false", since="0.11.0",
    doc="A write to a merge-on-read table plans a compaction where it is due and none is pending; another call runs it."
)
TRIGGER = ConfigKey(
    "hoodie.compact.inline.trigger.strategy",
    choice(NUM_COMMITS, NUM_COMMITS_AFTER_LAST_REQUEST, TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME), NUM_COMMITS,
    doc="When a compaction is due: after delta commits, after seconds, after both or either."
)
DELTA_COMMITS = ConfigKey(
    "hoodie.compact.inline.max.delta.commits", WHOLE, "5",
    doc="Delta commits after which a compaction is due; archival leaves them for it to count."
)
DELTA_SECONDS = ConfigKey(
    "hoodie.compact.inline.max.delta.seconds", whole(unit="seconds"), "3600",
    doc="Seconds since the last compaction after which the next one is due."
)
STRATEGY = ConfigKey(
    "hoodie.compaction.strategy",
    OptionType("names of Java classes with commas between them", _classes),
    f"{STRATEGY_PACKAGE}LogFileSizeBasedCompactionStrategy",
    doc="Which file slices a compaction takes: classes of Apache Hudi, with or without package; each narrows the last."
)
TARGET_IO_MB = ConfigKey(
    "hoodie.compaction.target.io", whole(1, unit="megabytes"), "512000",
    doc="Megabytes that a compaction by a bounded strategy reads and writes."
)
LOG_FILE_SIZE = ConfigKey(
    "hoodie.compaction.logfile.size.threshold", whole(0, unit="bytes"), "0",
    doc="LogFileSizeBasedCompactionStrategy takes slices with as many bytes of logs."
)
LOG_FILE_COUNT = ConfigKey(
    "hoodie.compaction.logfile.num.threshold", whole(0, unit="files"), "0", since="0.13.0",
    doc="LogFileNumBasedCompactionStrategy takes slices with as many log files."
)
TARGET_PARTITIONS = ConfigKey(
    "hoodie.compaction.daybased.target.partitions", whole(1, unit="partitions"), "10",
    doc="Partitions of DayBasedCompactionStrategy, newest first; days of the strategies that are aware of partitions.",
    alternatives=("hoodie.compaction.daybased.target",)
)
PARTITION_REGEX = ConfigKey(
    "hoodie.compaction.partition.path.regex", OptionType("a regular expression", _pattern), since="1.0.0",
    doc="PartitionRegexBasedCompactionStrategy takes partitions whose whole path matches.",
    alternatives=("hoodie.compaction.partition.path.regex.pattern",)
)
MEMORY = ConfigKey(
    "hoodie.memory.compaction.max.size", whole(1, unit="bytes"),
    doc="Bytes that the log records of the slices being compacted may take; beyond it they go to disk."
)
FAIL_WRITES = ConfigKey(
    "hoodie.fail.writes.on.inline.table.service.exception", BOOLEAN, "true", since="0.13.0",
    doc="A compaction after a write that fails makes the call fail, though the write itself stays; false: a warning."
)
