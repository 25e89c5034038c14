"""Metadata table checks: presence, file listing; deep: indexes.

Source: spec "Metadata table", sections 1, 4, 5 and 10.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    MissingFileError,
    NotAHudiTableError,
    UnsupportedError,
)
from hudi_format.file_names import parse_data_file, parse_slice_file
from hudi_format.file_slice.reader import read_file_slice
from hudi_format.model import join_path
from hudi_format.parquet.footer import BLOOM_FILTER, Footer, read_footer
from hudi_format.parquet.row_groups import RowGroup, read_row_groups
from hudi_format.storage.protocol import Storage
from hudi_index.hashing.name_ids import FILE_ID_DIGITS
from hudi_index.metadata_table.files import metadata_merge
from hudi_index.metadata_table.keys import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from hudi_index.metadata_table.records import payload_field, schema_of
from hudi_timeline.concurrency import markers
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_config import FILES, FOLDER, built, own_storage
from hudi_timeline.metadata_table.reader import partition_slices, trusted_scope
from hudi_timeline.reading.metadata_listing import GONE, NOT_LISTED, OTHER_SIZE, differences
from hudi_timeline.table_config import META_FOLDER
from hudi_timeline.verify.check_keys import ScanOf, SliceKeys
from hudi_timeline.verify.check_value_indexes import check_value_indexes
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import Removed, TableFacts

T = TypeVar("T")

_CODES = {NOT_LISTED: "mdt-not-listed", GONE: "mdt-gone", OTHER_SIZE: "mdt-size"}
_TEXTS = {
    NOT_LISTED: "the file is there, and the metadata table does not list it",
    GONE: "the metadata table lists the file, which is missing",
    OTHER_SIZE: "it has another size than the metadata table says",
}


def check_presence(facts: TableFacts, report: VerifyReport) -> bool:
    """Whether the table has an active metadata table."""
    storage, config = facts.storage, facts.config
    there = {e.name for e in storage.list(FOLDER)}
    if not built(config):
        if there:
            report.add(
                "mdt-not-used", FOLDER, "a metadata table lies here, and hoodie.properties does not name it"
            )
        return False
    if META_FOLDER not in there or storage.info(f"{FOLDER}/{META_FOLDER}/hoodie.properties") is None:
        report.add("mdt-missing", FOLDER, "hoodie.properties names a missing metadata table")
        return False
    sound = True
    for partition in config.metadata_partitions:
        if not any(not e.is_dir for e in storage.list(f"{FOLDER}/{partition}")):
            report.add("mdt-missing", f"{FOLDER}/{partition}",
                       f"hoodie.properties names the missing metadata partition {partition}")  # fmt: skip
            sound = False
    return sound and FILES in config.metadata_partitions


def check_listing(facts: TableFacts, report: VerifyReport) -> None:
    """Compare the metadata table's listing with storage, without pending writes."""
    try:
        found = differences(facts.storage)
    except UnsupportedError:
        return  # of a kind that is not read; its own checks have been
    except (CorruptFileError, MissingFileError, NotAHudiTableError) as e:
        if not any(f.path.startswith(FOLDER) and f.severity == "error" for f in report.findings()):
            report.add("mdt-unreadable", e.file or FOLDER, f"it cannot be read: {e.message}", e.instant)
        return
    going = Removed()
    for pending in facts.timeline.files:
        if pending.time in facts.pending_times:
            going.take(facts.contents.get(pending.path))
    going_on = _announced(facts) if found else set()
    for difference in found:
        path = join_path(difference.partition, difference.name)
        file = parse_data_file(difference.partition, difference.name)
        if difference.name and (file is None or report.names(path)):
            continue  # no file of the table; or found already, and the metadata table says what should be
        if not difference.name and not _counts(facts, difference.partition):
            continue
        instant = file.instant if file is not None else ""
        if difference.kind == GONE and going.has(difference.partition, difference.name):
            continue  # an open clean or rollback has come so far
        if difference.kind == NOT_LISTED and path in going_on:
            continue  # a log file of a write that is not completed, whose name is that of the slice
        grows = difference.kind == OTHER_SIZE and (difference.stored or 0) > (difference.listed or 0)
        if instant in facts.pending_times or (grows and facts.pending_times):
            continue
        sizes = (
            f" ({difference.stored} bytes, it says {difference.listed})"
            if difference.kind == OTHER_SIZE
            else ""
        )
        what = (
            _TEXTS[difference.kind]
            if difference.name
            else _TEXTS[difference.kind].replace("file", "partition")
        )
        report.add(_CODES[difference.kind], path, what + sizes, instant)


def _announced(facts: TableFacts) -> set[str]:
    """Files that the metadata table is yet to list: of writes that are open, and of those being rolled back.

    A rollback lists the log files that stay once the write's instant is gone, as the last step before its own end.
    """
    out = {m.path for t in sorted(facts.open_times) for m in markers.list_markers(facts.storage, t)}
    for request in (r for plan in facts.pending_rollbacks for r in plan.requests):
        out |= {join_path(request.partition, log.rpartition("/")[2]) for log in request.log_blocks}
    return out


def _counts(facts: TableFacts, partition: str) -> bool:
    """Whether a partition that one side lacks has committed files."""
    files = facts.partitions.get(partition, ())
    hudi = [parse_slice_file(partition, f.name) for f in files]
    return any(f is not None and f.instant not in facts.pending_times for f in hudi)


# Deep checks of the metadata table's indexes: column statistics and bloom filters against footers, keys against rows.
#
# Source: spec "Metadata table", sections 4 and 5.


def check_indexes(
    facts: TableFacts, slices: list[SliceKeys] | None, scan_of: ScanOf | None, report: VerifyReport
) -> None:
    """Run the deep metadata table checks.

    Args:
        slices: the keys of the newest state; None where they are not known.

    Raises:
        HudiError: the metadata table cannot be read.
    """
    partitions = facts.config.metadata_partitions
    if COLUMN_STATS in partitions:
        _check_column_stats(facts, _of_parquet_files(facts, read_row_groups), report)
    if BLOOM_FILTERS in partitions:
        _check_blooms(facts, _of_parquet_files(facts, read_footer), report)
    if RECORD_INDEX in partitions and slices is not None:
        _check_record_index(facts, slices, report)
    if slices is not None and scan_of is not None:
        check_value_indexes(facts, scan_of, lambda: _rows_of_files(facts), report)


def _rows_of_files(facts: TableFacts) -> dict[str, int]:
    """Number of rows of each base file, where its footer can be read."""
    groups = _of_parquet_files(facts, read_row_groups)
    return {path: sum(g.num_rows for g in of) for path, of in groups.items() if of is not None}


def _of_parquet_files(facts: TableFacts, read: Callable[[Storage, str], T]) -> dict[str, T | None]:
    """What is read of each Parquet base file, by path; None of one that cannot be, which has its own check."""

    def one(path: str) -> T | None:
        try:
            return read(facts.storage, path)
        except HudiError:
            return None

    paths = [f.path for f in facts.base_files if f.path.endswith(".parquet")]
    return dict(zip(paths, facts.each(one, paths), strict=True))


def _records(facts: TableFacts, partition: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Key and payload of a metadata partition's valid records."""
    own = own_storage(facts.storage)
    snapshot = open_snapshot(own)
    slices = partition_slices(snapshot, partition)
    trusted = trusted_scope(
        snapshot.timeline, facts.timeline, suffixes=snapshot.config.version.suffixes_metadata_instants
    )
    scope = slice_merge(snapshot).scope
    scope = replace(scope, rolled_back=scope.rolled_back | trusted.rolled_back | facts.open_times)
    name = payload_field(partition)
    # Not by the schema of the newest commit: earlier records may lack what that one's writer knows.
    for part in slices:
        for batch in read_file_slice(own, part, metadata_merge(scope), schema_of(partition)):
            for row in batch.to_pylist():
                if row[name] is not None and not row[name].get("isDeleted"):
                    yield row["key"], row[name]


def _check_column_stats(
    facts: TableFacts, groups: Mapping[str, list[RowGroup] | None], report: VerifyReport
) -> None:
    by_name = {path.rpartition("/")[2]: (path, found) for path, found in groups.items()}
    covered: set[str] = set()
    for _, record in _records(facts, COLUMN_STATS):
        name = record["fileName"]
        path, found = by_name.get(name, ("", None))
        if found is None:
            continue  # of a log file, of a file that a clean took away, or damaged
        covered.add(path)
        wrong = _differs(record, found)
        if wrong:
            instant = name.rpartition("_")[2].partition(".")[0]
            report.add("mdt-column-stats", path, f"column {record['columnName']}: {wrong}", instant,
                       column=record["columnName"])  # fmt: skip
    if not covered:
        return
    for path in sorted(groups.keys() - covered):
        left = groups[path]
        has_rows = left is not None and any(g.num_rows for g in left)  # a file without rows has no record
        # Said once where the metadata table does not list the file at all.
        if has_rows and not report.names(path):
            report.add("mdt-column-stats", path, "column_stats has no record of the file")


def _differs(record: Mapping[str, Any], groups: list[RowGroup]) -> str:
    """First contradiction between a record and the footer; "" for none."""
    name = record["columnName"]
    num_rows = sum(g.num_rows for g in groups)
    nulls = 0
    least: Any = None
    greatest: Any = None
    for group in groups:
        said = group.columns.get(name)
        if said is None or said.nulls is None:
            return ""
        nulls += said.nulls
        if said.low is not None and said.high is not None:
            least = said.low if least is None else min(least, said.low)
            greatest = said.high if greatest is None else max(greatest, said.high)
    if record["nullCount"] is not None and record["nullCount"] != nulls:
        return f"{record['nullCount']} nulls, the footer says {nulls}"
    if record["valueCount"] is not None and record["valueCount"] != num_rows:
        return f"{record['valueCount']} values, the file has {num_rows} rows"
    low, high = _value(record["minValue"]), _value(record["maxValue"])
    if nulls == num_rows or low is None or high is None or least is None:
        return ""
    if not (type(low) is type(least) or (isinstance(low, (int, float)) and isinstance(least, (int, float)))):
        return ""
    if isinstance(least, int) and (low, high) == (least * 1000, greatest * 1000):
        return ""  # milliseconds, of which records have microseconds
    if _narrower(low, least) or _narrower(greatest, high):
        return f"bounds {low!r} to {high!r}, the footer's are {least!r} to {greatest!r}"
    return ""


def _narrower(a: Any, b: Any) -> bool:
    """Whether a > b, with floats compared in 32 bits."""
    if isinstance(a, float) or isinstance(b, float):
        return bool(a > b and abs(a - b) > 1e-6 * max(abs(a), abs(b)))
    return bool(a > b)


def _value(bound: Mapping[str, Any] | None) -> Any:
    """The member set in a union, where it is stored as in the footer; else None."""
    for member in (bound or {}).values():
        value = None if member is None else member["value"]
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, (bool, int, float)):  # dates, decimals and bytes have other forms
            return value
    return None


def _check_blooms(facts: TableFacts, footers: Mapping[str, Footer | None], report: VerifyReport) -> None:
    found = {key[-FILE_ID_DIGITS:]: record["bloomFilter"] for key, record in _records(facts, BLOOM_FILTERS)}
    if not found:
        return
    for path, footer in footers.items():
        if footer is None or BLOOM_FILTER not in footer.entries:
            continue
        name = path.rpartition("/")[2]
        file_id = base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()
        said = found.get(file_id)
        if said is None and not report.names(path):
            report.add("mdt-bloom", path, "bloom_filters has no record of the file")
        elif said is not None and bytes(said) != footer.entries[BLOOM_FILTER].encode():
            report.add("mdt-bloom", path, "bloom_filters has another filter than the file's footer")


def _check_record_index(facts: TableFacts, slices: list[SliceKeys], report: VerifyReport) -> None:
    places = {
        key: (record["partitionName"], _file_id(record)) for key, record in _records(facts, RECORD_INDEX)
    }
    seen: set[str] = set()
    for part in slices:
        for key in part.keys.to_pylist():
            seen.add(key)
            said = places.get(key)
            if said is None:
                report.add(
                    "mdt-record-index",
                    part.path,
                    f"record_index does not have the key {key!r} of the file",
                    key=key,
                )
            elif said != (part.partition, part.file_id):
                report.add("mdt-record-index", part.path,
                           f"record_index says that the key {key!r} is in {said[0]}/{said[1]}", key=key)  # fmt: skip
    extra = sorted(places.keys() - seen)
    if extra:
        report.add("mdt-record-index", f"{FOLDER}/{RECORD_INDEX}",
                   f"record_index has {len(extra)} keys that no row has, such as {extra[0]!r}",
                   key=extra[0])  # fmt: skip


def _file_id(record: Mapping[str, Any]) -> str:
    if record["fileIdEncoding"] == 1:
        return str(record["fileId"])
    high, low = record["fileIdHighBits"], record["fileIdLowBits"]
    text = str(uuid.UUID(int=((high & (2**64 - 1)) << 64) | (low & (2**64 - 1))))
    return text if record["fileIndex"] == -1 else f"{text}-{record['fileIndex']}"
