"""Tagging: which file group each incoming row goes to, among given files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import ConcurrentWriterError
from hudi_format.model import BaseFile
from hudi_format.storage.open import open_storage
from hudi_index.lookup import GLOBAL_SIMPLE, SIMPLE, LookupTask
from hudi_index.tagging import MOVED, check_files, tag_rows

PARTITIONS = ("p", "q")


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path))


def stored(tmp_path, partition, file_id, keys):
    name = f"{file_id}_0-0-0_20260101000000000.parquet"
    (tmp_path / partition).mkdir(exist_ok=True)
    pq.write_table(pa.table({"_hoodie_record_key": pa.array(keys, pa.string())}), tmp_path / partition / name)
    size = (tmp_path / partition / name).stat().st_size
    return BaseFile(partition, name, file_id, "20260101000000000", size=size)


def tag(storage, files, keys, codes, index):
    rows = pa.table({"_hoodie_record_key": pa.array(keys, pa.string()), "v": pa.array(range(len(keys)))})
    return tag_rows(rows, np.array(codes), PARTITIONS, storage, files, LookupTask(index=index), threads=2)


def places(tagged):
    """(v, partition, file id or "", whether the row deletes it there) of each row."""
    moved = (
        tagged.rows[MOVED] if MOVED in tagged.rows.schema.names else [pa.scalar(False)] * len(tagged.codes)
    )
    return sorted(
        (
            v.as_py(),
            tagged.partitions[code],
            tagged.files[at][1] if at >= 0 else "",
            bool(leaves.as_py()),
        )
        for v, code, at, leaves in zip(tagged.rows["v"], tagged.codes, tagged.location, moved, strict=True)
    )


def test_a_key_goes_to_every_file_of_its_partition_that_holds_it(tmp_path, storage):
    files = {"p": [stored(tmp_path, "p", "f1", ["a", "b"]), stored(tmp_path, "p", "f2", ["b"])]}
    tagged = tag(storage, files, ["a", "b", "c", "a"], [0, 0, 0, 1], SIMPLE)
    assert places(tagged) == [
        (0, "p", "f1", False), (1, "p", "f1", False), (1, "p", "f2", False), (2, "p", "", False), (3, "q", "", False),
    ]  # fmt: skip
    assert (tagged.count.files, tagged.count.opened) == (2, 2)


def test_a_global_index_deletes_a_record_in_its_old_partition_and_inserts_it_into_its_own(tmp_path, storage):
    files = {"p": [stored(tmp_path, "p", "f1", ["a", "b"])], "q": []}
    tagged = tag(storage, files, ["a", "b"], [0, 1], GLOBAL_SIMPLE)
    assert places(tagged) == [(0, "p", "f1", False), (1, "p", "f1", True), (1, "q", "", False)]


def test_rows_that_stand_in_a_file_that_was_written_again_are_refused(tmp_path):
    file = stored(tmp_path, "p", "f1", ["a"])
    name = file.name
    check_files({("p", name): 3}, {"p": [file]}, table="t")
    with pytest.raises(ConcurrentWriterError, match=r"2 rows .* was rewritten as p/f1_0-0-0"):
        check_files({("p", "f1_0-0-0_20250101000000000.parquet"): 2}, {"p": [file]}, table="t")
