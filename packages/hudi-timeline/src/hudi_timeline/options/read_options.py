"""Options of queries and of streams."""

from __future__ import annotations

from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.option_types import (
    BOOLEAN,
    CONDITION,
    NAME,
    NAMED_FIELDS,
    PATTERN_LIST,
    TEXT,
    choice,
    number,
)

STABLE, START_ORDER, COMPLETION = "stable", "start", "completion"
FAIL, BLOCK, TRANSITION = "FAIL", "BLOCK", "USE_TRANSITION_TIME"
ERROR, FULL_SCAN, SKIP = "error", "full_scan", "skip"
LATEST_STATE, CDC = "latest_state", "cdc"
SNAPSHOT, READ_OPTIMIZED, INCREMENTAL = "snapshot", "read_optimized", "incremental"

# What belongs together of a declaration stands in one line.
# fmt: off
MERGE_TYPE = ConfigKey(
    "hoodie.datasource.merge.type", choice("payload_combine", "skip_merge"), "payload_combine",
    doc=(
        "skip_merge: a snapshot of a merge-on-read table gives base rows as they are, and after them the records of "
        "the logs, one per key."
    )
)
QUERY_TYPE = ConfigKey(
    "hoodie.datasource.query.type", choice(SNAPSHOT, READ_OPTIMIZED, INCREMENTAL), SNAPSHOT, since="0.9.0",
    doc="What a read answers.", alternatives=("hoodie.datasource.view.type",)
)
INCREMENTAL_FORMAT = ConfigKey(
    "hoodie.datasource.query.incremental.format", choice(LATEST_STATE, CDC), LATEST_STATE, since="0.13.0",
    doc=(
        "What an incremental query gives: latest_state, each row once in its newest state; or cdc, every change with "
        "the row before and after it."
    )
)
START_OFFSET = ConfigKey(
    "hoodie.datasource.streaming.startOffset", NAME, "earliest", since="0.13.0",
    doc="Where a stream without a checkpoint begins: earliest, latest, or an instant, whose own changes are left out."
)
START_OFFSET_ORDER = ConfigKey(
    "hudi.streaming.start.order", choice(STABLE, START_ORDER, COMPLETION), since="0.1.0",
    doc=(
        "Order of the reader whose checkpoint the start offset is, if it is not the stream's own: stable, start or "
        "completion; the stream begins where it misses nothing."
    )
)
POLL_SECONDS = ConfigKey(
    "hudi.streaming.poll.seconds", number(above=0, below=1_000_000), since="0.1.0",
    doc=(
        "Least seconds between two looks of a stream at its table; not given: 1 on Spark 3.5, and from Spark 4 on as "
        "often as the query's trigger asks."
    )
)
STREAM_FOLDER = ConfigKey(
    "hudi.streaming.folder", TEXT, since="0.1.0",
    doc=(
        "Folder of marker files of a stream on Spark 3.5, which the driver and all executors reach; from Spark 4 on "
        "streams need none."
    )
)
AS_OF = ConfigKey("as.of.instant", NAME, doc="Instant or date to read the table at.")
BEGIN = ConfigKey(
    "hoodie.datasource.read.begin.instanttime", NAME, since="0.9.0",
    doc="Start of an incremental query, exclusive; 000 is the beginning."
)
END = ConfigKey(
    "hoodie.datasource.read.end.instanttime", NAME, since="0.9.0",
    doc="End of an incremental query, inclusive; the newest if not given."
)
PATHS = ConfigKey(
    "hoodie.datasource.read.paths", PATTERN_LIST, since="0.9.0",
    doc="Paths and patterns below the table, with commas between them; only their files are read."
)
PATH_GLOB = ConfigKey(
    "hoodie.datasource.read.incr.path.glob", TEXT, since="0.9.0",
    doc="Files that an incremental query reads: a pattern that full paths end with."
)
INCR_FILTERS = ConfigKey(
    "hoodie.datasource.read.incr.filters", TEXT, since="0.9.0",
    doc="Filters of an incremental query, with commas between them."
)
ORDER = ConfigKey(
    "hudi.read.incremental.order", choice(STABLE, START_ORDER, COMPLETION), since="0.1.0",
    doc=(
        "How an incremental query goes about a commit that is still open: stable, it reads up to it; start, it reads "
        "past it, and gives rows again later; completion, it goes by the times at which commits were completed."
    )
)
ON_MISSING = ConfigKey(
    "hudi.read.incremental.on.missing", choice(ERROR, FULL_SCAN, SKIP), since="0.1.0",
    doc=(
        "What an incremental query does whose begin lies before archived instants: error, full_scan, or skip, which "
        "gives the rows that are still on the timeline; not given: skip for the begin 000, else error. Of other "
        "queries, where files are gone: error, or skip."
    )
)
COLUMNS = ConfigKey(
    "hudi.read.columns", NAMED_FIELDS, since="0.1.0", doc="Columns to read, for doors that push down none."
)
FILTER = ConfigKey(
    "hudi.read.filter", CONDITION, since="0.1.0",
    doc="Rows to read, such as `city = 'oslo' and fare < 3`, for doors that push down none."
)
FULL_SCAN_FALLBACK = ConfigKey(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable", BOOLEAN, "false",
    doc="An incremental query whose files are gone reads the whole table."
)
USE_END_SCHEMA = ConfigKey(
    "hoodie.datasource.read.schema.use.end.instanttime", BOOLEAN, "false", since="0.9.0",
    doc="Incremental rows have the schema of the last instant."
)
HOLLOW_POLICY = ConfigKey(
    "hoodie.read.timeline.holes.resolution.policy", choice(FAIL, BLOCK, TRANSITION), FAIL,
    since="0.14.0",
    doc=(
        "What an incremental query does where a commit is still open: FAIL, read up to it (BLOCK), or go by the "
        "times at which commits were completed (USE_TRANSITION_TIME)."
    )
)
DATA_SKIPPING = ConfigKey(
    "hoodie.enable.data.skipping", BOOLEAN, "false", since="0.10.0",
    doc=(
        "A snapshot with hoodie.metadata.enable=true leaves out files that the metadata table's indexes rule out for "
        "its filter; not given: true for tables of version 8 and later, as in Apache Hudi 1.x."
    )
)
EXTRACT_PARTITION_VALUES_FROM_PATH = ConfigKey(
    "hoodie.datasource.read.extract.partition.values.from.path", BOOLEAN, "false", since="0.11.0",
    doc=(
        "Partition columns have the values of the folders' names also in snapshots of merge-on-read tables and in "
        "incremental queries, which else give what the files hold; the two differ where a key generator formats "
        "times."
    )
)
