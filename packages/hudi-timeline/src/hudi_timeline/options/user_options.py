"""Options from a properties file, like `--props` of Apache Hudi's streamer.

    trips.upsert(rows, options=options_from("s3://bucket/jobs/trips.properties"))
    frame.write.format("hudi").options(**options_from("trips.properties")).mode("append").save(path)

Source: DFSPropertiesConfiguration of Apache Hudi 0.15: `include=<path>` stands for that file's options.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Mapping
from typing import Any

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, MissingFileError, OptionError
from hudi_format.properties import parse as parse_properties
from hudi_format.storage.hadoop_options import hadoop_options
from hudi_format.storage.open import folder_and_name, open_storage
from hudi_timeline.options.registry import main_name, parse, text_of
from hudi_timeline.options.table_options import MERGE
from hudi_timeline.options.transaction_options import CONFLICT_RETRIES, LOCK_WAIT_MS, RUNNING_WAIT_MS
from hudi_timeline.options.write_options import OPERATION, PREPPED

INCLUDE = "include"


def options_from(
    path: str,
    storage_options: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Options of a properties file, after those of its included files.

    Args:
        path: of the file, on any store; the path of an included one counts from its folder.
        storage_options: for fsspec.
        options: what counts more than the file.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is no properties file.
        ConflictingOptionError: files that include each other.
    """
    return {**_read(_plain(path), storage_options, ()), **(options or {})}


def _plain(path: str) -> str:
    """A path without `.` and `..`."""
    scheme, mark, rest = path.rpartition("://")
    return scheme + mark + posixpath.normpath(rest)


def _read(path: str, storage_options: Mapping[str, Any] | None, within: tuple[str, ...]) -> dict[str, str]:
    if path in within:
        raise ConflictingOptionError(
            f"{path} includes itself", file=path, remedy="take one of the `include` lines out."
        )
    folder = path.rpartition("/")[0]
    where, name = folder_and_name(path)
    try:
        data = open_storage(where, storage_options).read(name)
    except FileNotFoundError:
        raise MissingFileError(
            "the properties file does not exist", file=path, remedy="correct the path."
        ) from None
    found = parse_properties(data, path=path)
    more = found.pop(INCLUDE, "")
    if not more:
        return found
    inner = more if "://" in more or more.startswith("/") else f"{folder}/{more}" if folder else more
    return {**_read(_plain(inner), storage_options, (*within, path)), **found}


# Options as callers give them, as text.


def as_options(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as text: True and False as in Java, a merge function or mapping by its name.

    Raises:
        InvalidOptionError: a merge function that nobody else can import; no mapping, or a name that is no text.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidOptionError(
            f"options are a mapping of names and values, not a {type(options).__name__}",
            remedy="give a dict such as {'hoodie.upsert.shuffle.parallelism': 4}.",
        )
    for name in options or ():
        if not isinstance(name, str):
            raise InvalidOptionError(
                f"the name of an option is text, not {name!r}",
                remedy="give its name, such as 'hoodie.index.type'.",
            )
    return {k: _as_text(k, v) for k, v in (options or {}).items()}


def with_waiting(
    options: Mapping[str, str], write_retries: int | None, lock_wait: float | None
) -> dict[str, str]:
    """Options with what was given as arguments about other writers.

    Args:
        write_retries: how often a write that lost to another one is run again.
        lock_wait: seconds to wait for the table's lock, and for a writer that runs.

    Raises:
        InvalidOptionError: a negative number, or none.
    """
    given = dict(options)
    for what, number, kind in (("write_retries", write_retries, int), ("lock_wait", lock_wait, (int, float))):
        if number is not None and (
            isinstance(number, bool) or not isinstance(number, kind) or not math.isfinite(number)
        ):
            raise InvalidOptionError(
                f"{what} must be a {'whole number' if kind is int else 'number of seconds'}, not {number!r}",
                remedy=f"give a number of 0 or more, or leave {what} out.",
            )
    if write_retries is not None:
        given[CONFLICT_RETRIES] = str(int(write_retries))
    if lock_wait is not None:
        given[LOCK_WAIT_MS] = given[RUNNING_WAIT_MS] = str(round(lock_wait * 1000))
    for key in (CONFLICT_RETRIES, LOCK_WAIT_MS, RUNNING_WAIT_MS):
        if given.get(key) != options.get(key):
            parse(key, given[key])
    return given


def _as_text(key: str, value: object) -> str:
    if key == MERGE and (callable(value) or isinstance(value, Mapping)):
        from hudi_format.merge.user_merger import merge_text

        return merge_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def call_options(
    table: Mapping[str, str],
    options: Mapping[str, object] | None,
    uri: str,
    operation: str | None = None,
) -> dict[str, str]:
    """Options of one call merged over those of the table object.

    Args:
        operation: the write operation that the call is.  One that the object was opened with, as jobs share their
            options, gives way to it.

    Raises:
        OptionError: options of the store, which is open already.
        ConflictingOptionError: the call's options name another operation than the call.
    """
    given = as_options(options)
    if operation is not None:
        asked = text_of(given, OPERATION)
        if asked is not None and asked.strip().lower() not in (operation, f"{operation}{PREPPED}"):
            raise ConflictingOptionError(
                f"the operation of this call is {operation}, and its options say {asked}",
                table=uri,
                remedy=f"leave {OPERATION} out, or call the method of that operation.",
                option=OPERATION,
            )
        if asked is not None or text_of(table, OPERATION) not in (None, f"{operation}{PREPPED}"):
            table = {key: value for key, value in table.items() if main_name(key) != OPERATION}
    if hadoop_options(given):
        raise OptionError(
            f"{min(hadoop_options(given))} is an option of the store, which is open already",
            table=uri,
            remedy="give it to HudiTable.open() or HudiTable.create().",
        )
    return {**table, **given}
