"""Command `hudi doctor`: what of this machine, and of a table, would make calls fail."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_format.errors import HudiError
from hudi_timeline.cli.output import Format, Output, StorageOptions, open_table, show_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hudi_timeline.table import HudiTable

OK, NOTE, BAD = "ok", "note", "bad"

_OURS = ("hudi-format", "hudi-index", "hudi-timeline", "hudi-spark")
# Distributions that single calls need, and which.
_OPTIONAL = {
    "pandas": "to_pandas()", "polars": "to_polars()", "duckdb": "`hudi sql`, to_duckdb(), SQL validators",
    "s3fs": "tables on S3", "gcsfs": "tables on GCS", "adlfs": "tables on Azure", "pyspark": "hudi-spark",
}  # fmt: skip
_WORKER_PYTHON = "PYSPARK_PYTHON"
_MOST_PENDING = 5


def doctor(
    path: Annotated[
        str | None,
        typer.Argument(
            help="A table to look at too.", metavar="PATH", envvar="HUDI_TABLE", show_default=False
        ),
    ] = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Check this machine, and whether a table can be read from it; exit code 1 if not."""
    found = [*_machine(), *(() if path is None else _table(path, storage))]
    columns = ("check", "state", "note")
    show_texts(columns, [dict(zip(columns, row, strict=True)) for row in found], output)
    if any(state == BAD for _, state, _ in found):
        raise typer.Exit(1)


def _version(name: str) -> str | None:
    # It brings the modules of e-mail along, of which no other command has any use.
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _machine() -> Iterator[tuple[str, str, str]]:
    yield "python", OK, f"{platform.python_version()} at {sys.executable}"
    versions = {name: _version(name) for name in _OURS}
    shown = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    differ = len({v for v in versions.values() if v}) > 1
    yield "packages", BAD if differ else OK, shown + ("; install one version of all" if differ else "")
    yield "pyarrow", OK, _version("pyarrow") or "of another distribution"
    for name, use in _OPTIONAL.items():
        version = _version(name)
        yield name, OK if version else NOTE, version or f"not installed; needed for {use}"
    if _version("pyspark"):
        yield _java()
        yield _workers()


def _java() -> tuple[str, str, str]:
    home = os.environ.get("JAVA_HOME", "")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java:
        return "java", OK, java
    where = f"JAVA_HOME={home}" if home else "PATH"
    return "java", BAD, f"there is none in {where}; Spark needs Java 17 (not needed without Spark)"


def _workers() -> tuple[str, str, str]:
    """The Python that Spark starts for its workers."""
    named = os.environ.get(_WORKER_PYTHON)
    if named:
        found = shutil.which(named)
        return (
            _WORKER_PYTHON,
            OK if found else BAD,
            found or f"{named} does not exist; unset it or name a Python",
        )
    found = shutil.which("python3")
    if found and os.path.realpath(found) == os.path.realpath(sys.executable):
        return _WORKER_PYTHON, OK, f"not set; Spark takes {found}"
    return (
        _WORKER_PYTHON, NOTE,
        f"not set: a script without hudi_spark.configure() or enable() starts {found or 'no Python'} for its workers, "
        f"and says DATA_SOURCE_NOT_FOUND if hudi-spark is not there; activate the environment, or set it to "
        f"{sys.executable}",
    )  # fmt: skip


def _table(path: str, storage: list[str] | None) -> Iterator[tuple[str, str, str]]:
    try:
        table = open_table(path, storage)
    except HudiError as e:
        yield "table", BAD, " ".join(str(e).split())
        return
    yield "table", OK, f"{table.uri}, version {table.config.version}"
    try:
        rows = table.read().limit(1).num_rows
        yield "reading", OK, f"{len(table.schema)} columns" + ("" if rows else ", no rows")
    except HudiError as e:
        yield "reading", BAD, " ".join(str(e).split())
    try:
        lock = table.lock_report()
        held = lock.holding
        yield (
            "lock",
            OK if held is None else NOTE,
            f"{lock.lock}: {'free' if held is None else lock.why or held.holder}",
        )
    except HudiError as e:
        yield "lock", BAD, " ".join(str(e).split())
    try:
        yield from _pending(table)
    except HudiError as e:
        yield "pending", BAD, " ".join(str(e).split())


def _pending(table: HudiTable) -> Iterator[tuple[str, str, str]]:
    """Each write and service that is not completed, with what ends it."""
    from hudi_timeline.services.pending_work import pending_work
    from hudi_timeline.services.table_service import ServiceContext

    found = list(pending_work(ServiceContext(table.storage)))
    if not found:
        yield "pending", OK, "nothing"
    for work in found[:_MOST_PENDING]:
        yield "pending", NOTE, str(work)
    if len(found) > _MOST_PENDING:
        yield "pending", NOTE, f"and {len(found) - _MOST_PENDING} more, see `hudi timeline`"
