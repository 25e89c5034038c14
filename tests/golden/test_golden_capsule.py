"""Bug capsules of tables that Apache Hudi wrote: the same plan and the same findings."""

import re

import pytest
from golden_tables import golden

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.bug_capsule import make_capsule, open_capsule

NAMES = ("all_types_cow", "cow_archived", "cow_cleaned", "cow_complex_keys_hive_style_urlencoded", "cow_nonpartitioned",
         "cow_rollback", "mor_avro_logs", "mor_rollback", "savepoint_restore", "record_index")  # fmt: skip
TABLES = [
    *golden("v5", "cow_insert_overwrite"), *golden("v6", *NAMES), *golden("v8", "cow_archived", "mor_avro_logs"),
    *golden("v9", "mor_pending_compaction"),
]  # fmt: skip
NAME = re.compile(r"[0-9a-z-]+_[0-9-]+_\d{17}\.parquet|\.[0-9a-z-]+_\d{17}\.log\.\d+_[0-9-]+")


def plan(table):
    return sorted(
        (t.path.rpartition("/")[2], t.size, t.file_id, sorted(set(NAME.findall(repr(t.logs)))))
        for t in table.read().plan_files()
    )


def findings(table):
    """Those of the metadata table are left out: a rebuilt table has none; nor are there Hadoop's checksums."""
    found = [f for f in table.verify() if not f.code.startswith(("mdt-", "crc-"))]
    return sorted((f.code, f.path.rpartition("/")[2], f.instant) for f in found)


@pytest.mark.req("NEW-13")
@pytest.mark.parametrize("golden_table", TABLES, ids=str)
@pytest.mark.sampled(4)
def test_a_table_of_apache_hudi_is_rebuilt_with_its_plan_and_its_findings(golden_table, tmp_path):
    table = HudiTable._of(LocalStorage(str(golden_table.unpack(tmp_path / "original"))))
    made = make_capsule(table.storage, tmp_path / "bug.zip")
    manifest = open_capsule(tmp_path / "bug.zip", tmp_path / "rebuilt")
    again = HudiTable._of(LocalStorage(str(tmp_path / "rebuilt")))
    assert plan(again) == plan(table)
    assert findings(again) == findings(table)
    assert not [text for text in made.left_out if "takes more bytes" in text]
    if table.config.metadata_partitions:
        listed = {name for files in manifest["metadata_table"].values() for name, _ in files}
        assert {name for name, *_ in plan(table)} <= listed
