"""Spark actions as job groups, with failures translated to this project's errors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_spark.runtime.java_errors import translate

R = TypeVar("R")
GROUP, DESCRIPTION, INTERRUPT = "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"

# How long the attempts of a finished job may take to end before it is gone on without them: each looks at its
# marker again before it closes its file.
SETTLE_SECONDS = 10.0


def run_job(spark: SparkSession, action: Callable[[], R], what: str, *, settle: bool = False) -> R:
    """Run an action as a job group.

    Args:
        settle: wait until no attempt of the job runs any more, speculative copies among them.

    Raises:
        HudiError: the one that a worker raised; WriteFailedError in one line for other failures.
    """
    context = spark.sparkContext
    before = {key: context.getLocalProperty(key) for key in (GROUP, DESCRIPTION, INTERRUPT)}
    group = f"hudi-{uuid.uuid4().hex}"
    try:
        context.setJobGroup(group, what, interruptOnCancel=True)
        result = action()
        if settle:
            _wait(spark, group)
        return result
    except (Py4JJavaError, PySparkException) as e:
        context.cancelJobGroup(group)
        _wait(spark, group)
        raise translate(str(e)) from e
    except BaseException:
        context.cancelJobGroup(group)
        _wait(spark, group)
        raise
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None takes it away


def _wait(spark: SparkSession, group: str) -> None:
    """Wait until the tasks of a job group have ended, for some seconds at most."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        running = 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                at = tracker.getStageInfo(stage)
                running += at.numActiveTasks if at is not None else 0
        if not running:
            return
        time.sleep(0.02)
