"""Wrong rows, arguments and options, each with the code of its error: without a JVM, and on Spark too."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
from bad_input import FIRST, OPTIONS, Bad, rows

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

WRITE = "hoodie.datasource.write."


def upsert(data, **options):
    return lambda t: t.upsert(data, options={k.replace("__", "."): v for k, v in options.items()})


def operation(name, data):
    return lambda t: getattr(t, name)(data)


def option(key, value, name="upsert"):
    return lambda t: getattr(t, name)(rows("x"), options={key: value})


def options(name="upsert", **given):
    return lambda t: getattr(t, name)(rows("x"), options={k.replace("__", "."): v for k, v in given.items()})


def saved(mode, name="upsert", **more):
    def act(table):
        given = {**OPTIONS, WRITE + "operation": name, **more}
        if not isinstance(table, HudiTable):
            return table.save(rows("x"), given, mode)
        return execute(LocalEngine(), open_storage(table.uri), rows("x"), given, mode=mode)

    return act


TWICE = pa.Table.from_arrays([*rows("x").columns, pa.array([1])], names=[*rows("x").column_names, "fare"])
NESTED_KEY = rows("x", id=[["x"]])

ROWS = [
    # keys
    Bad("a null key", "HUDI-E0503", upsert(rows("x", "y", id=["x", None]))),
    Bad("an empty key", "HUDI-E0503", upsert(rows("x", "y", id=["x", ""]))),
    Bad("a null key to insert", "HUDI-E0503", operation("insert", rows("x", "y", id=["x", None]))),
    Bad("a null key to overwrite", "HUDI-E0503", operation("insert_overwrite", rows("x", "y", id=["x", None]))),
    Bad("a null key to overwrite all", "HUDI-E0503",
        operation("insert_overwrite_table", rows("x", "y", id=["x", None]))),
    Bad("a null key to delete", "HUDI-E0503", operation("delete", rows("x", "y", id=["x", None]))),
    Bad("a null key in a bulk_insert", "HUDI-E0503", operation("bulk_insert", rows("x", "y", id=["x", None])),
        begun=True),
    Bad("no key column", "HUDI-E0502", upsert(rows("x", id=None))),
    Bad("no key column to delete by", "HUDI-E0502", operation("delete", rows("x", id=None))),
    Bad("keys of fractions for keys of text are text, of lists are not", "HUDI-E0501", upsert(NESTED_KEY)),
    Bad("a boolean for a text key", "HUDI-E0501", upsert(rows("x", id=[True]))),
    # partitions
    Bad("no partition column", "HUDI-E0502", upsert(rows("x", city=None))),
    Bad("a partition above the table", "HUDI-E0505", upsert(rows("x", city=["../out"]))),
    Bad("a partition that climbs in the middle", "HUDI-E0505", upsert(rows("x", city=["a/../../out"]))),
    Bad("a partition of dots", "HUDI-E0505", upsert(rows("x", city=[".."]))),
    Bad("a partition in the metadata folder", "HUDI-E0505", upsert(rows("x", city=[".hoodie"]))),
    Bad("a partition above the table by bulk_insert", "HUDI-E0505",
        operation("bulk_insert", rows("x", city=["../out"])), begun=True),
    Bad("no partitions to delete", "HUDI-E0300", lambda t: t.delete_partitions([])),
    Bad("a partition with a comma", "HUDI-E0300", lambda t: t.delete_partitions(["a,b"])),
    Bad("a partition that is a number", "HUDI-E0300", lambda t: t.delete_partitions([7])),
    Bad("an unknown partition", "HUDI-E0507", lambda t: t.delete_partitions(["c0", "c9"])),
    Bad("a pattern without a partition", "HUDI-E0507", lambda t: t.delete_partitions("q*")),
    # ordering
    Bad("no ordering column", "HUDI-E0502", upsert(rows("x", ts=None))),
    Bad("a null ordering value", "HUDI-E0504", upsert(rows("x", "y", ts=pa.array([1, None], pa.int64())))),
    Bad("a text ordering value for a number's column grows the column, a list does not", "HUDI-E0501",
        upsert(rows("x", ts=[[1]]))),
    # columns and types
    Bad("a missing column", "HUDI-E0502", upsert(rows("x", fare=None))),
    Bad("a missing nested column", "HUDI-E0502", upsert(rows("x", box=[{"x": 1}]))),
    Bad("a missing column by bulk_insert", "HUDI-E0502", operation("bulk_insert", rows("x", fare=None))),
    Bad("a missing column by overwrite", "HUDI-E0502", operation("insert_overwrite_table", rows("x", fare=None))),
    Bad("a boolean for a number", "HUDI-E0501", upsert(rows("x", fare=[True]))),
    Bad("a date for a number", "HUDI-E0501", upsert(rows("x", n=[date(2024, 1, 1)]))),
    Bad("a number for a moment", "HUDI-E0501", upsert(rows("x", at=[1]))),
    Bad("a list for a text", "HUDI-E0501", upsert(rows("x", box=[{"x": 1, "y": ["q"]}]))),
    Bad("a text for a list", "HUDI-E0501", upsert(rows("x", tags=["t"]))),
    Bad("a struct for a number", "HUDI-E0501", upsert(rows("x", n=[{"a": 1}]))),
    Bad("a wider decimal", "HUDI-E0501", upsert(rows("x", money=[Decimal("12345.678")]))),
    Bad("a number that the decimal cannot hold", "HUDI-E0501", upsert(rows("x", money=[99999]))),
    Bad("a fraction that the decimal would round", "HUDI-E0501", upsert(rows("x", money=[0.005]))),
    Bad("text that is no decimal", "HUDI-E0501", upsert(rows("x", money=["much"]))),
    Bad("a decimal of 40 digits", "HUDI-E0501", upsert(rows("x", new=pa.array([None], pa.decimal256(40, 2))))),
    Bad("a duration", "HUDI-E0501", upsert(rows("x", new=pa.array([1], pa.duration("s"))))),
    Bad("lists of nulls without a type", "HUDI-E0501", upsert(rows("x", new=[[None]]))),
    Bad("a struct of nulls without a type", "HUDI-E0501", upsert(rows("x", new=[{"a": None}]))),
    Bad("a key of nulls without a type", "HUDI-E0503", upsert(rows("x").set_column(0, "id", pa.nulls(1)))),
    Bad("a column twice", "HUDI-E0501", upsert(TWICE)),
    Bad("a column in another case", "HUDI-E0501", upsert(rows("x", FARE=[1.0]))),
    Bad("two new columns that differ in case", "HUDI-E0501", upsert(rows("x", new=[1], NEW=[2]))),
    Bad("a delete flag of text", "HUDI-E0501", upsert(rows("x", _hoodie_is_deleted=["true"]))),
    Bad("a union of types", "HUDI-E0501",
        upsert(rows("x", new=pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])))),
    # what is no table
    Bad("a number for rows", "HUDI-E0501", operation("upsert", 7)),
    Bad("a text for rows", "HUDI-E0501", operation("insert", "rows")),
    Bad("columns of unequal length", "HUDI-E0501", operation("upsert", {"id": ["a"], "city": ["x", "y"]})),
    Bad("a list of numbers", "HUDI-E0501", operation("upsert", [1, 2])),
    Bad("values of mixed types", "HUDI-E0501", operation("upsert", {"id": ["a", 7]})),
    Bad("a filter that cannot be parsed", "HUDI-E0302", lambda t: t.delete("fare <")),
    Bad("a filter on an unknown column", "HUDI-E0502", lambda t: t.delete("fere < 3")),
]  # fmt: skip

CHOICES = [
    Bad("an unknown option", "HUDI-E0301", option("hoodie.parquet.max.file.sise", "1")),
    Bad("a read option's slip", "HUDI-E0301", lambda t: t.read(options={"hoodie.datasource.query.typ": "snapshot"})),
    Bad("no boolean", "HUDI-E0302", option("hoodie.combine.before.insert", "yes")),
    Bad("a negative size", "HUDI-E0302", option("hoodie.parquet.max.file.size", "-1")),
    Bad("a size with a unit", "HUDI-E0302", option("hoodie.parquet.max.file.size", "120MB")),
    Bad("a rate above one", "HUDI-E0302", option("hoodie.index.bloom.fpp", "2")),
    Bad("an unknown sort mode", "HUDI-E0302", option("hoodie.bulkinsert.sort.mode", "SORTED")),
    Bad("an unknown duplicate policy", "HUDI-E0302", option("hoodie.datasource.insert.dup.policy", "ignore")),
    Bad("an unknown operation", "HUDI-E0302", saved("append", "upsurt")),
    Bad("a prepped operation without meta columns", "HUDI-E0502", saved("append", "upsert_prepped")),
    Bad("an unknown save mode", "HUDI-E0302", saved("replace")),
    Bad("a table that is there already", "HUDI-E0102", saved("error")),
    Bad("a delete in mode overwrite", "HUDI-E0300", saved("overwrite", "delete")),
    Bad("another table name", "HUDI-E0303", option("hoodie.table.name", "other")),
    Bad("another record key", "HUDI-E0303", option(WRITE + "recordkey.field", "fare")),
    Bad("another partition field", "HUDI-E0303", option(WRITE + "partitionpath.field", "n")),
    Bad("another ordering field", "HUDI-E0303", option(WRITE + "precombine.field", "n")),
    Bad("a record key given empty", "HUDI-E0302", option(WRITE + "recordkey.field", "")),
    Bad("a key generator of the user's", "HUDI-E0201", option(WRITE + "keygenerator.class", "com.example.Keys")),
    Bad("a payload of the user's", "HUDI-E0201", option(WRITE + "payload.class", "com.example.Payload")),
    Bad("HBase as index", "HUDI-E0201", option("hoodie.index.type", "HBASE")),
    Bad("another table version", "HUDI-E0201", option("hoodie.write.table.version", "8")),
    Bad("ORC base files", "HUDI-E0201", option("hoodie.table.base.file.format", "ORC")),
    Bad("a codec that is not there", "HUDI-E0201", option("hoodie.parquet.compression.codec", "brotli")),
    Bad("syncing to Hive", "HUDI-E0201", option("hoodie.datasource.hive_sync.enable", "true")),
    Bad("a lock provider of the user's", "HUDI-E0201", option("hoodie.write.lock.provider", "com.example.Lock")),
    Bad("a partitioner of the user's", "HUDI-E0201",
        option("hoodie.bulkinsert.user.defined.partitioner.class", "com.example.Mine", "bulk_insert")),
    Bad("a sort by a column that is not there", "HUDI-E0502",
        option("hoodie.bulkinsert.user.defined.partitioner.sort.columns", "w", "bulk_insert")),
    Bad("duplicates dropped in a bulk_insert", "HUDI-E0303",
        option(WRITE + "insert.drop.duplicates", "true", "bulk_insert")),
    Bad("known keys where the policy is to fail", "HUDI-E0506",
        lambda t: t.insert(FIRST, options={"hoodie.datasource.insert.dup.policy": "fail"})),
    Bad("partitions to delete in an upsert", "HUDI-E0303", option(WRITE + "partitions.to.delete", "c0")),
    Bad("static partitions in an upsert", "HUDI-E0303", option("hoodie.static.overwrite.partition.paths", "c0")),
    Bad("a delete marker without its field", "HUDI-E0303", option("hoodie.payload.delete.marker", "D")),
    Bad("two names of one option that differ", "HUDI-E0303",
        options(**{"hoodie.clean.async": "true", "hoodie.clean.async.enabled": "false"})),
    Bad("all columns asked for, nulls allowed", "HUDI-E0502",
        lambda t: t.upsert(rows("x", fare=None), options={
            "hoodie.avro.schema.validate": "true", "hoodie.write.set.null.for.missing.columns": "true"})),
    Bad("two ordering fields", "HUDI-E0201", option(WRITE + "precombine.field", "ts,n")),
    Bad("a read at a time that is none", "HUDI-E0901", lambda t: t.read(as_of="yesterday").to_arrow()),
    Bad("a read of an unknown column", "HUDI-E0502", lambda t: t.read(columns=["fere"]).to_arrow()),
]  # fmt: skip
