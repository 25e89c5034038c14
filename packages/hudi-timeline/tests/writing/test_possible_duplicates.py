"""What a result says of records that may stand in the table twice, beside what then does."""

import logging

import pytest

from hudi_timeline import HudiTable

ROWS = [{"id": "a", "p": "x", "v": 1}, {"id": "b", "p": "x", "v": 1}]
MOVED = [{"id": "a", "p": "y", "v": 2}, {"id": "c", "p": "y", "v": 2}]
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}


def made(tmp_path, keys=("id",), partitions=("p",), **options):
    table = HudiTable.create(
        str(tmp_path / "t"), ROWS, record_keys=list(keys), partition_fields=list(partitions)
    )
    table.bulk_insert(ROWS, options=options)
    return table


def twice(table):
    keys = table.read().to_arrow().column("id").to_pylist()
    return sorted({k for k in keys if keys.count(k) > 1})


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_rows_that_are_added_a_second_time(tmp_path, operation, caplog):
    table = made(tmp_path)
    with caplog.at_level(logging.WARNING, "hudi"):
        results = [getattr(table, operation)(ROWS) for _ in range(2)]
    assert twice(table) == ["a", "b"]
    for result in results:
        (said,) = result.duplicates
        assert said.startswith(f"{operation} does not look for keys")
        assert said in result._repr_html_()
    assert caplog.text.count("does not look for keys") == 1


@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_an_insert_that_looks_says_nothing(tmp_path, policy):
    table = made(tmp_path)
    new = [{"id": "n", "p": "x", "v": 1}]
    assert table.insert(new, options={"hoodie.datasource.insert.dup.policy": policy}).duplicates == ()


def test_an_upsert_within_partitions_of_a_record_that_moved(tmp_path):
    table = made(tmp_path)
    (said,) = table.upsert(MOVED).duplicates
    assert "whose p has changed" in said
    assert twice(table) == ["a"]


def test_an_upsert_that_finds_all_says_nothing(tmp_path):
    table = made(tmp_path)
    assert table.upsert(ROWS).duplicates == (), "it added nothing"
    everywhere = made(tmp_path / "global", **GLOBAL)
    assert everywhere.upsert(MOVED).duplicates == ()
    assert twice(everywhere) == []
    without = made(tmp_path / "without", partitions=())
    assert without.upsert(MOVED).duplicates == ()
    in_key = made(tmp_path / "in_key", keys=("id", "p"))
    assert in_key.upsert(MOVED).duplicates == ()


def test_a_table_without_a_key_says_so_from_the_first_write_on(tmp_path):
    table = HudiTable.create(str(tmp_path / "t"), ROWS, record_keys=())
    for _ in range(2):
        (said,) = table.insert(ROWS).duplicates
        assert said.startswith("the table has no record key")
    assert twice(table) == ["a", "b"]


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "delete"])
def test_operations_that_add_to_nothing_say_nothing(tmp_path, operation):
    table = made(tmp_path)
    assert getattr(table, operation)(ROWS).duplicates == ()


def test_a_bucket_index_finds_keys_of_inserts_too(tmp_path):
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = made(tmp_path, **bucket)
    assert table.bulk_insert(ROWS, options=bucket).duplicates == ()
    assert twice(table) == []
