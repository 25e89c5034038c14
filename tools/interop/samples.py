"""Small tables of every shape, for round trips between engines, and a plain model of what they must hold."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pyarrow as pa

Row = dict[str, Any]

TRIPS = pa.schema(
    [
        ("uuid", pa.string()),
        ("city", pa.string()),
        ("kind", pa.string()),
        ("ts", pa.int64()),
        ("rider", pa.string()),
        ("fare", pa.float64()),
        ("qty", pa.int32()),
    ]
)

ALL_TYPES = pa.schema(
    [
        *TRIPS,
        ("c_boolean", pa.bool_()),
        ("c_int", pa.int32()),
        ("c_long", pa.int64()),
        ("c_float", pa.float32()),
        ("c_double", pa.float64()),
        ("c_decimal_5_2", pa.decimal128(5, 2)),
        ("c_decimal_18_6", pa.decimal128(18, 6)),
        ("c_decimal_38_18", pa.decimal128(38, 18)),
        ("c_date", pa.date32()),
        ("c_timestamp", pa.timestamp("us", "UTC")),
        ("c_binary", pa.binary()),
        ("c_array", pa.list_(pa.int32())),
        ("c_arrays", pa.list_(pa.list_(pa.string()))),
        ("c_map", pa.map_(pa.string(), pa.int64())),
        ("c_struct", pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.date32())]))])),
        ("c_structs", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.decimal128(20, 4))]))),
        ("c_map_structs", pa.map_(pa.string(), pa.struct([("n", pa.int32()), ("w", pa.timestamp("us", "UTC"))]))),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How a table is keyed and laid out.

    `options` are Apache Hudi's own, apart from name, keys, partition and ordering field.
    """

    name: str
    keys: tuple[str, ...] = ("uuid",)
    partitions: tuple[str, ...] = ("city",)
    hive_style: bool = False
    url_encode: bool = False
    schema: pa.Schema = TRIPS
    cities: tuple[str | None, ...] = ("oslo", "pune", "sao_paulo")
    kinds: tuple[str, ...] = ("bike", "car")
    options: Mapping[str, str] = field(default_factory=dict)

    def write_options(self) -> dict[str, str]:
        """The options of a DataFrame write that makes or continues this table."""
        out = {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.recordkey.field": ",".join(self.keys),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partitions),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": str(self.hive_style).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(self.url_encode).lower(),
            **self.options,
        }
        if not self.partitions:
            del out["hoodie.datasource.write.partitionpath.field"]
        return out

    def path_of(self, row: Row) -> str:
        """The partition path of a row (KeyGenUtils of Apache Hudi)."""
        parts = []
        for name in self.partitions:
            value = str(row[name] or "__HIVE_DEFAULT_PARTITION__")
            # URLEncoder of Java; the values here hold nothing on which Python's differs.
            value = quote(value, safe="*-._").replace("%20", "+") if self.url_encode else value
            parts.append(f"{name}={value}" if self.hive_style else value)
        return "/".join(parts)


_KEYGEN = "hoodie.datasource.write.keygenerator.class"

SHAPES: dict[str, Shape] = {
    s.name: s
    for s in (
        Shape("simple"),
        Shape(
            "complex",
            keys=("uuid", "kind"),
            partitions=("city", "kind"),
            options={_KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator"},
        ),
        Shape(
            "nonpartitioned",
            partitions=(),
            options={_KEYGEN: "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
        ),
        Shape("hive_style", hive_style=True),
        Shape(
            "url_encoded",
            keys=("uuid", "kind"),
            partitions=("city", "kind"),
            hive_style=True,
            url_encode=True,
            cities=("são paulo", "a/b", "x=y%z", "oslo"),
            options={_KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator"},
        ),
        Shape("all_types", schema=ALL_TYPES),
    )
}


class Model:
    """What a table must hold: rows by partition path and record key."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.rows: dict[tuple[str, ...], Row] = {}

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(list(self.rows.values()), schema=self.shape.schema)

    def apply(self, operation: str, rows: Sequence[Row] = (), partitions: Sequence[str] = ()) -> None:
        """Do what the operation does; payload OverwriteWithLatest, no key twice in `rows`."""
        if operation == "insert_overwrite_table":
            self.rows = {}
        elif operation == "insert_overwrite":
            self._drop({self.shape.path_of(r) for r in rows})
        elif operation == "delete_partition":
            self._drop(set(partitions))
        for row in rows:
            if operation == "delete":
                self.rows.pop(self._key(row), None)
            else:
                self.rows[self._key(row)] = row

    def _drop(self, paths: set[str]) -> None:
        self.rows = {k: r for k, r in self.rows.items() if k[0] not in paths}

    def _key(self, row: Row) -> tuple[str, ...]:
        return (self.shape.path_of(row), *(str(row[k]) for k in self.shape.keys))


class Rows:
    """Makes rows of a shape; the same seed makes the same rows.

    Args:
        null_elements: whether lists hold nulls.  Apache Hudi's own writer cannot: it writes lists in Parquet's
            old structure, unless `parquet.avro.write-old-list-structure` is false.
    """

    def __init__(self, shape: Shape, seed: int = 1, *, null_elements: bool = False) -> None:
        self.shape = shape
        self._null_elements = null_elements
        self._rng = random.Random(f"{shape.name}/{seed}")
        self._next, self._clock = 1, 1000

    def new(self, n: int) -> list[Row]:
        """`n` rows with keys that were not given before."""
        ids = range(self._next, self._next + n)
        self._next += n
        self._clock += 1
        return [self._row(f"id-{i:05d}") for i in ids]

    def changed(self, rows: Iterable[Row], n: int) -> list[Row]:
        """New versions of `n` of the rows: same key and partition, newer ordering value."""
        self._clock += 1
        fixed = {"uuid", "city", "kind"}
        picked = self._rng.sample(list(rows), n)
        return [self._row(r["uuid"]) | {k: r[k] for k in fixed} for r in picked]

    def some(self, rows: Iterable[Row], n: int) -> list[Row]:
        """`n` of the rows, as they are."""
        return self._rng.sample(list(rows), n)

    def _row(self, uuid: str) -> Row:
        rng, out = self._rng, {}
        for column in self.shape.schema:
            out[column.name] = None if rng.random() < 0.15 else _value(rng, column.type, self._null_elements)
        return out | {
            "uuid": uuid,
            "city": rng.choice(self.shape.cities),
            "kind": rng.choice(self.shape.kinds),
            "ts": self._clock,
            "rider": rng.choice([None, "ann", "zoë", "日本", "", 'quo"te', "tab\there", "a,b;c"]),
        }


def _value(rng: random.Random, kind: pa.DataType, null_elements: bool) -> Any:
    """A value of a type, null inside nested ones now and then, extremes too."""
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - 1)
        return rng.choice([0, -1, top - 1, -top, rng.randint(-min(top, 1000), min(top - 1, 1000))])
    if pa.types.is_float32(kind):
        return rng.choice([0.0, -1.5, 2.0**100, 0.15625])
    if pa.types.is_floating(kind):
        return rng.choice([0.0, -0.0, 1e300, -1e-300, float("inf"), rng.uniform(-10, 10)])
    if pa.types.is_decimal(kind):
        top = 10**kind.precision - 1
        unscaled = rng.choice([0, top, -top, rng.randint(-top, top)])
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.scale))
    if pa.types.is_date(kind):
        return date(1970, 1, 1) + timedelta(days=rng.randint(-20000, 40000))
    if pa.types.is_timestamp(kind):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randint(-(10**15), 4 * 10**15))
    if pa.types.is_binary(kind):
        return rng.randbytes(rng.randint(0, 9))
    if pa.types.is_string(kind):
        return rng.choice(["", "x", "日本語", "\U0001f6b2", "a\nb"])
    if pa.types.is_list(kind):
        make = _maybe if null_elements else _value
        return [make(rng, kind.value_type, null_elements) for _ in range(rng.randint(0, 3))]
    if pa.types.is_map(kind):
        names = rng.sample(["a", "b", "ключ", ""], rng.randint(0, 3))
        return [(n, _maybe(rng, kind.item_type, null_elements)) for n in names]
    if pa.types.is_struct(kind):
        return {f.name: _maybe(rng, f.type, null_elements) for f in kind}
    raise TypeError(f"no sample value for {kind}")


def _maybe(rng: random.Random, kind: pa.DataType, null_elements: bool) -> Any:
    return None if rng.random() < 0.2 else _value(rng, kind, null_elements)
