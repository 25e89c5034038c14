"""Golden tables, opened: what the tests of this folder share."""

from collections.abc import Callable

import pytest
from golden_tables import GoldenTable

from hudi_timeline.table import HudiTable


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[GoldenTable], HudiTable]:
    """Tables by name, unpacked once."""
    tables: dict[GoldenTable, HudiTable] = {}

    def open_table(table: GoldenTable) -> HudiTable:
        if table not in tables:
            tables[table] = HudiTable.open(str(table.unpack(tmp_path_factory.mktemp(str(table)))))
        return tables[table]

    return open_table
