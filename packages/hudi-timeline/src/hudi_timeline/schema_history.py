"""The schema history of a table with schema on read, as far as a read needs it.

The commits say whether there is one (`latest_schema`); `.hoodie/.schema/` holds all versions.

Source: TableSchemaResolver, InternalSchemaCache and FileBasedInternalSchemaStorageManager of Apache Hudi 0.15.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_timeline.filling import read_whole
from hudi_timeline.instant import Instant
from hudi_timeline.metadata.commit_files import HISTORY_KEY as LATEST_SCHEMA
from hudi_timeline.snapshot import TableSnapshot
from hudi_timeline.table_config import META_FOLDER
from hudi_timeline.timeline import SCHEMA_NEUTRAL

if TYPE_CHECKING:
    from hudi_format.schema.history import SchemaVersion

FOLDER = f"{META_FOLDER}/.schema"
SUFFIX = ".schemacommit"
OPTION = "hoodie.schema.on.read.enable"


def with_history(snapshot: TableSnapshot, enabled: bool | None) -> TableSnapshot:
    """The snapshot with how its files are read by column id, where the table has a history.

    Args:
        enabled: what the user says; False reads files by name, as Apache Hudi does where it is not asked
            otherwise; None reads by id where there is a history.

    Raises:
        CorruptFileError, MissingFileError: the history cannot be read.
        UnsupportedError: the newest schema was written by someone who did not keep the history.
    """
    if enabled is False:
        return snapshot
    text, newest = _latest(snapshot)
    if newest is None:
        return snapshot
    from hudi_format.schema.history import Evolution

    wanted = _parsed(snapshot, text, newest)
    versions = {v.version: v for v in _history(snapshot)}
    of_instant: dict[str, int] = {}
    seen = {text: wanted}
    for instant in snapshot.instants:
        own = snapshot.commits.get(instant).extra.get(LATEST_SCHEMA)
        if own:
            if own not in seen:
                seen[own] = _parsed(snapshot, own, instant)
            of_instant[instant.time] = seen[own].version
    for version in seen.values():
        versions.setdefault(version.version, version)
    ordered = tuple(versions[n] for n in sorted(versions))
    return replace(snapshot, evolution=Evolution(wanted, ordered, of_instant))


def _latest(snapshot: TableSnapshot) -> tuple[str, Instant | None]:
    """The history's entry of the newest commit that decides about the schema, and that commit; None without one."""
    for instant in reversed(snapshot.instants):
        metadata = snapshot.commits.get(instant)
        if metadata.operation in SCHEMA_NEUTRAL or not metadata.schema_text:
            continue
        text = metadata.extra.get(LATEST_SCHEMA) or ""
        if not text and _named_before(snapshot, instant):
            raise UnsupportedError(
                f"the commit {instant.time} does not go on with the table's schema history",
                table=snapshot.storage.uri,
                instant=instant.time,
                remedy=f"read with {OPTION}=false, which goes by column names, or with Apache Hudi.",
            )
        return text, instant if text else None
    return "", None


def _named_before(snapshot: TableSnapshot, instant: Instant) -> bool:
    """Whether an older commit says something of a history."""
    older = [i for i in snapshot.instants if i.time < instant.time]
    named = (i for i, f in zip(older, snapshot.commits.files(older), strict=True) if f.names_history)
    return any(snapshot.commits.get(i).extra.get(LATEST_SCHEMA) for i in named)


def _history(snapshot: TableSnapshot) -> tuple[SchemaVersion, ...]:
    """All versions that the newest valid schemacommit has."""
    from hudi_format.schema.history import parse_versions

    storage, visible = snapshot.storage, snapshot.visible()
    names = sorted(e.name for e in storage.list(FOLDER) if not e.is_dir and e.name.endswith(SUFFIX))
    # From table version 8 on a name has the completion time too: `<requested>_<completed>.schemacommit`.
    valid = [n for n in names if n.removesuffix(SUFFIX).partition("_")[0] in visible]
    if not valid:
        return ()
    path = f"{FOLDER}/{valid[-1]}"
    try:
        return read_whole(storage, path, parse_versions)
    except FileNotFoundError:
        raise MissingFileError(
            "a file of the schema history is gone",
            table=storage.uri,
            file=path,
            remedy="read the table again: a cleaner may have removed it meanwhile.",
        ) from None
    except CorruptFileError as e:
        e.advise(f"restore it from a copy, or read with {OPTION}=false, which goes by column names.")
        raise e.at(table=storage.uri, file=path) from None


def _parsed(snapshot: TableSnapshot, text: str, instant: Instant) -> SchemaVersion:
    from hudi_format.schema.history import parse_version

    try:
        return parse_version(text)
    except CorruptFileError as e:
        raise e.at(table=snapshot.storage.uri, instant=instant.time, file=instant.path) from None
