"""What tasks of a write tell the driver."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.model import WriteStat
from hudi_spark.writing.write_tasks import ERROR, MOST_KEYS, STATS, stats_row, statuses


def rows_of(batch: pa.RecordBatch) -> list[tuple[str, bytes]]:
    return [(r["kind"], r["payload"]) for r in batch.to_pylist()]


@pytest.mark.parametrize("count", [0, 1, MOST_KEYS, MOST_KEYS + 1])
def test_new_keys_go_through_the_driver_while_they_are_few(count: int) -> None:
    keys = pa.array([f"k{n}" for n in range(count)], pa.string())
    stat = WriteStat(file_id="f", path="p/f.parquet", partition="p", new_keys=keys)
    batch = stats_row([stat, replace(stat, new_keys=None)])
    assert batch.column("kind").to_pylist() == [STATS]
    told, untold = statuses(rows_of(batch))
    assert (told, untold.new_keys) == (stat, None)
    assert (told.new_keys is None) == (count > MOST_KEYS)
    assert told.new_keys is None or told.new_keys.equals(keys)


def test_the_first_error_of_a_task_is_raised() -> None:
    rows = [
        *rows_of(stats_row([])),
        (ERROR, pickle.dumps(SchemaError("one"))),
        (ERROR, pickle.dumps(SchemaError("two"))),
    ]
    with pytest.raises(SchemaError, match="one"):
        statuses(rows)
