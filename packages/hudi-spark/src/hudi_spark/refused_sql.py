"""SQL statements about Hudi tables that are refused, each with the way to do it.

Without Apache Hudi's bundle Spark has no catalog, no row-level changes and no procedures for such tables: what it says
about them names none of that, and a table that 4.x does create can be neither read nor written.

Source: Apache Hudi 0.15 and 1.0.2 (HoodieProcedures); PySpark 3.5.5 and 4.3.0 by experiment.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_format.errors import UnsupportedError
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_spark.runtime.options import is_hudi
from hudi_spark.runtime.settings import HAS_DATA_SOURCES

SAVE = "use df.write.format('hudi').options(...).mode(...).save(path)."
STREAM_WRITE = (
    "use writeStream.foreachBatch(f), where f(df, id) does df.write.format('hudi').options(...)"
    ".mode('append').save(path)."
)
STREAM_LOAD = "use spark.readStream.format('hudi').load(path)."
LOAD = "use spark.read.format('hudi').load(path), and createOrReplaceTempView(name) for SQL on it."

_QUOTED = re.compile(r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|--[^\n]*|/\*.*?\*/", re.DOTALL)
_TABLE = re.compile(r"\busing\s+`?(?:org\.apache\.)?hudi`?(?!\w)", re.IGNORECASE)
_VIEW = re.compile(r"\A\s*create\s+(?:or\s+replace\s+)?(?:global\s+)?temp(?:orary)?\s+view\b", re.IGNORECASE)
_PATH = re.compile(r"\b(?:hudi`?\s*\.\s*`|hudi_table_changes\s*\(|hudi_query\s*\()", re.IGNORECASE)
_FUNCTION = re.compile(r"\b(?P<name>hudi_(?:filesystem_view|metadata|query_timeline))\s*\(", re.IGNORECASE)
_VIEW_AS_OF = re.compile(
    r"\b(?:from|join)\s+(?P<name>`[^`]+`|\w+)\s+(?:for\s+(?:system_)?)?(?:timestamp|version|time)\s+as\s+of\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s*`?(?:org\.apache\.)?hudi`?\s*\.\s*`([^`]+)`\s*", re.IGNORECASE)
_VERSION = re.compile(r"\bhudi`?\s*\.\s*`[^`]*`\s+(?:for\s+(?:system_)?)?version\s+as\s+of\b", re.IGNORECASE)
_CALL = re.compile(r"\A\s*call\s+(?:\w+\s*\.\s*)*(?P<name>\w+)\s*\(", re.IGNORECASE)
_CHANGE = re.compile(
    r"(?:\A|\)|\bas\s+select\b.*?)\s*(?P<verb>update|delete\s+from|merge\s+(?:with\s+schema\s+evolution\s+)?into|insert\s+(?:into|overwrite)(?:\s+table)?)"
    r"\s+(?P<name>(?:`[^`]+`|\w+)(?:\s*\.\s*(?:`[^`]+`|\w+))*+)(?=\s|\(|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_INSERT = re.compile(r"\binsert\s+(?:into|overwrite)\b", re.IGNORECASE)
_MAY_CONCERN_HUDI = re.compile(
    r"hudi|\A\s*(?:call|update|delete|merge|insert|with)\b|\bas\s+of\b", re.IGNORECASE
)

_ROWS = {
    "update": "read the rows, change them, and " + SAVE,
    "delete": "write the rows to delete with hoodie.datasource.write.operation=delete, or use "
    "HudiTable.open(path).delete(filter) of hudi_timeline.",
    "merge": "join source and table as frames, and write the result with the operation upsert; or use "
    "HudiTable.open(path).merge(...) of hudi_timeline.",
    "insert": SAVE,
    "alter": "use HudiTable.open(path).alter() of hudi_timeline, or the command `hudi alter`.",
}
# What Apache Hudi's functions and procedures are here.
_FUNCTIONS = {
    "hudi_filesystem_view": "inspect.files()",
    "hudi_metadata": "inspect.files()",
    "hudi_query_timeline": "inspect.timeline()",
}
_PROCEDURES = {
    "show_commits": "history()", "show_timeline": "inspect.timeline()", "show_rollbacks": "inspect.rollbacks()",
    "show_commit_files": "inspect.commit_files(instant)",
    "show_commit_partitions": "inspect.commit_partitions(instant)", "show_table_properties": "config",
    "show_fsview_latest": "inspect.files()", "show_fsview_all": "inspect.file_slices()",
    "run_clean": "clean()", "run_compaction": "compact()", "show_compaction": "inspect.compactions()",
    "archive_commits": "archive()", "create_savepoint": "savepoint()", "delete_savepoint": "delete_savepoint(instant)",
    "show_savepoints": "savepoints", "rollback_to_savepoint": "restore(instant)",
    "rollback_to_instant": "rollback(instant)", "upgrade_table": "upgrade()", "downgrade_table": "downgrade()",
    "repair_deduplicate": "verify(), and `hudi repair deduplicate`",
}  # fmt: skip
_OTHER_PROCEDURES = re.compile(
    r"(?:run|show|repair|copy_to|hdfs|hive|delete_marker|init_metadata|create_metadata|delete_metadata|validate|export|"
    r"commits_compare|stats_|partition_stats|schedule|truncate_table|drop_partition|ttl|set_audit|help)\w*\Z"
)


def bare(text: str) -> str:
    """A statement whose texts are empty, without comments."""
    return _QUOTED.sub(lambda found: " " if found["text"] is None else "''", text)


def may_concern_hudi(text: str) -> bool:
    """Whether a statement has to be looked at, by its first word or a mention of Hudi."""
    return any(_MAY_CONCERN_HUDI.search(t) is not None for t in (text, bare(text)))


def refuse_versions(text: str) -> None:
    """Refuse time travel by a version's number.

    Raises:
        UnsupportedError: naming the way to do it.
    """
    if _VERSION.search(bare(text)):
        raise UnsupportedError(
            "VERSION AS OF names no state of a Hudi table, which has instants",
            remedy="use TIMESTAMP AS OF 'an instant or a time'; HudiTable.open(path).history() lists them.",
        )


def refuse_views_as_of(spark: SparkSession, text: str) -> None:
    """Refuse time travel through a view of a Hudi table, whose state is that of its frame.

    Raises:
        UnsupportedError: naming the way to do it.
    """
    for found in _VIEW_AS_OF.finditer(bare(text)):
        if _is_view_of_hudi(spark, found["name"]):
            raise UnsupportedError(
                f"{found['name']} is a view of a Hudi table, and a view has no time travel",
                remedy="use hudi.`path` TIMESTAMP AS OF '...', or make the view from load(path) with the option "
                "as.of.instant.",
            )


def refuse_sql(spark: SparkSession, text: str) -> None:
    """Refuse statements that need what is not here; others pass.

    To be called without Apache Hudi's bundle, which could run them.

    Raises:
        UnsupportedError: naming the statement's kind, and what to do instead.
    """
    bare_text = bare(text)
    called = _CALL.match(bare_text)
    if called is not None:
        _refuse_call(called["name"].lower())
    change = _CHANGE.search(bare_text)
    verb = "" if change is None else change["verb"].split()[0].lower()
    if _TABLE.search(bare_text) and not (HAS_DATA_SOURCES and _VIEW.match(bare_text)):
        raise UnsupportedError(
            "SQL on tables USING hudi is not supported yet", remedy=f"{SAVE} For queries {LOAD}"
        )
    function = _FUNCTION.search(bare_text)
    if function is not None:
        name = function["name"].lower()
        raise UnsupportedError(
            f"{name}(), a function of Apache Hudi, is not supported yet",
            remedy=f"use {_FUNCTIONS[name]} of hudi_timeline.HudiTable.open(path).",
        )
    if _PATH.search(bare_text):
        first = bare_text.split(None, 1)[0].lower()
        if _INSERT.search(bare_text):  # behind `from`
            verb = verb or "insert"
        remedy = _ROWS.get(verb or first, LOAD)
        raise UnsupportedError("SQL on Hudi tables by path is for queries only", remedy=remedy)
    if change is not None and _is_view_of_hudi(spark, change["name"]):
        raise UnsupportedError(
            f"{verb.upper()} on {change['name']}, a view of a Hudi table, is not supported yet",
            remedy=_ROWS[verb],
        )


def path_named(name: object) -> str | None:
    """Path of a table that is named as SQL names it, hudi.`path`; None for other names."""
    found = _NAMED.fullmatch(name) if isinstance(name, str) else None
    return None if found is None else found[1]


def refuse_name(spark: SparkSession, name: str, call: str, verb: str) -> None:
    """Refuse a call that names a Hudi table as SQL does: by path, or as a view of its rows.

    Args:
        verb: what the call does, as a statement would: insert, merge, or "" for one that reads.

    Raises:
        UnsupportedError: naming the call, and what to do instead.
    """
    by_path = path_named(name) is not None
    if by_path or _is_view_of_hudi(spark, name):
        kind = "Hudi table by path" if by_path else "view of a Hudi table"
        raise UnsupportedError(
            f"{call} on {name}, a {kind}, is not supported yet",
            remedy=_ROWS.get(verb, STREAM_LOAD),
        )


def refuse_table(spark: SparkSession, text: str) -> None:
    """Refuse changes of the rows of a table USING hudi, which Spark did not run.

    Spark 4 makes such tables in sessions where this package is not enabled.

    Raises:
        UnsupportedError: naming the statement's kind, and what to do instead.
    """
    change = _CHANGE.search(bare(text))
    if change is None:
        return
    name, verb = change["name"], change["verb"].split()[0].lower()
    try:
        said = spark.sql(f"describe table extended {name}").where("col_name = 'Provider'").collect()
    except PySparkException:  # no such table
        return
    if any(is_hudi(row.data_type) for row in said):
        raise UnsupportedError(
            f"{verb.upper()} on {name}, a table USING hudi, is not supported yet", remedy=_ROWS[verb]
        )


def _refuse_call(name: str) -> None:
    way = _PROCEDURES.get(name)
    if way is None and not _OTHER_PROCEDURES.match(name):
        return
    raise UnsupportedError(
        f"CALL {name}: procedures of Apache Hudi are not supported yet",
        remedy=f"use {'the methods' if way is None else way} of hudi_timeline.HudiTable.open(path), or the command "
        "`hudi`.",
    )


def _is_view_of_hudi(spark: SparkSession, name: str) -> bool:
    """Whether a name is a view of rows with Hudi's meta columns."""
    view: Any = name.strip("`")
    try:
        return bool(spark.catalog.tableExists(view)) and RECORD_KEY in spark.table(f"`{view}`").columns
    except PySparkException:  # Spark says what is wrong with it
        return False
