"""Writers for simulations: tables in memory, and acts that say what they mean for its rows."""

import pyarrow as pa
import pyarrow.compute as pc

from hudi_timeline import HudiTable
from hudi_timeline.testing import Act

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
INITIAL = {"a": (0,), "b": (0,), "c": (0,)}
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
OPTIONS = {RETRIES: "3", "hoodie.parquet.small.file.limit": "0"}


def rows(values):
    return pa.table({"id": list(values), "v": list(values.values())}, SCHEMA)


def make(storage, *, kind="COPY_ON_WRITE"):
    table = HudiTable.create(storage, SCHEMA, record_keys="id", name="t", table_type=kind)
    table.upsert(rows({"a": 0, "b": 0}), options={"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows({"c": 0}), options={"hoodie.parquet.small.file.limit": "0"})


def upsert(**values):
    return Act(
        lambda t: t.upsert(rows(values)),
        lambda there: {**there, **{k: (v,) for k, v in values.items()}},
        f"upsert {values}",
    )


def insert(**values):
    return Act(
        lambda t: t.insert(rows(values)),
        lambda there: {**there, **{k: (v,) for k, v in values.items()}},
        f"insert {values}",
    )


def delete(*keys):
    return Act(
        lambda t: t.delete(rows(dict.fromkeys(keys, 0))),
        lambda there: {k: v for k, v in there.items() if k not in keys},
        f"delete {keys}",
    )


def increment():
    """An update that reads what it writes."""
    return Act(
        lambda t: t.update({"v": pc.add(pc.field("v"), 1)}, "v < 1000"),
        lambda there: {k: (v + 1,) for k, (v,) in there.items()},
        "v + 1",
    )


def overwrite(**values):
    return Act(
        lambda t: t.insert_overwrite_table(rows(values)),
        lambda there: {k: (v,) for k, v in values.items()},
        f"overwrite {values}",
    )


def clean():
    return Act(lambda t: t.clean(), name="clean")


ACTORS = {
    "updates of one key": {"one": [upsert(a=1), upsert(a=3)], "two": [upsert(a=2, b=2)]},
    "updates and a deletion": {
        "one": [upsert(a=1, c=1)],
        "two": [delete("a", "c")],
        "three": [upsert(n=3, c=3)],
    },
    "updates of what was read": {"one": [increment()], "two": [increment()], "three": [upsert(a=100, c=100)]},
    "an overwrite": {"one": [overwrite(z=1)], "two": [upsert(a=2, n=2)]},
    "additions and a cleaning": {
        "one": [insert(m=1), insert(n=1)],
        "two": [insert(o=2)],
        "three": [clean(), upsert(a=3)],
    },
    "one new key": {"one": [upsert(n=1)], "two": [upsert(n=2, a=2)], "three": [upsert(b=3)]},
}

# Where two writers may add one key, which by file groups would be two rows.
_BY_KEYS = {**OPTIONS, "hudi.write.conflict.detection": "keys"}
OPTIONS_OF = {"updates and a deletion": _BY_KEYS, "one new key": _BY_KEYS}
