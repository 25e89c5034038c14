"""Keys in the indexes that Apache Hudi wrote: an erasure report finds them there."""

import pytest
from golden_tables import golden

from hudi_timeline import HudiTable


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("name", ["record_index", "mdt_all_indexes"])
def test_keys_in_the_metadata_table_are_found(opened, name):
    (one,) = golden("v6", name)
    table: HudiTable = opened(one)
    keys = set(table.read(meta_columns=True).to_arrow().column("_hoodie_record_key").to_pylist())
    report = table.erasure_report(sorted(keys))
    found = [t for t in report.traces.to_pylist() if t["state"] == "metadata table"]
    # The record index has all keys, the statistics of columns the least and the greatest of a file.
    assert {t["key"] for t in found if t["what"] == "index entry"} == keys
    if "column_stats" in table.config.metadata_partitions:
        assert {t["path"].split("/")[2] for t in found if t["what"] == "value"} == {"column_stats"}
    (clean,) = [s for s in report.plan if s.method == "clean"]
    assert clean.arguments["options"]["hoodie.metadata.enable"] == "false"
    assert table.erasure_report(["no-such-key-0815"]).erased
