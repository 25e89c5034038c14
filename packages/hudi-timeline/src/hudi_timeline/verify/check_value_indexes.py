"""Deep checks of statistics of partitions, and of secondary and expression indexes.

They are in the metadata table of versions 8 and later, and are compared with the rows of the newest state: no row may
lie outside of its partition's bounds, and a secondary index has each row's value and key, and nothing else.  Of an
expression only how many rows each file has is known here, not its values.

Source: spec "Metadata table", sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.merger import STATS
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table.expression_index import secondary_columns
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.verify.check_keys import ScanOf
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import TableFacts


def check_value_indexes(
    facts: TableFacts, scan_of: ScanOf, rows_of_files: Callable[[], Mapping[str, int]], report: VerifyReport
) -> None:
    """Compare indexes by value with the rows.

    Args:
        rows_of_files: gives the number of rows of each base file that counts, by its path.

    Raises:
        HudiError: the metadata table, or the newest state, cannot be read.
    """
    partitions = facts.config.metadata_partitions
    secondary = [p for p in partitions if p.startswith(k.SECONDARY_INDEX)]
    expressions = [p for p in partitions if p.startswith(k.EXPR_INDEX)]
    if not (secondary or expressions or k.PARTITION_STATS in partitions):
        return
    table = MetadataTable.of(open_snapshot(facts.storage))
    if k.PARTITION_STATS in partitions:
        _check_partition_stats(table, scan_of, report)
    columns = secondary_columns(table.snapshot)
    for index in secondary:
        if index not in columns:
            report.add(
                "mdt-secondary-index", f"{FOLDER}/{index}", f"no definition says the column of {index}"
            )
        else:
            _check_secondary(table, index, columns[index], scan_of, report)
    counts = rows_of_files() if expressions else {}
    for index in expressions:
        _check_expression(table, index, counts, report)


def _check_partition_stats(table: MetadataTable, scan_of: ScanOf, report: VerifyReport) -> None:
    records = table.scan(k.PARTITION_STATS).combine_chunks()
    stats = records.column(STATS).combine_chunks()
    schema = table.snapshot.schema
    told = set(stats.field("columnName").drop_null().to_pylist())
    names = [
        f.name for f in schema if f.name in told and r.has_bounds(f.type) and not pa.types.is_nested(f.type)
    ]
    if not names or not table.snapshot.config.populate_meta_fields:
        return
    rows = scan_of([PARTITION_PATH, *names]).to_arrow()
    known = records.column("key").combine_chunks()
    for partition in sorted(set(rows.column(PARTITION_PATH).to_pylist())):
        own = rows.filter(pc.equal(rows.column(PARTITION_PATH), partition))
        for name in names:
            at = pc.index_in(pa.scalar(k.partition_stats_key(name, partition)), known).as_py()
            values = own.column(name).drop_null()
            if pa.types.is_floating(values.type):
                values = values.filter(pc.invert(pc.is_nan(values)))
            if not len(values):
                continue
            path = f"{FOLDER}/{k.PARTITION_STATS}"
            if at is None:
                report.add("mdt-partition-stats", path,
                           f"partition_stats has no record of {name} in the partition {partition!r}",
                           partition=partition, column=name)  # fmt: skip
                continue
            low, high = (side[0] for side in r.bounds(stats.slice(at, 1), values.type))
            if not (low.is_valid and high.is_valid):
                continue
            found = pc.min_max(values)
            if pc.less(found["min"], low).as_py() or pc.greater(found["max"], high).as_py():
                report.add(
                    "mdt-partition-stats", path,
                    f"column {name} of the partition {partition!r}: bounds {low} to {high}, rows have "
                    f"{found['min']} to {found['max']}",
                    partition=partition, column=name,
                )  # fmt: skip


def _check_secondary(
    table: MetadataTable, index: str, column: str, scan_of: ScanOf, report: VerifyReport
) -> None:
    schema = table.snapshot.schema
    if schema.names.count(column) != 1:
        report.add(
            "mdt-secondary-index", f"{FOLDER}/{index}", f"the table has no column {column!r}", column=column
        )
        return
    kind = schema.field(column).type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        return  # the text of other types is Java's own
    rows = scan_of([RECORD_KEY, column]).to_arrow()
    texts = (None if v is None else str(v) for v in rows.column(column).to_pylist())
    wanted = set(zip(texts, rows.column(RECORD_KEY).to_pylist(), strict=True))
    entries = [e for b in table.scan(index).to_batches() for e in r.secondary_entries(b) if not e.is_deleted]
    has = {(e.value, e.record_key) for e in entries}
    if all(value is not None for value, _ in has):  # the first releases of 1.0 put nothing into it for null
        wanted = {pair for pair in wanted if pair[0] is not None}
    _report_pairs(index, "does not have", "that a row has", sorted(wanted - has, key=repr), report)
    _report_pairs(index, "has", "that no row has", sorted(has - wanted, key=repr), report)


def _report_pairs(
    index: str, what: str, of: str, pairs: Sequence[tuple[Any, Any]], report: VerifyReport
) -> None:
    if pairs:
        value, key = pairs[0]
        report.add("mdt-secondary-index", f"{FOLDER}/{index}",
                   f"{index} {what} {len(pairs)} entries {of}, such as the value {value!r} of the key {key!r}",
                   key=key)  # fmt: skip


def _check_expression(
    table: MetadataTable, index: str, rows_of_files: Mapping[str, int], report: VerifyReport
) -> None:
    """Compare the number of values in each base file with its rows."""
    records = table.scan(index)
    if STATS not in records.column_names:
        return
    names = {path.rpartition("/")[2]: path for path in rows_of_files}
    for one in records.column(STATS).to_pylist():
        path = names.get(one["fileName"] or "") if one and not one["isDeleted"] else None
        if path is not None and one["valueCount"] not in (None, rows_of_files[path]):
            said, has = one["valueCount"], rows_of_files[path]
            report.add("mdt-expression-index", path, f"{index} has {said} values of the file's {has} rows")
