"""`verify` finds nothing on tables that Apache Hudi wrote, of any version."""

import pytest
from golden_tables import golden

from hudi_timeline.table import HudiTable

TABLES = [t for v in ("v5", "v6", "v8", "v9") for t in golden(v)]


@pytest.mark.req("NEW-09")
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_nothing_is_found(table, tmp_path):
    assert HudiTable.open(str(table.unpack(tmp_path))).verify(deep=True) == []
