"""Merge functions for tests: executors and other processes import them by name."""

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.merge.user_merger import Merged


def fail(old, new, context):
    raise RuntimeError("on purpose")


def add_up(old, new, context):
    """The sum of `count`; a record whose sum is zero goes; else the later record's values."""
    total = pc.add(pc.fill_null(old["count"], 0), pc.fill_null(new["count"], 0))
    rows = pa.table({"count": total})
    return Merged(rows, pc.equal(total, 0))


def newest(old, new, context):
    """The record with the greater ordering value, the later among equals."""
    take = pc.fill_null(pc.greater_equal(context.new_ordering, context.old_ordering), True)
    columns = [pc.if_else(take, n, o) for o, n in zip(old.columns, new.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=new.schema)


def too_short(old, new, context):
    return new.slice(1)


def no_table(old, new, context):
    return 7


def moves_keys(old, new, context):
    place = new.schema.get_field_index("id")
    return new.set_column(place, "id", pc.binary_join_element_wise(new["id"], "x", ""))


def strange_column(old, new, context):
    return new.append_column("more", new["count"])


def average(old, new, context):
    """The mean of `n`, rounded: a merge that keeps no law."""
    mean = pc.divide(pc.add(pc.fill_null(old["n"], 0), pc.fill_null(new["n"], 9)), 2)
    return new.set_column(new.schema.get_field_index("n"), "n", mean)


def later_b(old, new, context):
    """The later record's `b`, all else as it was."""
    return old.set_column(old.schema.get_field_index("b"), "b", new["b"])


def in_unit(old, new, context):
    """The sum of `count`, times what the properties say."""
    total = pc.multiply(pc.add(old["count"], new["count"]), int(context.properties["times"]))
    return pa.table({"count": total})


def first_of(new, context):
    """A record of which nothing is stored: named by the properties; one of a negative count is dropped."""
    name = pa.repeat(pa.scalar(context.properties["name"]), new.num_rows)
    return Merged(pa.table({"name": name}), pc.less(new["count"], 0))
