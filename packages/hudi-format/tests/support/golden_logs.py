"""The log files inside the golden tables, read from their zip files."""

from __future__ import annotations

import zipfile
from functools import cache

from golden_tables import ROOT

VERSIONS = ("v5", "v6", "v8", "v9")


@cache
def golden_logs(version: str, table: str = "") -> dict[str, bytes]:
    """Log files of a table version by path, `<table>/...`; of one table only, if it is named."""
    found = {}
    for archive in sorted((ROOT / version).glob(f"{table or '*'}.zip")):
        with zipfile.ZipFile(archive) as z:
            names = [n for n in z.namelist() if n.rpartition("/")[2].startswith(".") and ".log." in n]
            found.update({n: z.read(n) for n in sorted(names)})
    if not found:
        raise ValueError(f"no log file in {table or 'any table'} of {version}")
    return found
