"""Options of log files: blocks, sizes, and which slices take new records."""

from __future__ import annotations

from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.option_types import BYTES, choice, whole

# What belongs together of a declaration stands in one line.
# fmt: off
LOG_BLOCK_FORMAT = ConfigKey(
    "hoodie.logfile.data.block.format", choice("avro", "parquet", "hfile", ""),
    doc="Type of the data blocks of log files; Avro if not given."
)
LOG_BLOCK_BYTES = ConfigKey(
    "hoodie.logfile.data.block.max.size", BYTES, "268435456", doc="Size at which a data block ends and the next begins."
)
LOG_FILE_BYTES = ConfigKey(
    "hoodie.logfile.max.size", BYTES, "1073741824",
    doc="Size at which a log file ends and one of the next version begins."
)
SMALL_GROUP_CANDIDATES = ConfigKey(
    "hoodie.merge.small.file.group.candidates.limit", whole(0, unit="file groups"), "1",
    doc="File groups of a partition that a write to a merge-on-read table rewrites to put new records into them."
)
# fmt: on
