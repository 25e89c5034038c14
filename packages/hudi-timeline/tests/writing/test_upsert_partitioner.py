import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.model import BaseFile
from hudi_timeline.writing.tasks import CONCAT, CREATE, MERGE, ProfileRow
from hudi_timeline.writing.upsert_partitioner import AssignPolicy, SizingRules, assign, average_record_size

RULES = SizingRules(max_file_bytes=1000, small_file_limit_bytes=800)


def base(file_id, size, partition="p"):
    return BaseFile(partition, f"{file_id}_0-0-0_1.parquet", file_id, "1", "0-0-0", size)


def placed(profile, files=(), policy=None, rules=RULES, record_size=10):
    by_partition = {}
    for f in files:
        by_partition.setdefault(f.partition, []).append(f)
    return assign(profile, by_partition, lambda: record_size, rules, policy or AssignPolicy())


@pytest.mark.req("FS-06")
def test_records_go_to_the_file_group_that_has_their_key():
    routing = placed([ProfileRow("p", "a", 3), ProfileRow("p", "b", 4)], [base("a", 900), base("b", 900)])
    assert {(b.file_id, b.kind, b.expected_rows) for b in routing.buckets} == {
        ("a", MERGE, 3),
        ("b", MERGE, 4),
    }
    assert routing.located[("p", "b")] == next(b.number for b in routing.buckets if b.file_id == "b")
    assert not routing.inserts


@pytest.mark.req("WR-15")
def test_new_records_fill_small_files_before_they_make_new_ones():
    routing = placed([ProfileRow("p", "", 100)], [base("small", 500), base("full", 900)])
    kinds = [(b.kind, b.expected_rows) for b in routing.buckets]
    assert kinds == [(MERGE, 50), (CREATE, 50)]
    assert [round(s.upto, 2) for s in routing.inserts["p"]] == [0.5, 1.0]


def test_an_insert_appends_to_a_small_file_but_merges_where_updates_go_too():
    policy = AssignPolicy(append=True)
    assert placed([ProfileRow("p", "", 5)], [base("s", 10)], policy).buckets[0].kind == CONCAT
    both = placed([ProfileRow("p", "s", 5), ProfileRow("p", "", 5)], [base("s", 10)], policy)
    assert [(b.kind, b.expected_rows) for b in both.buckets] == [(MERGE, 10)]


@pytest.mark.req("WR-04")
def test_deletes_of_unknown_keys_go_nowhere():
    routing = placed([ProfileRow("p", "", 5)], [base("s", 10)], AssignPolicy(drop_unlocated=True))
    assert routing.buckets == ()
    assert not routing.inserts


def test_a_fixed_split_makes_groups_of_that_many_records():
    rules = SizingRules(small_file_limit_bytes=0, auto_split=False, insert_split_size=30)
    routing = placed([ProfileRow("p", "", 100)], [base("s", 10)], rules=rules)
    assert [b.expected_rows for b in routing.buckets] == [30, 30, 30, 10]


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 500)), max_size=6, unique_by=lambda t: t[0]),
    st.lists(st.integers(0, 1200), max_size=8),
    st.integers(1, 50),
)
def test_every_record_has_a_place_and_bucket_numbers_are_dense(counts, sizes, record_size):
    files = [base(f"f{i}", size, "xyz"[i % 3]) for i, size in enumerate(sizes)]
    routing = placed([ProfileRow(p, "", n) for p, n in counts], files, record_size=record_size)
    assert [b.number for b in routing.buckets] == list(range(len(routing.buckets)))
    for partition, n in counts:
        shares = routing.inserts.get(partition, ())
        assert bool(shares) == bool(n)
        if n:
            bounds = [s.upto for s in shares]
            assert bounds == sorted(bounds)
            assert bounds[-1] == 1.0
            assert sum(routing.buckets[s.bucket].expected_rows for s in shares) == n
            assert {routing.buckets[s.bucket].partition for s in shares} == {partition}


@pytest.mark.req("WR-16")
def test_the_record_size_is_that_of_the_newest_commit_large_enough_to_tell():
    rules = SizingRules(small_file_limit_bytes=1000)
    assert average_record_size([(500, 1), (3000, 7), (9000, 1)], rules) == 429
    assert average_record_size([(500, 1)], rules) == 1024
    assert average_record_size([], rules) == 1024
