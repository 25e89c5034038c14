"""Commit metadata: JSON up to table version 6, Avro from 8 on.

Read from any writer's file, written byte for byte as Jackson's pretty printer does it in Apache Hudi
0.15 (HoodieCommitMetadata, HoodieReplaceCommitMetadata), so that a file that was read and written
again is the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from hudi_format.errors import CorruptFileError
from hudi_format.model import WriteStat
from hudi_format.storage.protocol import Storage
from hudi_format.storage.safe_path import leads_out
from hudi_timeline.timeline.instant import REPLACE_COMMIT, Instant, empty_file_error, read_instant

if TYPE_CHECKING:
    from hudi_timeline.timeline.avro_files import Record

MAGIC = b"Obj\x01"  # of Avro containers, without loading what reads them
SCHEMA_KEY = "schema"
COMPACT = "COMPACT"
"""Operation of the commit that a compaction makes."""
LOG_COMPACT = "LOG_COMPACT"
"""Operation of the delta commit that a log compaction makes."""
SCHEMA_NEUTRAL = frozenset({"CLUSTER", COMPACT, LOG_COMPACT, "INDEX"})
"""Operations whose `schema` is a copy of the one before, so they say nothing about the table's."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Metadata of one write.

    Attributes:
        partition_to_stats: the files written, by partition path ("" where not partitioned).
        replaced: file ids that stop being visible from this instant on, by partition path.
        extra: the `extraMetadata` of the commit: schema, checkpoints, the user's own keys.
        operation: Apache Hudi's name of the operation, e.g. UPSERT.
        compacted: whether a compaction made it.
        is_replace: whether it has the form of a replacecommit, with `partitionToReplaceFileIds`.
    """

    partition_to_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    operation: str = "UNKNOWN"
    compacted: bool = False
    is_replace: bool = False

    @property
    def schema_text(self) -> str:
        """The writer's schema as Avro JSON, or ""."""
        return self.extra.get(SCHEMA_KEY) or ""

    @property
    def table_schema_text(self) -> str:
        """The schema that it gives the table; "" of one that repeats another's."""
        return "" if self.operation in SCHEMA_NEUTRAL else self.schema_text

    @property
    def stats(self) -> tuple[WriteStat, ...]:
        """Statistics of the files written, of all partitions."""
        return tuple(s for stats in self.partition_to_stats.values() for s in stats)

    @property
    def replaced_groups(self) -> frozenset[tuple[str, str]]:
        """(partition, file id) pairs that the write replaced."""
        return frozenset((p, file_id) for p, ids in self.replaced.items() for file_id in ids)

    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition, file id) pairs that the write touched or replaced."""
        stats = self.partition_to_stats.items()
        return self.replaced_groups | {(p, s.file_id) for p, of in stats for s in of if s.file_id}

    def to_json(self) -> bytes:
        """Bytes of the commit's file, as Apache Hudi 0.15 writes them."""
        value: dict[str, object] = {
            "partitionToWriteStats": {
                p: [stat_to_json(s) for s in stats] for p, stats in self.partition_to_stats.items()
            },
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra),
            "operationType": self.operation,
        }
        if self.is_replace or self.replaced:
            value["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in self.replaced.items()}
        out: list[str] = []
        _pretty(value, "", out)
        # Half of a pair, which JSON can name and UTF-8 cannot hold, is named again.
        return "".join(out).encode(errors="backslashreplace")


def by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    """Statistics as `CommitMetadata.partition_to_stats` has them."""
    found: dict[str, list[WriteStat]] = {}
    for stat in stats:
        found.setdefault(stat.partition, []).append(stat)
    return {partition: tuple(of) for partition, of in found.items()}


def stat_to_json(stat: WriteStat) -> dict[str, object]:
    """JSON object of a write statistic in Apache Hudi's order; `extra` entries win."""
    value: dict[str, object] = {
        "fileId": stat.file_id,
        # The profile in an inflight file names file groups, not files.
        "path": stat.path or None,
        "cdcStats": None,
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numDeletes": stat.num_deletes,
        "numUpdateWrites": stat.num_update_writes,
        "numInserts": stat.num_inserts,
        "totalWriteBytes": stat.total_write_bytes,
        "totalWriteErrors": stat.total_write_errors,
        "tempPath": None,
        "partitionPath": stat.partition if stat.path else None,
        "totalLogRecords": 0,
        "totalLogFilesCompacted": 0,
        "totalLogSizeCompacted": 0,
        "totalUpdatedRecordsCompacted": 0,
        "totalLogBlocks": 0,
        "totalCorruptLogBlock": 0,
        "totalRollbackBlocks": 0,
        "fileSizeInBytes": stat.file_size_in_bytes,
        "minEventTime": stat.min_event_time,
        "maxEventTime": stat.max_event_time,
        "runtimeStats": {
            "totalScanTime": stat.scan_time_ms,
            "totalUpsertTime": stat.upsert_time_ms,
            "totalCreateTime": stat.create_time_ms,
        }
        if stat.path
        else None,
    }
    value.update(stat.extra)
    return value


def read_commit(storage: Storage, instant: Instant) -> CommitMetadata:
    """Metadata in an instant's file; an empty requested or inflight file gives an empty object.

    Raises:
        CorruptFileError: a completed instant's file is empty, or is no commit metadata.
        MissingFileError: the file is not there (any more).
    """

    def parsed(data: bytes) -> CommitMetadata:
        if not data:
            if instant.completed:
                raise empty_file_error(instant, storage.uri)
            return CommitMetadata(is_replace=instant.action == REPLACE_COMMIT)
        found = _parser_for(len(data))(data)
        if instant.completed and instant.action == REPLACE_COMMIT and not found.is_replace:
            raise _corrupt("a replacement without partitionToReplaceFileIds")
        return found

    return read_instant(storage, instant, parsed)


class _Number(float):
    """A decimal number with its original text, as Java and Python print some differently."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> _Number:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _Number, (self.text,)


def parse_commit(data: bytes) -> CommitMetadata:
    """Commit metadata from the bytes of its file, JSON or Avro.

    Raises:
        CorruptFileError: not JSON, or JSON of another shape; the message names the place.  Or no such Avro container.
    """
    if data.startswith(MAGIC):
        return _from_avro(data)
    try:
        value = json.loads(data.decode("utf-8"), parse_float=_Number)
    except UnicodeDecodeError as e:
        raise _corrupt("not UTF-8 text", e.start) from None
    except json.JSONDecodeError as e:
        raise _corrupt(f"not JSON: {e.msg}", e.pos) from None
    except (RecursionError, ValueError) as e:  # nesting, or a number of thousands of digits
        raise _corrupt(f"not JSON that can be read: {e}") from None
    top = _expect(value, dict, "the file")
    _check_whole(top)
    if "partitionToReplaceFileIds" in top or not _names_all(data, top):
        _check_keys(data)
    return _from_object(top)


# Planning, the gate and the commit each read the newest commits: the last ones are kept parsed, by their bytes, and
# more of those that are short.
_SHORT, _LONGEST_KEPT = 32_768, 16 << 20
_short_parsed_before = lru_cache(maxsize=64)(parse_commit)
_long_parsed_before = lru_cache(maxsize=4)(parse_commit)


def _parser_for(size: int) -> Callable[[bytes], CommitMetadata]:
    if size <= _SHORT:
        return _short_parsed_before
    return _long_parsed_before if size <= _LONGEST_KEPT else parse_commit


def _names_all(data: bytes, top: Mapping[str, object]) -> bool:
    """Whether the statistics are as many as the text has; to look at every key takes as long as to parse it."""
    stats = top["partitionToWriteStats"]
    assert isinstance(stats, dict)
    found = sum(len(entries) for entries in stats.values() if isinstance(entries, list))
    return data.count(b'"path"') == data.count(b'"fileId"') == found


def _check_keys(data: bytes) -> None:
    """Refuse a key that is given twice: of its values one would hide the files that the others name."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(k for k in found if sum(k == key for key, _ in pairs) > 1)
            raise _corrupt(f"{twice[:200]!r} is given twice")
        return found

    json.loads(data, object_pairs_hook=once)


def _check_whole(top: Mapping[str, object]) -> None:
    """Refuse metadata with missing fields; Apache Hudi writes all of them."""
    if top.get("partitionToWriteStats") is None:  # Apache Hudi fails at a null, too
        raise _corrupt("it has no partitionToWriteStats")
    stats = _expect(top["partitionToWriteStats"], dict, "partitionToWriteStats")
    if top.get("partitionToReplaceFileIds", stats) is None:
        raise _corrupt("its partitionToReplaceFileIds are null")
    for partition, entries in stats.items():
        for entry in entries if isinstance(entries, list) else ():
            lost = [n for n in ("fileId", "path") if isinstance(entry, dict) and n not in entry]
            if not lost and isinstance(entry, dict) and entry["fileId"] is None and entry["path"]:
                lost = ["fileId"]  # a range of commits would take its rows for those of another file group
            if lost:
                raise _corrupt(
                    f"a statistic of partitionToWriteStats[{partition!r}] has no {lost[0]}",
                )


AVRO_NAMES = ("HoodieCommitMetadata", "HoodieReplaceCommitMetadata")


def _from_avro(data: bytes) -> CommitMetadata:
    """Fields of the Avro records, named as in JSON; nulls are left out."""
    from hudi_timeline.timeline.avro_files import read_container

    name, record = read_container(data, what=AVRO_NAMES[0])
    if name not in AVRO_NAMES:
        raise _corrupt(f"it holds {name!r}")
    if name == AVRO_NAMES[1] and "partitionToReplaceFileIds" not in record:
        raise _corrupt("a replacement without partitionToReplaceFileIds")
    return commit_of_record(record)


def commit_of_record(record: Record) -> CommitMetadata:
    """Commit metadata from a decoded Avro HoodieCommitMetadata or HoodieReplaceCommitMetadata.

    Raises:
        CorruptFileError: fields of other types.
    """
    _check_whole(record)
    stats = _object(record, "partitionToWriteStats")
    plain = {
        p: [
            {k: v for k, v in _expect(s, dict, f"partitionToWriteStats[{p!r}]").items() if v is not None}
            for s in _expect(of, list, f"partitionToWriteStats[{p!r}]")
        ]
        for p, of in stats.items()
    }
    return _from_object({**record, "partitionToWriteStats": plain})


def _from_object(top: dict[str, object]) -> CommitMetadata:
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for partition, entries in _object(top, "partitionToWriteStats").items():
        where = f"partitionToWriteStats[{partition!r}]"
        _check_place(partition, where)
        stats[partition] = tuple(
            _stat(_expect(e, dict, where), partition, where) for e in _expect(entries, list, where)
        )
    replaced: dict[str, tuple[str, ...]] = {}
    for partition, ids in _object(top, "partitionToReplaceFileIds").items():
        where = f"partitionToReplaceFileIds[{partition!r}]"
        _check_place(partition, where)
        replaced[partition] = tuple(_expect(i, str, where) for i in _expect(ids, list, where))
        for file_id in replaced[partition]:
            _check_place(file_id, where)
    extra = {
        key: _expect(text, str, f"extraMetadata[{key!r}]")
        for key, text in _object(top, "extraMetadata").items()
        if text is not None
    }
    operation = top.get("operationType")
    return CommitMetadata(
        partition_to_stats=stats,
        replaced=replaced,
        extra=extra,
        operation="UNKNOWN" if operation is None else _expect(operation, str, "operationType"),
        compacted=top.get("compacted") is True,
        is_replace="partitionToReplaceFileIds" in top,
    )


def _object(top: dict[str, object], key: str) -> dict[str, object]:
    """A map of the file; empty where it is missing or null."""
    value = top.get(key)
    return {} if value is None else _expect(value, dict, key)


_TEXT_FIELDS = (("fileId", "file_id"), ("path", "path"), ("partitionPath", "partition"))
_NUMBER_FIELDS = (
    ("numWrites", "num_writes"),
    ("numDeletes", "num_deletes"),
    ("numUpdateWrites", "num_update_writes"),
    ("numInserts", "num_inserts"),
    ("totalWriteBytes", "total_write_bytes"),
    ("totalWriteErrors", "total_write_errors"),
    ("fileSizeInBytes", "file_size_in_bytes"),
    ("minEventTime", "min_event_time"),
    ("maxEventTime", "max_event_time"),
)
_RUNTIME_FIELDS = (
    ("totalScanTime", "scan_time_ms"),
    ("totalUpsertTime", "upsert_time_ms"),
    ("totalCreateTime", "create_time_ms"),
)


def _stat(value: dict[str, object], partition: str, where: str) -> WriteStat:
    fields: dict[str, object] = {"partition": partition, "prev_commit": "null"}
    if value.get("prevCommit") is not None:
        fields["prev_commit"] = _expect(value["prevCommit"], str, f"{where}.prevCommit")
    for key, name in _TEXT_FIELDS:
        if value.get(key) is not None:
            fields[name] = _expect(value[key], str, f"{where}.{key}")
        elif name != "partition":
            fields[name] = ""
    for key, name in _NUMBER_FIELDS:
        if value.get(key) is not None:
            fields[name] = _expect(value[key], int, f"{where}.{key}")
    runtime = value.get("runtimeStats")
    if runtime is not None:
        times = _expect(runtime, dict, f"{where}.runtimeStats")
        for key, name in _RUNTIME_FIELDS:
            if times.get(key) is not None:
                fields[name] = _expect(times[key], int, f"{where}.runtimeStats.{key}")
    stat = WriteStat(**fields)  # type: ignore[arg-type]
    _check_place(stat.file_id, f"{where}.fileId")
    _check_place(stat.path, f"{where}.path")
    _check_place(stat.partition, f"{where}.partitionPath")
    # What these fields do not carry is kept beside them, so that nothing is lost on the way back.
    usual = stat_to_json(stat)
    extra = {k: v for k, v in value.items() if k not in usual or usual[k] != v}
    return WriteStat(**fields, extra=extra) if extra else stat  # type: ignore[arg-type]


def _check_place(place: str, where: str) -> None:
    """Refuse a file or folder outside of the table."""
    if leads_out(place):
        raise _corrupt(f"{where} is {place[:200]!r}, which names nothing below the table")


def _expect(value: object, kind: type[_T], where: str) -> _T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _corrupt(f"{where} is not {_KINDS[kind]}")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise _corrupt(f"{where} has more than 64 bits")
    return value


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}


def _corrupt(reason: str, offset: int = 0) -> CorruptFileError:
    return CorruptFileError(
        f"no commit metadata: {reason}",
        remedy=CorruptFileError.usual_remedy,
        offset=offset,
    )


def _quote(text: str) -> str:
    # json escapes what Jackson escapes, but writes \u001f where Jackson writes \u001F.
    quoted = _encode(text)
    if "\\u00" not in quoted:
        return quoted
    body = "".join(
        f"\\u{ord(c):04X}" if c < " " and c not in "\b\t\n\f\r" else _encode(c)[1:-1] for c in text
    )
    return f'"{body}"'


# What JSONEncoder(ensure_ascii=False) calls for a text.
_encode = json.encoder.encode_basestring


def _pretty(value: object, indent: str, out: list[str]) -> None:
    """Append the output of Jackson's DefaultPrettyPrinter: `"key" : value`, `[ a, b ]`."""
    scalar = _scalar(value)
    if scalar is not None:
        out.append(scalar)
    elif isinstance(value, Mapping):
        inner = indent + "  "
        separator = "{\n"
        for key, item in value.items():
            text = _scalar(item)  # most entries are: spare them the call
            out.append(f"{separator}{inner}{_quote(key)} : {text or ''}")
            if text is None:
                _pretty(item, inner, out)
            separator = ",\n"
        out.append(f"\n{indent}}}" if value else "{ }")
    elif isinstance(value, Sequence):
        separator = "[ "
        for item in value:
            out.append(separator)
            _pretty(item, indent, out)
            separator = ", "
        out.append(" ]" if value else "[ ]")
    else:
        raise TypeError(f"{type(value).__name__} has no place in commit metadata")


def _scalar(value: object) -> str | None:
    """JSON text of a scalar; None for maps and lists."""
    if value is None:
        return "null"
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is str:
        return _quote(str(value))
    if kind is bool:
        return "true" if value else "false"
    if isinstance(value, _Number):
        return value.text
    return json.dumps(value) if kind is float else None
