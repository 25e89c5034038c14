"""Tables of version 5 that we upgraded: Apache Hudi 0.15.0 reads the rows, writes on, and both read again."""

import pytest
from golden_tables import golden

from hudi_timeline import HudiTable
from hudi_timeline.verify.findings import Severity
from interop.rows import assert_same_rows, without_meta

KEY = ["_hoodie_record_key"]


@pytest.mark.req("OP-11", "OP-12")
@pytest.mark.parametrize("table", sorted(golden("v5"), key=lambda t: not t.merged), ids=str)
def test_apache_hudi_carries_on_what_we_upgraded(apache, tmp_path, table):
    path = table.unpack(tmp_path)
    before = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    assert HudiTable.open(str(path)).upgrade().executed
    assert_same_rows(apache.read(path), before, KEY)
    one = without_meta(before.slice(0, 1))
    apache.write(path, one, {**table.meta["write_options"], "hoodie.datasource.write.operation": "upsert"})
    after = apache.read(path)
    assert after.num_rows == before.num_rows
    assert_same_rows(HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), after, KEY)
    assert not [f for f in HudiTable.open(str(path)).verify() if f.severity is not Severity.INFO]
