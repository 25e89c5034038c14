"""New records beside Apache Hudi 0.15.0: as many to the same small files, the rest to as many new file groups.

Each step starts from one table of Apache Hudi's; it and we write the same rows to a copy each.  Which records go to
a file follows from a hash of their keys, another in either: the counts agree as far as chance lets them.
"""

import json
import math
import shutil
from collections import Counter

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours

WRITE = "hoodie.datasource.write."
MAX, LIMIT = "hoodie.parquet.max.file.size", "hoodie.parquet.small.file.limit"
ESTIMATE, THRESHOLD = "hoodie.copyonwrite.record.size.estimate", "hoodie.record.size.estimation.threshold"
SPLIT, AUTO = "hoodie.copyonwrite.insert.split.size", "hoodie.copyonwrite.insert.auto.split"
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.compression.codec": "gzip",
    # Else the filter in the footer is larger than all rows.
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.combine.before.insert": "false",
}


def rows(start, n, partitions=1):
    ids = range(start, start + n)
    return pa.table(
        {
            "id": [f"key-{i:06d}" for i in ids],
            "p": [f"p{i % partitions}" for i in ids],
            "ts": pa.array(ids, pa.int64()),
            "text": [f"{i * 2654435761 % 2**32:08x}" * 4 for i in ids],
        }
    )


# name: first write's options, the second's options, its operation and its rows.
CASES = {
    "all in one new group": ({}, {LIMIT: "0"}, "insert", rows(3000, 500)),
    "new groups by the estimate": ({}, {LIMIT: "0", MAX: "100000", ESTIMATE: "200"}, "insert", rows(3000, 1200)),
    "new groups by the stored records": (
        {}, {LIMIT: "1", MAX: "20000", ESTIMATE: "1"}, "insert", rows(3000, 1500)),
    "the stored records are too few to tell": (
        {}, {LIMIT: "0", THRESHOLD: "0.5", MAX: "100000", ESTIMATE: "200"}, "insert", rows(3000, 1200)),
    "half of a small limit tells": (
        {}, {LIMIT: "2", THRESHOLD: "0.5", MAX: "20000", ESTIMATE: "1"}, "insert", rows(3000, 1500)),
    "fixed splits": ({}, {LIMIT: "0", AUTO: "false", SPLIT: "250"}, "insert", rows(3000, 1100)),
    "a small file is filled": ({}, {MAX: "1000000", ESTIMATE: "1000"}, "insert", rows(3000, 500)),
    "a small file is filled, the rest is new": ({}, {MAX: "300000", ESTIMATE: "400"}, "insert", rows(3000, 1500)),
    "small files of several groups": (
        {AUTO: "false", SPLIT: "1000"}, {MAX: "200000", ESTIMATE: "400"}, "insert", rows(3000, 2500)),
    "a limit above the greatest size": (
        {}, {LIMIT: "1000000", MAX: "200000", ESTIMATE: "300"}, "insert", rows(3000, 900)),
    "each partition by itself": ({}, {MAX: "300000", ESTIMATE: "400"}, "insert", rows(3000, 1500, 3)),
    "updates and new records": ({}, {MAX: "300000", ESTIMATE: "400"}, "upsert", rows(2800, 1500)),
    "keys are compared": (
        {}, {MAX: "1000000", ESTIMATE: "1000", "hoodie.merge.allow.duplicate.on.inserts": "false"},
        "insert", rows(2800, 500)),
    "an overwrite fills nothing": ({}, {MAX: "100000", ESTIMATE: "400"}, "insert_overwrite", rows(3000, 1000)),
}  # fmt: skip


def stats(path):
    newest = max(p for end in ("commit", "replacecommit") for p in (path / ".hoodie").glob(f"*.{end}"))
    return [s for of in json.loads(newest.read_text())["partitionToWriteStats"].values() for s in of]


def filled(path):
    """Statistics of the groups that were there, and by partition the rows of each new bucket.

    A bucket may end in several files: Apache Hudi counts what its writer still holds before it is encoded.
    """
    old, new = {}, {}
    for s in stats(path):
        if s["prevCommit"] != "null":
            old[s["partitionPath"], s["fileId"]] = s
        else:
            buckets = new.setdefault(s["partitionPath"], Counter())
            buckets[s["fileId"].rpartition("-")[0]] += s["numInserts"]
    return old, {p: sorted(buckets.values()) for p, buckets in new.items()}


def near(mine, theirs, total):
    """Whether two counts out of `total` may be one share of it, five standard deviations allowed."""
    return abs(mine - theirs) <= 1 + 5 * math.sqrt(2 * max(theirs * (1 - theirs / total), 1))


@pytest.mark.req("WR-15", "WR-16", "FS-07")
@pytest.mark.parametrize("case", CASES)
def test_new_records_go_where_apache_hudi_puts_them(tmp_path, apache, case):
    first, second, operation, given = CASES[case]
    partitions = len(set(given["p"].to_pylist()))
    start, mine, theirs = tmp_path / "start", tmp_path / "mine", tmp_path / "theirs"
    apache.write(start, rows(0, 3000, partitions), {**BASE, **first, WRITE + "operation": "insert"})
    shutil.copytree(start, mine)
    shutil.copytree(start, theirs)
    options = {**BASE, **second, WRITE + "operation": operation}
    execute(LocalEngine(), open_storage(str(mine)), given, options)
    apache.write(theirs, given, options)
    (old, new), (their_old, their_new) = filled(mine), filled(theirs)
    total = given.num_rows // partitions
    assert old.keys() == their_old.keys()
    for group, s in old.items():
        assert s["numUpdateWrites"] == their_old[group]["numUpdateWrites"]
        assert near(s["numInserts"], their_old[group]["numInserts"], total)
    assert {p: len(n) for p, n in new.items()} == {p: len(n) for p, n in their_new.items()}
    for p, counts in new.items():
        assert all(near(a, b, total) for a, b in zip(counts, their_new[p], strict=True))
    assert ours.read(mine).num_rows == ours.read(theirs).num_rows == apache.read(mine).num_rows
