"""Table configuration: `.hoodie/hoodie.properties`.

Read with the checksum and backup rules of Apache Hudi 0.15 (HoodieTableConfig), changed with its
update protocol, so that a reader meets a whole file at each moment of an update, and a crash in
one leaves a table that the next reader or writer understands.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from hudi_format import properties as props
from hudi_format.errors import ConcurrentWriterError, CorruptFileError, NotAHudiTableError, TableExistsError
from hudi_format.keygen.key_generator import PARTITION_OPTION, KeySpec, kind_of
from hudi_format.keygen.timestamp_based import STORED
from hudi_format.merge.payloads import payload_class
from hudi_format.model import CDC_MODES, DATA_BEFORE_AFTER, OverwrittenInstants
from hudi_format.storage import stable_reads
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage, has_no_folders
from hudi_format.storage.safe_path import is_plain
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.table_version import PRECOMBINE_FIELD, WRITE_VERSION, TableVersion

META_FOLDER = ".hoodie"
PROPERTIES_FILE = ".hoodie/hoodie.properties"
BACKUP_FILE = ".hoodie/hoodie.properties.backup"
OVERWRITE_ROOM = ".hoodie/.overwrite"
OVERWRITE_SWITCH = f"{OVERWRITE_ROOM}/.switch"
"""There while a new table takes the place of the old one, see `hudi_timeline.transaction.overwrite`."""

NAME = "hoodie.table.name"
DATABASE = "hoodie.database.name"
TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
LAYOUT_VERSION = "hoodie.timeline.layout.version"
RECORD_KEY_FIELDS = "hoodie.table.recordkey.fields"
PARTITION_FIELDS = "hoodie.table.partition.fields"
ORDERING_FIELDS = "hoodie.table.ordering.fields"
KEYGEN_CLASS = "hoodie.table.keygenerator.class"
KEYGEN_TYPE = "hoodie.table.keygenerator.type"
BASE_FILE_FORMAT = "hoodie.table.base.file.format"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
TIMELINE_PATH = "hoodie.timeline.path"  # from version 8 on, as the next seven
HISTORY_PATH = "hoodie.timeline.history.path"
DEFAULT_TIMELINE = "timeline"
MERGE_MODE = "hoodie.record.merge.mode"
MERGE_STRATEGY = "hoodie.record.merge.strategy.id"
OLD_MERGE_STRATEGY = "hoodie.compaction.record.merger.strategy"
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
EVENT_TIME_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
MERGE_PROPERTY = "hoodie.record.merge.property."
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
TABLE_FORMAT = "hoodie.table.format"
ARCHIVE_FOLDER = "hoodie.archivelog.folder"
POPULATE_META_FIELDS = "hoodie.populate.meta.fields"
TIMEZONE = "hoodie.table.timeline.timezone"
PARTITION_METAFILE_BASE_FORMAT = "hoodie.partition.metafile.use.base.format"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"
CREATE_SCHEMA = "hoodie.table.create.schema"
BOOTSTRAP_BASE_PATH = "hoodie.bootstrap.base.path"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
CHECKSUM = "hoodie.table.checksum"
INDEX = "hudi.index.type"
"""The index that writes go on with; our own key, because Apache Hudi takes `hoodie.index.type` of a table for a fixed
one: it refuses GLOBAL_BLOOM where GLOBAL_SIMPLE stands."""
# The name that the last writer gave for an index of its own: for messages, never to load it.
INDEX_CLASS = "hudi.index.class"
BUCKET_RESIZING, BUCKET_RESIZES = "hudi.bucket.index.resizing", "hudi.bucket.index.resizes"
OVERWRITTEN_UNTIL, OVERWRITTEN_BY = "hudi.overwritten.until", "hudi.overwritten.by"
"""Of a table that took another's place: the last instant of that one, and the own write that is older, or ""."""

# Readers of Apache Hudi try five times, a second apart, while another process updates the file.  An
# update holds the file away for milliseconds, so a shorter pause serves as well.
READ_TRIES = 5
READ_PAUSE_S = 0.2

# What Apache Hudi 0.15's datasource writes into a new table, apart from what the caller gives.
_CREATION_DEFAULTS = {
    TYPE: "COPY_ON_WRITE",
    VERSION: str(WRITE_VERSION),
    LAYOUT_VERSION: str(WRITE_VERSION.layout),
    DATABASE: "",
    ARCHIVE_FOLDER: "archived",
    BASE_FILE_FORMAT: "PARQUET",
    POPULATE_META_FIELDS: "true",
    TIMEZONE: "LOCAL",
    PARTITION_METAFILE_BASE_FORMAT: "false",
    DROP_PARTITION_COLUMNS: "false",
    HIVE_STYLE: "false",
    URL_ENCODE: "false",
    CDC_ENABLED: "false",
}


@dataclass(frozen=True)
class TableConfig:
    """A table's configuration at one moment.

    `properties` holds every key of the file, unknown ones too; the other attributes are its typed
    values with Apache Hudi's defaults.  `version` is 0 where the key is missing; it tells what depends on it.

    `timeline_folder` and `history_folder`, of archived instants, are paths below the table.  `partition_kinds` are
    those of a custom key generator's partition fields, "" where the table does not say them.  `ordering_field` is the
    first of `ordering_fields`, of which only tables of version 9 have several.  `merge_properties` are those of
    `hoodie.record.merge.property.`, without the prefix.
    """

    properties: Mapping[str, str]
    name: str = field(init=False)
    database: str = field(init=False)
    table_type: str = field(init=False)
    version: TableVersion = field(init=False)
    record_key_fields: tuple[str, ...] = field(init=False)
    partition_fields: tuple[str, ...] = field(init=False)
    partition_kinds: tuple[str, ...] = field(init=False)
    ordering_field: str | None = field(init=False)
    keygen_class: str | None = field(init=False)
    hive_style: bool = field(init=False)
    url_encode: bool = field(init=False)
    populate_meta_fields: bool = field(init=False)
    timezone: str = field(init=False)
    base_file_format: str = field(init=False)
    cdc_enabled: bool = field(init=False)
    cdc_mode: str = field(init=False)
    drop_partition_columns: bool = field(init=False)
    partition_metafile_base_format: bool = field(init=False)
    metadata_partitions: tuple[str, ...] = field(init=False)
    metadata_partitions_inflight: tuple[str, ...] = field(init=False)
    create_schema: str | None = field(init=False)
    payload_class: str | None = field(init=False)
    bootstrap_base_path: str | None = field(init=False)
    archive_folder: str = field(init=False)
    timeline_folder: str = field(init=False)
    history_folder: str = field(init=False)
    ordering_fields: tuple[str, ...] = field(init=False)
    merge_mode: str | None = field(init=False)
    merge_strategy: str | None = field(init=False)
    merge_properties: Mapping[str, str] = field(init=False)
    partial_update_mode: str | None = field(init=False)
    table_format: str = field(init=False)
    overwritten: OverwrittenInstants = field(init=False)

    def __post_init__(self) -> None:
        p = dict(self.properties)
        precombine = p.get(PRECOMBINE_FIELD)  # one field; only what 1.1 and later call it may be several
        ordering = (precombine,) if precombine else _list(p, ORDERING_FIELDS)
        version = TableVersion(_int(p, VERSION), _int(p, LAYOUT_VERSION))
        archive = _below(p, ARCHIVE_FOLDER, "archived")
        timeline, history = META_FOLDER, f"{META_FOLDER}/{archive}"
        if version.has_timeline_folder:
            timeline = f"{META_FOLDER}/{_below(p, TIMELINE_PATH, DEFAULT_TIMELINE)}"
            history = f"{timeline}/{_below(p, HISTORY_PATH, 'history')}"
        values: dict[str, object] = {
            "properties": p,
            "name": p.get(NAME, ""),
            "database": p.get(DATABASE, ""),
            "table_type": p.get(TYPE, "COPY_ON_WRITE"),
            "version": version,
            "record_key_fields": _list(p, RECORD_KEY_FIELDS),
            "partition_fields": tuple(f.partition(":")[0] for f in _list(p, PARTITION_FIELDS)),
            "partition_kinds": tuple(f.partition(":")[2].upper() for f in _list(p, PARTITION_FIELDS)),
            "ordering_field": ordering[0] if ordering else None,
            "ordering_fields": ordering,
            "keygen_class": p.get(KEYGEN_CLASS) or p.get(KEYGEN_TYPE) or None,
            "hive_style": _bool(p, HIVE_STYLE),
            "url_encode": _bool(p, URL_ENCODE),
            "populate_meta_fields": _bool(p, POPULATE_META_FIELDS, default=True),
            "timezone": p.get(TIMEZONE, "LOCAL").upper(),
            "base_file_format": (
                p.get(BASE_FILE_FORMAT) or p.get("hoodie.table.ro.file.format") or "PARQUET"
            ).upper(),
            "cdc_enabled": _bool(p, CDC_ENABLED),
            "cdc_mode": _cdc_mode(p),
            "drop_partition_columns": _bool(p, DROP_PARTITION_COLUMNS),
            "partition_metafile_base_format": _bool(p, PARTITION_METAFILE_BASE_FORMAT),
            "metadata_partitions": _list(p, METADATA_PARTITIONS),
            "metadata_partitions_inflight": _list(p, METADATA_PARTITIONS_INFLIGHT),
            "create_schema": p.get(CREATE_SCHEMA) or None,
            "payload_class": _payload(p, version),
            "bootstrap_base_path": p.get(BOOTSTRAP_BASE_PATH) or None,
            "archive_folder": archive,
            "timeline_folder": timeline,
            "history_folder": history,
            "merge_mode": p.get(MERGE_MODE, "").strip().upper() or None,
            "merge_strategy": _strategy(p),
            "merge_properties": {
                k.removeprefix(MERGE_PROPERTY): v for k, v in p.items() if k.startswith(MERGE_PROPERTY)
            },
            "partial_update_mode": p.get(PARTIAL_UPDATE_MODE, "").strip().upper() or None,
            "table_format": p.get(TABLE_FORMAT, "").strip().lower() or "native",
            "overwritten": OverwrittenInstants(_instant(p, OVERWRITTEN_UNTIL), _instant(p, OVERWRITTEN_BY)),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        facts = (f"{n}={v!r}" for n, v in self.facts() if v not in ((), None, "", False))
        return f"TableConfig({', '.join(facts)})"

    def _repr_html_(self) -> str:
        from hudi_timeline.display.html_view import facts_view, titled

        return titled(f"Configuration of {self.name}", facts_view(self.facts()))

    def facts(self) -> list[tuple[str, object]]:
        """Most asked for values; `properties` has all."""
        names = (
            "name", "table_type", "record_key_fields", "partition_fields", "ordering_field", "keygen_class",
            "payload_class", "merge_mode", "hive_style", "timezone", "cdc_enabled", "metadata_partitions",
        )  # fmt: skip
        return [("version", int(self.version)), *((n, getattr(self, n)) for n in names)]

    def key_spec(self, options: Mapping[str, str] | None = None) -> KeySpec:
        """Key generator of this table.

        Args:
            options: a write's, by main name.  They say what hoodie.properties does not keep: the type of timestamps,
                the kinds of a custom key generator's partition fields, consistent timestamps.

        Raises:
            UnsupportedError: a key generator that is not built.
            OptionError: fields that do not fit the generator, or an option that the generator needs is missing.
        """
        given = dict(options or {})
        fields = _list(self.properties, PARTITION_FIELDS)
        if self.keygen_class and kind_of(self.keygen_class) == "CUSTOM" and not all(":" in f for f in fields):
            fields = _list(given, PARTITION_OPTION) or fields
        return KeySpec.from_class(
            self.keygen_class,
            key_fields=self.record_key_fields,
            partition_fields=fields if any(":" in f for f in fields) else self.partition_fields,
            hive_style=self.hive_style,
            url_encode=self.url_encode,
            options={**given, **{k: v for k, v in self.properties.items() if k in STORED}},
        )

    def record_key_spec(self) -> KeySpec:
        """Key generator of this table without partition paths.

        Raises:
            UnsupportedError: a key generator that is not built.
        """
        is_global = self.keygen_class is not None and kind_of(self.keygen_class) == "GLOBAL_DELETE"
        return KeySpec(self.record_key_fields, (), "GLOBAL_DELETE" if is_global else "NON_PARTITION")


def _int(p: Mapping[str, str], key: str) -> int:
    text = p.get(key, "").strip() or "0"
    try:
        return int(text)
    except ValueError:
        raise _no(f"{key}={text!r} is not a whole number") from None


def _no(message: str) -> CorruptFileError:
    return CorruptFileError(message, file=PROPERTIES_FILE, remedy=_REPAIR)


def _instant(p: Mapping[str, str], key: str) -> str:
    text = p.get(key, "").strip()
    if text and not (text.isascii() and text.isdecimal()):
        raise _no(f"{key}={text!r} is not an instant")
    return text


def _bool(p: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    text = p.get(key, "").strip().lower()
    return text == "true" if text else default


def _cdc_mode(p: Mapping[str, str]) -> str:
    mode = p.get(CDC_MODE, "").strip().upper() or DATA_BEFORE_AFTER
    if mode not in CDC_MODES:
        raise _no(f"{CDC_MODE}={mode!r} is none of {', '.join(CDC_MODES)}")
    return mode


def _list(p: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(part for part in (s.strip() for s in p.get(key, "").split(",")) if part)


def _below(p: Mapping[str, str], key: str, default: str) -> str:
    """A relative folder of a property, checked to stay below the table."""
    path = p.get(key, "").strip().strip("/") or default
    if not is_plain(path):
        raise _no(f"{key}={path!r} is not a folder below the table")
    return path


def index_of(properties: Mapping[str, str]) -> str:
    """Kind of the index that a table's properties say; "" for none."""
    return properties.get(INDEX, "").strip().upper()


def _strategy(p: Mapping[str, str]) -> str | None:
    return (p.get(MERGE_STRATEGY) or p.get(OLD_MERGE_STRATEGY, "")).strip().lower() or None


def _payload(p: Mapping[str, str], version: TableVersion) -> str | None:
    """Payload class of the table.

    Tables of earlier releases may have it in another package.

    A merge-on-read table that Apache Hudi 1.2.0 took down from version 9 may name none, and 0.15 cannot read it then;
    1.2.0 goes by the strategy.
    """
    payload = p.get(PAYLOAD_CLASS)
    if payload:
        return payload_class(payload)
    merged = p.get(TYPE) == "MERGE_ON_READ" and not version.has_merge_mode
    return EVENT_TIME_PAYLOAD if merged and _strategy(p) == EVENT_TIME_STRATEGY else None


_REPAIR = (
    "restore .hoodie/hoodie.properties from a backup, or correct it by hand "
    "(hoodie.table.checksum is the CRC-32 of '<database>.<table>'), without the line '#content checksum'."
)


def checksum(p: Mapping[str, str]) -> str:
    """Value of `hoodie.table.checksum`: CRC-32 of `<database>.<table>`, unsigned decimal."""
    return str(zlib.crc32(f"{p.get(DATABASE, '')}.{p.get(NAME, '')}".encode()))


def load(storage: Storage, *, pause: Callable[[float], None] = time.sleep) -> TableConfig:
    """Configuration of the table at `storage`.

    Args:
        pause: waits some seconds between tries, while another process may be updating the file.

    Raises:
        NotAHudiTableError: no `.hoodie/hoodie.properties` and no backup of it.
        CorruptFileError: neither the file nor its backup is whole.

    Source: timeline format, "hoodie.properties"; HoodieTableConfig.fetchConfigs of 0.15.
    """
    problem: CorruptFileError | None = None
    is_empty = False
    for attempt in range(READ_TRIES):
        for path in (PROPERTIES_FILE, BACKUP_FILE):
            try:
                data = _at_rest(storage) if path == PROPERTIES_FILE else storage.read(path)
                return _known(data, path, storage.uri)
            except FileNotFoundError:
                continue
            except CorruptFileError as e:
                problem = problem or e
        is_empty = problem is None and not storage.list(META_FOLDER)
        if is_empty:
            break  # nothing that an update could bring back
        if attempt + 1 < READ_TRIES:
            pause(READ_PAUSE_S)
    if problem is not None:
        raise problem
    if not is_empty and storage.info(OVERWRITE_SWITCH) is not None:
        raise NotAHudiTableError(
            "the table is being overwritten, and the new one is not in its place yet",
            table=storage.uri,
            remedy="try again when it is done; if its writer died, the next write finishes it.",
            overwritten=True,
        )
    raise NotAHudiTableError(
        "not a Hudi table: .hoodie/hoodie.properties is missing", table=storage.uri,
        remedy="check the path, or create the table by a first write to it.",
    )  # fmt: skip


# Each step of a write reads the file anew, which seldom has changed since.
@lru_cache(maxsize=64)
def _known(data: bytes, path: str, table: str) -> TableConfig:
    return TableConfig(_entries(data, path, table))


# By table: when the file was written, and with what, that stayed so for as long as is waited.
_rested: dict[str, tuple[int, bytes]] = {}
_MOST_RESTED = 100


def _at_rest(storage: Storage) -> bytes:
    """Bytes of the file, read again while another program may be writing it.

    While it is written anew there is a backup.  One that a program left when it died is waited for once, as is a file
    that does not end with a line's end: by hand any editor writes such ones.

    Raises:
        FileNotFoundError.
    """
    data = storage.read(PROPERTIES_FILE)
    found = None if has_no_folders(storage) else storage.info(PROPERTIES_FILE)
    if found is None or abs(time.time() - found.mtime_ms / 1000) > stable_reads.YOUNG_S:
        return data
    if _rested.get(storage.uri) == (found.mtime_ms, data):
        return data
    rest = time.monotonic()
    while True:
        updating = storage.info(BACKUP_FILE) is not None
        found = storage.info(PROPERTIES_FILE)
        if found is None:
            raise FileNotFoundError(PROPERTIES_FILE)
        # Who fills it ends each line: without a backup the last one is the end.
        if not updating and found.size in (-1, len(data)) and data.endswith(b"\n"):
            break
        time.sleep(stable_reads.PAUSE_S)
        # It is read once more when the time is up: this process may have been held up too.
        now = time.monotonic()
        newer = storage.read(PROPERTIES_FILE)
        if newer != data:
            data, rest = newer, now
        elif now > rest + stable_reads.PATIENCE_S:
            if len(_rested) >= _MOST_RESTED:
                _rested.clear()
            _rested[storage.uri] = (found.mtime_ms, data)
            break
    return data


def read_file(storage: Storage, path: str) -> dict[str, str]:
    """Entries of the file or of its backup.

    Raises:
        FileNotFoundError; CorruptFileError: it is not whole.
    """
    return _entries(storage.read(path), path, storage.uri)


def _entries(data: bytes, path: str, table: str) -> dict[str, str]:
    try:
        p = props.parse(data, path=path)
    except CorruptFileError as e:
        e.advise(_REPAIR)
        raise e.at(table=table, file=path) from None
    # Without its type, which Apache Hudi always writes, a table would be read without its log files.
    lacking = next((n for n in (NAME, TYPE) if not p.get(n)), None)
    if lacking is not None:
        raise CorruptFileError(f"{lacking} is missing", table=table, file=path, remedy=_REPAIR)
    stored = p.get(CHECKSUM)
    if stored is not None and stored.strip() != checksum(p):
        names = f"{p.get(DATABASE, '')}.{p[NAME]}"
        what = f"checksum mismatch: {CHECKSUM}={stored}, but the names '{names}' give {checksum(p)}"
        raise CorruptFileError(what, table=table, file=path, remedy=_REPAIR)
    stored, found = stored_content_checksum(data), content_checksum(p)
    if stored is not None and stored != found:
        raise CorruptFileError(
            f"checksum mismatch: entries were changed by hand since the file was written, which says the checksum "
            f"{stored}; they give {found}",
            table=table, file=path,
            remedy="undo the change; if the table is as the entries say, `hudi repair PATH` accepts them.",
        )  # fmt: skip
    return p


OF_MERGE_ON_READ = {
    PAYLOAD_CLASS: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    OLD_MERGE_STRATEGY: EVENT_TIME_STRATEGY,
}
"""What Apache Hudi 0.15 writes into a merge-on-read table that it makes, and its log reader cannot do without."""


def create(storage: Storage, properties: Mapping[str, str]) -> TableConfig:
    """Create a table: the folders of `.hoodie`, then hoodie.properties.

    Keys that are not given get what Apache Hudi 0.15 writes into a new table of version 6; the checksum is always
    computed.

    Raises:
        ValueError: no `hoodie.table.name`.
        TableExistsError: there is a table already, or another process made it first.
    """
    if not properties.get(NAME):
        raise ValueError(f"{NAME} is required to create a table")
    of_type = OF_MERGE_ON_READ if properties.get(TYPE) == "MERGE_ON_READ" else {}
    p = {**_CREATION_DEFAULTS, **of_type, **properties}
    p[CHECKSUM] = checksum(p)
    config = TableConfig(p)
    exists = TableExistsError(
        "there is a Hudi table already", table=storage.uri, remedy="open it, or choose another path."
    )
    if storage.info(PROPERTIES_FILE) is not None or storage.info(BACKUP_FILE) is not None:
        raise exists
    for folder in (".schema", config.archive_folder, ".temp", ".aux"):
        storage.make_dir(f"{META_FOLDER}/{folder}")
    try:
        storage.create(PROPERTIES_FILE, render(p, "Properties saved on"))
    except FileExistsError:
        raise exists from None
    flush(storage, [PROPERTIES_FILE, ""], written=False)
    return config


def update(storage: Storage, set: Mapping[str, str], remove: Iterable[str] = ()) -> TableConfig:
    """Change entries of hoodie.properties, under the table's lock.

    The steps are those of HoodieTableConfig.modify, so that Apache Hudi recovers from a crash in
    ours and the other way round: a missing file means that the backup counts.

    Raises:
        NotAHudiTableError, CorruptFileError: as `load`.
        LockError: the lock was lost, and the file is as it was.
        ConcurrentWriterError: another process, which holds the lock by now, has changed the file meanwhile.
    """
    recover(storage)
    current = dict(load(storage).properties)
    changed = {k: v for k, v in {**current, **set}.items() if k not in frozenset(remove)}
    changed[CHECKSUM] = checksum(changed)
    if changed == current:
        return TableConfig(current)
    before = storage.read(PROPERTIES_FILE)
    if _entries(before, PROPERTIES_FILE, storage.uri) != current:
        raise _changed_meanwhile(storage)
    verify_held()
    storage.publish(BACKUP_FILE, before)
    # Who has taken the lock since has settled the backup first, and what it made of the file stays.
    if storage.info(BACKUP_FILE) is None or _bytes_of(storage) != before:
        raise _changed_meanwhile(storage)
    verify_held()  # what the new entries name may be gone too, though the file has not changed
    storage.delete(PROPERTIES_FILE)
    after = render(changed, "Updated at")
    try:
        storage.create(PROPERTIES_FILE, after)
    except FileExistsError:
        if _bytes_of(storage) != after:  # of a put that was repeated it is ours
            raise _changed_meanwhile(storage) from None
    try:
        written = read_file(storage, PROPERTIES_FILE)
    except CorruptFileError:
        storage.delete(PROPERTIES_FILE)  # the backup stays, and counts
        raise
    storage.delete(BACKUP_FILE)
    flush(storage, [PROPERTIES_FILE], written=False)
    return TableConfig(written)


def _bytes_of(storage: Storage) -> bytes | None:
    try:
        return storage.read(PROPERTIES_FILE)
    except FileNotFoundError:
        return None


def _changed_meanwhile(storage: Storage) -> ConcurrentWriterError:
    return ConcurrentWriterError(
        "the table's properties were changed by another process, which has taken the lock meanwhile",
        table=storage.uri, file=PROPERTIES_FILE, remedy="run it again; configure the same lock for all processes.",
    )  # fmt: skip


def recover(storage: Storage) -> None:
    """Finish or undo an interrupted update, under the table's lock."""
    if storage.info(BACKUP_FILE) is None:
        return
    try:
        read_file(storage, PROPERTIES_FILE)
    except (FileNotFoundError, CorruptFileError):
        storage.publish(PROPERTIES_FILE, storage.read(BACKUP_FILE))
    storage.delete(BACKUP_FILE)


def render(p: Mapping[str, str], verb: str = "Updated at") -> bytes:
    """Text of the file, with its content checksum in a comment."""
    now = datetime.fromtimestamp(time.time(), UTC)
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return props.render(
        p, [f"{verb} {stamp}", props.java_date(now), f"{_CONTENT_CHECKSUM}{content_checksum(p)}"]
    )


_CONTENT_CHECKSUM = "content checksum "
CONTENT_CHECKSUM_LINE = f"#{_CONTENT_CHECKSUM}".encode()
"""How the comment begins that has the checksum of all entries."""


def content_checksum(p: Mapping[str, str]) -> str:
    """CRC-32 of all entries in key order, unsigned decimal.

    `hoodie.table.checksum` covers the names only.  This one stands in a comment of the files that we write, so that
    it goes away with the file when another program writes it anew: where it is and differs, a person edited the file.
    """
    text = "".join(f"{k}={p[k]}\n" for k in sorted(p))
    return str(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def stored_content_checksum(data: bytes) -> str | None:
    """Content checksum stored in the file; None for files of other programs."""
    start = len(CONTENT_CHECKSUM_LINE)
    lines = [line[start:] for line in data.splitlines() if line.startswith(CONTENT_CHECKSUM_LINE)]
    return lines[0].strip().decode("ascii", "replace") if lines else None
