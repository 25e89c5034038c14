"""The random workload of `random_workload`, its operations, services and queries done by a Spark session.

Savepoints, restores, rollbacks, changes of columns and deletes by condition have no door on Spark: they are done
without a JVM, on the same table.  After each step Spark reads the newest state, and one in four of the other queries;
these take it a third of a second each, and the engine without a JVM, which answers the others, a hundredth of that.
"""

from collections import Counter

import pyarrow as pa
from random_workload import Workload

import hudi_spark
from hudi_format.errors import UnknownPartitionError
from hudi_spark.types import to_arrow_schema, to_spark_schema

WRITE, READ = "hoodie.datasource.write.", "hoodie.datasource.read."
QUERY_TYPE = "hoodie.datasource.query.type"


class SparkWorkload(Workload):
    """A table and its model under a session."""

    def __init__(self, session, path, seed, options, steps, *, every=1):
        super().__init__(path, seed, options, steps, every=every)
        self.session, self.path = session, str(path)
        self.asked = Counter()

    def _save(self, rows, operation, **more):
        if rows is None:
            frame = self.session.createDataFrame([], "id string, p string")
        else:
            values = [tuple(r.values()) for r in rows.to_pylist()]
            frame = self.session.createDataFrame(values, to_spark_schema(rows.schema))
        given = {"hoodie.table.name": "t", **self.options, WRITE + "operation": operation, **more}
        frame.write.format("hudi").options(**given).mode("append").save(self.path)
        return hudi_spark.last_commit().instant

    def _write(self, kind, batch):
        return self._save(self.arrow(batch), kind)

    def _delete(self, keys):
        return self._save(keys, "delete")

    def _delete_partition(self, partition):
        try:
            return self._save(None, "delete_partition", **{WRITE + "partitions.to.delete": partition})
        except UnknownPartitionError:
            return super()._delete_partition(partition)  # which then is a commit of nothing

    def _log_compact(self, mode, options):
        return hudi_spark.log_compact(self.session, self.path, mode=mode, options=options)

    def _resize(self, number, options):
        return hudi_spark.resize_buckets(self.session, self.path, number, options=options)

    def _build_index(self, chosen, mode):
        return hudi_spark.build_index(self.session, self.path, chosen, mode=mode, options=self.options)

    def _load(self, options, where=None):
        frame = self.session.read.format("hudi").options(**options).load(self.path)
        frame = frame.where(where) if where else frame
        frame = frame.select(*(f"`{c}`" for c in frame.columns if not c.startswith("_hoodie_")))
        rows = [r.asDict(recursive=True) for r in frame.collect()]
        return pa.Table.from_pylist(rows, schema=to_arrow_schema(frame.schema))

    def _in_turn(self, kind):
        """Whether Spark is to answer a query of this kind: the first, the fifth, the ninth ..."""
        self.asked[kind] += 1
        return self.asked[kind] % 4 == 1

    def _read(self, *, query=None, as_of=None, filter=None, options=None):
        kind = query or ("time travel" if as_of else "filter" if filter else None)
        if kind and not self._in_turn(kind):
            return super()._read(
                **{k: v for k, v in {"query": query, "as_of": as_of, "filter": filter}.items() if v},
                options=options,
            )
        given = dict(options or {})
        if query is not None:
            given[QUERY_TYPE] = query
        if as_of is not None:
            given["as.of.instant"] = as_of
        return self._load(given, filter)

    def _read_incremental(self, begin, *, whole=False):
        if not self._in_turn("incremental"):
            return super()._read_incremental(begin, whole=whole)
        given = {QUERY_TYPE: "incremental", READ + "begin.instanttime": begin}
        if whole:
            given[READ + "incr.fallback.fulltablescan.enable"] = "true"
        return self._load(given)

    def _read_changes(self, begin):
        if not self._in_turn("changes"):
            return super()._read_changes(begin)
        return self._load(
            {
                QUERY_TYPE: "incremental",
                "hoodie.datasource.query.incremental.format": "cdc",
                READ + "begin.instanttime": begin,
            }
        )
