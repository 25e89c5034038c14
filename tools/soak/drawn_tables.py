"""Tables that nobody chose: schemas, keys, partitions, options and batches drawn from a seed.

`soak.differential` has them written by this project and by Apache Hudi in turns.
"""

from __future__ import annotations

import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
WRITE = "hoodie.datasource.write."
KEYGEN, KEYGENS = WRITE + "keygenerator.class", "org.apache.hudi.keygen."
MODELS = "org.apache.hudi.common.model."
DELETED = "_hoodie_is_deleted"
NAMES = (
    "v", "Value", "UPPER_CASE", "select", "order", "größe", "列", "_x", "a1_b2", "timestamp", "date", "from", "table",
    "camelCase", "x__y", "Ünï",
)  # fmt: skip
NESTED = ("f", "Value", "UPPER_", "select", "größe", "列", "_x", "a_b", "date")
TEXTS = (
    "", "x", "日本語", "\U0001f6b2", "a\nb", "null", "\x00", "Z\u0301", "\uffff", " ", " a ", "'", '"', "\\", "%20",
    "NULL", "a,b", "é" * 40, "x" * 5000,
)  # fmt: skip
ODD_KEYS = (
    "", "a:b,", "ключ ", "it's ", "uuid:", "%2F", '"', "\\", "__null__", "a/b", "\U0001f6b2", "k" * 300, " ", "\t", "A",
)  # fmt: skip
CITIES: tuple[tuple[str | None, ...], ...] = (
    ("oslo", "pune", "sao_paulo"),
    ("oslo", None, ""),
    ("são paulo", "oslo", "日本"),
    ("2024-01-02", "2024-01-03", None),
    ("1", "007", "1.5", "true"),
    ("A", "a", "b c", "d+e"),
    ("100%", "%25", "a%2Fb", "a&b"),
    ("x" * 100, "ü", "'q'", '"d"'),
    ("a:b", "c;d", "e#f", "g?h", "[i]", "{j}", "k*l"),
    ("default", "null", "__HIVE_DEFAULT_PARTITION__", "None"),
)
ENCODED: tuple[tuple[str | None, ...], ...] = (
    ("a/b", "a", "b"),
    ("x/y/z", "=", "x=y", "a b", None),
    ("é/ü", "\\", "%", "+"),
)
FAR = (
    date(1582, 10, 4),
    date(1582, 10, 15),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1899, 12, 31),
    date(1969, 12, 31),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAVES = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.string(),
    pa.binary(), pa.date32(), pa.timestamp("us", "UTC"),
)  # fmt: skip


class Draw(random.Random):
    """Random types and values."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.records: set[str] = set()  # what may have records inside of it already

    given = 0  # names of nested fields
    far = False
    null_elements = False
    nulls = 0.2

    def type(self, depth: int = 3) -> pa.DataType:
        kind = self.random()
        if depth == 0 or kind < 0.5:
            if self.random() < 0.25:
                precision = self.choice((1, 5, 9, 10, 18, 19, 38, self.randint(1, 38)))
                return pa.decimal128(precision, self.randint(0, precision))
            return self.choice(LEAVES)
        if kind < 0.75:
            # Each name once: Apache Hudi fails on records of one name ("Can't redefine"), which those of lists and
            # maps have too.
            self.given += 4
            names = [f"{self.choice(NESTED)}{self.given - n}" for n in range(self.randint(1, 4))]
            return pa.struct([(n, self.type(depth - 1)) for n in names])
        if kind < 0.88:
            return pa.list_(self.item("list", depth - 1))
        return pa.map_(pa.string(), self.item("map", depth - 1))

    def item(self, where: str, depth: int) -> pa.DataType:
        if where in self.records or self.random() < 0.5:
            return self.type(0)
        self.records.add(where)
        return self.type(depth)

    def maybe(self, kind: pa.DataType, nulls: float | None = None) -> Any:
        return None if self.random() < (self.nulls if nulls is None else nulls) else self.value(kind)

    def value(self, kind: pa.DataType) -> Any:
        if pa.types.is_boolean(kind):
            return self.random() < 0.5
        if pa.types.is_integer(kind):
            top = 2 ** (kind.bit_width - 1)
            return self.choice([0, -1, top - 1, -top, self.randint(-min(top, 1000), min(top - 1, 1000))])
        if pa.types.is_floating(kind):
            odd = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, self.uniform(-10, 10)]
            out = self.choice([*odd, 5e-324, 1e300] if kind.bit_width == 64 else [*odd, 1e-45, 3e38])
            return out if kind.bit_width == 64 else struct.unpack("<f", struct.pack("<f", out))[0]
        if pa.types.is_decimal(kind):
            top = 10**kind.precision - 1
            unscaled = self.choice([0, 1, -1, top, -top, self.randint(-top, top)])
            return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.scale))
        if pa.types.is_date(kind):
            near = date(1970, 1, 1) + timedelta(days=self.randint(-20000, 40000))
            return self.choice(FAR) if self.far and self.random() < 0.4 else near
        if pa.types.is_timestamp(kind):
            out = EPOCH + timedelta(microseconds=self.randint(-(10**15), 4 * 10**15))
            if self.far and self.random() < 0.4:
                d = self.choice(FAR)
                out = datetime(d.year, d.month, d.day, 23, 59, 59, 999999, tzinfo=UTC)
            return out if kind.tz else out.replace(tzinfo=None)
        if pa.types.is_binary(kind):
            return self.randbytes(self.choice((0, 1, 9, 300)))
        if pa.types.is_string(kind):
            return self.choice(TEXTS)
        if pa.types.is_list(kind):
            nulls = None if self.null_elements else 0.0
            return [self.maybe(kind.value_type, nulls) for _ in range(self.randint(0, 3))]
        if pa.types.is_map(kind):
            return [
                (n, self.maybe(kind.item_type))
                for n in self.sample(["a", "b", "ключ", ""], self.randint(0, 3))
            ]
        return {f.name: self.maybe(f.type) for f in kind}


class Column:
    """A column that comes, and may become wider or go, with the steps of a history."""

    def __init__(self, draw: Draw, name: str) -> None:
        self.name, self.type = name, draw.type()
        self.since = draw.choice([0] * 8 + [2, 3])
        self.wider = draw.choice([99] * 6 + [2, 4])
        self.until = draw.choice([99] * 12 + [3])
        self.nulls = draw.choice([0.0, 0.1, 0.9, 1.0, 0.3])

    def at(self, step: int) -> pa.Field | None:
        if not self.since <= step < self.until:
            return None
        return pa.field(self.name, widened(self.type) if step >= self.wider else self.type)


def widened(kind: pa.DataType) -> pa.DataType:
    """A type that takes the same values, of nested ones too; structs have a field more."""
    if pa.types.is_struct(kind):
        fields = [pa.field(f.name, widened(f.type)) for f in kind]
        return pa.struct([*fields, pa.field("added_later", pa.list_(pa.int32()))])
    if pa.types.is_list(kind):
        return pa.list_(widened(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, widened(kind.item_type))
    return {pa.int32(): pa.int64(), pa.float32(): pa.float64(), pa.int16(): pa.int32()}.get(kind, kind)


class Drawn:
    """A table: its columns, keys, partitions and options, and batches for it.

    Args:
        layout2: whether the table is of version 8 or 9.
    """

    def __init__(self, seed: str, *, layout2: bool = False) -> None:
        self.draw = draw = Draw(seed)
        self.layout2 = layout2
        draw.far, draw.null_elements = draw.random() < 0.25, draw.random() < 0.15
        names = draw.sample(NAMES, draw.randint(1, 7))
        names = list({n.lower(): n for n in names}.values())
        self.columns = [Column(draw, n) for n in names]
        self.flagged = draw.random() < 0.2
        self.merged = draw.random() < 0.65
        self.shuffles = draw.random() < 0.3
        self.late = False
        self.options: dict[str, str] = {"hoodie.table.name": draw.choice(["t", "Some_Table", "t-1"])}
        self.fixed: list[tuple[str, pa.DataType]] = []
        self._keys()
        self._partitions()
        self._ordering()
        self._layout()
        self.live: dict[int, Row] = {}
        self.clock, self.next = 1000, 0

    # --- keys, partitions, ordering ---

    def _keys(self) -> None:
        draw = self.draw
        self.key_kind = draw.choice(
            ["text"] * 4 + ["int", "long", "date", "time", "decimal", "double", "nested", "two"]
        )
        self.odd_keys = draw.random() < 0.4
        types = {
            "text": pa.string(), "int": pa.int32(), "long": pa.int64(), "date": pa.date32(),
            "time": pa.timestamp("us", "UTC"), "decimal": pa.decimal128(12, 3), "double": pa.float64(),
        }  # fmt: skip
        if self.key_kind == "nested":
            self.fixed.append(("k", pa.struct([("Id", pa.string()), ("n", pa.int32())])))
            fields = ["k.Id"]
        elif self.key_kind == "two":
            self.fixed += [("id", pa.string()), ("id2", draw.choice([pa.int32(), pa.string(), pa.date32()]))]
            fields = ["id", "id2"]
        else:
            self.fixed.append(("id", types[self.key_kind]))
            fields = ["id"]
        self.key_fields = fields
        self.options[WRITE + "recordkey.field"] = ",".join(fields)

    def _partitions(self) -> None:
        draw, out = self.draw, self.options
        encode = draw.random() < 0.35
        hive = draw.random() < 0.45
        out[WRITE + "hive_style_partitioning"] = str(hive).lower()
        out[WRITE + "partitionpath.urlencode"] = str(encode).lower()
        self.cities = draw.choice(CITIES + ENCODED * 3 if encode else CITIES)
        layout = draw.choice(
            ["simple"] * 4
            + ["complex", "complex", "none", "typed", "typed", "none", "custom", "time", "nested"]
        )
        if self.key_kind == "two" and layout in ("simple", "typed", "nested"):
            layout = draw.choice(["complex", "none"])
        self.layout = layout
        self.parts: list[tuple[str, pa.DataType]] = []
        generator = ""
        if layout in ("simple", "complex", "custom"):
            self.parts.append(("p", pa.string()))
        match layout:
            case "none":
                generator = "NonpartitionedKeyGenerator"
            case "simple":
                generator = draw.choice(["", "SimpleKeyGenerator"])
            case "nested":
                self.parts.append(("g", pa.struct([("p", pa.string())])))
            case "complex":
                if draw.random() < 0.6:
                    kinds = [pa.int32(), pa.date32(), pa.bool_(), pa.string()]
                    self.parts.append(("q", draw.choice(kinds)))
                generator = "ComplexKeyGenerator"
            case "typed":
                kinds = [pa.int32(), pa.int64(), pa.date32(), pa.bool_(), pa.timestamp("us", "UTC"),
                         pa.decimal128(6, 2), pa.float64(), pa.int16()]  # fmt: skip
                self.parts.append(("p", draw.choice(kinds)))
            case "time" | "custom":
                kind = draw.choice(["EPOCHMILLISECONDS", "UNIX_TIMESTAMP"] + ["DATE_STRING"] * 3)
                self.parts.append(("at", pa.string() if kind == "DATE_STRING" else pa.int64()))
                self.time_kind = kind
                generator = "TimestampBasedKeyGenerator" if layout == "time" else "CustomKeyGenerator"
                out |= {
                    "hoodie.keygen.timebased.timestamp.type": kind,
                    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm",
                    "hoodie.keygen.timebased.output.dateformat": draw.choice(
                        ["yyyyMMdd", "yyyy-MM-dd", "yyyy", "yyyy-MM-dd HH"]
                        + ([] if encode else ["yyyy/MM/dd"])
                    ),
                    "hoodie.keygen.timebased.timezone": "UTC",
                }
        if generator:
            out[KEYGEN] = KEYGENS + generator
        paths = ["g.p" if n == "g" else n for n, _ in self.parts]
        if layout == "custom":
            paths = [f"{n}:{'TIMESTAMP' if n == 'at' else 'SIMPLE'}" for n in paths]
        if paths:
            out[WRITE + "partitionpath.field"] = ",".join(paths)
        self.fixed += self.parts

    def _ordering(self) -> None:
        draw, out = self.draw, self.options
        kinds = [pa.int64()] * 4 + [pa.int32(), pa.string(), pa.date32(), pa.timestamp("us", "UTC"),
                                    pa.float64(), pa.decimal128(12, 3)]  # fmt: skip
        self.ordering = ("ts", draw.choice(kinds))
        self.fixed.append(self.ordering)
        out[WRITE + "precombine.field"] = "ts"
        payload = draw.choice(["OverwriteWithLatestAvroPayload"] * 3 + ["DefaultHoodieRecordPayload"] * 3
                              + ["PartialUpdateAvroPayload", "EventTimeAvroPayload",
                                 "OverwriteNonDefaultsWithLatestAvroPayload"])  # fmt: skip
        out[WRITE + "payload.class"] = MODELS + payload
        self.payload = payload
        self.late = payload in ("DefaultHoodieRecordPayload", "EventTimeAvroPayload")
        if payload == "OverwriteNonDefaultsWithLatestAvroPayload":
            self.flagged = False

    def _layout(self) -> None:
        draw, out = self.draw, self.options
        indexes = ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET", "RECORD_INDEX"]
        index = draw.choice(indexes)
        retained = draw.choice([1, 2, 4])
        self.moves = index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX") and self.layout not in (
            "none",
        )
        self.metadata = index == "RECORD_INDEX" or draw.random() < 0.5
        self.cleans = draw.random() < 0.5
        out |= {
            WRITE + "table.type": "MERGE_ON_READ" if self.merged else "COPY_ON_WRITE",
            "hoodie.index.type": index,
            "hoodie.metadata.enable": str(self.metadata).lower(),
            "hoodie.parquet.small.file.limit": draw.choice(["0", "104857600"]),
            "hoodie.clean.automatic": str(self.cleans).lower(),
            "hoodie.archive.automatic": draw.choice(["true", "false"]),
            "hoodie.cleaner.commits.retained": str(retained),
            "hoodie.keep.min.commits": str(retained + 1),
            "hoodie.keep.max.commits": str(retained + 2),
            "hoodie.index.bloom.num_entries": "100",
            "hoodie.parquet.compression.codec": draw.choice(
                ["gzip", "snappy", "zstd", "uncompressed", "lz4_raw"]
            ),
        }
        if self.moves:
            out |= {
                f"hoodie.{n}.update.partition.path": "true"
                for n in ("simple.index", "bloom.index", "record.index")
            }
        if index == "RECORD_INDEX":
            out["hoodie.metadata.record.index.enable"] = "true"
        if self.metadata and draw.random() < 0.6:
            out["hoodie.metadata.index.column.stats.enable"] = "true"
        if self.metadata and draw.random() < 0.3:
            out["hoodie.metadata.index.bloom.filter.enable"] = "true"
        if index == "BUCKET":
            out["hoodie.bucket.index.num.buckets"] = "2"
        elif draw.random() < 0.15:
            out |= {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"}
        if self.merged:
            out["hoodie.compact.inline"] = draw.choice(["true", "false"])
            out["hoodie.compact.inline.max.delta.commits"] = draw.choice(["1", "2", "3"])
            if draw.random() < 0.25:
                out["hoodie.logfile.data.block.format"] = "parquet"
        sizes = {
            "hoodie.parquet.max.file.size": ["1000", "20000"],
            "hoodie.parquet.block.size": ["1024", "100000"],
            "hoodie.parquet.page.size": ["200"],
            "hoodie.logfile.max.size": ["1000"],
            "hoodie.logfile.data.block.max.size": ["100", "2000"],
            "hoodie.copyonwrite.record.size.estimate": ["10"],
            "hoodie.copyonwrite.insert.split.size": ["3"],
            "hoodie.copyonwrite.insert.auto.split": ["false"],
            "hoodie.index.bloom.fpp": ["0.1"],
            "hoodie.bloom.index.filter.type": ["SIMPLE"],
            "hoodie.bloom.index.prune.by.ranges": ["false"],
            "hoodie.parquet.dictionary.enabled": ["false"],
            "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": ["true"],
        }
        out |= {k: draw.choice(v) for k, v in sizes.items() if draw.random() < 0.12}
        self.cdc = draw.random() < 0.2
        if self.cdc:
            out["hoodie.table.cdc.enabled"] = "true"
            out["hoodie.table.cdc.supplemental.logging.mode"] = draw.choice(
                ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"]
            )
        # It keeps rows that are flagged as deleted, and 0.15.0 loses lists that it wrote so with its next upsert.
        self.row_writer = (
            draw.random() < 0.3 and not self.flagged and not any(nested_list(c.type) for c in self.columns)
        )
        out[WRITE + "row.writer.enable"] = str(self.row_writer).lower()
        if any(c.until < 99 for c in self.columns):
            out["hoodie.write.set.null.for.missing.columns"] = "true"

    # --- batches ---

    def schema(self, step: int) -> pa.Schema:
        fields = [pa.field(n, t) for n, t in self.fixed]
        fields += [f for c in self.columns if (f := c.at(step)) is not None]
        if self.flagged:
            fields.append(pa.field(DELETED, pa.bool_()))
        if self.shuffles and step:
            random.Random(step).shuffle(fields)
        return pa.schema(fields)

    def key(self, n: int) -> Row:
        text = (ODD_KEYS[n % len(ODD_KEYS)] if self.odd_keys else "") + f"k{n:04d}"
        match self.key_kind:
            case "nested":
                return {"k": {"Id": text, "n": n}}
            case "two":
                kind = dict(self.fixed)["id2"]
                other = (
                    n % 3
                    if pa.types.is_integer(kind)
                    else "abc"[n % 3]
                    if pa.types.is_string(kind)
                    else FAR[n % 3 + 3]
                )
                return {"id": text, "id2": other}
            case "text":
                return {"id": text}
        values = {
            "int": n - 3, "long": (n - 3) * 10**15, "date": date(1970, 1, 1) + timedelta(days=n * 997 - 9000),
            "time": EPOCH + timedelta(seconds=n * 10**7 - 10**8, microseconds=n % 2 * 1500),
            "decimal": Decimal(n - 3) / 8, "double": (n - 3) * 1e6 + 0.5,
        }  # fmt: skip
        return {"id": values[self.key_kind]}

    def partition(self, n: int) -> Row:
        """Values of the partition columns, by a number that says which."""
        out: Row = {}
        for name, kind in self.parts:
            if name == "at":
                seconds = n % 3 * 86_400 + 1_500_000_000
                values = {"EPOCHMILLISECONDS": seconds * 1000, "UNIX_TIMESTAMP": seconds,
                          "DATE_STRING": f"2020-02-0{n % 3 + 1}T10:11"}  # fmt: skip
                out[name] = values[self.time_kind]
            elif name == "g":
                out[name] = {"p": self.cities[n % len(self.cities)]}
            elif pa.types.is_string(kind):
                out[name] = ("a", None, "b")[n % 3] if name == "q" else self.cities[n % len(self.cities)]
            else:
                some: tuple[Any, ...]
                if pa.types.is_boolean(kind):
                    some = (True, False, None)
                elif pa.types.is_date(kind):
                    some = (date(2024, 2, 29), date(1969, 12, 31), None)
                elif pa.types.is_timestamp(kind):
                    some = (
                        EPOCH,
                        datetime(2024, 2, 29, 1, 2, 3, 456789, UTC),
                        datetime(1960, 1, 1, 0, 0, 1, tzinfo=UTC),
                    )
                elif pa.types.is_decimal(kind):
                    some = (Decimal("1.50"), Decimal("-2.00"), Decimal("0.00"))
                elif pa.types.is_floating(kind):
                    some = (1.0, -0.5, 1e22)
                else:
                    some = (1, -2, None)
                out[name] = some[n % 3]
        return out

    def order(self, clock: int) -> Any:
        kind = self.ordering[1]
        if pa.types.is_integer(kind):
            return clock
        if pa.types.is_string(kind):
            return f"{clock:08d}"
        if pa.types.is_date(kind):
            return date(2020, 1, 1) + timedelta(days=clock - 1000)
        if pa.types.is_timestamp(kind):
            return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=clock)
        if pa.types.is_decimal(kind):
            return Decimal(clock) / 8
        return clock / 4

    def row(self, n: int, step: int, *, where: int | None = None, late: int = 0) -> Row:
        draw = self.draw
        out = {
            **self.key(n),
            **self.partition(n if where is None else where),
            "ts": self.order(self.clock - late),
        }
        for c in self.columns:
            f = c.at(step)
            if f is not None:
                out[c.name] = draw.maybe(f.type, c.nulls)
        if self.flagged:
            out[DELETED] = draw.random() < 0.15
        out["#"] = n
        out["@"] = where if where is not None else n
        return out

    def batch(self, step: int) -> tuple[str, list[Row], dict[str, str]]:
        """The next operation, its rows and options of its own."""
        draw = self.draw
        self.clock += 10
        some = sorted(self.live)
        if step == 0 or not some:
            operation = draw.choice(["insert", "upsert", "bulk_insert"])
        else:
            operation = draw.choice(["upsert"] * 7 + ["insert", "delete", "delete", "insert_overwrite", "bulk_insert",
                                     "insert_overwrite_table", "delete_partition", "empty"])  # fmt: skip
        if operation == "empty":
            return draw.choice(["upsert", "insert", "delete"]), [], {}
        rows: list[Row] = []
        match operation:
            case "delete":
                chosen = draw.sample(some, min(len(some), draw.randint(1, 5)))
                rows = [self.row(n, step, where=self.live[n]["@"], late=-1) for n in chosen]
                for n in chosen:
                    del self.live[n]
            case "delete_partition":
                return operation, [], {}
            case "upsert":
                rows = self.new(draw.randint(0, 6), step)
                for n in draw.sample(some, min(len(some), draw.randint(1, 9))):
                    where = draw.randint(0, 5) if self.moves and draw.random() < 0.3 else self.live[n]["@"]
                    late = draw.choice([0, 0, 0, 900]) if self.late else 0
                    rows.append(self.row(n, step, where=where, late=late))
                if rows and draw.random() < 0.3:
                    n = draw.choice(rows)["#"]
                    again = next(r for r in rows if r["#"] == n)
                    rows.append({**self.row(n, step, where=again["@"]), "ts": self.order(self.clock + 1)})
            case _:
                rows = self.new(draw.randint(3, 14), step)
        for r in rows if operation != "delete" else ():
            self.live[r["#"]] = r
        return operation, rows, {}

    def new(self, count: int, step: int) -> list[Row]:
        first, self.next = self.next, self.next + count
        return [self.row(n, step) for n in range(first, first + count)]

    def table(self, rows: list[Row], step: int) -> pa.Table:
        kept = [{k: v for k, v in r.items() if k not in "#@"} for r in rows]
        return pa.Table.from_pylist(kept, schema=self.schema(step))


def nested_list(kind: pa.DataType) -> bool:
    """Whether there is a list in a type."""
    if pa.types.is_list(kind):
        return True
    if pa.types.is_map(kind):
        return nested_list(kind.item_type)
    return pa.types.is_struct(kind) and any(nested_list(f.type) for f in kind)
