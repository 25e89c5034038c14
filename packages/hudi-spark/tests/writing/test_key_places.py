"""Places that look-ups hand back: one shape for all workers, whatever of stored records is needed."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.merge.payloads import payload_rule
from hudi_format.model import BaseFile
from hudi_index.hashing.java import crc32
from hudi_index.lookup import GLOBAL_SIMPLE, LookupTask
from hudi_spark.types import to_arrow_schema
from hudi_spark.writing.key_places import CHECKSUM, PATH, ROW_ID, found_type, place_batch, place_type
from hudi_spark.writing.key_stages import COMPARED, marks
from hudi_spark.writing.stored_keys import FILE_ID

FILE = BaseFile("p", "f0_0-0-0_1.parquet", "f0", "1")
ROWS = pa.table({ROW_ID: [7, 8, 9], "_hoodie_record_key": ["a", "b", "c"]})


def tasks():
    plain = LookupTask(index=GLOBAL_SIMPLE, update_partition=True, combine=True, rule=payload_rule(None))
    filling = payload_rule("org.apache.hudi.common.model.PartialUpdateAvroPayload")
    return {"plain": plain, "filling": replace(plain, rule=filling)}


@pytest.mark.parametrize("name", ["plain", "filling"])
def test_places_and_marks_have_the_declared_types(name):
    task = tasks()[name]
    wanted = to_arrow_schema(found_type(task))
    assert (PATH in wanted.names) == (name == "filling")
    batch = place_batch(task, ROWS, np.array([2, 0]), FILE, np.array([True, False]))
    assert batch.schema.types == wanted.types
    assert batch.column(0).to_pylist() == [9, 7]
    assert batch.column(1).to_pylist() == crc32(pa.array(["c", "a"])).to_pylist()
    assert set(batch.column(2).to_pylist()) == {"f0"}
    lost = place_batch(task, ROWS, None, None)
    assert lost.column(2).null_count == 3
    marked = marks(found_type(task), np.array([9]), COMPARED)
    assert marked.schema == wanted
    assert (marked.column(ROW_ID)[0].as_py(), marked.column(FILE_ID)[0].as_py()) == (9, COMPARED)


def test_a_place_says_all_but_its_row():
    for task in tasks().values():
        names = set(found_type(task).names)
        assert set(place_type(task).names) == names - {ROW_ID, CHECKSUM}
