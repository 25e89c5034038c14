"""Values that tasks of a write are made of: plain, picklable, and enough for a worker."""

import pickle

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.model import BaseFile
from hudi_index.tagging import MOVED, STORED_IN
from hudi_timeline.writing.workers.tasks import MERGE, Bucket, InsertShare, Routing, TaskToken, as_written

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def test_a_token_is_that_of_file_names():
    assert TaskToken(3, 2, 1).text == "3-2-1"
    assert TaskToken().text == "0-0-0"


def test_a_bucket_costs_its_file_and_its_rows():
    old = BaseFile("p", "f_0-0-0_1.parquet", "f", "1", "0-0-0", 5000)
    assert Bucket(0, "p", MERGE, "f", old, expected_rows=3).expected_bytes == 5300
    assert Bucket(0, "p", MERGE, "f", expected_rows=3).expected_bytes == 300


def test_a_routing_crosses_processes():
    made = Routing(
        (Bucket(0, "p", MERGE, "f"),), {("p", "f"): 0}, {"p": (InsertShare(0.5, 0), InsertShare(1.0, 1))}
    )
    assert pickle.loads(pickle.dumps(made)) == made


def test_rows_take_the_types_to_write_and_keep_where_they_come_from():
    rows = pa.table({"n": pa.array([1], pa.int32()), "id": ["a"], MOVED: [True], STORED_IN: ["f"]})
    made = as_written(rows, SCHEMA)
    assert made.schema.names == ["id", "n", MOVED, STORED_IN]
    assert made.schema.field("n").type == pa.int64()
    assert as_written(pa.table({"id": ["a"]}), SCHEMA)["n"].null_count == 1
    with pytest.raises(SchemaError):
        as_written(pa.table({"id": ["a"], "n": ["x"]}), SCHEMA)
