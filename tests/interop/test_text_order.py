"""Record keys whose order is another one by UTF-16 units, in which Java compares texts, than by bytes of UTF-8."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop import ours

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
    WRITE + "keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.index.type": "BLOOM",
    "hoodie.parquet.small.file.limit": "0",
}
BY_METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.bloom.index.use.metadata": "true",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
# Each line is a file; U+FFFD and U+E000 stand before U+1F600 in bytes, and after it in UTF-16.
FILES = (
    ("a\ufffd", "a\U0001f600", "ab"),
    ("q\ue000", "q\U0001f600", "q\uffff"),
    ("b\U0001f600", "b\U0010ffff"),
    ("b\ue000", "b\ufffd"),
    ("c", "ca", "cz"),
    ("\U0001f600b", "z\ufffd"),
)


def _rows(keys, ts):
    return pa.table({"id": pa.array(keys, pa.string()), "ts": pa.array([ts] * len(keys), pa.int64())})


def found_by_key(apache, path, key):
    """Keys of rows under conditions that Apache Hudi skips files by."""
    given = ", ".join(f"'{name}' '{value}'" for name, value in {"path": str(path), **SKIPPING}.items())
    apache.sql(f"CREATE OR REPLACE TEMPORARY VIEW filtered USING hudi OPTIONS ({given})")
    where = f"id = '{key}' AND _hoodie_record_key = '{key}'"
    return apache.sql(f"SELECT * FROM filtered WHERE {where}").column("id").to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "index",
    [
        pytest.param({"hoodie.metadata.enable": "false"}, id="footers"),
        pytest.param(BY_METADATA, id="metadata"),
    ],
)
@pytest.mark.parametrize("maker", ["ours", "apache"])
def test_no_key_is_left_out_by_the_range_that_the_other_wrote(tmp_path, apache, maker, index):
    path = tmp_path / "t"
    options = OPTIONS | index

    def write(who, operation, rows):
        if who == "ours":
            ours.write(path, operation, rows, options=options)
        else:
            apache.write(path, rows, options | {WRITE + "operation": operation})

    if maker == "ours":
        HudiTable.create(str(path), _rows([], 0).schema, name="t", record_keys="id", ordering_fields="ts")
    for keys in FILES:
        write(maker, "insert", _rows(list(keys), 1))
    every = [k for keys in FILES for k in keys]
    write("apache" if maker == "ours" else "ours", "upsert", _rows(every, 2))
    found = HudiTable.open(str(path)).read().to_arrow()
    assert sorted(found.column("id").to_pylist()) == sorted(every)
    assert set(found.column("ts").to_pylist()) == {2}
    if index == BY_METADATA:
        for key in every:
            assert found_by_key(apache, path, key) == [key]
