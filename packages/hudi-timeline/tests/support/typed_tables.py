"""Tables with a column of each type."""

import datetime
import decimal

import pyarrow as pa

from hudi_timeline import HudiTable

NULLS = {"hoodie.write.set.null.for.missing.columns": True}
GROW = {"hudi.write.types": "data"}
UTC = datetime.timezone.utc  # noqa: UP017  Arrow gives this one back
D = decimal.Decimal
DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30)

TYPES = {
    "flag": pa.bool_(),
    "n": pa.int32(),
    "big": pa.int64(),
    "f": pa.float32(),
    "fare": pa.float64(),
    "city": pa.string(),
    "raw": pa.binary(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "money": pa.decimal128(8, 2),
    "l": pa.list_(pa.field("element", pa.int32())),
    "s": pa.struct([("x", pa.int32()), ("y", pa.string())]),
    "m": pa.map_(pa.string(), pa.float64()),
    "ls": pa.list_(pa.field("element", pa.struct([("q", pa.int32())]))),
}
SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), *TYPES.items()])


def create(path, schema=SCHEMA, **more):
    # So that a column of times may be without a zone.
    options = {"hudi.write.types": "data"}
    HudiTable.create(str(path), schema, name="t", record_keys=["id"], options=options, **more)
    return HudiTable.open(str(path))


def stored(table, column, id=1):
    rows = table.read(["id", column]).to_arrow().to_pylist()
    return next(r[column] for r in rows if r["id"] == id)
