"""Errors of this project behind the Java exceptions that writes and queries end in.

A frame that was loaded is run later, by calls that are Spark's own: what a worker of ours raised in it, or that a file
of it was cleaned in the meantime, is told by PySpark as an error of its own, with the text of several of Java's.

Source: PySpark 3.5.5 and 4.3.0 by experiment (errors of missing files and of Python workers).
"""

from __future__ import annotations

import re
from typing import Any

from hudi_format import errors
from hudi_format.errors import HudiError, StaleSnapshotError, WriteFailedError
from hudi_format.file_names import is_base_file_name
from hudi_spark.runtime.python_frames import python_failure
from hudi_spark.runtime.worker_python import worker_python_error

_OURS = re.compile(r"hudi_format\.errors\.(\w+): \[(HUDI-E\d+)\] (.*)")
_PLACE = re.compile(
    r"(?P<message>.*?) \((?:table (?P<table>.*?))?(?:(?:, )?instant (?P<instant>\d+))?(?:(?:, )?file (?P<file>.*))?\)\Z"
)
_PYTHON = re.compile(
    r"^(?:pyspark\.errors\.[\w.]+: )?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (.*)$", re.MULTILINE
)
_DIED = re.compile(r"Python worker exited unexpectedly|Python worker failed|SparkException: Python worker")
_GONE = re.compile(r"FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException|NoSuchFileException|does not exist")
_FILE = re.compile(r"(?:[A-Za-z][\w+.-]*:)?/[^\s'\"]*?(?P<name>[^\s'\"/]+\.(?:parquet|orc))\b")
_MOST_CAUSES = 12


def error_of(exception: Any) -> HudiError | None:
    """This project's error behind a Java exception, None where it is Spark's or the user's."""
    text = _text(exception)
    if _OURS.search(text):
        return translate(text)
    return vanished_file(text) or worker_python_error(text, others=False)


def _text(exception: Any) -> str:
    texts: list[str] = []
    while exception is not None and len(texts) < _MOST_CAUSES:
        texts.append(str(exception.toString()))
        exception = exception.getCause()
    return "\n".join(texts)


def vanished_file(text: str) -> StaleSnapshotError | None:
    """Error about the base file that a Spark error text misses; None where it misses none."""
    if not _GONE.search(text):
        return None
    from hudi_timeline.options.service_options import (
        CLEAN_COMMITS_RETAINED,  # not for workers, which import this
    )

    for found in _FILE.finditer(text):
        if is_base_file_name(found["name"]):
            return StaleSnapshotError(
                "a file that this DataFrame reads is gone: it was cleaned, or its commit undone, since the frame "
                "was made",
                file=found[0],
                remedy="load the table again; for frames that are used for long keep more commits with "
                f"{CLEAN_COMMITS_RETAINED}.",
            )
    return None


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
    of_workers = worker_python_error(text)
    if of_workers is not None:
        return of_workers
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
