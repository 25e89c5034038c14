"""Feature gate: tables this version refuses to read or to write.

One table of entries.  An entry finds its feature in a table and says what to do instead; a later version
that handles the feature removes the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from hudi_format.errors import HudiError, NotAHudiTableError, StorageError, UnsupportedError
from hudi_format.keygen.key_generator import kind_of
from hudi_format.storage.open import open_beside
from hudi_format.storage.protocol import Storage
from hudi_timeline import metadata_config
from hudi_timeline.options.option_types import has_wildcard
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import METADATA_ENABLE
from hudi_timeline.table_config import META_FOLDER, PROPERTIES_FILE, TableConfig, load
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering, resizes_buckets
from hudi_timeline.timeline.commit_metadata import CommitMetadata, read_commit
from hudi_timeline.timeline.instant import RESTORE, Instant

READ = "read"
WRITE = "write"
SERVICE = "service"  # only those services that ask for it
BOTH = (READ, WRITE)

METADATA_BOOTSTRAP_INSTANT = "00000000000001"


@dataclass(frozen=True, slots=True)
class TableFeatures:
    """Table properties and timeline for the checks.

    `timeline` is empty where only the configuration is checked; `own` is the instant of the write itself, where it has
    one.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    options: TransactionConfig
    operation: str = ""
    read: Callable[[Instant], CommitMetadata] | None = None
    own: str = ""

    def commit(self, instant: Instant) -> CommitMetadata:
        """Metadata of a completed write."""
        return read_commit(self.storage, instant) if self.read is None else self.read(instant)


@dataclass(frozen=True, slots=True)
class Entry:
    """One refused feature.

    `detect` gives "" where the table does not have it, else words that show it.

    `reason` says why a table that has it is not read here; "" where it only is not written.
    """

    feature: str
    applies: tuple[str, ...]
    detect: Callable[[TableFeatures], str]
    remedy: str
    reason: str = ""


def _version(*versions: int) -> Callable[[TableFeatures], str]:
    def detect(facts: TableFeatures) -> str:
        return f"table version {facts.config.version}" if facts.config.version in versions else ""

    return detect


def _unknown_version(facts: TableFeatures) -> str:
    if facts.config.version.readable:
        return ""
    if not facts.config.version:  # tables of 2020, and files that are cut short
        return ".hoodie/hoodie.properties has no hoodie.table.version (table version 0)"
    return f"table version {facts.config.version}"


def _layout(facts: TableFeatures) -> str:
    version = facts.config.version
    if not version.readable or version.layout == version.own_layout:
        return ""
    return f"timeline layout version {version.layout}"


def _table_format(facts: TableFeatures) -> str:
    found = facts.config.table_format
    return "" if found == "native" else f"a table of the format {found}, which keeps its state elsewhere"


def _table_type(facts: TableFeatures) -> str:
    known = ("COPY_ON_WRITE", "MERGE_ON_READ")
    return "" if facts.config.table_type in known else f"table type {facts.config.table_type}"


def _base_format(*handled: str) -> Callable[[TableFeatures], str]:
    def detect(facts: TableFeatures) -> str:
        found = facts.config.base_file_format
        return "" if found in handled else f"{found} base files"

    return detect


def _key_generator(facts: TableFeatures) -> str:
    name = facts.config.keygen_class
    if name is None or name.endswith(".SqlKeyGenerator"):
        return ""
    try:
        kind_of(name)
    except UnsupportedError as e:
        return e.message
    return ""


def _bootstrap(facts: TableFeatures) -> str:
    return "a bootstrapped table" if facts.config.bootstrap_base_path else ""


def _metadata_bootstrap(facts: TableFeatures) -> str:
    has_instant = facts.timeline.find(METADATA_BOOTSTRAP_INSTANT) is not None
    if has_instant or (
        facts.config.bootstrap_base_path and facts.storage.list(".hoodie/.aux/.bootstrap/.partitions")
    ):
        return "a metadata-only bootstrap: data columns lie in the source files"
    return ""


def _schema_history(facts: TableFeatures) -> str:
    if facts.timeline.lacks(".schema"):
        return ""
    if any(e.name.endswith(".schemacommit") for e in facts.storage.list(".hoodie/.schema")):
        return "a schema-on-read history (.hoodie/.schema)"
    return ""


def _pending_restore(facts: TableFeatures) -> str:
    pending = facts.timeline.pending(RESTORE)
    return f"a restore that is not finished ({pending[0].time})" if pending else ""


# Writes that look at each bucket that they go to: of a pending resize of buckets they refuse only those that change.
_BY_BUCKET = frozenset(f"{of}{form}" for of in ("UPSERT", "INSERT", "DELETE") for form in ("", "_PREPPED"))


def _pending_clustering(facts: TableFeatures) -> str:
    for instant in facts.timeline.pending_writes():
        if instant.time != facts.own and is_clustering(facts.storage, facts.timeline, instant):
            if facts.operation in _BY_BUCKET and resizes_buckets(facts.storage, instant):
                continue
            return f"a clustering that is not finished ({instant.time})"
    return ""


def _metadata_indexes(facts: TableFeatures) -> str:
    if facts.options.metadata_enable is False:
        return ""
    config = facts.config
    others = [p for p in config.metadata_partitions if p not in metadata_config.KEPT]
    inflight = config.metadata_partitions_inflight
    if inflight:
        # Few tables need the decoders of plans.
        from hudi_timeline.timeline.index_builds import kept_while_built

        kept = kept_while_built(facts.storage, facts.timeline, inflight) & set(metadata_config.KEPT)
        others += [p for p in inflight if p not in kept]  # Apache Hudi builds them
    return f"a metadata table with {', '.join(others)}" if others else ""


_APACHE_WRITE = "write to it with Apache Hudi."

GATE: tuple[Entry, ...] = (
    Entry(
        "timeline layout",
        BOTH,
        _layout,
        "upgrade the table with Apache Hudi: layout 1 goes with the versions 5 and 6, layout 2 with 8 and 9.",
        "no release writes such a pair: one of the two properties is wrong, and instants would be looked for in the "
        "wrong folder",
    ),
    Entry(
        "table version 5",
        (WRITE,),
        _version(5),
        "upgrade its readers, then take it up to version 6: `hudi upgrade PATH` or HudiTable.upgrade().",
    ),
    Entry(
        "table version 8",
        (WRITE,),
        _version(8),
        "use Apache Hudi 1.0, or take the table down to version 6 with its downgrade procedure "
        "(upgrade_or_downgrade, hoodie.write.table.version=6).",
    ),
    Entry(
        "table version 9",
        (WRITE,),
        _version(9),
        "use Apache Hudi 1.1 or later, or take the table down to version 6 with its downgrade procedure "
        "(upgrade_or_downgrade, hoodie.write.table.version=6).",
    ),
    Entry(
        "unknown table version",
        BOTH,
        _unknown_version,
        "tables of versions 5, 6, 8 and 9 can be read, of version 6 written; upgrade an older table with "
        "Apache Hudi 0.15, and use a newer one with the release that wrote it.",
        "versions 0 to 4 are of releases before 0.12, which no table that is still written has; 7 is a step of an "
        "upgrade that is not finished; what comes after 9 is not known",
    ),
    Entry(
        "table format",
        BOTH,
        _table_format,
        "use Apache Hudi 1.1 or later with that format's plug-in.",
        "its commits are kept by the plug-in, in another format's metadata",
    ),
    Entry(
        "table type",
        BOTH,
        _table_type,
        "correct hoodie.table.type in .hoodie/hoodie.properties.",
        "Apache Hudi has two types of tables and reads no other either",
    ),
    Entry(
        "base file format",
        (READ,),
        _base_format("PARQUET", "ORC", "HFILE"),
        "use Apache Hudi for this table.",
        "Parquet, ORC and HFile are read; Lance and Vortex of later releases need readers of their own",
    ),
    Entry(
        "base file format",
        (WRITE,),
        _base_format("PARQUET"),
        "write to it with Apache Hudi: the ORC writer at hand keeps no metadata in a file's footer, where readers look "
        "for schema and keys, and HFiles are the metadata table's, which is written along with its table.",
    ),
    Entry("key generator", (WRITE,), _key_generator, _APACHE_WRITE),
    Entry("metadata-only bootstrap", (WRITE,), _metadata_bootstrap, _APACHE_WRITE),
    Entry("bootstrap", (WRITE,), _bootstrap, _APACHE_WRITE),
    Entry("schema on read", (SERVICE,), _schema_history, "do it with Apache Hudi."),
    Entry(
        "pending restore",
        (WRITE,),
        _pending_restore,
        "run the same restore again: `hudi restore PATH INSTANT`, or HudiTable.restore(); then write.",
    ),
    Entry(
        "pending clustering",
        (WRITE,),
        _pending_clustering,
        "run the clustering with Apache Hudi, or roll it back there, then write; one that resizes buckets is executed "
        "by `hudi buckets resize PATH --pending` too.",
    ),
    Entry(
        "metadata table indexes",
        (WRITE,),
        _metadata_indexes,
        f"set {METADATA_ENABLE}=false to let the metadata table be removed (Apache Hudi builds it again), drop what "
        "another program has left half built (`hudi index drop PATH INDEX`), or write with Apache Hudi.",
    ),
)


def check_write(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline | None = None,
    options: TransactionConfig | None = None,
    operation: str = "",
    *,
    read: Callable[[Instant], CommitMetadata] | None = None,
    own: str = "",
) -> None:
    """Refuse a write that would damage the table.

    Args:
        read: gives a commit's metadata, for callers that keep them.
        own: the write's instant, where it has one: it may be that of a plan.
        timeline: None to look at what needs no timeline only, before one can be loaded.

    Raises:
        UnsupportedError: the table has a feature that a write would damage; `details["feature"]`.
    """
    asked = options or TransactionConfig()
    _check(WRITE, TableFeatures(storage, config, timeline or Timeline(), asked, operation, read, own))


# What cleaning, archival and savepoints would do harm to, or would not understand.
_SERVICE_FEATURES = frozenset(
    {
        "table version 5",
        "table version 8",
        "table version 9",
        "unknown table version",
        "timeline layout",
        "table type",
        "metadata-only bootstrap",
        "pending restore",
        "metadata table indexes",
    }
)


def check_service(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: TransactionConfig,
    *,
    allowed: Collection[str] = (),
    also: Collection[str] = (),
) -> None:
    """Refuse a table service that would damage the table.

    Args:
        also: further features of the gate that this service would harm.
        allowed: features that the service is made for: "pending restore" for the restore that another process did not
            finish, a table version for its upgrade.

    Raises:
        UnsupportedError: the table has a feature that it would damage.
    """
    facts = TableFeatures(storage, config, timeline, options)
    features = _SERVICE_FEATURES.union(also).difference(allowed)
    _check("change", facts, [e for e in GATE if e.feature in features and e.applies != (READ,)])


def check_read(storage: Storage, config: TableConfig, timeline: Timeline | None = None) -> None:
    """Refuse a read that would return wrong rows.

    Raises:
        UnsupportedError: the table has a feature that this version would read wrong.
    """
    _check(READ, TableFeatures(storage, config, timeline or Timeline(), TransactionConfig()))


def _check(access: str, facts: TableFeatures, entries: Sequence[Entry] | None = None) -> None:
    for entry in [e for e in GATE if access in e.applies] if entries is None else entries:
        found = entry.detect(facts)
        if found:
            raise UnsupportedError(
                f"cannot {access} this table yet: {found}",
                table=facts.storage.uri,
                remedy=entry.remedy,
                feature=entry.feature,
            )


# Where a table was asked for and is none: what lies there instead.


def readable_config(storage: Storage) -> TableConfig:
    """Configuration of a readable table.

    Raises:
        NotAHudiTableError: nothing is there, or something else.
        CorruptFileError: hoodie.properties cannot be read.
        UnsupportedError: a table that this version would read wrong.
    """
    try:
        config = load(storage)
    except NotAHudiTableError as e:
        raise _with_what_is_there(storage, e) from None
    except StorageError:
        root = storage.info("")
        if root is None or root.is_dir:
            raise
        raise NotAHudiTableError(
            "not a Hudi table: the path is a file", table=storage.uri, remedy="give the table's folder."
        ) from None
    check_read(storage, config)
    return config


def shown_first(name: str) -> tuple[bool, str]:
    """Sort key of names: hidden files, such as Spark's checksums, tell a user least."""
    return name[:1] in (".", "_"), name


def _with_what_is_there(storage: Storage, error: NotAHudiTableError) -> NotAHudiTableError:
    """The error with a description of what exists at the path instead."""
    entries = storage.list("")
    names = {e.name for e in entries}
    if META_FOLDER in names:
        return error
    if "_delta_log" in names:
        found = "it is a Delta Lake table"
    elif "metadata" in names and "data" in names:
        found = "it looks like an Iceberg table"
    elif names:
        found = f"it holds other data, such as {min(names, key=shown_first)!r}"
        above = _table_above(storage)
        if above:
            found, error.remedy = "it is a folder of one", f"open the table itself, {above}."
    elif storage.info("") is not None:
        found = "the folder is empty"
    else:
        found = "there is nothing"
        if has_wildcard(storage.uri):
            found += ", and patterns are not expanded here"
            above = _table_above(storage)
            error.remedy = (
                f"open the table itself{above and f', {above}'}; its partitions are found automatically, and "
                "a filter chooses rows."
            )
    return NotAHudiTableError(
        f"not a Hudi table: {found}", table=error.table, remedy=error.remedy, found=found
    )


def _table_above(storage: Storage) -> str:
    """Base path of the table containing a folder; "" where there is none."""
    scheme, mark, path = storage.uri.rpartition("://")
    while "/" in path.strip("/"):
        path = path.rstrip("/").rpartition("/")[0]
        above = f"{scheme}{mark}{path}"
        try:
            if open_beside(storage, above).info(PROPERTIES_FILE) is not None:
                return above
        except HudiError:  # nobody asked for that folder
            break
    return ""
