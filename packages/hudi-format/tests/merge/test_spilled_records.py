"""Merges beyond their memory limit: the same rows in the same order, little memory, nothing left on disk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import SANITIZED
from slice_strategies import PLACES, RULES, blocks, log_parts, records, with_places
from slices import SCHEMA, rows_of, write_slice

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import CorruptFileError, MergeFunctionError, SpillError
from hudi_format.file_slice.reader import LogRecords, SliceMerge, read_file_slice
from hudi_format.log.corruption import CommittedRange
from hudi_format.merge.payloads import PAYLOADS
from hudi_format.merge.user_merger import custom_rule
from hudi_format.storage.open import open_storage


def read(storage, file_slice, merge, schema=SCHEMA, **more):
    return pa.Table.from_batches(read_file_slice(storage, file_slice, merge, schema, **more), schema)


@pytest.mark.req("QR-06", "NEW-24", "PM-15")
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.custom or r.name + "-fill" * r.fills)
@settings(max_examples=25 if os.environ.get("HUDI_SOAK") else 8, deadline=None)
@given(base=records, given_blocks=blocks, with_base=st.booleans())
@pytest.mark.sampled(4)
def test_what_was_spilled_is_what_would_have_come_from_memory(
    tmp_path_factory, rule, base, given_blocks, with_base
):
    storage = open_storage(str(tmp_path_factory.mktemp("slice")))
    merge, schema = SliceMerge(rule, "ts"), SCHEMA
    if rule.sequence:
        schema, base, given_blocks = PLACES, with_places(base), [with_places(b) for b in given_blocks]
    stored = rows_of(base, "1", schema) if with_base else None
    parts = log_parts(given_blocks, schema)
    file_slice = write_slice(storage, stored, parts, row_group_rows=3, schema=schema, files=2)
    want = read(storage, file_slice, merge, schema)
    found = read(storage, file_slice, merge, schema, memory_limit=1)
    assert found.to_pylist() == want.to_pylist()


def many(rows, keys, seed):
    """Rows of wide text under keys drawn at random."""
    picked = pc.cast(pc.multiply(pc.random(rows, initializer=seed), keys), pa.int64(), safe=False)
    keys = pc.binary_join_element_wise("k", pc.utf8_lpad(picked.cast(pa.string()), 7, "0"), "")
    columns = {name: pa.nulls(rows, SCHEMA.field(name).type) for name in SCHEMA.names}
    columns |= {
        "_hoodie_commit_time": pa.repeat(str(100 + seed), rows),
        "_hoodie_record_key": keys,
        "ts": pa.array(range(rows), pa.int64()),
        "text": pc.binary_repeat("x", pc.add(pc.bit_wise_and(picked, 63), 20)),
    }
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A slice of 40,000 base rows and 60,000 log records, and what reading it gives."""
    storage = open_storage(str(tmp_path_factory.mktemp("large")))
    base = many(40_000, 10**7, 1).sort_by("_hoodie_record_key")
    taken = base.slice(0, 20_000).set_column(0, SCHEMA.field(0), pa.repeat("100", 20_000))
    logs = [taken, *(many(10_000, 50_000, n) for n in range(2, 6))]
    logs.insert(3, (base.column("_hoodie_record_key").slice(5_000, 1_000).combine_chunks(), None))
    file_slice = write_slice(storage, base, logs, row_group_rows=5_000, files=2)
    merge = SliceMerge(PAYLOADS["DefaultHoodieRecordPayload"], "ts")
    return storage, file_slice, merge, read(storage, file_slice, merge)


# Four parts, and as many as there can be at once.
@pytest.mark.req("QR-06", "NEW-24")
@pytest.mark.parametrize("limit", [8_000_000, 3_000_000])
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.sampled(3)
def test_many_rows_come_out_in_the_order_of_memory(large, limit, compress, tmp_path):
    storage, file_slice, merge, want = large
    asked = SliceMerge(merge.rule, "ts", limit=MemoryLimit(limit, str(tmp_path), compress))
    assert read(storage, file_slice, asked).equals(want)
    assert not os.listdir(tmp_path)


@pytest.mark.req("QR-06")
def test_records_go_to_disk_only_beyond_the_limit(large):
    storage, file_slice, merge, _ = large
    for limit, spilled in ((None, False), (1 << 30, False), (4 << 20, True)):
        asked = SliceMerge(merge.rule, "ts", limit=None if limit is None else MemoryLimit(limit))
        with LogRecords(storage, file_slice.log_files, asked, SCHEMA) as found:
            assert found.spilled is spilled


def test_an_error_midway_leaves_nothing_behind(large, tmp_path):
    storage, file_slice, merge, _ = large
    limit = MemoryLimit(2_000_000, str(tmp_path))
    reading = read_file_slice(storage, file_slice, SliceMerge(merge.rule, "ts", limit=limit), SCHEMA)
    next(reading)
    reading.close()
    fails = SliceMerge(custom_rule("merge_functions:fail"), "ts", limit=limit)
    with pytest.raises(MergeFunctionError, match="on purpose"):
        read(storage, file_slice, fails)
    cut = open_storage(str(tmp_path / "cut"))
    for file in (*file_slice.log_files, file_slice.base_file):
        data = storage.read(file.path)
        cut.publish(file.path, data[:-5] if file is file_slice.log_files[-1] else data)
    last = file_slice.log_files[-1]
    committed = {last.path: (CommittedRange("100", 0, last.size),)}
    with pytest.raises(CorruptFileError):
        LogRecords(
            cut, file_slice.log_files, SliceMerge(merge.rule, "ts", limit=limit), SCHEMA, committed=committed
        )
    assert os.listdir(tmp_path) == ["cut"]


def test_a_folder_that_is_not_there_is_named(large, tmp_path):
    storage, file_slice, merge, _ = large
    limit = MemoryLimit(2_000_000, str(tmp_path / "no such folder"))
    with pytest.raises(SpillError, match=r"no such folder.*hoodie\.memory\.spillable\.map\.path"):
        read(storage, file_slice, SliceMerge(merge.rule, "ts", limit=limit))


def run(*arguments, **more):
    support = Path(__file__).parent.parent / "support" / "merge_process.py"
    path = os.pathsep.join([str(support.parent), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(support), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files")
def test_a_full_disk_is_an_error_that_says_what_to_do(large, tmp_path):
    storage, _, _, _ = large
    process = run("full", storage.uri, tmp_path)
    said, wrong = process.communicate(timeout=120)
    assert process.returncode == 0, wrong
    assert "HUDI-E0702" in said
    assert "hoodie.memory.spillable.map.path" in said
    assert not os.listdir(tmp_path)


def test_a_killed_merge_leaves_nothing_on_disk(large, tmp_path):
    storage, _, _, _ = large
    process = run("wait", storage.uri, tmp_path)
    assert process.stdout.readline().strip() == "spilled"
    process.kill()
    process.communicate(timeout=120)
    assert not os.listdir(tmp_path)


@pytest.mark.req("NEW-24", "QR-06")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_below_the_limit_and_a_constant(tmp_path):
    """A slice whose records take 225 MB is merged within 200 MB above the interpreter with its imports."""
    process = run("make", tmp_path)
    _, wrong = process.communicate(timeout=300)
    assert process.returncode == 0, wrong
    peaks = {}
    for limit in (64 << 20, 0):
        process = run("peak", tmp_path, limit)
        said, wrong = process.communicate(timeout=300)
        assert process.returncode == 0, wrong
        peaks[limit], rows = map(int, said.split())
        assert rows == 200_000
    if SANITIZED:  # its own bookkeeping, and what is freed and kept back, are most of both peaks
        return
    assert peaks[64 << 20] < 200 << 20
    assert peaks[0] > 300 << 20  # without a limit all of it is in memory
