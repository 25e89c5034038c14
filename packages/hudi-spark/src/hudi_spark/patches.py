"""Patches of PySpark for `format("hudi")`: readers, writers and the errors of frames.

The methods that configure a reader or writer are wrapped to note what they are told, and still tell the JVM's
object.  The methods that act look at the notes: for Hudi they run ours, else the original.  The JVM's objects keep
format and mode to themselves, which is why notes are taken.  Other formats pass.

Source: spec "What PySpark lets a Python-only package do", section 5.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession, readwriter
from pyspark.sql.catalog import Catalog
from pyspark.sql.streaming import readwriter as streams

from hudi_format.errors import OptionError, UnsupportedError
from hudi_spark.reading.reader import load_frame
from hudi_spark.reading.sql import query_by_path, temporary_view
from hudi_spark.refused_sql import (
    LOAD,
    SAVE,
    STREAM_LOAD,
    STREAM_WRITE,
    may_concern_hudi,
    path_named,
    refuse_name,
    refuse_sql,
    refuse_table,
    refuse_versions,
    refuse_views_as_of,
)
from hudi_spark.runtime.java_errors import error_of
from hudi_spark.runtime.options import (
    add_option,
    has_bundle,
    is_hudi,
    merged,
    session_options,
    table_path,
    take_option,
)
from hudi_spark.runtime.settings import HAS_DATA_SOURCES
from hudi_spark.streaming.spark35_stream import CHECKPOINT, following, load_stream
from hudi_spark.streaming.table_stream import START, TableStream, with_allowed_merge
from hudi_spark.writing.writer import save_frame
from hudi_timeline.options.read_options import QUERY_TYPE
from hudi_timeline.writing.planning.write_plan import is_operation, mode_of

DEFAULT_FORMAT = "spark.sql.sources.default"
_NOTES = "_hudi_notes"

Method = Callable[..., Any]


@dataclass
class Notes:
    """Recorded settings of a reader or writer."""

    format: str | None = None
    mode: str | None = None
    schema: Any = None
    options: dict[str, str] = field(default_factory=dict)
    partition_by: list[str] = field(default_factory=list)
    name: str | None = None
    layout: list[str] = field(default_factory=list)  # bucketBy and the like, which Hudi has no meaning for


def notes_of(target: Any) -> Notes:
    found = target.__dict__.get(_NOTES)
    if not isinstance(found, Notes):
        found = target.__dict__[_NOTES] = Notes()
    return found


# --- methods that configure ------------------------------------------------------------------------------


def _noting(take: Callable[..., None]) -> Callable[[Method], Method]:
    """Wrapper that records a setting after the original accepted the call."""

    def wrap(original: Method) -> Method:
        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            take(notes_of(self), *args, **kwargs)
            return result

        return method

    return wrap


def _note_format(notes: Notes, source: str) -> None:
    notes.format = source


def _note_mode(notes: Notes, saveMode: str | None) -> None:
    if saveMode is not None:
        notes.mode = saveMode


def _note_name(notes: Notes, queryName: str) -> None:
    notes.name = queryName


def _note_schema(notes: Notes, schema: Any) -> None:
    notes.schema = schema


def _note_option(notes: Notes, key: str, value: Any) -> None:
    add_option(notes.options, key, value)


def _note_options(notes: Notes, **options: Any) -> None:
    for name, value in options.items():
        add_option(notes.options, name, value)


def _note_partition_by(notes: Notes, *cols: Any) -> None:
    names = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    notes.partition_by = list(names)


def _note_layout(name: str) -> Callable[..., None]:
    def take(notes: Notes, *args: Any, **kwargs: Any) -> None:
        notes.layout.append(name)

    return take


def _as_text(path: Any) -> Any:
    """A path as text, or several; pathlib's paths are taken too."""
    if path is None or isinstance(path, str):
        return path
    if isinstance(path, os.PathLike):
        return os.fspath(path)
    if isinstance(path, Iterable) and not isinstance(path, (bytes, Mapping)):
        return [_as_text(p) for p in path]
    raise OptionError(
        f"a path must be text, not {type(path).__name__}: {path!r:.80}",
        remedy="give it as text, or as a pathlib.Path.",
    )


# --- methods that act ------------------------------------------------------------------------------------


def _wants_hudi(target: Any, format: str | None) -> bool:
    named = format if format is not None else notes_of(target).format
    if named is not None:
        return is_hudi(named)
    return is_hudi(target._spark.conf.get(DEFAULT_FORMAT, None))


def _call(target: Any, path: Any, options: Mapping[str, Any]) -> tuple[Notes, Any, dict[str, str]]:
    """Notes with the options of a call, the path by the call or by an option, and the other options."""
    notes = notes_of(target)
    _note_options(notes, **options)
    given = dict(notes.options)
    path_option = take_option(given, "path")
    return notes, _as_text(path) or path_option, given


def _save(original: Method) -> Method:
    @functools.wraps(original)
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if not _wants_hudi(self, format):
            original(self, path, format, mode, partitionBy, **options)
            return
        notes, where, given = _call(self, path, options)
        _note_mode(notes, mode)
        if partitionBy is not None:
            _note_partition_by(notes, *([partitionBy] if isinstance(partitionBy, str) else partitionBy))
        save_frame(
            self._df, where, given, mode=notes.mode, partition_by=notes.partition_by, layout=notes.layout
        )

    return save


def _load(original: Method) -> Method:
    @functools.wraps(original)
    def load(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        if not _wants_hudi(self, format):
            return original(self, path, format, schema, **options)
        notes, where, given = _call(self, path, options)
        chosen = schema if schema is not None else notes.schema
        return load_frame(self._spark, where, given, schema=chosen)

    return load


def _load_stream(original: Method) -> Method:
    @functools.wraps(original)
    def load(
        self: Any, path: str | None = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        if not _wants_hudi(self, format) or has_bundle(self._spark):
            return original(self, path, format, schema, **options)
        notes, where, given = _call(self, path, options)
        if HAS_DATA_SOURCES:  # Spark finds our data source by itself, which streams too
            where = table_path(self._spark, where, what="load")
            more = _told(self._spark, where, given)
            return original(self, None if path is None else where, format, schema, **options | more)
        chosen = schema if schema is not None else notes.schema
        return load_stream(self._spark, where, given, schema=chosen)

    return load


def _told(spark: SparkSession, uri: str, given: Mapping[str, str]) -> dict[str, str]:
    """What the data source is to know of a stream beside the options of the call: it sees no session.

    Raises:
        HudiError: the stream cannot be; before a query is started.
    """
    own = {k: v for k, v in session_options(spark).items() if k.lower() != QUERY_TYPE}  # of queries
    every = with_allowed_merge(uri, merged(own, given))
    stream = TableStream.of(uri, every)
    stream.scan(START, START)
    return {k: v for k, v in every.items() if k not in given}


def _start(what: str, remedy: str) -> Callable[[Method], Method]:
    """Wrapper of query starts: refuses Hudi sinks and starts table streams' followers."""

    def wrap(original: Method) -> Method:
        @functools.wraps(original)
        def start(self: Any, *args: Any, **kwargs: Any) -> Any:
            if _wants_hudi(self, args[1] if len(args) > 1 else kwargs.get("format")):
                _refuse(self._spark, what, remedy)
            _note_options(
                notes_of(self),
                **{k: v for k, v in kwargs.items() if k.lower() == CHECKPOINT and v is not None},
            )
            name = args[4] if len(args) > 4 else kwargs.get("queryName") or notes_of(self).name
            frame = getattr(self, "_df", None)
            if frame is None or HAS_DATA_SOURCES:
                return original(self, *args, **kwargs)
            return following(lambda: original(self, *args, **kwargs), frame, notes_of(self).options, name)

        return start

    return wrap


def _refusing(what: str, remedy: str) -> Callable[[Method], Method]:
    """Wrapper that refuses the call for Hudi unless Apache Hudi's bundle is present."""

    def wrap(original: Method) -> Method:
        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            # All of these take the format second, where it comes with the call.
            if _wants_hudi(self, args[1] if len(args) > 1 else kwargs.get("format")):
                _refuse(self._spark, what, remedy)
            return original(self, *args, **kwargs)

        return method

    return wrap


def _refuse(spark: SparkSession, what: str, remedy: str) -> None:
    if not has_bundle(spark):
        raise UnsupportedError(f"{what} is not supported yet", remedy=remedy)


def _refusing_by_name(what: str, remedy: str, verb: str) -> Callable[[Method], Method]:
    """Wrapper like `_refusing` for calls that name a table, where the default format is unknown."""

    def wrap(original: Method) -> Method:
        @functools.wraps(original)
        def method(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
            if is_hudi(notes_of(self).format):
                _refuse(self._spark, f"{what} with format('hudi')", remedy)
            if not has_bundle(self._spark):
                refuse_name(self._spark, tableName, what, verb)
            return original(self, tableName, *args, **kwargs)

        return method

    return wrap


def _table(original: Method) -> Method:
    """Wrapper of reads by name, of sessions and of readers: hudi.`path` is a name too."""

    @functools.wraps(original)
    def table(self: Any, tableName: str) -> Any:
        spark = self if isinstance(self, SparkSession) else self._spark
        path = path_named(tableName)
        if spark is not self and path is None and is_hudi(notes_of(self).format):
            _refuse(spark, "read.format('hudi').table()", LOAD)
        if path is None or has_bundle(spark):
            return original(self, tableName)
        notes = Notes() if spark is self else notes_of(self)
        return load_frame(spark, path, dict(notes.options), schema=notes.schema)

    return table


def _mode(original: Method) -> Method:
    """Wrapper of `mode`, which from Spark 4 on refuses by itself what is none."""

    @functools.wraps(original)
    def mode(self: Any, saveMode: str | None) -> Any:
        format = notes_of(self).format
        # Before a format is named, an operation of Hudi's can be meant for Hudi only: no other has a mode like it.
        if isinstance(saveMode, str) and (is_hudi(format) or (format is None and is_operation(saveMode))):
            mode_of(saveMode)
        result = original(self, saveMode)
        _note_mode(notes_of(self), saveMode)
        return result

    return mode


def _naming(call: str, verb: str) -> Callable[[Method], Method]:
    """Wrapper of writers' constructors, whose frame goes into a table by name."""

    def wrap(original: Method) -> Method:
        @functools.wraps(original)
        def begin(self: Any, df: Any, table: str, *args: Any, **kwargs: Any) -> None:
            if not has_bundle(df.sparkSession):
                refuse_name(df.sparkSession, table, call, verb)
            original(self, df, table, *args, **kwargs)

        return begin

    return wrap


def _using(original: Method) -> Method:
    @functools.wraps(original)
    def using(self: Any, provider: str) -> Any:
        if is_hudi(provider):
            _refuse(self._spark, "writeTo().using('hudi')", SAVE)
        return original(self, provider)

    return using


def _sql(original: Method) -> Method:
    @functools.wraps(original)
    def sql(self: Any, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:
        ours = may_concern_hudi(sqlQuery) and not has_bundle(self)
        if ours:
            if not HAS_DATA_SOURCES:  # from 4.0 on Spark makes such views itself
                made = temporary_view(self, sqlQuery)
                if made is not None:
                    return made
            refuse_versions(sqlQuery)
            refuse_views_as_of(self, sqlQuery)
            found = query_by_path(self, sqlQuery, lambda text: original(self, text, *args, **kwargs))
            if found is not None:
                return found
            refuse_sql(self, sqlQuery)
        try:
            return original(self, sqlQuery, *args, **kwargs)
        except PySparkException:
            if ours:
                refuse_table(self, sqlQuery)
            raise

    return sql


def _create_table(original: Method) -> Method:
    @functools.wraps(original)
    def create(
        self: Any,
        tableName: str,
        path: str | None = None,
        source: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        spark: SparkSession = self._sparkSession
        if is_hudi(source if source is not None else spark.conf.get(DEFAULT_FORMAT, None)):
            _refuse(spark, "catalog.createTable() with source hudi", f"{SAVE} For queries {LOAD}")
        return original(self, tableName, path, source, *args, **kwargs)

    return create


def _converting(original: Method) -> Method:
    """Wrapper of PySpark's conversion of Java exceptions, for frames of ours that fail when they are run."""

    @functools.wraps(original)
    def convert(exception: Any) -> Any:
        found = error_of(exception)
        return original(exception) if found is None else found

    return convert


# --- installing ------------------------------------------------------------------------------------------

_CONFIGURED = (
    readwriter.DataFrameReader, readwriter.DataFrameWriter, streams.DataStreamReader, streams.DataStreamWriter,
)  # fmt: skip
_PATCHES: tuple[tuple[type | ModuleType, str, Callable[[Method], Method]], ...] = (
    *((cls, "format", _noting(_note_format)) for cls in _CONFIGURED),
    *((cls, "option", _noting(_note_option)) for cls in _CONFIGURED),
    *((cls, "options", _noting(_note_options)) for cls in _CONFIGURED),
    (readwriter.DataFrameReader, "schema", _noting(_note_schema)),
    (readwriter.DataFrameReader, "load", _load),
    (readwriter.DataFrameReader, "table", _table),
    (readwriter.DataFrameWriter, "mode", _mode),
    (readwriter.DataFrameWriter, "partitionBy", _noting(_note_partition_by)),
    *(
        (readwriter.DataFrameWriter, name, _noting(_note_layout(name)))
        for name in ("bucketBy", "sortBy", "clusterBy")
    ),
    (readwriter.DataFrameWriter, "save", _save),
    (readwriter.DataFrameWriter, "saveAsTable", _refusing("saveAsTable() with format('hudi')", SAVE)),
    (readwriter.DataFrameWriter, "insertInto", _refusing_by_name("insertInto()", SAVE, "insert")),
    (readwriter.DataFrameWriterV2, "__init__", _naming("writeTo()", "insert")),
    (readwriter.DataFrameWriterV2, "using", _using),
    (streams.DataStreamReader, "schema", _noting(_note_schema)),
    (streams.DataStreamReader, "load", _load_stream),
    (
        streams.DataStreamReader,
        "table",
        _refusing_by_name("readStream.table()", STREAM_LOAD, ""),
    ),
    (streams.DataStreamWriter, "queryName", _noting(_note_name)),
    (streams.DataStreamWriter, "start", _start("writeStream.format('hudi')", STREAM_WRITE)),
    (
        streams.DataStreamWriter,
        "toTable",
        _start("writeStream.format('hudi').toTable()", STREAM_WRITE),
    ),
    (SparkSession, "sql", _sql),
    (SparkSession, "table", _table),
    (Catalog, "createTable", _create_table),
    (captured, "convert_exception", _converting),
)

if HAS_DATA_SOURCES:  # mergeInto came with them
    from pyspark.sql.merge import MergeIntoWriter

    _PATCHES += ((MergeIntoWriter, "__init__", _naming("mergeInto()", "merge")),)

_originals: dict[tuple[type | ModuleType, str], tuple[Method, Method]] = {}
_active = False


def installed() -> bool:
    return _active


def install() -> None:
    """Wrap the methods; does nothing where they are wrapped already."""
    global _active
    _active = True
    for cls, name, wrap in _PATCHES:
        original = cls.__dict__.get(name)
        if original is None or (cls, name) in _originals:  # clusterBy exists from 4.0 on
            continue
        ours = _switched(original, wrap(original))
        _originals[cls, name] = (original, ours)
        setattr(cls, name, ours)


def _switched(original: Method, ours: Method) -> Method:
    """The patched method while installed, else the original."""

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (ours if _active else original)(self, *args, **kwargs)

    return method


def uninstall() -> None:
    """Restore the original methods; patches that others wrapped become inactive."""
    global _active
    _active = False
    for (cls, name), (original, ours) in list(_originals.items()):
        if cls.__dict__.get(name) is ours:
            setattr(cls, name, original)
            del _originals[cls, name]
