"""Tables made by hand, file by file, so that tests of reading need no writer and can make any state."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.file_names import base_file_name
from hudi_format.model import WriteStat, join_path
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.commit_metadata import CommitMetadata

Rows = list[dict[str, object]]
_ARCHIVED = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "fields": [
        {"name": "commitTime", "type": ["null", "string"], "default": None},
        {"name": "actionType", "type": ["null", "string"], "default": None},
        {"name": "actionState", "type": ["null", "string"], "default": None},
        {"name": "stateTransitionTime", "type": ["null", "string"], "default": None},
    ],
}


class MadeTable:
    """A copy-on-write table of version 6 in a folder, keyed by `id`."""

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        *,
        partition_fields: tuple[str, ...] = ("p",),
        properties: Mapping[str, str] | None = None,
        row_group_rows: int = 1_000_000,
    ) -> None:
        self.path = path
        self.schema = schema
        self.storage = LocalStorage(str(path))
        self._partitioned = bool(partition_fields)
        self._row_group_rows = row_group_rows
        keygen = "SimpleKeyGenerator" if len(partition_fields) == 1 else "ComplexKeyGenerator"
        table_config.create(
            self.storage,
            {
                "hoodie.table.name": "made",
                "hoodie.table.recordkey.fields": "id",
                **({"hoodie.table.partition.fields": ",".join(partition_fields)} if partition_fields else {}),
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen."
                + (keygen if partition_fields else "NonpartitionedKeyGenerator"),
                "hoodie.table.timeline.timezone": "UTC",
                **(properties or {}),
            },
        )

    def archive(self, number: int, *entries: tuple[str, ...]) -> Path:
        """Write an archive file: time, action, state and perhaps completion of each entry.

        The instants' own files stay.
        """
        path = self.path / ".hoodie" / "archived" / f".commits_.archive.{number}_1-0-1"
        path.write_bytes(archive_file(entries))
        return path

    def open(self) -> HudiTable:
        return HudiTable.open(str(self.path))

    def base_file(
        self, instant: str, partition: str, file_id: str, rows: Rows, *, token: str = "0-0-0"
    ) -> WriteStat:
        """Write one base file; the statistic that its commit has of it.

        A row may hold `_hoodie_commit_time`, where it was written earlier; its default is `instant`.
        """
        name = base_file_name(file_id, token, instant)
        full = [
            {
                "_hoodie_commit_time": instant,
                "_hoodie_commit_seqno": f"{instant}_0_{n}",
                "_hoodie_record_key": row.get("id"),
                "_hoodie_partition_path": partition,
                "_hoodie_file_name": name,
                **row,
            }
            for n, row in enumerate(rows)
        ]
        folder = self.path / partition
        folder.mkdir(parents=True, exist_ok=True)
        depth = partition.count("/") + 1 if partition else 0
        (folder / ".hoodie_partition_metadata").write_text(f"commitTime={instant}\npartitionDepth={depth}\n")
        table = pa.Table.from_pylist(full, with_meta(self.schema))
        pq.write_table(table, folder / name, store_schema=False, row_group_size=self._row_group_rows)
        return WriteStat(
            file_id=file_id,
            path=join_path(partition, name),
            partition=partition,
            num_writes=len(rows),
            num_inserts=len(rows),
            file_size_in_bytes=(folder / name).stat().st_size,
            total_write_bytes=(folder / name).stat().st_size,
        )

    def instant_file(self, name: str, data: bytes = b"") -> None:
        (self.path / ".hoodie" / name).write_bytes(data)

    def complete(
        self,
        instant: str,
        stats: list[WriteStat],
        *,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
        operation: str = "UPSERT",
        schema: pa.Schema | None = None,
    ) -> None:
        """Publish a commit (a replacecommit where `replaced` is given) of files that are there."""
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for stat in stats:
            by_partition[stat.partition] = (*by_partition.get(stat.partition, ()), stat)
        metadata = CommitMetadata(
            by_partition,
            replaced or {},
            {"schema": to_avro(schema or self.schema, "made")},
            operation,
            is_replace=replaced is not None,
        )
        action = "commit" if replaced is None else "replacecommit"
        self.instant_file(f"{instant}.{action}.requested")
        self.instant_file(f"{instant}.inflight" if action == "commit" else f"{instant}.{action}.inflight")
        self.instant_file(f"{instant}.{action}", metadata.to_json())

    def commit(
        self,
        instant: str,
        files: Mapping[tuple[str, str], Rows],
        *,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
        operation: str = "UPSERT",
    ) -> list[WriteStat]:
        """Write base files by (partition, file id) and publish their commit."""
        stats = [self.base_file(instant, p, file_id, rows) for (p, file_id), rows in files.items()]
        self.complete(instant, stats, replaced=replaced, operation=operation)
        return stats


def at(second: int) -> str:
    """An instant of a fixed day."""
    return f"20260101{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}000"


def file_id(number: int) -> str:
    """A file id that is no bucket's."""
    return f"f{number:07d}-0000-4000-8000-000000000000-0"


def ids(table: pa.Table) -> list[object]:
    """The `id` column, sorted."""
    return sorted(table.column("id").to_pylist())


def archive_file(entries: Sequence[tuple[str, ...]]) -> bytes:
    """One Avro block as Apache Hudi appends it to an archive; the golden table has real ones."""
    schema = json.dumps(_ARCHIVED).encode()
    content = (3).to_bytes(4, "big") + len(entries).to_bytes(4, "big")
    names = [f["name"] for f in _ARCHIVED["fields"]]
    for entry in entries:
        out = io.BytesIO()
        values = dict(zip(names, entry, strict=False))
        fastavro.schemaless_writer(out, fastavro.parse_schema(_ARCHIVED), values)
        content += len(out.getvalue()).to_bytes(4, "big") + out.getvalue()
    body = (1).to_bytes(4, "big") + (3).to_bytes(4, "big")  # format version, block type
    body += (1).to_bytes(4, "big") + (2).to_bytes(4, "big") + len(schema).to_bytes(4, "big") + schema
    body += len(content).to_bytes(8, "big") + content
    body += (0).to_bytes(4, "big")  # no footer
    length = len(body) + 8
    return b"#HUDI#" + length.to_bytes(8, "big") + body + (length + 6).to_bytes(8, "big")


def states(time: str, action: str = "commit") -> list[tuple[str, str, str]]:
    """The three states of an archived instant."""
    return [(time, action, s) for s in ("REQUESTED", "INFLIGHT", "COMPLETED")]
