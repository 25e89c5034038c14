"""Tagging: which file group each incoming row goes to, among given files."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import ConcurrentWriterError, MissingColumnError
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.open import open_storage
from hudi_index.lookup import GLOBAL_SIMPLE, SIMPLE, LookupTask
from hudi_index.tagging import MOVED, check_files, refuse_changed, tag_rows

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


def logged_slices(*groups, **merge):
    slices = {g: FileSlice(*g, "1", None, (LogFile(*g, "1", 1, "0-0-0"),)) for g in groups}
    return LoggedSlices(slices, SliceMerge(payload_rule(None), **merge), pa.schema([]))


def test_groups_with_logs_are_to_be_compared_by_version_whatever_file_is_named(tmp_path):
    files = {"p": [stored(tmp_path, "p", "f1", ["a"]), stored(tmp_path, "p", "f2", ["b"])], "q": []}
    logged = logged_slices(("p", "f1"), ("q", "f3"))
    counted = {
        ("p", "f1_0-0-0_20200101000000000.parquet"): 1, ("p", "f1"): 2, ("q", "f3"): 3, ("p", files["p"][1].name): 4,
    }  # fmt: skip
    columns = ["_hoodie_commit_seqno"]
    beside = check_files(counted, files, logged, columns=columns, table="t")
    assert sorted(beside) == [("p", "f1"), ("q", "f3")]
    known = replace(logged, compared=frozenset([("q", "f3")]))
    assert check_files(counted, files, known, columns=columns, table="t") == (("p", "f1"),)
    with pytest.raises(MissingColumnError, match=r"6 rows .* have no _hoodie_commit_seqno"):
        check_files(counted, files, logged, table="t")
    virtual = logged_slices(*logged.slices, key_spec=KeySpec(("id",), (), "NON_PARTITION"))
    with pytest.raises(ConcurrentWriterError, match=r"6 rows .* no meta columns"):
        check_files(counted, files, virtual, columns=columns, table="t")
    for place in (("p", "f2"), ("q", "f1"), ("p", "f4"), ("r", "f3"), ("p", "")):
        with pytest.raises(ConcurrentWriterError, match="1 rows name 1 files"):
            check_files({**counted, place: 1}, files, logged, columns=columns, table="t")


def test_changed_rows_are_refused_with_their_number():
    refuse_changed({("p", "f1"): 0, ("", "f2"): 0}, table="t")
    refuse_changed({}, table="t")
    with pytest.raises(ConcurrentWriterError, match=r"5 rows of 2 file groups .*, first f3, were changed"):
        refuse_changed({("p", "f1"): 2, ("p", "f2"): 0, ("", "f3"): 3}, table="t")
