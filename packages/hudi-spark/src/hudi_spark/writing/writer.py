"""`df.write.format("hudi").save(path)`: one write operation on the Spark engine."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from hudi_format.errors import UnsupportedError
from hudi_format.storage.hadoop_options import hadoop_options, without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_spark.runtime.java_names import keep_names
from hudi_spark.runtime.options import merged, session_options, table_path, with_partition_by
from hudi_spark.writing.engine import SparkEngine
from hudi_timeline.options.write_options import OVERWRITE_MODE
from hudi_timeline.transaction.retries import LOOKUPS, retried
from hudi_timeline.transaction.write_basis import FirstBasis
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning.write_plan import ERROR, OVERWRITE
from hudi_timeline.writing.result import CommitResult

PARTITIONS_OVERWRITTEN = "spark.sql.sources.partitionOverwriteMode"

_last = threading.local()


def save_frame(
    frame: DataFrame,
    path: str | None,
    options: Mapping[str, str],
    *,
    mode: str | None = None,
    partition_by: Sequence[str] = (),
    layout: Sequence[str] = (),
) -> CommitResult:
    """Write a frame and return what the commit did; `last_commit()` gives it too.

    Args:
        options: of the call; the session's `hoodie.*` settings are added below them.
        mode: append, overwrite, ignore, error or errorifexists, which is the default.
        partition_by: columns of `partitionBy`.
        layout: further layout calls that were made, such as `bucketBy`.

    Raises:
        HudiError: see `hudi_timeline.writing.operation.execute`.
    """
    if layout:
        raise UnsupportedError(
            f"{', '.join(dict.fromkeys(layout))} has no meaning for Hudi tables",
            remedy="omit it; hoodie.bulkinsert.sort.mode and the table's partitions determine the layout.",
        )
    storage, store, asked = _asked(frame, path, with_partition_by(options, partition_by), mode, what="save")
    first = FirstBasis()

    def one_try(lost: int) -> CommitResult:
        engine = SparkEngine(frame, store)
        return execute(engine, storage, frame, asked, mode=mode or ERROR, lost=lost, first=first)

    # A try that lost is run again with the frame's rows evaluated anew.
    result = retried(asked, one_try, lookups=LOOKUPS)
    _last.result = result
    return result


def dry_run(
    frame: DataFrame,
    path: str,
    *,
    mode: str = "append",
    options: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> CommitResult:
    """Result of what `frame.write.format("hudi").save(path)` would do; nothing is written.

    The frame is evaluated and its keys are looked for as by the write.  The result says which stage of the index
    resolved how many keys (`lookup.keys`), the file groups that would be written, and bytes and seconds that the write
    is expected to take (`rewritten_bytes`, `forecast`).

    Args:
        options: of the write; the session's `hoodie.*` settings are added below them.
        mode: as of the write.
        partition_by: columns of `partitionBy`.

    Raises:
        HudiError: as the write, where it needs no written files to see it.
    """
    given = with_partition_by(options or {}, partition_by)
    storage, store, asked = _asked(frame, path, given, mode, what="dry_run")
    return execute(
        SparkEngine(frame, store, counts_keys=True), storage, frame, asked, mode=mode, dry_run=True
    )


def _asked(
    frame: DataFrame, path: str | None, options: Mapping[str, str], mode: str | None, *, what: str
) -> tuple[Storage, dict[str, str], dict[str, str]]:
    """Storage of a write, its `fs.*` options and its others, the session's among them."""
    spark = frame.sparkSession
    keep_names(spark)
    given = merged(session_options(spark), options)
    if mode is not None and mode.lower() == OVERWRITE:
        # What Apache Hudi's option says where it is not given.
        overwritten = (spark.conf.get(PARTITIONS_OVERWRITTEN, None) or "").upper()
        given = merged({OVERWRITE_MODE: overwritten} if overwritten == "DYNAMIC" else {}, given)
    storage = open_storage(table_path(spark, path, what=what), options=given)
    return storage, hadoop_options(given), without_hadoop_options(given)


def last_commit() -> CommitResult | None:
    """Result of this thread's last write through Spark; None before the first."""
    found: CommitResult | None = getattr(_last, "result", None)
    return found
