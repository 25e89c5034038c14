"""Slices divided anew: merged rows of file slices, in other file groups, in one pass.

Each slice is read once, part by part; a file is begun with its first row, so that a file group without rows has none.
In memory are, besides the log records, one row group of each new file.  A row keeps its commit time and sequence
number, as in a compaction.

Source: SparkConsistentBucketClusteringExecutionStrategy of Apache Hudi 0.15, whose files and commits were compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from hudi_format.file_slice.compacted_file import SliceCompaction, as_stored, merged_parts
from hudi_format.file_slice.writer import FileSpec
from hudi_format.model import WriteStat
from hudi_format.parquet.layout import KeyObserver
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.protocol import Storage

Route = Callable[[pa.Table], np.ndarray]
"""Number of the file of each row."""


def divide_slices(
    storage: Storage,
    sources: Sequence[SliceCompaction],
    specs: Sequence[FileSpec],
    route: Route,
    *,
    begin: Callable[[FileSpec], Callable[[], None]],
    observer: Callable[[], KeyObserver],
) -> list[WriteStat]:
    """Write the rows of slices to new files; returns the statistics of those that have any.

    Args:
        sources: the slices, how they are merged, and the columns that files hold.
        specs: the files; one of them is not made where no row goes to it.
        route: says which of them each row goes to.
        begin: called before a file's first byte; gives the check to make before it is closed.
        observer: makes the observer of a file's keys.

    Raises:
        MissingFileError, CorruptFileError: a file of a slice is not there, or damaged.
        SchemaError, UnsupportedError, SpillError: as of a read of the slices.
        StorageError: the storage refused.
    """
    began = time.monotonic()
    open_files: dict[int, tuple[BaseFileWriter, Callable[[], None]]] = {}
    with ExitStack() as files:

        def writer_of(number: int) -> BaseFileWriter:
            if number not in open_files:
                spec = specs[number]
                guard = begin(spec)
                writer = files.enter_context(
                    BaseFileWriter(
                        storage,
                        spec.path,
                        with_meta(spec.schema),
                        config=spec.config,
                        observer=observer(),
                        entries=spec.entries,
                    )
                )
                open_files[number] = writer, guard
            return open_files[number][0]

        for source in sources:
            for part in merged_parts(storage, source):
                if not part.after.num_rows:
                    continue
                numbers = route(part.after)
                for number in np.unique(numbers).tolist():
                    rows = part.after if len(specs) == 1 else part.after.filter(pa.array(numbers == number))
                    writer_of(number).write(as_stored(rows, specs[number]))
        sizes = {}
        for number, (writer, guard) in sorted(open_files.items()):
            guard()
            sizes[number] = writer.close()
    took_ms = int((time.monotonic() - began) * 1000)
    return [
        WriteStat(
            file_id=specs[number].file_id,
            path=specs[number].path,
            partition=specs[number].partition,
            prev_commit="null",
            num_writes=open_files[number][0].num_rows,
            num_inserts=open_files[number][0].num_rows,
            total_write_bytes=size,
            file_size_in_bytes=size,
            create_time_ms=took_ms,
        )
        for number, size in sizes.items()
    ]
