"""Every slice with logs in two parts: base rows as they are, and the rows that logs change or add."""

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from golden_tables import ROOT, golden

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import HudiError

FOLDERS = sorted(p.name for p in ROOT.iterdir() if p.is_dir() and any(p.glob("*.zip")))
TABLES = [t for f in FOLDERS if f != "hfile" for t in golden(f)]


def rows(table):
    return table.schema.names, sorted(map(repr, table.to_pylist()))


def in_two_parts(task):
    base = replace(
        task.base_file(),
        schema=task.merge_schema,
        columns=None,
        constants=None,
        filter=None,
        filter_columns=(),
    )
    whole = replace(task, logs=None, merge=None, merge_schema=None)
    positions = task.changed_positions()
    assert (np.diff(positions) > 0).all()
    assert base.path or not len(positions)
    stored = whole.to_table() if base.path else task.schema.empty_table()
    assert not len(positions) or positions[-1] < stored.num_rows
    stays = np.ones(stored.num_rows, bool)
    stays[positions] = False
    changed = pa.Table.from_batches(task.changed_batches(), task.schema)
    return pa.concat_tables([stored.filter(pa.array(stays)), changed])


@pytest.mark.sampled(20)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_both_parts_are_the_merged_rows(opened, table):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tasks = opened(table).read().plan_files()
    except HudiError:
        pytest.skip("no snapshot of this table is given")
    tasks = [t for t in tasks if t.logs is not None]
    if not tasks:
        pytest.skip("no logs")
    for task in tasks:
        try:
            want = task.to_table()
        except HudiError as e:
            with pytest.raises(type(e)):
                in_two_parts(task)
            continue
        assert rows(in_two_parts(task)) == rows(want)
        tight = replace(task, merge=replace(task.merge, limit=MemoryLimit(1)))
        assert rows(in_two_parts(tight)) == rows(want)
