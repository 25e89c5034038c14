"""Histories of what `interop.wild` leaves out: tables of older versions by later releases, odd keys and values, lazy
cleaning of failed writes, blocks of all sizes, schemas that change at every step, writes of no row, and by SQL partial
updates under every merge mode, with log compaction, archival and change data.

`interop.wild` runs them: `odd:VERSIONS` by DataFrames, `oddsql:VERSION` by SQL.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_timeline import HudiTable
from interop.apache_hudi import ApacheHudi
from interop.samples import Row, Rows, Shape
from interop.unseen import ARCHIVES, CDC_MODES, CLEANS
from interop.wild import KEYGEN, KEYGENS, MODELS, Wild
from interop.wild_sql import Reading, SqlHistory, copied

ODD_KEYS = (
    "",
    "a:b,",
    "ключ ",
    "it's ",
    "uuid:",
    "%2F",
    '"',
    "\\",
    "__null__",
    "__empty__",
    "a/b",
    "\U0001f6b2",
)
FAR = (date(1582, 10, 4), date(1582, 10, 15), date(1, 1, 1), date(9999, 12, 31), date(1899, 12, 31))
TABLE_VERSIONS = {"1.0.2": ("8", "8", "6"), "1.2.0": ("9", "9", "8", "6")}
OWN = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
OLD_DATES = tuple(
    f"spark.sql.parquet.{kind}RebaseModeIn{way}"
    for kind in ("datetime", "int96")
    for way in ("Read", "Write")
)


class OddRows(Rows):
    """Rows of which many values are null, and others at the ends of what their types hold."""

    def __init__(self, shape: Shape, seed: int, nulls: float, far: bool) -> None:
        super().__init__(shape, seed)
        self._nulls, self._far = nulls, far

    def _row(self, uuid: str) -> Row:
        rng, out = self._rng, super()._row(uuid)
        for column in self.shape.schema:
            if column.name in ("uuid", "city", "kind", "ts"):
                continue
            if rng.random() < self._nulls:
                out[column.name] = None
            elif rng.random() < 0.3:
                out[column.name] = self._extreme(column.type, out[column.name])
        return out

    def _extreme(self, kind: pa.DataType, value: Any) -> Any:
        rng = self._rng
        if pa.types.is_floating(kind):
            return rng.choice(
                [float("nan"), -0.0, 0.0, float("-inf"), 5e-324 if kind.bit_width == 64 else 0.1]
            )
        if pa.types.is_string(kind):
            return rng.choice(["", "null", "\x00", "Z\u0301", "\uffff", " "])
        if self._far and pa.types.is_date(kind):
            return rng.choice(FAR)
        if self._far and pa.types.is_timestamp(kind):
            d = rng.choice(FAR)
            zone = UTC if kind.tz else None
            return datetime(d.year, d.month, d.day, 23, 59, 59, 999999, tzinfo=zone)
        return value


class Odd(Wild):
    """A history of what few tables have."""

    kind = "odd"

    def __post_init__(self) -> None:
        self.table_version = "6"
        super().__post_init__()
        rng = self.rng
        self.empties = rng.random() < 0.3
        self.odd_keys = rng.random() < 0.35 and not self.shape.partitions[1:]
        self.unordered = rng.random() < 0.12
        self.far = rng.random() < 0.2
        self.changes = self._changes()
        self.undoes = self.undoes or rng.random() < 0.3
        self.shape = Shape(**{**self.shape.__dict__, "schema": self._wider(self.shape.schema)})
        self.rows = OddRows(self.shape, self.seed, rng.choice([0.0, 0.1, 0.6]), self.far)

    @property
    def layout2(self) -> bool:
        return int(self.table_version) >= 8

    def judge(self, last: str, path: Path) -> str:
        """The release whose own version the table is of."""
        version = HudiTable.open(str(path)).table_version
        self.table_version = str(version)
        return OWN.get(version, last)

    def reading(self, apache: ApacheHudi) -> ApacheHudi:
        # It refuses nested changes; the other one gives nulls for columns of formatted times.
        vectorised = str(self.shape.name in ("timestamp", "custom")).lower()
        apache.sql(f"SET spark.sql.parquet.enableVectorizedReader={vectorised}")
        return apache

    def _wider(self, schema: pa.Schema) -> pa.Schema:
        if self.layout2 and self.rng.random() < 0.15:
            schema = schema.append(pa.field("ntz", pa.timestamp("us")))
        return schema

    def _shape(self) -> Shape:
        rng = self.rng
        newest = self.versions[0]
        if newest in TABLE_VERSIONS and len(self.versions) == 1:
            self.table_version = rng.choice(TABLE_VERSIONS[newest])
        elif newest in TABLE_VERSIONS:
            self.table_version = TABLE_VERSIONS[newest][0]
        shape = super()._shape()
        if shape.name in ("timestamp", "custom"):  # encoded slashes of times: none of the releases reads them
            shape = Shape(**{**shape.__dict__, "url_encode": False, "cities": ("oslo", "x-y", "")})
        if shape.name == "complex" and rng.random() < 0.5:
            typed = rng.choice(
                [pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(8, 2), pa.float64(),
                 pa.bool_()]
            )  # fmt: skip
            shape = Shape(
                **{
                    **shape.__dict__,
                    "keys": ("uuid", "kt"),
                    "schema": shape.schema.append(pa.field("kt", typed)),
                }
            )
        elif shape.name == "none" and rng.random() < 0.3:
            shape = Shape(
                **{
                    **shape.__dict__,
                    "keys": ("o2.id",),
                    "schema": shape.schema.append(
                        pa.field("o2", pa.struct([("id", pa.string()), ("n", pa.int32())]))
                    ),
                    "options": {**shape.options, KEYGEN: KEYGENS + "NonpartitionedKeyGenerator"},
                }
            )
        return shape

    def _options(self) -> dict[str, str]:
        out, rng = super()._options(), self.rng
        if self.versions[0] in TABLE_VERSIONS and self.table_version != TABLE_VERSIONS[self.versions[0]][0]:
            out["hoodie.write.table.version"] = self.table_version
            out["hoodie.write.auto.upgrade"] = "false"
        if self.version == "1.2.0":  # refuses a complex key generator with one key, otherwise
            out["hoodie.write.complex.keygen.validation.enable"] = "false"
        if self.merged:
            if rng.random() < 0.35:
                out["hoodie.logfile.data.block.max.size"] = rng.choice(["100", "1000"])
            if rng.random() < 0.2:
                out["hoodie.logfile.data.block.format"] = rng.choice(
                    ["parquet", "parquet" if self.layout2 else "hfile"]  # 1.0.2 fails on the latter
                )
            if rng.random() < 0.3:
                out["hoodie.write.record.positions"] = rng.choice(["true", "false"])
            if rng.random() < 0.15:
                out |= self._merger()
        if rng.random() < 0.3 and not self.virtual and out["hoodie.index.type"] != "INMEMORY":
            self.cdc = True
            out["hoodie.table.cdc.enabled"] = "true"
            out["hoodie.table.cdc.supplemental.logging.mode"] = rng.choice(CDC_MODES)
        if rng.random() < 0.35:
            out |= {
                "hoodie.cleaner.policy.failed.writes": "LAZY",
                "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
                "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
            }
            self.lazily = True
        if rng.random() < 0.25:  # most of what was done is archived
            out |= {
                CLEANS: "true",
                ARCHIVES: "true",
                "hoodie.cleaner.commits.retained": "1",
                "hoodie.keep.min.commits": "2",
                "hoodie.keep.max.commits": "3",
                "hoodie.commits.archival.batch": "1",
                "hoodie.timeline.compaction.batch.size": "2",
            }
        if rng.random() < 0.2 and self.version != "0.15.0":
            out["hoodie.datasource.write.row.writer.enable"] = "true"
        if rng.random() < 0.12 and self.merged and self.ordering == "ts" and "CONSISTENT" not in str(out):
            out.pop("hoodie.write.record.merge.mode", None)
            out |= self._debezium()
        elif rng.random() < 0.12 and "CONSISTENT" not in str(out):
            self.payload = (
                "FirstValueAvroPayload" if self.version != "0.15.0" else "DefaultHoodieRecordPayload"
            )
            out.pop("hoodie.write.record.merge.mode", None)
            out["hoodie.datasource.write.payload.class"] = MODELS + self.payload
        if getattr(self, "payload", "") == "DefaultHoodieRecordPayload" and rng.random() < 0.3:
            out |= {"hoodie.payload.delete.field": "rider", "hoodie.payload.delete.marker": "ann"}
        self.way = rng.choice(["plain", "null", "reconcile", "drop"])
        more = {
            "plain": {},
            "null": {"hoodie.write.set.null.for.missing.columns": "true"},
            "reconcile": {"hoodie.datasource.write.reconcile.schema": "true"},
            "drop": {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"},
        }[self.way]
        self.fails = self.fails or getattr(self, "lazily", False)
        return out | more

    def _merger(self) -> dict[str, str]:
        if self.version == "0.15.0":
            return {
                "hoodie.datasource.write.record.merger.impls": "org.apache.hudi.HoodieSparkRecordMerger",
                "hoodie.logfile.data.block.format": "parquet",
            }
        return {
            "hoodie.write.record.merge.custom.implementation.classes": "org.apache.hudi.DefaultSparkRecordMerger"
        }

    def _debezium(self) -> dict[str, str]:
        self.debezium = self.rng.choice(["Postgres", "MySql"])
        self.payload = f"{self.debezium}DebeziumAvroPayload"
        name = "_event_lsn" if self.debezium == "Postgres" else "_event_seq"
        self.ordering = name
        kind = pa.int64() if self.debezium == "Postgres" else pa.string()
        schema = self.shape.schema.append(pa.field("_change_operation_type", pa.string()))
        if self.debezium == "MySql":
            schema = schema.append(pa.field("_event_bin_file", pa.string())).append(
                pa.field("_event_pos", pa.int64())
            )
        self.shape = Shape(**{**self.shape.__dict__, "schema": schema.append(pa.field(name, kind))})
        return {
            "hoodie.datasource.write.precombine.field": name,
            "hoodie.datasource.write.payload.class": MODELS + "debezium." + self.payload,
            "hoodie.index.type": "SIMPLE",
        }

    def _changes(self) -> dict[int, list[tuple[str, str]]]:
        """What happens to a column (`x0` ...) from a step on."""
        rng, out = self.rng, dict[int, list[tuple[str, str]]]()
        names = [n for n in self.shape.schema.names if n.startswith("x")]
        for n in names:
            if rng.random() < 0.5:
                what = rng.choice(["widen", "nest", "drop", "last", "late"])
                out.setdefault(rng.randint(1, 5), []).append((what, n))
        return out

    def _schema(self, step: int) -> pa.Schema:
        out = super()._schema(step)
        for at, changes in sorted(self.changes.items()):
            for what, name in changes:
                if what == "late" and at > step:
                    out = out.remove(out.get_field_index(name))
                elif at <= step and name in out.names:
                    out = _changed(out, what, name)
        return out

    def _step(self, step: int) -> tuple[str, list[Row], dict[str, str]]:
        if self.empties and step and self.rng.random() < 0.15:
            return self.rng.choice(["upsert", "insert", "delete", "bulk_insert"]), [], {}
        return super()._step(step)

    def _finish(self, r: Row) -> Row:
        n = int(r["uuid"][3:])
        r = super()._finish(r)
        names = set(self.shape.schema.names)
        if "kt" in names:
            kind = self.shape.schema.field("kt").type
            r["kt"] = (
                n % 2 == 0 if pa.types.is_boolean(kind)
                else n - 3 if pa.types.is_integer(kind)
                else date(1970, 1, 1) + timedelta(days=n * 997 - 9000) if pa.types.is_date(kind)
                else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=n * 10**7 - 10**8, microseconds=n % 2 * 1500)
                if pa.types.is_timestamp(kind)
                else Decimal(n) / 4 if pa.types.is_decimal(kind)
                else n * 1e6 + 0.5
            )  # fmt: skip
        if hasattr(self, "debezium"):
            at = max(r["ts"], 0)
            r["_change_operation_type"] = "d" if at % 11 == 3 else "c" if n % 3 else "u"
            if self.debezium == "Postgres":
                r["_event_lsn"] = at
            else:
                r["_event_bin_file"], r["_event_pos"] = "mysql-bin.000001", at
                r["_event_seq"] = f"000001.{at}"
        if self.odd_keys:
            r["uuid"] = ODD_KEYS[n % len(ODD_KEYS)] + r["uuid"]
        if "o2" in names:
            r["o2"] = {"id": r["uuid"], "n": n}
        if self.unordered and self.rng.random() < 0.3 and "debezium" not in self.__dict__:
            r["ts"] = None
        return r

    def more(self) -> str:
        return (
            f"version {self.table_version} keys={self.odd_keys} unordered={self.unordered} far={self.far} {self.way} "
            f"{self.changes} {super().more()}"
        )

    def go(self, processes: dict[str, ApacheHudi], path: Path) -> None:
        for version in self.versions:
            for name in OLD_DATES:
                processes[version].sql(f"SET {name}=CORRECTED")
        super().go(processes, path)


def _changed(schema: pa.Schema, what: str, name: str) -> pa.Schema:
    i = schema.get_field_index(name)
    kind = schema.field(i).type
    match what:
        case "drop":
            return schema.remove(i)
        case "last":
            return schema.remove(i).append(schema.field(i))
        case "widen":
            return schema.set(i, pa.field(name, _widened(kind)))
        case "nest" if pa.types.is_struct(kind):
            more = [*kind, pa.field("added", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]))]
            return schema.set(i, pa.field(name, pa.struct(more)))
    return schema


def _widened(kind: pa.DataType) -> pa.DataType:
    """A type that takes the same values, of nested ones too."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _widened(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_widened(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _widened(kind.item_type))
    return {pa.int32(): pa.int64(), pa.float32(): pa.float64()}.get(kind, kind)


class OddSql(SqlHistory):
    """Statements under settings that `SqlHistory` leaves alone."""

    family = "oddsql"

    def __init__(self, version: str, seed: int) -> None:
        super().__init__(version, seed)
        rng = self.rng
        self.cdc = rng.random() < 0.25
        if self.cdc:  # the images of before a rename have nulls, in Apache Hudi
            self.evolving = False
        self.table_version = "6"
        if version in TABLE_VERSIONS:
            self.table_version = rng.choice(TABLE_VERSIONS[version])
            if self.partial:
                self.table_version = TABLE_VERSIONS[version][0]
        self.layout2 = int(self.table_version) >= 8
        if not self.layout2:
            self.partial = False
        self.mode = rng.choice(["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"]) if self.layout2 else ""
        if self.mode and (self.partial or rng.random() < 0.5):
            self.payload = ""
        else:
            self.mode = ""
        self.archives = rng.random() < 0.25
        if self.archives:
            self.options |= {CLEANS: "true", ARCHIVES: "true"}
        self.logs = self.merged and rng.random() < 0.3
        self.dated = rng.random() < 0.5  # else texts are numbers; those that are neither are refused here

    def solid(self, kind: Any) -> str:
        if kind == "string":
            return self.rng.choice(("'2021-03-04'", "'2020-02-29'") if self.dated else ("'12.50'", "'7'"))
        return super().solid(kind)

    def alter(self) -> str | None:
        before = copied(self.columns)
        out = super().alter()
        if out and out.endswith("TYPE decimal(12,2)" if self.dated else "TYPE date"):
            self.columns = before
            return None
        return out

    def statements(self, path: Path) -> list[str]:
        out = super().statements(path)
        props = []
        if self.mode:
            props.append(f"'hoodie.record.merge.mode' = '{self.mode}'")
        if self.cdc:
            props += [
                "'hoodie.table.cdc.enabled' = 'true'",
                f"'hoodie.table.cdc.supplemental.logging.mode' = '{self.rng.choice(CDC_MODES).lower()}'",
            ]
        if self.table_version != TABLE_VERSIONS.get(self.version, ("6",))[0]:
            props.append(f"'hoodie.write.table.version' = '{self.table_version}'")
        if props:
            out[1] = out[1].replace("TBLPROPERTIES (", f"TBLPROPERTIES ({', '.join(props)}, ")
        return out

    def judge(self, last: str, path: Path) -> str:
        """The release whose own version the table is of."""
        return OWN.get(HudiTable.open(str(path)).table_version, last)

    def reading(self, apache: ApacheHudi) -> Reading:
        name = "spark.sql.parquet.enableVectorizedReader"
        apache.sql(f"SET {name}={self.settings[name]}")
        return super().reading(apache)

    def more(self) -> str:
        return f"version {self.table_version} mode={self.mode} cdc={self.cdc}"

    def extra(self) -> dict[str, str]:
        """Settings over those of `SqlHistory`."""
        rng = self.rng
        out = {
            "hoodie.write.table.version": self.table_version,
            "hoodie.write.auto.upgrade": "false",
            CLEANS: str(self.archives).lower(),
            ARCHIVES: str(self.archives).lower(),
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.commits.archival.batch": "1",
            "hoodie.log.compaction.inline": str(self.logs).lower(),
            "hoodie.log.compaction.enable": str(self.logs).lower(),
            "hoodie.log.compaction.blocks.threshold": "2",
            "hoodie.compact.inline": str(self.merged and not self.logs and rng.random() < 0.4).lower(),
            "hoodie.compact.inline.max.delta.commits": "3",
            "hoodie.compact.schedule.inline": "false",
            "hoodie.index.type": rng.choice(["SIMPLE", "BUCKET", "GLOBAL_SIMPLE"]),
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.logfile.data.block.max.size": rng.choice(["268435456", "200"]),
            "hoodie.logfile.data.block.format": rng.choice(["avro", "parquet"]),
        }
        if self.version == "0.15.0":
            del out["hoodie.write.table.version"], out["hoodie.write.auto.upgrade"]
        return out

    def go(self, processes: dict[str, ApacheHudi], path: Path) -> None:
        super().go({self.version: _Settled(processes[self.version], self.extra())}, path)  # type: ignore[dict-item]


class _Settled:
    """Apache Hudi, some settings of whose session stay as they are."""

    def __init__(self, apache: ApacheHudi, kept: dict[str, str]) -> None:
        self._apache, self._kept = apache, kept
        for k, v in kept.items():
            apache.sql(f"SET {k}={v}")

    def sql(self, text: str) -> pa.Table:
        name = text[4:].partition("=")[0] if text.startswith("SET ") else ""
        return pa.table({}) if name in self._kept else self._apache.sql(text)
