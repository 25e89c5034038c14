"""Merges of the user's in Spark: executors import the function, on writes and on reads of logs."""

import merge_functions
import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_format.errors import FunctionNotAllowedError, HudiError, MergeFunctionError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import allow_functions, table_config
from hudi_timeline.table import HudiTable

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}


def write(spark, path, rows, **options):
    frame = spark.createDataFrame(rows, "id string, p string, ts long, count long")
    frame.write.format("hudi").options(**{**OPTIONS, **options}).mode("append").save(str(path))


@pytest.fixture(autouse=True)
def shipped(spark):
    """The functions' module at the executors, as users bring theirs."""
    spark.sparkContext.addPyFile(merge_functions.__file__)


@pytest.mark.req("NEW-04", "PM-10", "PM-14")
@pytest.mark.parametrize("merge", ["merge_functions:add_up", '{"count": "sum"}'])
@pytest.mark.sampled(2)
def test_an_upsert_merges_in_executors_as_without_spark(spark, tmp_path, merge):
    first = [("a", "x", 1, 1), ("b", "x", 1, 5), ("d", "y", 1, 2)]
    second = [("a", "x", 2, 2), ("c", "x", 1, 3), ("d", "y", 2, 40)]
    write(spark, tmp_path / "spark", first, **{"hudi.merge": merge})
    with allow_functions("merge_functions:add_up"):
        write(spark, tmp_path / "spark", second)  # the table knows its merge
    found = spark.read.format("hudi").load(str(tmp_path / "spark")).select("id", "count").collect()
    assert sorted(map(tuple, found)) == [("a", 3), ("b", 5), ("c", 3), ("d", 42)]


@pytest.mark.req("NEW-04", "PM-15")
def test_logs_are_merged_in_executors_as_without_spark(spark, tmp_path):
    (table,) = golden("merging", "DefaultHoodieRecordPayload")
    path = str(table.unpack(tmp_path))
    for merge in ('{"b": "sum", "a": "non_null"}', "merge_functions:later_b"):
        options = {"hudi.merge": merge, "hoodie.memory.merge.max.size": "1"}
        want = HudiTable.open(path).read(options=options, meta_columns=True).to_arrow().sort_by("id")
        found = spark.read.format("hudi").options(**options).load(path).toPandas()
        found = pa.Table.from_pandas(found.sort_values("id"), want.schema, preserve_index=False)
        assert found.equals(want)


def test_a_function_that_fails_in_an_executor_is_named(spark, tmp_path):
    merge = {"hudi.merge": "merge_functions:fail"}
    write(spark, tmp_path, [("a", "x", 1, 1)], **merge)
    with pytest.raises(MergeFunctionError, match="merge_functions:fail raised RuntimeError: on purpose"):
        write(spark, tmp_path, [("a", "x", 1, 1)], **merge)


def test_a_function_that_executors_cannot_import_is_named(spark, tmp_path):
    with pytest.raises(HudiError, match="no_such_module:f"):
        write(spark, tmp_path, [("a", "x", 1, 1)], **{"hudi.merge": "no_such_module:f"})


def test_a_function_that_only_the_table_names_runs_where_the_driver_allows_it(spark, tmp_path, monkeypatch):
    """Executors import what the driver's check let through; a name that nothing allows is imported nowhere."""
    record = tmp_path / "record"
    module = tmp_path / "table_names_it.py"
    module.write_text(
        f"with open({str(record)!r}, 'a') as f:\n    f.write('imported')\n"
        "def later(old, new, context):\n    return new\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.sparkContext.addPyFile(str(module))
    (table,) = golden("merging", "DefaultHoodieRecordPayload")
    path = str(table.unpack(tmp_path / "read"))
    storage = LocalStorage(path)
    found = table_config.read_file(storage, table_config.PROPERTIES_FILE)
    storage.publish(
        table_config.PROPERTIES_FILE, table_config.render({**found, "hudi.merge": "table_names_it:later"})
    )

    def read(**options):
        return spark.read.format("hudi").options(**options).load(path).count()

    written = tmp_path / "written"
    write(spark, written, [("a", "x", 1, 1)], **{"hudi.merge": '{"count": "sum"}'})
    own = LocalStorage(str(written))
    found = table_config.read_file(own, table_config.PROPERTIES_FILE)
    own.publish(
        table_config.PROPERTIES_FILE, table_config.render({**found, "hudi.merge": "table_names_it:later"})
    )
    with pytest.raises(FunctionNotAllowedError, match="table_names_it:later"):
        read()
    with pytest.raises(FunctionNotAllowedError, match="table_names_it:later"):
        spark.readStream.format("hudi").load(path)
    with pytest.raises(FunctionNotAllowedError, match="table_names_it:later"):
        write(spark, written, [("a", "x", 2, 2)])
    assert not record.exists()
    with allow_functions("table_names_it:later"):
        rows = read()
        assert spark.readStream.format("hudi").load(path).isStreaming
    assert rows == read(**{"hudi.merge": "table_names_it:later"})
    assert record.exists()
