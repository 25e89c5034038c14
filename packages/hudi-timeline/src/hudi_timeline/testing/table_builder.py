"""Builder of tables file by file, in memory or in any store, for any state.

    made = TableBuilder(table_type="MERGE_ON_READ")
    made.commit("first", made.base("first", {"k1": 1, "k2": 2}))
    made.commit("second", made.log("second", {"k1": 5}))
    made.table.read(["id", "v"]).to_arrow()

Rows are {key: value}.  Instants have names; the first one used is the oldest, a second apart.
"""

from __future__ import annotations

import io
import struct
import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.file_names import base_file_name
from hudi_format.log.block import BlockType
from hudi_format.log.kryo import KEY_CLASS
from hudi_format.log.writer import LogWriter
from hudi_format.model import WriteStat, join_path
from hudi_format.parquet.thrift import varint
from hudi_format.partition_metadata import write_if_absent
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.avro_files import empty_replace_request
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    instant_path,
)

# Delete lists as releases up to 0.10 of Apache Hudi wrote them: HoodieKey[] by Kryo, content version 1.
#
# Source: bytes of Apache Hudi's own classes; `hudi_format.log.kryo` reads them.

_VERSION = 1
_NULL, _NEW, _BY_NAME = b"\x00", b"\x01", b"\x01"


def kryo_delete_content(keys: Sequence[str], partition: str | None) -> bytes:
    """Content of a delete block of version 1; keys and partition are ASCII."""
    out = _BY_NAME + varint(0) + _text(f"[L{KEY_CLASS};") + _NEW + varint(len(keys) + 1)
    for place, key in enumerate(keys):
        out += _BY_NAME + varint(1)
        if place == 0:
            out += _text(KEY_CLASS)
        out += _NEW + (_NULL if partition is None else _NEW + _text(partition)) + _NEW + _text(key)
    return struct.pack(">ii", _VERSION, len(out)) + out


def _text(text: str) -> bytes:
    data = text.encode("ascii")
    if len(data) < 2:  # a count, which is one more, and the characters
        return bytes([0x80 | (len(data) + 1)]) + data
    return data[:-1] + bytes([data[-1] | 0x80])


SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("ts", pa.int64()), ("p", pa.string())])
"""The columns of built tables: key, value, ordering value (always 0), partition."""
_NAME = "made"


class TableBuilder:
    """A table of version 6 with the columns of `SCHEMA`, keyed by `id`, partitioned by `p`.

    Attributes:
        storage: of the table.
        instants: the instant times by the names that they were asked for.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        table_type: str = "COPY_ON_WRITE",
        properties: Mapping[str, str] | None = None,
        first: str = "20260101000000000",
    ) -> None:
        """Builder of a table.

        Args:
            storage: an empty place; one in memory of its own if not given.
            properties: further entries of hoodie.properties.
            first: instant that all others come after; 17 digits.
        """
        self.storage = storage or open_storage(f"memory://hudi-made-{uuid.uuid4().hex}/t")
        self.instants: dict[str, str] = {}
        self._merge_on_read = table_type == "MERGE_ON_READ"
        self._first = int(first)
        self._tokens = 0
        table_config.create(
            self.storage,
            {
                "hoodie.table.name": _NAME,
                "hoodie.table.type": table_type,
                "hoodie.table.recordkey.fields": "id",
                "hoodie.table.partition.fields": "p",
                "hoodie.table.precombine.field": "ts",
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
                "hoodie.table.timeline.timezone": "UTC",
                **(properties or {}),
            },
        )

    @property
    def table(self) -> HudiTable:
        """The table in its current state."""
        return HudiTable._of(self.storage)

    @property
    def uri(self) -> str:
        """URI for `HudiTable.open`; valid in this process where the table is in memory."""
        return self.storage.uri

    def at(self, name: str) -> str:
        """Instant time of a name."""
        if name not in self.instants:
            self.instants[name] = str(self._first + 1000 * (len(self.instants) + 1))
        return self.instants[name]

    @staticmethod
    def group(number: int) -> str:
        """Id of a file group."""
        return f"f{number:07d}-0000-4000-8000-000000000000-0"

    # --- files ---------------------------------------------------------------------------------------

    def base(
        self, name: str, rows: Mapping[str, int], *, group: int = 1, partition: str = "p0", prev: str = "null"
    ) -> WriteStat:
        """Write a base file of the instant `name`; returns its write statistic."""
        instant = self.at(name)
        file_name = base_file_name(self.group(group), self._token(), instant)
        out = io.BytesIO()
        pq.write_table(self._rows(rows, instant, partition, file_name), out, store_schema=False)
        write_if_absent(self.storage, partition, instant)
        data = out.getvalue()
        self.storage.touch(join_path(partition, file_name), data)
        return WriteStat(
            file_id=self.group(group),
            path=join_path(partition, file_name),
            partition=partition,
            prev_commit=prev if prev == "null" else self.at(prev),
            num_writes=len(rows),
            num_inserts=len(rows) if prev == "null" else 0,
            file_size_in_bytes=len(data),
            total_write_bytes=len(data),
        )

    def log(
        self,
        name: str,
        rows: Mapping[str, int] | None = None,
        *,
        deletes: Sequence[str] = (),
        kryo: Sequence[str] = (),
        rolls_back: str = "",
        on: str = "",
        group: int = 1,
        partition: str = "p0",
    ) -> WriteStat:
        """Write a log file of the instant `name`: data, delete and command blocks as given.

        Args:
            deletes: keys that are deleted.
            kryo: keys that are deleted, in a list as releases up to 0.10 wrote it.
            rolls_back: instant whose blocks are taken back.
            on: the instant that the slice begins with; the first one if not given.
        """
        instant, base = self.at(name), self.at(on or next(iter(self.instants)))
        schema = to_avro(with_meta(SCHEMA), _NAME)
        write_if_absent(self.storage, partition, instant)
        writer = LogWriter(
            self.storage, partition, self.group(group), base, instant=instant, schema=schema,
            write_token=self._token(),
        )  # fmt: skip
        with writer:
            if rows:
                writer.append_rows(self._rows(rows, instant, partition, ""))
            if deletes:
                writer.append_deletes(
                    pa.array(deletes, pa.string()), pa.array([partition] * len(deletes), pa.string())
                )
            if kryo:
                writer.append(BlockType.DELETE, kryo_delete_content(kryo, partition))
            if rolls_back:
                writer.append_rollback(self.at(rolls_back))
        written = writer.close()[0]
        return WriteStat(
            file_id=self.group(group),
            path=written.file.path,
            partition=partition,
            prev_commit=base,
            num_writes=len(rows or ()),
            num_update_writes=len(rows or ()),
            num_deletes=len(deletes) + len(kryo),
            file_size_in_bytes=written.size,
            total_write_bytes=written.size,
            extra={
                "logVersion": written.file.version,
                "logOffset": 0,
                "baseFile": "",
                "logFiles": [written.file.name],
                "recordsStats": {},
            },
        )

    def _token(self) -> str:
        self._tokens += 1
        return f"{self._tokens}-0-1"

    def _rows(self, rows: Mapping[str, int], instant: str, partition: str, file_name: str) -> pa.Table:
        records = [
            {
                "_hoodie_commit_time": instant,
                "_hoodie_commit_seqno": f"{instant}_0_{n}",
                "_hoodie_record_key": key,
                "_hoodie_partition_path": partition,
                "_hoodie_file_name": file_name,
                "id": key, "v": value, "ts": 0, "p": partition,
            }
            for n, (key, value) in enumerate(rows.items())
        ]  # fmt: skip
        return pa.Table.from_pylist(records, with_meta(SCHEMA))

    # --- the timeline --------------------------------------------------------------------------------

    def commit(
        self,
        name: str,
        *stats: WriteStat,
        replaced: Mapping[str, Sequence[str]] | None = None,
        operation: str = "UPSERT",
        action: str = "",
    ) -> str:
        """Commit written files; returns the instant time.

        Args:
            replaced: ids of groups that it replaces, by partition: a replacecommit.
            action: of the completed instant, if it is not what the table's type and `replaced` say.
        """
        own = DELTA_COMMIT if self._merge_on_read else COMMIT
        action = action or (own if replaced is None else REPLACE_COMMIT)
        self.pending(name, action)
        return self.complete(name, *stats, replaced=replaced, operation=operation, action=action)

    def complete(
        self,
        name: str,
        *stats: WriteStat,
        replaced: Mapping[str, Sequence[str]] | None = None,
        operation: str = "UPSERT",
        action: str = COMMIT,
    ) -> str:
        """Create the completed file only; returns the instant time."""
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for stat in stats:
            by_partition[stat.partition] = (*by_partition.get(stat.partition, ()), stat)
        metadata = CommitMetadata(
            by_partition,
            {p: tuple(ids) for p, ids in (replaced or {}).items()},
            {"schema": to_avro(SCHEMA, _NAME)},
            operation,
            is_replace=action == REPLACE_COMMIT,
        )
        self.storage.create(self.path_of(self.at(name), action, COMPLETED), metadata.to_json())
        return self.at(name)

    def path_of(self, instant: str, action: str, state: str) -> str:
        """Path of an instant's file."""
        return instant_path(table_config.load(self.storage), instant, action, state)

    def pending(
        self,
        name: str,
        action: str = "",
        *,
        request: bytes | None = None,
        inflight: bytes | None = b"",
        alive: bool = False,
    ) -> str:
        """Create requested and inflight files of an instant; returns its time.

        Args:
            action: that of a write to this table if not given.
            request: content of the requested file.
            inflight: content of the inflight file; None for none.
            alive: with a heartbeat of another machine that beats for a day.
        """
        action = action or (DELTA_COMMIT if self._merge_on_read else COMMIT)
        instant = self.at(name)
        if request is None:
            request = empty_replace_request() if action == REPLACE_COMMIT else b""
        if alive:
            day = b'{"host": "elsewhere", "pid": 1, "token": "x", "interval_ms": 86400000, "misses": 1}'
            self.storage.touch(heartbeat.heartbeat_path(instant), day)
        self.storage.create(self.path_of(instant, action, REQUESTED), request)
        if inflight is not None:
            self.storage.create(self.path_of(instant, action, INFLIGHT), inflight)
        return instant
