"""Repairs of hoodie.properties."""

from __future__ import annotations

from hudi_format import properties as props
from hudi_format.errors import CorruptFileError
from hudi_format.storage import Storage
from hudi_timeline import table_config
from hudi_timeline.table_config import BACKUP_FILE, PROPERTIES_FILE
from hudi_timeline.verify.finding import Finding
from hudi_timeline.verify.repair_timeline import NoRepair
from hudi_timeline.verify.steps import Step, create, move, replace


def repair_properties(storage: Storage, finding: Finding) -> list[Step]:
    """The steps for a finding about hoodie.properties.

    Raises:
        NoRepair: which value is the right one cannot be known.
    """
    if finding.code == "properties-content":
        entries = props.parse(storage.read(PROPERTIES_FILE), path=PROPERTIES_FILE)
        return [replace(PROPERTIES_FILE, table_config.render(entries))]
    if finding.code == "properties-value":
        raise NoRepair("which value is right cannot be known: correct it by hand.")
    backup = _backup(storage)
    if finding.code == "properties-backup" and finding.details.get("primary"):
        return [move(BACKUP_FILE)]
    if backup is None:
        raise NoRepair("there is no whole backup of the file: restore it from one of yours.")
    there = storage.info(PROPERTIES_FILE) is not None
    put_back = replace(PROPERTIES_FILE, backup) if there else create(PROPERTIES_FILE, backup)
    return [put_back, move(BACKUP_FILE)]


def _backup(storage: Storage) -> bytes | None:
    try:
        data = storage.read(BACKUP_FILE)
        table_config.read_file(storage, BACKUP_FILE)
    except (FileNotFoundError, CorruptFileError):
        return None
    return data
