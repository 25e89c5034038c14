"""Options of table services and of commit callbacks."""

from __future__ import annotations

import re
from enum import StrEnum

from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.option_types import (
    BOOLEAN,
    TEXT,
    OptionType,
    choice,
    class_or_function,
    java_class,
    number,
    whole,
)

STRATEGY_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
NUM_COMMITS, NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST"
TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME = "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"

_strategy = java_class(STRATEGY_PACKAGE)


def _classes(text: str) -> tuple[str, ...]:
    """Strategies, which release 1.0 composes with a comma."""
    return tuple(str(_strategy.parse(part)) for part in text.split(","))


def _pattern(text: str) -> str:
    """A regular expression; Java's and Python's agree on what stands in partition paths."""
    try:
        re.compile(text)
    except re.error as e:
        raise ValueError(text) from e
    return text


# What belongs together of a declaration stands in one line.
# fmt: off
SERVICES_ENABLED = ConfigKey(
    "hoodie.table.services.enabled", BOOLEAN, "true", since="0.11.0",
    doc="false: a write neither cleans, archives nor compacts afterwards."
)
CLEAN_AUTOMATIC = ConfigKey(
    "hoodie.clean.automatic", BOOLEAN, "true", doc="Commits are followed by a cleaning, where one is due."
)
CLEAN_MAX_COMMITS = ConfigKey(
    "hoodie.clean.max.commits", whole(1, unit="commits"), "1",
    doc="A cleaning is due after so many commits since the last one.",
    alternatives=("hoodie.clean.trigger.max.commits",)
)
CLEAN_ALLOW_MULTIPLE = ConfigKey(
    "hoodie.clean.allow.multiple", BOOLEAN, "false", since="0.11.0",
    doc="A cleaning may be planned while another one is not finished.",
    alternatives=("hoodie.clean.multiple.enabled",)
)
CLEAN_POLICY = ConfigKey(
    "hoodie.cleaner.policy", choice("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    "KEEP_LATEST_COMMITS", doc="What the cleaner keeps: the last commits, the last versions of each file, or hours.",
    alternatives=("hoodie.clean.policy",)
)
CLEAN_COMMITS_RETAINED = ConfigKey(
    "hoodie.cleaner.commits.retained", whole(1, unit="commits"), "10",
    doc="Commits that stay readable by time travel (KEEP_LATEST_COMMITS).",
    alternatives=("hoodie.clean.commits.retained",)
)
CLEAN_HOURS_RETAINED = ConfigKey(
    "hoodie.cleaner.hours.retained", whole(1, unit="hours"), "24",
    doc="Hours that stay readable by time travel (KEEP_LATEST_BY_HOURS).",
    alternatives=("hoodie.clean.hours.retained",)
)
CLEAN_VERSIONS_RETAINED = ConfigKey(
    "hoodie.cleaner.fileversions.retained", whole(1, unit="versions"), "3",
    doc="Versions of each file that stay (KEEP_LATEST_FILE_VERSIONS).",
    alternatives=("hoodie.clean.fileversions.retained",)
)
CLEAN_INCREMENTAL = ConfigKey(
    "hoodie.cleaner.incremental.mode", BOOLEAN, "true",
    doc="The cleaner looks only at partitions that changed since the last cleaning.",
    alternatives=("hoodie.clean.incremental.enabled",)
)
ARCHIVE_AUTOMATIC = ConfigKey(
    "hoodie.archive.automatic", BOOLEAN, "true", doc="Commits are followed by archival, where it is due."
)
ARCHIVE_MIN_COMMITS = ConfigKey(
    "hoodie.keep.min.commits", whole(1, unit="commits"), "20",
    doc="Instants that archival leaves on the active timeline."
)
ARCHIVE_MAX_COMMITS = ConfigKey(
    "hoodie.keep.max.commits", whole(1, unit="commits"), "30",
    doc="Archival begins when the active timeline has more commits than this."
)
ARCHIVE_BATCH = ConfigKey(
    "hoodie.commits.archival.batch", whole(1, unit="entries"), "10", doc="Entries in one block of an archive file."
)
ARCHIVE_BEYOND_SAVEPOINT = ConfigKey(
    "hoodie.archive.beyond.savepoint", BOOLEAN, "false", since="0.12.0",
    doc="Commits after the first savepoint are archived too, savepointed ones not."
)
CALLBACK_ON = ConfigKey(
    "hoodie.write.commit.callback.on", BOOLEAN, "false", since="0.6.0",
    doc="After each commit somebody is told of it: by HTTP, or by a call of a Python function."
)
CALLBACK_CLASS = ConfigKey(
    "hoodie.write.commit.callback.class", class_or_function("org.apache.hudi.callback.impl."),
    "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback", since="0.6.0",
    doc="Apache Hudi's HoodieWriteCommitHttpCallback, or a Python function as module:function."
)
CALLBACK_URL = ConfigKey(
    "hoodie.write.commit.callback.http.url", TEXT, since="0.6.0",
    doc="Address that each commit is posted to, as JSON."
)
CALLBACK_TIMEOUT = ConfigKey(
    "hoodie.write.commit.callback.http.timeout.seconds", whole(1, unit="seconds"), "30", since="0.6.0",
    doc="How long an answer is waited for."
)
CALLBACK_KEY = ConfigKey(
    "hoodie.write.commit.callback.http.api.key", TEXT, "hudi_write_commit_http_callback", since="0.6.0",
    doc="Value of the header HUDI-CALLBACK-KEY."
)
CALLBACK_HEADERS = ConfigKey(
    "hoodie.write.commit.callback.http.custom.headers", TEXT, since="0.15.0",
    doc="Further headers, `name:value` with ; between them."
)
COMPACT_INLINE = ConfigKey(
    "hoodie.compact.inline", BOOLEAN, "false",
    doc=(
        "A write to a merge-on-read table runs the compactions that are planned, and plans and runs one where it is "
        "due. true for batch writes if not given, as of Apache Hudi's datasource."
    )
)
COMPACT_SCHEDULE_INLINE = ConfigKey(
    "hoodie.compact.schedule.inline", BOOLEAN, "false", since="0.11.0",
    doc="A write to a merge-on-read table plans a compaction where it is due and none is pending; another call runs it."
)
COMPACT_ASYNC = ConfigKey(
    "hoodie.datasource.compaction.async.enable", BOOLEAN, "true",
    doc="If it is given, a write does not compact by itself: a thread does (compact_in_background), or another process."
)
COMPACTION_TRIGGER = ConfigKey(
    "hoodie.compact.inline.trigger.strategy",
    choice(NUM_COMMITS, NUM_COMMITS_AFTER_LAST_REQUEST, TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME), NUM_COMMITS,
    doc="When a compaction is due: after delta commits, after seconds, after both or either."
)
COMPACTION_DELTA_COMMITS = ConfigKey(
    "hoodie.compact.inline.max.delta.commits", whole(1, unit="delta commits"), "5",
    doc="Delta commits after which a compaction is due; archival leaves them for it to count."
)
COMPACTION_DELTA_SECONDS = ConfigKey(
    "hoodie.compact.inline.max.delta.seconds", whole(0, unit="seconds"), "3600",
    doc="Seconds since the last compaction after which the next one is due."
)
COMPACTION_STRATEGY = ConfigKey(
    "hoodie.compaction.strategy",
    OptionType("names of Java classes with commas between them", _classes),
    f"{STRATEGY_PACKAGE}LogFileSizeBasedCompactionStrategy",
    doc="Which file slices a compaction takes: classes of Apache Hudi, with or without package; each narrows the last."
)
COMPACTION_TARGET_IO_MB = ConfigKey(
    "hoodie.compaction.target.io", whole(1, unit="megabytes"), "512000",
    doc="Megabytes that a compaction by a bounded strategy reads and writes."
)
COMPACTION_LOG_FILE_SIZE = ConfigKey(
    "hoodie.compaction.logfile.size.threshold", whole(0, unit="bytes"), "0",
    doc="LogFileSizeBasedCompactionStrategy takes slices with as many bytes of logs."
)
COMPACTION_LOG_FILE_COUNT = ConfigKey(
    "hoodie.compaction.logfile.num.threshold", whole(0, unit="files"), "0", since="0.13.0",
    doc="LogFileNumBasedCompactionStrategy takes slices with as many log files."
)
COMPACTION_TARGET_PARTITIONS = ConfigKey(
    "hoodie.compaction.daybased.target.partitions", whole(1, unit="partitions"), "10",
    doc="Partitions of DayBasedCompactionStrategy, newest first; days of the strategies that are aware of partitions.",
    alternatives=("hoodie.compaction.daybased.target",)
)
COMPACTION_PARTITION_REGEX = ConfigKey(
    "hoodie.compaction.partition.path.regex", OptionType("a regular expression", _pattern), since="1.0.0",
    doc="PartitionRegexBasedCompactionStrategy takes partitions whose whole path matches.",
    alternatives=("hoodie.compaction.partition.path.regex.pattern",)
)
LOG_COMPACT_INLINE = ConfigKey(
    "hoodie.log.compaction.inline", BOOLEAN, "false", since="0.13.0",
    doc="A write to a merge-on-read table merges the log blocks of file slices that have many, into one block each."
)
LOG_COMPACT_BLOCKS = ConfigKey(
    "hoodie.log.compaction.blocks.threshold", whole(1, unit="blocks"), "5", since="0.13.0",
    doc="A log compaction takes file slices with as many log blocks."
)
COMPACTION_MEMORY = ConfigKey(
    "hoodie.memory.compaction.max.size", whole(1, unit="bytes"),
    doc="Bytes that the log records of the slices being compacted may take; beyond it they go to disk."
)
METADATA_DELTA_COMMITS = ConfigKey(
    "hoodie.metadata.compact.max.delta.commits", whole(1, unit="commits"), "10", since="0.7.0",
    doc="Delta commits of the metadata table after which it is compacted."
)
FAIL_ON_SERVICES = ConfigKey(
    "hoodie.fail.writes.on.inline.table.service.exception", BOOLEAN, "true", since="0.13.0",
    doc="A compaction after a write that fails makes the call fail, though the write itself stays; false: a warning."
)
BUCKETS_MOST = ConfigKey(
    "hoodie.bucket.index.max.num.buckets", whole(1, 99_999_999, unit="buckets"), since="0.13.0",
    doc="A resize by size gives no partition more buckets; without it there is no bound (Apache Hudi splits none then)."
)
BUCKETS_LEAST = ConfigKey(
    "hoodie.bucket.index.min.num.buckets", whole(1, 99_999_999, unit="buckets"), since="0.13.0",
    doc="A resize by size leaves each partition so many buckets; without it those of a new partition."
)
BUCKETS_SPLIT = ConfigKey(
    "hoodie.bucket.index.split.threshold", number(above=0), "2.0", since="0.13.0",
    doc="A resize splits buckets whose files are larger than so many times `hoodie.parquet.max.file.size`."
)
BUCKETS_MERGE = ConfigKey(
    "hoodie.bucket.index.merge.threshold", number(0), "0.2", since="0.13.0",
    doc="A resize merges buckets that then are smaller than so many times `hoodie.parquet.max.file.size`."
)
# fmt: on


class DedupeType(StrEnum):
    """Rule for the surviving row of each key.

    MERGE: one, as the table's merge makes it of records of one key in the order of their writes: by ordering value,
    payload or merge function.  INSERT: the first that was written.  UPDATE: those of the newest commit, also several.
    UPSERT: one of the newest commit.
    """

    MERGE = "merge"
    INSERT = "insert_type"
    UPDATE = "update_type"
    UPSERT = "upsert_type"
