"""Options of transactions."""

from __future__ import annotations

from hudi_timeline.options.config_key import ConfigKey, Unsupported, class_other_than, other_than
from hudi_timeline.options.option_types import BOOLEAN, MILLISECONDS, TEXT, WHOLE, choice, java_class, whole

LOCKS = "org.apache.hudi.client.transaction.lock."
# What belongs together of a declaration stands in one line.
# fmt: off
HEARTBEAT_INTERVAL_MS = ConfigKey(
    "hoodie.client.heartbeat.interval_in_ms", MILLISECONDS, "60000",
    doc="How often a running write shows that it is alive."
)
HEARTBEAT_MISSES = ConfigKey(
    "hoodie.client.heartbeat.tolerable.misses", whole(1, unit="heartbeats"), "2",
    doc="Missed heartbeats after which a write counts as dead."
)
FAILED_WRITES_POLICY = ConfigKey(
    "hoodie.cleaner.policy.failed.writes", choice("EAGER", "LAZY", "NEVER"), "EAGER",
    doc="EAGER: a write first rolls back what dead writes left.", alternatives=("hoodie.clean.failed.writes.policy",)
)
LOCK_PROVIDER = ConfigKey(
    "hoodie.write.lock.provider", java_class("org.apache.hudi.client.transaction.lock."),
    "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider", since="0.8.0",
    doc="Lock between writers; not given: flock on local file systems, a lock file on S3, else within the process.",
    unsupported=Unsupported(
        class_other_than(LOCKS, "InProcessLockProvider", "FileSystemBasedLockProvider", "StorageBasedLockProvider"),
        "a lock provider",
        f"use {LOCKS}FileSystemBasedLockProvider where all writers share a file system, StorageBasedLockProvider "
        "on S3, or write from one process at a time"
    )
)
LOCK_PATH = ConfigKey(
    "hoodie.write.lock.filesystem.path", TEXT, since="0.8.0",
    doc="Folder of the lock file; not given: the table's .hoodie."
)
LOCK_EXPIRE_MINUTES = ConfigKey(
    "hoodie.write.lock.filesystem.expire", whole(0, unit="minutes (0: never)"), "0", since="0.12.0",
    doc="Age in minutes at which a lock file counts as left over; 0: never."
)
LOCK_VALIDITY_S = ConfigKey(
    "hoodie.write.lock.storage.validity.timeout.secs", whole(1, unit="seconds"), "300", since="1.0.2",
    doc="How long a lock on S3 counts if its writer dies without giving it back."
)
LOCK_WAIT_MS = ConfigKey(
    "hoodie.write.lock.wait_time_ms", whole(0, unit="milliseconds"), "60000", since="0.8.0",
    doc="How long to wait for the lock."
)
CONSISTENCY_CHECK = ConfigKey(
    "hoodie.consistency.check.enabled", BOOLEAN, "false", since="0.5.0",
    doc="Before a commit the store is asked for each of its files, for stores that show new files late."
)
CONSISTENCY_FIRST_MS = ConfigKey(
    "hoodie.consistency.check.initial_interval_ms", WHOLE, "2000", since="0.5.0",
    doc="Pause before files that are not there are looked for again."
)
CONSISTENCY_MOST_MS = ConfigKey(
    "hoodie.consistency.check.max_interval_ms", WHOLE, "300000", since="0.5.0",
    doc="The longest such pause; each is twice as long as the one before."
)
CONSISTENCY_CHECKS = ConfigKey(
    "hoodie.consistency.check.max_checks", WHOLE, "7", since="0.5.0", doc="How often the files are looked for."
)
METADATA_ENABLE = ConfigKey(
    "hoodie.metadata.enable", BOOLEAN, "true", since="0.7.0",
    doc="Folders are listed whatever it says; false also lets a write drop a metadata table that holds " "indexes."
)
ALLOW_EMPTY_COMMIT = ConfigKey(
    "hoodie.allow.empty.commit", BOOLEAN, "true", doc="A write without rows makes a commit."
)
DURABILITY = ConfigKey(
    "hudi.durability", choice("flush", "none"), "flush", since="0.1.0",
    doc=(
        "flush: what a call has published outlives a power failure; none: it is left to the system when it reaches a "
        "local disk."
    )
)
CONCURRENCY_MODE = ConfigKey(
    "hoodie.write.concurrency.mode",
    choice("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"), "SINGLE_WRITER",
    unsupported=Unsupported(
        other_than("SINGLE_WRITER"), "concurrent writers",
        "set it to SINGLE_WRITER; a second writer gets ConcurrentWriterError and may try again"
    )
)
