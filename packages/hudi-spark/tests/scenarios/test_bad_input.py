"""The table of wrong rows and options through `df.write.format("hudi")`: the same codes, and no byte changed."""

import shutil
from dataclasses import dataclass

import pytest
from bad_input import OPTIONS, assert_same, content, make, rows
from bad_input_cases import CHOICES, ROWS, WRITE
from bad_table_states import STATES, upsert
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_format.errors import HudiError
from hudi_spark.types import to_spark_schema
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

# What no DataFrame can be, and what is asked of HudiTable itself.
NOT_ON_SPARK = {
    "a decimal of 40 digits", "a duration", "a column of nulls without a type", "a union of types", "a number for rows",
    "a text for rows", "columns of unequal length", "a list of numbers", "values of mixed types",
    "a filter that cannot be parsed", "a filter on an unknown column", "no partitions to delete",
    "a partition with a comma", "a partition that is a number", "an unknown partition", "a pattern without a partition",
    "a read option's slip", "a read at a time that is none", "a read of an unknown column",
}  # fmt: skip
# Spark's own writer refuses it.
NOT_ON_SPARK.add("an unknown save mode")
# Found by the tasks, when values are converted; without a JVM before the write begins.
BEGUN = {
    "a number that the decimal cannot hold", "a fraction that the decimal would round", "text that is no decimal",
}  # fmt: skip
ON_TABLES = [bad for bad in STATES if bad.act is upsert]
# What is wrong with the properties is found by opening the table, which is one for both engines.
READ_AFTER_OPENING = [bad for bad in ON_TABLES if "commit" in bad.name or "base file" in bad.name]
CASES = [bad for bad in (*ROWS, *CHOICES) if bad.name not in NOT_ON_SPARK]


@dataclass
class OnSpark:
    """The writing methods of a `HudiTable`, each as `df.write.format("hudi")`."""

    spark: SparkSession
    path: str

    def save(self, data, options, mode="append"):
        schema = to_spark_schema(data.schema)
        values = zip(*(c.to_pylist() for c in data.columns), strict=True)
        frame = self.spark.createDataFrame([tuple(v) for v in values], schema)
        frame.write.format("hudi").options(**options).mode(mode).save(self.path)

    def __getattr__(self, operation):
        def write(data, options=None):
            self.save(data, {**OPTIONS, WRITE + "operation": operation, **(options or {})})

        return write


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "table"
    make(path)
    return path


@pytest.mark.sampled(8)
@pytest.mark.req("NEW-15", "NEW-36", "NEW-02")
@pytest.mark.parametrize("bad", CASES, ids=str)
def test_what_is_wrong_has_the_same_code_and_changes_nothing(spark, template, tmp_path, bad):
    path = tmp_path / "table"
    shutil.copytree(template, path)
    before = content(path)
    with pytest.raises(HudiError) as e:
        bad.act(OnSpark(spark, str(path)))
    assert e.value.code == bad.code, f"{type(e.value).__name__}: {e.value}"
    assert "\n" not in str(e.value)
    assert e.value.__cause__ is None or "py4j" not in repr(e.value.__cause__).lower()
    assert_same(before, content(path), begun=bad.begun or bad.name in BEGUN)
    assert not list(tmp_path.rglob("out*"))


def test_most_of_the_table_is_run_here():
    assert len(CASES) >= 70


@pytest.mark.sampled(8)
@pytest.mark.req("NEW-36", "NEW-02")
@pytest.mark.parametrize("bad", ON_TABLES, ids=str)
def test_a_table_in_a_bad_state_has_the_same_code_and_is_left_as_it_is(spark, template, tmp_path, bad):
    path = tmp_path / "table"
    shutil.copytree(template, path)
    bad.arrange(path)
    before = content(path)
    with pytest.raises(HudiError) as e:
        OnSpark(spark, str(path)).upsert(rows("a"))
    assert e.value.code == bad.code, f"{type(e.value).__name__}: {e.value}"
    assert "\n" not in str(e.value)
    assert e.value.table or e.value.file, str(e.value)
    assert_same(before, content(path), begun=bad.begun)


def _answer(read):
    """What a read gives, or the code of its error."""
    try:
        return read()
    except HudiError as e:
        return e.code


@pytest.mark.req("NEW-36", "QR-04")
@pytest.mark.parametrize("bad", READ_AFTER_OPENING, ids=str)
@pytest.mark.sampled(3)
def test_a_table_in_a_bad_state_is_read_rightly_or_refused(spark, template, tmp_path, bad):
    """What stops a write may leave reads as they were; what they cannot trust is a typed error, never other rows."""
    path = tmp_path / "table"
    shutil.copytree(template, path)
    right = HudiTable.open(str(path)).read(meta_columns=True).to_arrow().sort_by("id")
    file = HudiTable.open(str(path)).read(filter="id = 'a'").plan_files()[0].path.rpartition("/")[2]
    bad.arrange(path)
    before = content(path)
    found = [
        _answer(
            lambda: (
                HudiTable.open(str(path)).read(meta_columns=True).to_arrow().sort_by("id")["id"].to_pylist()
            )
        )
    ]
    reader = spark.read.format("hudi")
    try:
        found.append(_answer(lambda: [r.id for r in reader.load(str(path)).orderBy("id").collect()]))
    except (PySparkException, Py4JJavaError) as e:  # Spark reads base files itself
        found.append(found[0] if file in str(e) else str(e))
    assert found[0] == found[1]
    assert found[0] in (right["id"].to_pylist(), bad.code)
    assert_same(before, content(path), begun=False)
