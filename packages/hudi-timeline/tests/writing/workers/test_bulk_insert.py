import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("text", pa.string())])


def rows(n, partitions=3, start=0):
    rng = np.random.default_rng(start)
    ids = np.arange(start, start + n)
    return pa.table(
        {
            "id": ids,
            "p": [f"p{i % partitions}" for i in ids],
            "text": [f"{x:x}" * 4 for x in rng.integers(1 << 60, 1 << 62, n).tolist()],
        },
        schema=SCHEMA,
    )


def make(path, **options):
    return HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], options=options
    )


@pytest.mark.req("WR-15", "FS-07")
@pytest.mark.parametrize("block", [1 << 20, 120 << 20])
@pytest.mark.parametrize("operation", ["bulk_insert", "insert"])
def test_files_end_at_their_greatest_size_by_the_bytes_in_them(tmp_path, operation, block):
    """Whatever a row group holds, and however many rows were planned for a file."""
    greatest = 500_000
    table = make(tmp_path / "t")
    text = np.random.default_rng(1).bytes(40_000 * 30).hex()
    given = rows(40_000, partitions=2).set_column(
        2, "text", pa.array([text[60 * i : 60 * i + 60] for i in range(40_000)])
    )
    options = {
        "hoodie.parquet.max.file.size": greatest,
        "hoodie.parquet.block.size": block,
        "hoodie.copyonwrite.record.size.estimate": 1,  # of an insert: one bucket with all rows
        "hoodie.parquet.bloom.filter.enabled": "false",
    }
    result = getattr(table, operation)(given, options={k: str(v) for k, v in options.items()})
    by_group = {}
    for s in result.write_stats:
        assert s.file_size_in_bytes == (tmp_path / "t" / s.path).stat().st_size
        prefix, _, number = s.file_id.rpartition("-")
        by_group.setdefault(prefix, {})[int(number)] = s.file_size_in_bytes
    assert len(by_group) == 2
    for sizes in by_group.values():
        assert sorted(sizes) == list(range(len(sizes)))
        full = [sizes[n] for n in range(len(sizes) - 1)]
        assert len(full) >= 1
        assert 0.9 * greatest < min(full) <= max(full) < 1.1 * greatest
        assert sizes[len(full)] < 1.1 * greatest
    got = table.read(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(got) == list(range(40_000))


def test_a_file_has_a_hundred_rows_however_large_they_are(tmp_path):
    table = make(tmp_path / "t")
    result = table.bulk_insert(rows(450, partitions=1), options={"hoodie.parquet.max.file.size": "1"})
    assert [s.num_writes for s in result.write_stats] == [100, 100, 100, 100, 50]


@pytest.mark.req("WR-15")
def test_a_small_file_limit_above_the_greatest_size_is_said_and_changes_nothing_else(tmp_path):
    """As in Apache Hudi: there is room up to the greatest size, and none beyond it."""
    table = make(tmp_path / "t")
    sizes = {"hoodie.parquet.max.file.size": "1000", "hoodie.parquet.small.file.limit": "1200"}
    result = table.insert(rows(10, partitions=1), options=sizes)
    (said,) = [w for w in result.warnings if "small.file.limit" in w]
    assert "1,200" in said
    again = table.insert(rows(10, partitions=1, start=10), options=sizes)
    assert result.write_stats[0].file_size_in_bytes > 1200
    assert {s.prev_commit for s in again.write_stats} == {"null"}


def test_a_stream_is_taken_batch_by_batch_and_keeps_its_order_within_a_partition(tmp_path):
    table = make(tmp_path / "t")
    taken = []

    def batches():
        for i in range(40):
            taken.append(i)
            yield from rows(500, start=500 * i).to_batches()

    table.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    assert len(taken) == 40
    for file in table.inspect.files().to_pylist():
        ids = pq.read_table(tmp_path / "t" / file["path"], columns=["id"])["id"].to_pylist()
        assert ids == sorted(ids)
    assert table.read().count() == 20_000


@pytest.mark.parametrize("partitions", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_partitions_in_one_write(tmp_path, partitions):
    table = make(tmp_path / "t", **{"hoodie.parquet.bloom.filter.enabled": "false"})
    result = table.bulk_insert(
        rows(3 * partitions, partitions=partitions), options={"hoodie.parquet.bloom.filter.enabled": "false"}
    )
    assert len(result.partitions) == partitions
    found = table.read(filter="p = 'p7'").to_arrow()["id"].to_pylist()
    assert found == [7, 7 + partitions, 7 + 2 * partitions]
    assert not pq.read_metadata(tmp_path / "t" / result.write_stats[0].path).metadata.get(
        b"org.apache.hudi.bloomfilter"
    )


def test_sequence_numbers_are_unique_over_the_files_of_a_write(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(rows(5000))
    numbers = table.read(columns=["_hoodie_commit_seqno"]).to_arrow()["_hoodie_commit_seqno"]
    assert len(set(numbers.to_pylist())) == 5000
