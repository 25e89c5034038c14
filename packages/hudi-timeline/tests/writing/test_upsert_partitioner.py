import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_timeline.writing.upsert_partitioner import AssignPolicy, SizingRules, assign, average_record_size
from hudi_timeline.writing.workers.tasks import APPEND, CONCAT, CREATE, MERGE, LogTarget, ProfileRow

RULES = SizingRules(max_file_bytes=1000, small_file_limit_bytes=800)


def base(file_id, size, partition="p"):
    return BaseFile(partition, f"{file_id}_0-0-0_1.parquet", file_id, "1", "0-0-0", size)


def log(file, version):
    name = f".{file.file_id}_{file.instant}.log.{version}_0-0-0"
    return LogFile(file.partition, name, file.file_id, file.instant, version, "0-0-0", 10)


def sliced(file, logs=0):
    files = tuple(log(file, n + 1) for n in range(logs))
    return FileSlice(file.partition, file.file_id, file.instant, file, files)


def placed(profile, files=(), policy=None, rules=RULES, record_size=10, pending=None):
    by_partition = {}
    for f in files:
        found = f if isinstance(f, FileSlice) else sliced(f)
        by_partition.setdefault(found.partition, []).append(found)
    return assign(profile, by_partition, lambda: record_size, rules, policy or AssignPolicy(), pending)


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


LOGS = AssignPolicy(logs=True)


@pytest.mark.req("WR-12")
def test_records_of_a_file_group_go_to_the_log_of_its_slice():
    files = [sliced(base("a", 900), 2), base("b", 9)]
    routing = placed([ProfileRow("p", "a", 3), ProfileRow("p", "b", 4)], files, LOGS)
    assert {(b.file_id, b.kind, b.base_instant) for b in routing.buckets} == {
        ("a", APPEND, "1"),
        ("b", APPEND, "1"),
    }
    a = next(b for b in routing.buckets if b.file_id == "a")
    assert a.log == LogTarget("1", 3, "a_0-0-0_1.parquet", (".a_1.log.1_0-0-0", ".a_1.log.2_0-0-0"))


@pytest.mark.req("WR-18")
def test_no_new_record_goes_to_a_slice_with_a_log_or_a_pending_compaction():
    files = [sliced(base("logged", 10), 1), base("planned", 20), base("small", 30), base("larger", 40)]
    routing = placed([ProfileRow("p", "", 5)], files, LOGS, pending={("p", "planned"): "2"})
    assert [(b.file_id, b.kind) for b in routing.buckets] == [("small", MERGE)]
    routing = placed([ProfileRow("p", "", 5)], files[:2], LOGS, pending={("p", "planned"): "2"})
    assert [b.kind for b in routing.buckets] == [CREATE]


@pytest.mark.req("WR-13")
def test_new_records_of_a_merge_on_read_table_go_to_base_files_of_which_few_are_rewritten():
    files = [base("a", 300), base("b", 200), base("c", 100)]
    routing = placed([ProfileRow("p", "", 100)], files, LOGS)
    assert [(b.kind, b.expected_rows) for b in routing.buckets] == [(MERGE, 90), (CREATE, 10)]
    assert routing.buckets[0].file_id == "c"
    more = SizingRules(max_file_bytes=1000, small_file_limit_bytes=800, small_group_candidates=2)
    routing = placed([ProfileRow("p", "", 100)], files, LOGS, more)
    assert [(b.file_id, b.expected_rows) for b in routing.buckets] == [("c", 90), ("b", 10)]


def test_a_base_file_that_takes_new_records_is_rewritten_with_its_changed_ones():
    profile = [ProfileRow("p", "a", 3), ProfileRow("p", "b", 3), ProfileRow("p", "", 5)]
    routing = placed(profile, [base("a", 10), base("b", 20)], LOGS)
    assert [(b.file_id, b.kind, b.expected_rows) for b in routing.buckets] == [
        ("a", MERGE, 8),
        ("b", APPEND, 3),
    ]


def test_logs_stand_on_the_slice_that_a_pending_compaction_began():
    found = sliced(base("a", 900), 3)
    planned = LogFile("p", ".a_2.log.1_0-0-0", "a", "2", 1, "0-0-0", 10)
    found = FileSlice("p", "a", "1", found.base_file, (*found.log_files, planned))
    routing = placed([ProfileRow("p", "a", 3)], [found], LOGS, pending={("p", "a"): "2"})
    assert routing.buckets[0].log == LogTarget("2", 2, "", (".a_2.log.1_0-0-0",))
    assert routing.buckets[0].base_instant == "2"
