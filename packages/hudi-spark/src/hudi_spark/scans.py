"""The scan that read options mean, whichever door they came through."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_format.config import ReadConfig
from hudi_format.config.read import CDC, INCREMENTAL
from hudi_timeline.scan.result import Scan
from hudi_timeline.table import HudiTable


def scan_for(table: HudiTable, config: ReadConfig, columns: Sequence[str] | None = None) -> Scan:
    """A snapshot, incremental or change query of a table.

    Raises:
        HudiError: as `HudiTable.read`, `.read_incremental` and `.read_changes`.
    """
    options = dict(config.raw)
    if config.query_type != INCREMENTAL:
        return table.read(columns, query=config.query_type, as_of=config.as_of, options=options)
    if config.incremental_format == CDC:
        return table.read_changes(config.begin or "", config.end, columns=columns, options=options)
    return table.read_incremental(config.begin or "", config.end, columns=columns, options=options)
