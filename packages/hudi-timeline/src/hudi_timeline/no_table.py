"""Where a table was asked for and is none: what lies there instead."""

from __future__ import annotations

from hudi_format.errors import HudiError, NotAHudiTableError
from hudi_format.storage import Storage, open_beside
from hudi_timeline.table_config import META_FOLDER, PROPERTIES_FILE


def with_what_is_there(storage: Storage, error: NotAHudiTableError) -> NotAHudiTableError:
    """The error, with what lies at the path instead."""
    entries = storage.list("")
    names = {e.name for e in entries}
    if META_FOLDER in names:
        return error
    if "_delta_log" in names:
        found = "it is a Delta Lake table"
    elif "metadata" in names and "data" in names:
        found = "it looks like an Iceberg table"
    elif names:
        found = f"it holds other data, such as {min(names)!r}"
        above = _table_above(storage)
        if above:
            found, error.remedy = "it is a folder of one", f"open the table itself, {above}."
    elif storage.info("") is not None:
        found = "the folder is empty"
    else:
        found = "there is nothing"
    return NotAHudiTableError(f"no Hudi table: {found}", table=error.table, remedy=error.remedy, found=found)


def _table_above(storage: Storage) -> str:
    """The base path of the table that a folder is part of; "" where it is of none."""
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
