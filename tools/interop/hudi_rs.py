"""hudi-rs, the second independent reader."""

from __future__ import annotations

import os

import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder


def read(path: str | os.PathLike[str], *, as_of: str | None = None) -> pa.Table:
    """The rows of a table's snapshot as hudi-rs gives them, at an instant or now."""
    table = HudiTableBuilder.from_base_uri(str(path)).build()
    options = HudiReadOptions() if as_of is None else HudiReadOptions().with_as_of_timestamp(as_of)
    batches = [pa.record_batch(b) for b in table.read(options)]
    if not batches:
        return pa.schema(table.get_schema_with_meta_fields()).empty_table()
    return pa.Table.from_batches(batches)
