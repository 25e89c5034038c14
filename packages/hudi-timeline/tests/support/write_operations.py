"""Every operation that writes, on the table that `bad_input.make` makes."""

import pyarrow as pa
from bad_input import rows


def incoming():
    """a is updated, x is new, in partitions c0 and new."""
    return rows("a", "x", city=["c0", "new"], ts=pa.array([5, 5], pa.int64()), fare=[-7.0, 8.0])


OPERATIONS = {
    "insert": lambda t, **k: t.insert(incoming(), **k),
    "upsert": lambda t, **k: t.upsert(incoming(), **k),
    "bulk_insert": lambda t, **k: t.bulk_insert(incoming(), **k),
    "stream": lambda t, **k: t.bulk_insert(incoming().to_reader(1), **k),
    "insert_overwrite": lambda t, **k: t.insert_overwrite(incoming(), **k),
    "insert_overwrite_table": lambda t, **k: t.insert_overwrite_table(incoming(), **k),
    "delete": lambda t, **k: t.delete(rows("a"), **k),
    "delete_filter": lambda t, **k: t.delete("id = 'a'", **k),
    "delete_partition": lambda t, **k: t.delete_partitions("c0", **k),
}
