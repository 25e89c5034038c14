"""A setting changed for a call comes back, whatever other threads do meanwhile."""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from hudi_spark.runtime.settings import setting

NAME = "spark.sql.execution.arrow.maxRecordsPerBatch"


def test_threads_that_overlap_leave_the_setting_as_it_was(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    seen: list[str | None] = []

    def first() -> None:
        with setting(spark, NAME, "77"):
            first_in.set()
            second_in.wait(150)
        first_out.set()

    def second() -> None:
        first_in.wait(150)
        with setting(spark, NAME, "77"):
            second_in.set()
            first_out.wait(150)
            seen.append(spark.conf.get(NAME))

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(500)
    assert seen == ["77"]
    assert spark.conf.get(NAME) == before


def test_what_the_user_sets_meanwhile_stays(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    try:
        with setting(spark, NAME, "77"):
            spark.conf.set(NAME, "123")
        assert spark.conf.get(NAME) == "123"
    finally:
        spark.conf.set(NAME, before)


def test_an_unset_setting_is_unset_again(spark: SparkSession) -> None:
    name = "spark.hudi.test.unset"
    with setting(spark, name, "1"):
        assert spark.conf.get(name) == "1"
    assert spark.conf.get(name, None) is None
