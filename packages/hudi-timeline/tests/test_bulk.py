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


@pytest.mark.req("WR-04")
def test_files_roll_over_at_their_greatest_size(tmp_path):
    table = make(tmp_path / "t")
    options = {"hoodie.parquet.max.file.size": "65536", "hoodie.parquet.block.size": "65536"}
    result = table.bulk_insert(rows(20_000, partitions=2), options=options)
    assert result.files_written >= 4
    sizes = [f["size"] for f in table.inspect.files().to_pylist()]
    assert max(sizes) < 2 * 65536 + 400_000  # the footer's bloom filter comes on top
    got = table.read(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(got) == list(range(20_000))
    ids = [s.file_id for s in result.write_stats]
    assert len(set(ids)) == len(ids)


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


def test_a_thousand_partitions_in_one_write(tmp_path):
    table = make(tmp_path / "t", **{"hoodie.parquet.bloom.filter.enabled": "false"})
    result = table.bulk_insert(
        rows(3000, partitions=1000), options={"hoodie.parquet.bloom.filter.enabled": "false"}
    )
    assert len(result.partitions) == 1000
    assert table.read(filter="p = 'p7'").to_arrow()["id"].to_pylist() == [7, 1007, 2007]
    assert not pq.read_metadata(tmp_path / "t" / result.write_stats[0].path).metadata.get(
        b"org.apache.hudi.bloomfilter"
    )


def test_sequence_numbers_are_unique_over_the_files_of_a_write(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(rows(5000))
    numbers = table.read(columns=["_hoodie_commit_seqno"]).to_arrow()["_hoodie_commit_seqno"]
    assert len(set(numbers.to_pylist())) == 5000
