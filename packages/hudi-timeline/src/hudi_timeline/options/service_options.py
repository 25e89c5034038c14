"""Options of table services and of commit callbacks."""

from __future__ import annotations

from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.option_types import BOOLEAN, TEXT, choice, class_or_function, whole

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
