"""Checks of hoodie.properties: checksums, the backup of an update, values that exclude each other."""

from __future__ import annotations

from hudi_format import properties as props
from hudi_format.errors import CorruptFileError
from hudi_format.storage import Storage
from hudi_timeline import table_config
from hudi_timeline.table_config import (
    BACKUP_FILE,
    CHECKSUM,
    NAME,
    PROPERTIES_FILE,
    TableConfig,
    checksum,
    content_checksum,
    stored_content_checksum,
)
from hudi_timeline.verify.finding import Report

_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
_FORMATS = ("PARQUET", "ORC", "HFILE")
_VERSIONS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)


def check_properties(storage: Storage, report: Report) -> TableConfig | None:
    """The configuration to go on with; None where there is none that can be read."""
    primary = _read(storage, PROPERTIES_FILE)
    backup = _read(storage, BACKUP_FILE)
    if backup is not None:
        whole = "the backup is whole" if isinstance(backup, dict) else f"the backup is not whole: {backup}"
        gone = "and the file itself is not there" if primary is None else "and was not removed"
        report.add(
            "properties-backup",
            BACKUP_FILE,
            f"an update of hoodie.properties did not come to its end: its backup is there {gone}; {whole}",
            primary=isinstance(primary, dict),
            backup=isinstance(backup, dict),
        )
    if isinstance(primary, str):
        code = "properties-checksum" if "checksum" in primary else "properties-unreadable"
        report.add(code, PROPERTIES_FILE, primary, backup=isinstance(backup, dict))
    found = primary if isinstance(primary, dict) else backup
    if not isinstance(found, dict):
        if primary is None and backup is None:
            report.add(
                "properties-unreadable", PROPERTIES_FILE, "there is no hoodie.properties, and no backup of it"
            )
        return _despite_names(storage) if isinstance(primary, str) else None
    try:
        config = TableConfig(found)
    except CorruptFileError as e:
        report.add("properties-value", PROPERTIES_FILE, e.message)
        return None
    _check_values(config, report)
    if isinstance(primary, dict):
        stored = stored_content_checksum(storage.read(PROPERTIES_FILE))
        if stored is not None and stored != content_checksum(primary):
            report.add(
                "properties-content",
                PROPERTIES_FILE,
                f"its entries were changed since it was written: they give the checksum {content_checksum(primary)}, "
                f"the file says {stored}",
            )
    return config if config.layout_version <= 2 else None


def _read(storage: Storage, path: str) -> dict[str, str] | str | None:
    """The entries of a file; what is wrong with it; None where it is not there."""
    try:
        found = props.parse(storage.read(path), path=path)
    except FileNotFoundError:
        return None
    except CorruptFileError as e:
        return e.message
    if not found.get(NAME):
        return f"{NAME} is missing"
    said = found.get(CHECKSUM)
    if said is not None and said.strip() != checksum(found):
        return f"checksum mismatch: {CHECKSUM}={said}, the table's names give {checksum(found)}"
    return found


def _despite_names(storage: Storage) -> TableConfig | None:
    """The configuration of a file whose names and checksum disagree: the rest of the table is looked at too."""
    try:
        found = props.parse(storage.read(PROPERTIES_FILE), path=PROPERTIES_FILE)
        config = TableConfig(found)
    except (CorruptFileError, FileNotFoundError):
        return None
    return config if found.get(NAME) and config.layout_version <= 2 else None


def _check_values(config: TableConfig, report: Report) -> None:
    wrong: dict[str, str] = {}
    if config.table_type not in _TYPES:
        wrong[table_config.TYPE] = config.table_type
    if config.base_file_format not in _FORMATS:
        wrong[table_config.BASE_FILE_FORMAT] = config.base_file_format
    if config.version not in _VERSIONS:
        wrong[table_config.VERSION] = str(config.version)
    if (config.layout_version == 2) != (config.version >= 8) or config.layout_version > 2:
        wrong[table_config.LAYOUT_VERSION] = f"{config.layout_version} with table version {config.version}"
    if config.timezone not in ("LOCAL", "UTC"):
        wrong[table_config.TIMEZONE] = config.timezone
    if wrong:
        text = "; ".join(f"{key} is {value}" for key, value in wrong.items())
        report.add("properties-value", PROPERTIES_FILE, text, keys=sorted(wrong))
