"""Reproducible writes: what is written twice with one seed and instant is the same, byte for byte."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, InvalidOptionError, UnsupportedError
from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
FIRST, SECOND, THIRD = (f"2024030510000{n}000" for n in range(3))

pytestmark = pytest.mark.req("NEW-29")


def rows(n, ts=1):
    return pa.table(
        {
            "id": [f"k{i}" for i in range(n)],
            "p": [f"p{i % 5}" for i in range(n)],
            "ts": [ts] * n,
            "v": [i / 7 for i in range(n)],
        },
        SCHEMA,
    )


def options(instant, seed="s", **more):
    return {**QUIET, "hudi.write.seed": seed, "hudi.write.instant": instant, **more}


def create(path, kind, **more):
    return HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type=kind, options=more,
    )  # fmt: skip


def files(path):
    """Digest of each file but the table's properties, which are written once at a time of their own."""
    return {
        str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest()
        for f in sorted(Path(path).rglob("*"))
        if f.is_file() and not f.name.startswith("hoodie.properties")
    }


CASES = {
    "copy-on-write": ("COPY_ON_WRITE", {}),
    "merge-on-read": ("MERGE_ON_READ", {}),
    "bloom": ("COPY_ON_WRITE", {"hoodie.index.type": "BLOOM"}),
    "buckets": ("MERGE_ON_READ", BUCKETS),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("first", ["upsert", "insert", "bulk_insert"])
@pytest.mark.sampled(6, values=False)
def test_the_same_writes_make_the_same_files_and_commits(tmp_path, name, first):
    kind, more = CASES[name]

    def written(where, seed="s"):
        table = create(tmp_path / where, kind, **more)
        getattr(table, first)(rows(500), options=options(FIRST, seed, **more))
        table.upsert(rows(300, ts=2), options=options(SECOND, seed, **more))
        table.insert_overwrite(rows(40, ts=3), options=options(THIRD, seed, **more))
        assert HudiTable.open(str(tmp_path / where)).verify(deep=True) == []
        return files(tmp_path / where)

    one = written("one")
    assert sum(f.endswith(".parquet") for f in one) > 5
    assert any(f.endswith(f"{SECOND}.{'commit' if kind == 'COPY_ON_WRITE' else 'deltacommit'}") for f in one)
    assert written("two") == one
    other = written("three", seed="another")
    assert not {f for f in other if f.endswith(".parquet")} & set(one)


def test_partitions_that_are_written_side_by_side_number_their_rows_alike(tmp_path):
    for where in ("one", "two", "three"):
        create(tmp_path / where, "COPY_ON_WRITE").bulk_insert(rows(60_000), options=options(FIRST))
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "three")


def test_two_writes_of_one_seed_have_file_groups_of_their_own(tmp_path):
    table = create(tmp_path / "t", "COPY_ON_WRITE")
    table.bulk_insert(rows(50), options=options(FIRST))
    table.bulk_insert(rows(50), options=options(SECOND))
    found = table.inspect.files()["file_id"].to_pylist()
    assert len(found) == len(set(found)) == 10


def test_a_seed_alone_leaves_the_instant_to_the_clock(tmp_path):
    table = create(tmp_path / "t", "COPY_ON_WRITE")
    result = table.insert(rows(5), options={"hudi.write.seed": "s"})
    assert result.instant > "2025"
    assert all(s.create_time_ms == 0 for s in result.write_stats)


@pytest.mark.parametrize(
    ("instant", "why"),
    [
        ("20240305", "no instant time"),
        ("20241305100000000", "no instant time"),
        ("2024030510000000x", "no instant time"),
        (FIRST, "not later than"),
        ("20240101000000000", "not later than"),
        ("29990101000000000", "later than the clock"),
    ],
)
def test_an_instant_that_cannot_be_taken_is_refused_and_nothing_is_changed(tmp_path, instant, why):
    table = create(tmp_path / "t", "COPY_ON_WRITE")
    table.insert(rows(5), options=options(FIRST))
    before = files(tmp_path / "t")
    with pytest.raises(InvalidOptionError, match=why):
        table.upsert(rows(5), options=options(instant))
    assert files(tmp_path / "t") == before


def test_two_writers_of_one_instant_are_told_apart(tmp_path):
    table = create(tmp_path / "t", "COPY_ON_WRITE")
    lazy = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}

    def rival(_):
        with pytest.raises((ConcurrentWriterError, InvalidOptionError)):
            HudiTable.open(str(tmp_path / "t")).insert(rows(5), options=options(FIRST, **lazy))

    table.insert(rows(5), options=options(FIRST, **lazy), validators=[rival])
    assert HudiTable.open(str(tmp_path / "t")).count() == 5


def test_rings_with_ids_of_their_own_are_refused(tmp_path):
    ring = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    table = create(tmp_path / "t", "MERGE_ON_READ", **ring)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        table.upsert(rows(5), options=options(FIRST, **ring))
