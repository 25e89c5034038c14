"""Spark actions as job groups, with failures translated to this project's errors."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_format import errors
from hudi_format.errors import HudiError, WriteFailedError
from hudi_spark.runtime.python_frames import python_failure

R = TypeVar("R")
GROUP, DESCRIPTION, INTERRUPT = "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"

_OURS = re.compile(r"hudi_format\.errors\.(\w+): \[(HUDI-E\d+)\] (.*)")
_PLACE = re.compile(
    r"(?P<message>.*?) \((?:table (?P<table>.*?))?(?:(?:, )?instant (?P<instant>\d+))?(?:(?:, )?file (?P<file>.*))?\)\Z"
)
_PYTHON = re.compile(
    r"^(?:pyspark\.errors\.[\w.]+: )?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (.*)$", re.MULTILINE
)
_DIED = re.compile(r"Python worker exited unexpectedly|Python worker failed|SparkException: Python worker")

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


def translate(text: str) -> HudiError:
    """The error behind a Spark error text: raised in a worker, or Spark's own cause.

    Where the user's Python is to blame, `details` has its `function`, `source` and `line`, and the whole `exception`.
    """
    failure = python_failure(text)
    details: dict[str, Any] = {} if failure is None else failure.details()
    ours = _OURS.findall(text)
    if ours:
        name, code, message = ours[-1]
        cls = getattr(errors, name, WriteFailedError)
        if isinstance(cls, type) and issubclass(cls, HudiError) and cls.code == code:
            body, _, remedy = message.partition(" Remedy: ")
            place = _PLACE.match(body)
            if place is None or not any(place.group("table", "instant", "file")):
                return cls(body, remedy=remedy, **_of_user(details))
            named = {n: place[n] or "" for n in ("table", "instant", "file")}
            return cls(place["message"], remedy=remedy, **named, **_of_user(details))
    if _DIED.search(text):
        return WriteFailedError(
            "a Python worker of Spark died in every attempt",
            remedy="see the executor's log for the reason (often memory: raise "
            "spark.executor.memoryOverhead), and run the write again; nothing of it is visible.",
        )
    if failure is not None:
        where = f" {failure.place}" if failure.place else ""
        return WriteFailedError(
            f"the Spark job failed{where}: {failure.exception.splitlines()[0][:500]}",
            remedy="correct it, or see the driver's log for the full text; nothing of the write is visible.",
            **details,
        )
    causes = _PYTHON.findall(text)
    cause = (
        ": ".join(causes[-1])
        if causes
        else next((s for s in text.splitlines() if s.strip()), "no reason given")
    )
    return WriteFailedError(
        f"the Spark job failed: {cause.strip()[:500]}",
        remedy="see the driver's log for the full text; nothing of the write is visible.",
    )


def _of_user(details: dict[str, Any]) -> dict[str, Any]:
    """The place in user code below an error of this project."""
    return details if "source" in details else {}
