"""Functions in the place of a partitioner class of bulk_insert."""

import pyarrow as pa


def backwards(rows: pa.Table, tasks: int | None) -> pa.Table:
    assert tasks == 3
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))


def fewer(rows: pa.Table, tasks: int | None) -> pa.Table:
    return rows.slice(1)
