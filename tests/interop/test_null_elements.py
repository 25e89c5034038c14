"""Lists with null elements in our files: Apache Hudi reads them, and writes them again with the setting that is named.

Without it no file of Apache Hudi's record writer holds a null element, its own inserts included; with it, files that
it wrote without it cannot be updated.
"""

import pyarrow as pa
import pytest

from hudi_timeline.writing.workers.null_elements import SETTING
from interop import ours
from interop.spark_process import SparkProcessError

NAME = SETTING.removeprefix("spark.hadoop.").removesuffix("=false")
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
    WRITE + "operation": "upsert",
    "hoodie.metadata.enable": "false",
}
PAIR = pa.struct([("q", pa.int32()), ("r", pa.string())])
ONE = pa.struct([("q", pa.int32())])
COLUMNS = {
    "l": (pa.list_(pa.int32()), [1, None, 3]),
    "ll": (pa.list_(pa.list_(pa.int32())), [[1, None], None, []]),
    "ls": (pa.list_(PAIR), [{"q": 1, "r": None}, None]),
    "l1": (pa.list_(ONE), [{"q": None}, None]),
    "ml": (pa.map_(pa.string(), pa.list_(pa.int32())), [("k", [1, None])]),
    "sl": (pa.struct([("i", pa.list_(pa.string()))]), {"i": ["a", None]}),
}
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), *((n, kind) for n, (kind, _) in COLUMNS.items())]
)


def rows(*ids, ts=1):
    odd = {name: value for name, (_, value) in COLUMNS.items()}
    return pa.Table.from_pylist([{"id": i, "ts": ts, **odd} for i in ids], schema=SCHEMA)


def values(table):
    return table.select(SCHEMA.names).sort_by("id").to_pylist()


@pytest.fixture
def path(tmp_path):
    table = ours.HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"]
    )
    (warning,) = table.insert(rows("a", "b")).warnings
    assert SETTING in warning
    return tmp_path / "t"


@pytest.mark.parametrize("version", ["0.15.0", pytest.param("1.0.2", marks=pytest.mark.slow)])
def test_apache_hudi_goes_on_with_null_elements_where_the_setting_is_given(pool, path, version):
    apache = pool.get(version)
    try:
        apache.set_hadoop(NAME, "false")
        assert values(apache.read(path)) == values(rows("a", "b"))
        apache.write(path, rows("b", "c", ts=2), OPTIONS)
        want = [*values(rows("a")), *values(rows("b", "c", ts=2))]
        assert values(apache.read(path)) == want
        assert values(ours.read(path)) == want
        if version != "0.15.0":  # it has taken the table up to its own version, which is not written here
            return
        ours.HudiTable.open(str(path)).upsert(rows("c", "d", ts=3))
        assert values(apache.read(path)) == [*want[:2], *values(rows("c", "d", ts=3))]
    finally:
        apache.set_hadoop(NAME, None)


def test_the_setting_is_not_for_files_that_were_written_without_it(pool, tmp_path):
    """Apache Hudi's record writer makes lists of two levels then, which the setting keeps it from reading."""
    odd = {
        "l": [1],
        "ll": [[1], []],
        "ls": [{"q": 1, "r": None}],
        "l1": [{"q": 1}],
        "ml": [("k", [1])],
        "sl": {"i": ["a"]},
    }
    first = pa.Table.from_pylist([{"id": i, "ts": 1, **odd} for i in "ab"], schema=SCHEMA)
    path, apache = tmp_path / "t", pool.get("0.15.0")
    apache.write(path, first, OPTIONS)
    try:
        apache.set_hadoop(NAME, "false")
        with pytest.raises(SparkProcessError):
            apache.write(path, rows("b", ts=2), OPTIONS)
    finally:
        apache.set_hadoop(NAME, None)
    assert values(ours.read(path)) == values(first)


def test_without_the_setting_its_record_writer_has_no_null_elements(pool, path, tmp_path):
    apache = pool.get("0.15.0")
    assert values(apache.read(path)) == values(rows("a", "b"))
    for there in (path, tmp_path / "its own"):
        with pytest.raises(SparkProcessError):
            apache.write(there, rows("a", ts=2), OPTIONS)
    # Nothing of it stays, and it can be gone on with here.
    ours.HudiTable.open(str(path)).upsert(rows("b", "c", ts=3))
    assert values(ours.read(path)) == [*values(rows("a")), *values(rows("b", "c", ts=3))]
