"""One Spark session for all tests of this package, and what they share."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from hudi_spark.types import to_arrow_schema
from interop.spark_worker import QUICK_JVM
from sampling import mark_first

# What no version of PySpark does otherwise: rows and files as the engine without a JVM makes them.  `.ci/run` does
# these tests on PySpark 3.5; on 4.x the first of so many cases of each test (the nox session `spark_full` does all).
ONE_OF = {
    "test_golden": 12,
    "test_bad_input": 8,
    "test_operations": 4,
}
# The longest tests: of each that neither names nor samples its cases (tools/sampling.py) the first of so many here, the
# others in the long form (`-m slow`).
CASES_IN_CI = {"test_keys": 100, "test_validation": 4, "test_key_lookup": 100, "test_key_stages": 6}
# Tests of these files are about writes and services, whose work is done by the same workers on every version.
ONE_VERSION_FILES = {
    "test_altered",
    "test_bucket_index",
    "test_compaction",
    "test_deleted_keys",
    "test_duplicates",
    "test_empty_nested",
    "test_faults",
    "test_key_columns",
    "test_key_lookup",
    "test_key_places",
    "test_key_stages",
    "test_keys",
    "test_logged_slices",
    "test_many_keys",
    "test_merge_function",
    "test_merge_on_read",
    "test_migration",
    "test_null_texts",
    "test_prepped",
    "test_operations",
    "test_outlived",
    "test_rivals",
    "test_rows_of_keys",
    "test_s3",
    "test_same_commits",
    "test_schema_evolution",
    "test_same_values",
    "test_sizing",
    "test_table_services",
    "test_validation",
    "test_wrong_calls",
}
ONE_VERSION = {
    "test_every_kind_of_write_and_query",
    "test_made_up_keys_on_spark_are_told_apart_and_used_again",
    "test_many_partitions_and_keys_are_joined",
    "test_more_file_groups_than_tasks_are_all_written",
    "test_payloads_leave_the_same_rows_on_both_engines",
    "test_rows_go_back_to_their_files_without_a_look_up",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    mark_first(here, CASES_IN_CI)
    cases: Counter[tuple[Path, str]] = Counter()
    for item in here:
        name = getattr(item, "originalname", item.name)
        only_once = name in ONE_VERSION or item.path.stem in ONE_VERSION_FILES
        if only_once or cases[item.path, name] % ONE_OF.get(item.path.stem, 1):
            item.add_marker(pytest.mark.one_version)
        if not item.get_closest_marker("slow"):
            cases[item.path, name] += 1


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic session of two cores; a failed task is tried again, as on a cluster."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the name of a machine has not always an address
    folder = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[2,4]")
        .appName("hudi-spark tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config(
            "spark.driver.extraJavaOptions", f"{QUICK_JVM} -Duser.timezone=UTC -Dderby.system.home={folder}"
        )
    )
    made = hudi_spark.configure(builder).getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()
    hudi_spark.disable()
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.fixture
def spark(session: SparkSession) -> Iterator[SparkSession]:
    """The session, with `format("hudi")` enabled and no settings of other tests."""
    hudi_spark.enable(session)
    yield session
    for row in session.sql("SET").collect():
        if row[0].lower().startswith("hoodie."):
            session.conf.unset(row[0])


@pytest.fixture
def to_arrow() -> Callable[[DataFrame], pa.Table]:
    """A frame's rows as Arrow."""

    def collect(frame: DataFrame) -> pa.Table:
        if hasattr(frame, "toArrow"):
            table = frame.toArrow()
        else:
            table = pa.Table.from_batches(frame._collect_as_arrow(), to_arrow_schema(frame.schema))
        return table.cast(to_arrow_schema(frame.schema))

    return collect


@pytest.fixture
def files_read() -> Callable[[DataFrame], int]:
    """Runs a frame and gives the number of files that its Parquet scans opened, by their own metrics."""

    def count(frame: DataFrame) -> int:
        plan = frame._jdf.queryExecution().executedPlan()
        plan.executeCollect()
        return sum(_scans(plan))

    return count


def _scans(plan: object) -> Iterator[int]:
    name = plan.nodeName()  # type: ignore[attr-defined]
    if name.startswith("AdaptiveSparkPlan"):
        yield from _scans(plan.executedPlan())  # type: ignore[attr-defined]
    elif "QueryStage" in name:
        yield from _scans(plan.plan())  # type: ignore[attr-defined]
    elif name.startswith("Scan parquet"):
        yield plan.metrics().apply("numFiles").value()  # type: ignore[attr-defined]
    children = plan.children()  # type: ignore[attr-defined]
    for n in range(children.size()):
        yield from _scans(children.apply(n))


@pytest.fixture
def trips() -> dict[str, str]:
    """Options of a simple table: key `id`, ordering `ts`, partitioned by `city`."""
    return {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
    }


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")
