"""Make golden tables with columns that are Avro unions of several types, with Apache Hudi.

    python tools/golden/make_union_tables.py 0.15.0|1.0.2|1.2.0 OUT [scenario ...]

Spark's data frames have no such columns: these tables come from records of a schema registry, which Apache Hudi's
streamer gives to its write client.  Here the write client gets such records directly.

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import Maker, make

MODEL = "org.apache.hudi.common.model."
KEYS: list[dict[str, Any]] = [{"name": "id", "type": "string"}, {"name": "ts", "type": "long"}]
INNER = {
    "type": "record", "name": "inner",
    "fields": [{"name": "x", "type": ["null", "int", "string"], "default": None}, {"name": "y", "type": "int"}],
}  # fmt: skip
OTHER = {
    "type": "record", "name": "other",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"], "default": None}],
}  # fmt: skip
UNIONS: dict[str, Any] = {
    "u": ["null", "int", "string"],
    "v": ["int", "string"],
    "s": ["null", INNER],
    "l": ["null", {"type": "array", "items": ["int", "string"]}],
    "m": ["null", {"type": "map", "values": ["null", "long", "string"]}],
    "r": ["null", "boolean", OTHER, {"type": "array", "items": "int"}],
    "w": ["null", "string"],
}
NUMBERS: dict[str, Any] = {
    "il": ["null", "int", "long"], "fd": ["null", "double", "float"], "w": ["null", "string"],
}  # fmt: skip


class UnionMaker(Maker):
    """A table written by the write client, from records in Avro's JSON."""

    def create(self, columns: dict[str, Any]) -> None:
        fields = [
            {"name": n, "type": t} | ({"default": None} if "null" in t else {}) for n, t in columns.items()
        ]
        self.schema = json.dumps(
            {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": KEYS + fields}
        )
        jvm: Any = self.spark._jvm
        hudi = jvm.org.apache.hudi
        client = hudi.common.table.HoodieTableMetaClient
        new = client.withPropertyBuilder() if self.hudi < "1" else client.newTableBuilder()
        new = new.setTableType("MERGE_ON_READ").setTableName("t").setRecordKeyFields("id")
        new = new.setOrderingFields("ts") if self.hudi >= "1.1" else new.setPreCombineField("ts")
        new = new.setPayloadClassName(MODEL + "OverwriteWithLatestAvroPayload")
        new = new.setKeyGeneratorClassProp("org.apache.hudi.keygen.NonpartitionedKeyGenerator")
        conf = hudi.storage.hadoop.HadoopStorageConfiguration(self.spark._jsc.hadoopConfiguration())
        new.initTable(conf, str(self.path))
        properties = jvm.java.util.Properties()
        for key, value in {**self.options, "hoodie.index.type": "SIMPLE"}.items():
            properties.setProperty(key, value)
        config = hudi.config.HoodieWriteConfig.newBuilder().withPath(str(self.path)).withSchema(self.schema)
        config = config.forTable("t").withProps(properties).build()
        context = hudi.client.common.HoodieSparkEngineContext(self.spark._jsc)
        self.client = hudi.client.SparkRDDWriteClient(context, config)

    def put(self, operation: str, *rows: dict[str, Any]) -> None:
        """One write; columns that a row lacks are null."""
        jvm: Any = self.spark._jvm
        model = jvm.org.apache.hudi.common.model
        schema = jvm.org.apache.avro.Schema.Parser().parse(self.schema)
        reader = jvm.org.apache.avro.generic.GenericDatumReader(schema)
        names = [f["name"] for f in json.loads(self.schema)["fields"]]
        records = jvm.java.util.ArrayList()
        for row in rows:
            text = json.dumps({n: row.get(n) for n in names})
            record = reader.read(None, jvm.org.apache.avro.io.DecoderFactory.get().jsonDecoder(schema, text))
            payload = model.OverwriteWithLatestAvroPayload(record, row["ts"])
            records.add(model.HoodieAvroRecord(model.HoodieKey(row["id"], ""), payload))
        instant = self.client.startCommit()
        statuses = getattr(self.client, operation)(self.spark._jsc.parallelize(records, 1), instant)
        if self.hudi >= "1.1":
            self.client.commit(instant, statuses)
        else:
            failed = [str(e) for s in statuses.collect() for e in s.getErrors().values()]
            if failed:
                raise RuntimeError(failed[0])
        self.written.append({"operation": operation, "rows": list(rows)})


def _unions(t: UnionMaker) -> None:
    """Every type of every union, in base rows and in the records of a log, and null."""

    def r(n: int, ts: int, kind: int) -> dict[str, Any]:
        row = {
            "u": [None, {"int": n}, {"string": f"s{n}"}],
            "v": [{"int": -n}, {"int": n}, {"string": f"v{n}"}],
            "s": [None, {"x": {"int": n}, "y": ts}, {"x": {"string": "in"}, "y": ts}],
            "l": [None, [{"int": n}, {"string": "l"}], []],
            "m": [None, {"a": {"long": n << 40}, "b": None}, {"c": {"string": "m"}}],
            "r": [{"boolean": n % 2 == 0}, {"hoodie.t.other": {"a": n, "b": None}}, {"array": [n, ts]}],
            "w": [{"string": f"w{n}"}] * 3,
        }
        out = {name: values[kind] for name, values in row.items()}
        for name, branch in (("s", "hoodie.t.inner"), ("l", "array"), ("m", "map")):
            out[name] = None if out[name] is None else {branch: out[name]}
        return {"id": f"k{n:02d}", "ts": ts, **out}

    t.create(UNIONS)
    t.put("insert", *(r(n, 1, n % 3) for n in range(9)))
    t.put("upsert", *(r(n, 2, (n + n // 3) % 3) for n in range(2, 8)))


def _numbers(t: UnionMaker) -> None:
    def r(n: int, ts: int, il: Any, fd: Any) -> dict[str, Any]:
        return {"id": f"k{n:02d}", "ts": ts, "il": il, "fd": fd, "w": {"string": f"w{ts}"}}

    t.create(NUMBERS)
    t.put(
        "insert", r(0, 1, None, None), r(1, 1, {"int": 1}, {"float": 0.1}), r(2, 1, {"long": 1 << 40}, {"double": 0.1}),
        r(3, 1, {"int": -7}, {"float": 1.5}),
    )  # fmt: skip
    t.put("upsert", r(0, 2, {"long": -(1 << 40)}, {"float": 0.1}), r(3, 2, {"int": 8}, {"double": 0.1}))


SCENARIOS = {
    "union_mor": (_unions, {}, "0.15.0 1.0.2 1.2.0"),
    "union_parquet_logs": (_unions, {"hoodie.logfile.data.block.format": "parquet"}, "0.15.0"),
    "union_numbers": (_numbers, {}, "0.15.0"),
}


if __name__ == "__main__":
    make(UnionMaker, SCENARIOS)
