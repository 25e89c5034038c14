"""Rows of a table that pass an expression, without `Table.filter`.

`pyarrow.acero`, which that goes through, imports `pyarrow.dataset` and with it pandas, where that is installed; the
module below it needs neither.  No threads are started: callers filter small tables.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def filtered(table: pa.Table, expression: pc.Expression) -> pa.Table:
    """The rows for which `expression` is true.

    Raises:
        pyarrow.ArrowInvalid, ArrowNotImplementedError, ArrowTypeError: it does not fit the table's columns.
    """
    from pyarrow._acero import Declaration, FilterNodeOptions, TableSourceNodeOptions

    steps = [
        Declaration("table_source", TableSourceNodeOptions(table)),
        Declaration("filter", FilterNodeOptions(expression)),
    ]
    return Declaration.from_sequence(steps).to_table(use_threads=False)
