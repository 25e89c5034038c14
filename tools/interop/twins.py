"""Twins: two tables with one history, written in turn by this project and by Apache Hudi."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from hudi_format import open_storage
from hudi_format.schema.input_rows import as_reader
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours
from interop.apache_hudi import ApacheHudi
from interop.rows import assert_same_rows
from interop.samples import Row, Rows, Shape
from interop.spark_process import SparkProcess

OPERATION = "hoodie.datasource.write.operation"
# Lists that Apache Hudi 0.15.0 wrote by bulk_insert's row writer are null after its own next upsert of that file.
WRITER_BUG = {"hoodie.datasource.write.row.writer.enable": "false"}
# They differ from writer to writer.
OWN = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


class Twins:
    """Two tables with one history, written in turn."""

    def __init__(
        self,
        folder: Path,
        shape: Shape,
        apache: ApacheHudi,
        spark: SparkProcess | None = None,
        *,
        derived: Callable[[Row], Row] = lambda row: {},
    ) -> None:
        """Two tables that are not there yet.

        Args:
            spark: writes for us; None for the engine without a JVM.
            derived: gives the columns of a row that its other columns say, such as the marks of a payload.
        """
        self.derived = derived
        self.paths = (folder / "begun-by-us", folder / "begun-by-apache")
        self.shape, self.apache, self.spark = shape, apache, spark
        plain = replace(shape, partitions=tuple(p.partition(":")[0] for p in shape.partitions))
        self.rows = Rows(plain)
        self.written: dict[str, Row] = {}
        self.step = 0

    def new(self, n: int) -> list[Row]:
        return [self.completed(r) for r in self.rows.new(n)]

    def changed(self, n: int) -> list[Row]:
        return [self.completed(r) for r in self.rows.changed(list(self.written.values()), n)]

    def completed(self, row: Row) -> Row:
        """The row with the columns that its others say."""
        dated = row | {"day": f"2024-02-{10 + int(row['uuid'][3:]) % 2}"}
        return dated | self.derived(dated)

    def write(self, operation: str, rows: list[Row]) -> None:
        """The same rows into both, by the two writers; the next time the other way round."""
        table = pa.Table.from_pylist(rows, schema=self.shape.schema)
        options = {**self.shape.write_options(), OPERATION: operation}
        mine, theirs = self.paths if self.step % 2 == 0 else self.paths[::-1]
        if self.spark is not None:
            self.spark.write(mine, table, options)
        else:
            execute(LocalEngine(), open_storage(str(mine)), as_reader(table), options)
        self.apache.write(theirs, table, {**options, **WRITER_BUG})
        self.step += 1
        for row in rows:
            if operation == "delete":
                self.written.pop(row["uuid"], None)
            else:
                self.written[row["uuid"]] = row

    def check(self) -> None:
        by_apache = [self.apache.read(p).drop_columns(OWN) for p in self.paths]
        by_us = [ours.read(p).drop_columns(OWN) for p in self.paths]
        try:
            assert by_apache[0].num_rows > 0
            assert_same_rows(by_apache[0], by_apache[1], ["uuid"], ordered_columns=False)
            assert_same_rows(by_us[0], by_apache[0], ["uuid"], ordered_columns=False)
            assert_same_rows(by_us[1], by_apache[1], ["uuid"], ordered_columns=False)
        except AssertionError as e:
            e.add_note(f"after step {self.step}")
            raise
