"""The golden tables: find them, unpack them, and compare answers with Apache Hudi's."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parent

SNAPSHOT = "snapshot"
READ_OPTIMIZED = "read_optimized"
AS_OF = "asof"
INCREMENTAL = "incremental"
CDC = "cdc"

# Tables of version 6 whose answers, but those about change data, are ours too.
READABLE_V6 = (
    "all_types_cow",
    "bootstrap_full_record",
    "bucket_simple_cow",
    "cdc_cow_data_before",
    "cdc_cow_data_before_after",
    "cdc_cow_op_key_only",
    "cow_archived",
    "cow_bulk_insert",
    "cow_cleaned",
    "cow_clustered",
    "cow_complex_keys_hive_style_urlencoded",
    "cow_insert_overwrite",
    "cow_no_metadata_table",
    "cow_nonpartitioned",
    "cow_partitioned",
    "cow_rollback",
    "cow_timestamp_keygen",
    "custom_keygen",
    "drop_partition_columns",
    "empty_first_write",
    "empty_table",
    "global_bloom_partition_move",
    "multi_file_groups",
    "record_index",
    "savepoint_restore",
    "schema_evolution_add_promote",
    "schema_history_cow",
    "schema_history_flat",
    "schema_on_read",
    "single_commit_large_row_groups",
    "virtual_keys",
)

# Merge-on-read tables whose snapshots, read_optimized and as-of answers are compared.
MERGED_V6 = (
    "all_types_mor",
    "bucket_consistent_mor",
    "bucket_simple_mor",
    "cdc_mor_data_before",
    "cdc_mor_data_before_after",
    "cdc_mor_op_key_only",
    "downgraded_from_9",
    "mdt_all_indexes",
    "mor_avro_logs",
    "mor_cleaned",
    "mor_compacted_then_logs",
    "mor_custom_keygen",
    "mor_drop_partition_columns",
    "mor_hfile_logs",
    "mor_log_compacted",
    "mor_parquet_logs",
    "mor_partial_update_date_ordering",
    "mor_partial_update_decimal_ordering",
    "mor_partial_update_nested_ordering",
    "mor_partial_update_text_ordering",
    "mor_pending_compaction",
    "mor_rollback",
    "mor_timestamp_keygen",
    "payload_AWSDmsAvroPayload",
    "payload_DefaultHoodieRecordPayload",
    "payload_EventTimeAvroPayload",
    "payload_OverwriteNonDefaultsWithLatestAvroPayload",
    "payload_OverwriteWithLatestAvroPayload",
    "payload_PartialUpdateAvroPayload",
    "schema_history_mor",
    "soft_and_flagged_deletes",
)
# Nothing of these versions is left out: tables of either type, and every kind of log.
LAYOUT_2 = ("v8", "v9")
MERGED_V5 = ("mor_avro_logs", "mor_compacted_then_logs", "mor_rollback")
# Apache Hudi answers without a word that there are no rows; its cleaner has removed the files.
CLEANED = ("mor_cleaned", "asof_20261121053716251")


@dataclass(frozen=True)
class Question:
    """One expected answer: its file, and what was asked.

    `instant` is that of a time travel query; `begin` (exclusive) and `end` (inclusive, None for open) are
    those of an incremental query.
    """

    file: Path
    kind: str
    instant: str | None = None
    begin: str | None = None
    end: str | None = None

    @property
    def name(self) -> str:
        return self.file.stem

    def expected(self) -> pa.Table:
        return pq.read_table(self.file)


@dataclass(frozen=True)
class GoldenTable:
    """One scenario of one table version."""

    version: str
    name: str

    def __str__(self) -> str:
        return f"{self.version}-{self.name}"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """`meta.json`: operations, options, key and partition fields, instants."""
        loaded: dict[str, Any] = json.loads((self._expected / "meta.json").read_text())
        return loaded

    @property
    def merged(self) -> bool:
        """Whether it is a merge-on-read table."""
        return bool(self.meta["table_type"] == "MERGE_ON_READ")

    @property
    def _expected(self) -> Path:
        return ROOT / self.version / f"{self.name}.expected"

    def unpack(self, folder: Path) -> Path:
        """The table's path, after it was unzipped into `folder`."""
        with zipfile.ZipFile(ROOT / self.version / f"{self.name}.zip") as archive:
            archive.extractall(folder)
        return folder / self.name

    def questions(self, *kinds: str) -> list[Question]:
        """The answers that there are, of some kinds or of all."""
        found = (_question(f) for f in sorted(self._expected.glob("*.parquet")))
        return [q for q in found if not kinds or q.kind in kinds]

    def question(self, name: str) -> Question:
        """One answer by the name of its file, without `.parquet`."""
        return _question(self._expected / f"{name}.parquet")

    def unanswered(self) -> dict[str, str]:
        """Questions that Apache Hudi could not answer, with its reason."""
        reasons: dict[str, str] = self.meta.get("hudi_could_not_answer", {})
        return reasons


def golden(version: str, *names: str) -> list[GoldenTable]:
    """Tables of a version by name, or all that are there."""
    there = sorted(p.stem for p in (ROOT / version).glob("*.zip"))
    missing = set(names) - set(there)
    if missing:
        raise ValueError(f"no golden table {', '.join(sorted(missing))} in {version}")
    return [GoldenTable(version, n) for n in there if not names or n in names]


def _question(file: Path) -> Question:
    kind, *rest = file.stem.split("_") if file.stem != READ_OPTIMIZED else (READ_OPTIMIZED,)
    if kind == AS_OF:
        return Question(file, kind, instant=rest[0])
    if kind == INCREMENTAL:
        return Question(file, kind, begin=rest[0], end=None if rest[1] == "open" else rest[1])
    if kind == CDC:
        return Question(file, kind, begin=rest[0])
    return Question(file, kind)


def begin_of(table: GoldenTable, question: Question) -> str:
    """The begin of an incremental query as we are asked: exclusive.  Apache Hudi 1.0.2 takes it to be inclusive."""
    begin = question.begin or ""
    return str(int(begin) - 1) if table.version == "v8" and len(begin) == 17 else begin


def of_the_files(table: GoldenTable, answer: pa.Table) -> pa.Table:
    """An incremental answer with the values of partition columns that the files hold.

    Apache Hudi 1.0.2 and 1.2.0 give those of the path in tables without logs, and do not decode them (`50%25`).
    """
    if table.merged or "urlencode" not in table.name:
        return answer
    for name in table.meta["partition_fields"].split(","):
        values = [None if v is None else unquote(v) for v in answer.column(name).to_pylist()]
        answer = answer.set_column(
            answer.column_names.index(name), answer.schema.field(name), pa.array(values, pa.string())
        )
    return answer


def assert_same_answer(actual: pa.Table, expected: pa.Table, keys: list[str] | None = None) -> None:
    """Column names, their order, their types and all rows are the same; the order of rows is free.

    Args:
        keys: columns that identify a row where there are no meta columns.
    """
    assert actual.column_names == expected.column_names
    types = [(f.name, _plain(f.type)) for f in actual.schema]
    assert types == [(f.name, _plain(f.type)) for f in expected.schema]
    assert actual.num_rows == expected.num_rows
    by = keys or ["_hoodie_record_key", "_hoodie_partition_path"]
    found, wanted = _sorted(actual, by), _sorted(expected, by)
    for n, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        assert mine == theirs, f"row {n} (by {', '.join(by)})"


def assert_same_changes(actual: pa.Table, expected: pa.Table, replaced_at: set[str]) -> None:
    """Two change feeds hold the same changes; images are compared as parsed JSON.

    Args:
        replaced_at: instants that replaced file groups.  For their deletes Apache Hudi 0.15 and 1.0.2 repeat one row,
            so only how many there are is compared; the rows must differ.
    """
    assert actual.schema.names == expected.schema.names
    found, wanted = _changes(actual, replaced_at), _changes(expected, replaced_at)
    assert found[0] == wanted[0]
    assert found[1].total() == wanted[1].total()
    assert set(found[1].values()) <= {1}


def _changes(feed: pa.Table, replaced_at: set[str]) -> tuple[Counter[Any], Counter[Any]]:
    plain: Counter[Any] = Counter()
    replaced: Counter[Any] = Counter()
    for row in feed.to_pylist():
        images = [
            None if row[n] is None else json.dumps(json.loads(row[n]), sort_keys=True)
            for n in ("before", "after")
        ]
        of = replaced if row["op"] == "d" and row["ts_ms"] in replaced_at else plain
        of[row["op"], row["ts_ms"], *images] += 1
    return plain, replaced


def _plain(kind: pa.DataType) -> Any:
    """A type without what says nothing about its values: names inside lists and maps, nullability."""
    if pa.types.is_struct(kind):
        return ("struct", *((f.name, _plain(f.type)) for f in kind))
    if pa.types.is_map(kind):
        return ("map", _plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ("list", _plain(kind.value_type))
    if pa.types.is_timestamp(kind):
        # Apache Hudi's answers were stored by Spark, which may have used another unit.
        return ("timestamp", kind.tz)
    return str(kind)


def _sorted(table: pa.Table, by: list[str]) -> list[dict[str, Any]]:
    columns = [
        pa.field(f.name, pa.timestamp("us", f.type.tz)) if pa.types.is_timestamp(f.type) else f
        for f in table.schema
    ]
    rows = table.cast(pa.schema(columns)).to_pylist() if table.num_columns else []
    return sorted(rows, key=lambda r: tuple(("" if r[b] is None else str(r[b])) for b in by))
