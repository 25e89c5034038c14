"""Where rows go: what a dry run of a write says."""

import re
from pathlib import Path

import pytest

from hudi_format.errors import SchemaError
from hudi_format.model import WriteStat
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.writing.routing import WriteRate, forecast, rate_of

ROWS = [{"id": 1, "city": "oslo", "fare": 1.5}, {"id": 2, "city": "pune", "fare": None}]


def files_of(path):
    return {str(f): f.read_bytes() for f in Path(path).rglob("*") if f.is_file()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trips"


OPERATIONS = {
    "upsert": (1, 1, 0),
    "insert": (2, 0, 0),
    "bulk_insert": (2, 0, 0),
    "insert_overwrite": (2, 0, 0),
    "insert_overwrite_table": (2, 0, 0),
    "delete": (0, 0, 1),
}


@pytest.mark.req("NEW-07", "IX-06", "IX-08", "IX-12")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
def test_a_dry_run_counts_records_that_move_to_another_partition_as_the_write_does(path, index, table_type):
    options = {"hoodie.index.type": index, "hoodie.metadata.record.index.enable": "true"}
    options |= {f"hoodie.{i}.index.update.partition.path": "true" for i in ("simple", "bloom", "record")}
    rows = [{"id": str(n), "city": ("oslo", "pune")[n % 2]} for n in range(6)]
    write_hudi(path, rows, key="id", partition_by="city", table_type=table_type, options=options)
    table = HudiTable.open(path, options=options)
    moving = [
        {"id": "0", "city": "pune"},
        {"id": "2", "city": "pune"},
        {"id": "4", "city": "oslo"},
        {"id": "9", "city": "oslo"},
    ]
    said = table.upsert(moving, dry_run=True)
    done = table.upsert(moving)
    assert (said.inserted, said.updated, said.deleted) == (3, 1, 2)
    assert (done.inserted, done.updated, done.deleted) == (3, 1, 2)


@pytest.mark.req("NEW-07", "NEW-08")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_dry_run_says_what_the_write_then_does_and_changes_nothing(path, operation, table_type):
    write_hudi(path, ROWS, key="id", partition_by="city", table_type=table_type)
    table = HudiTable.open(path)
    rows = [{**ROWS[0], "fare": 9.0}, {"id": 3, "city": "oslo", "fare": 3.0}]
    before = files_of(path)
    said = getattr(table, operation)(rows, dry_run=True)
    assert files_of(path) == before
    assert (said.dry_run, said.instant) == (True, "")
    assert (said.inserted, said.updated, said.deleted) == OPERATIONS[operation]
    assert repr(said).startswith(f"CommitResult(dry run of {operation}: ")
    assert "dry run" in said._repr_html_()
    done = getattr(table, operation)(rows)
    assert (said.inserted, said.updated) == (done.inserted, done.updated)
    assert (said.files_written, said.files_rewritten, said.log_files_written, said.partitions) == (
        done.files_written,
        done.files_rewritten,
        done.log_files_written,
        done.partitions,
    )
    assert {p: len(g) for p, g in said.replaced.items()} == {p: len(g) for p, g in done.replaced.items()}
    again = {s.file_id for s in done.write_stats if s.prev_commit != "null" and "logVersion" not in s.extra}
    bases = {
        Path(f).name.partition("_")[0]: len(data) for f, data in before.items() if f.endswith(".parquet")
    }
    assert said.forecast.seconds > 0
    assert (said.forecast.bytes > 0) == (done.bytes_written > 0)
    assert done.forecast is None
    assert (said.rewritten_bytes, done.rewritten_bytes) == (sum(bases[g] for g in again), None)


def test_a_dry_run_reports_schema_changes_deletions_and_refusals(path):
    assert write_hudi(path, ROWS, key="id", dry_run=True).inserted == 2
    assert not path.exists()
    write_hudi(path, ROWS, key="id", partition_by="city")
    table = HudiTable.open(path)
    before = files_of(path)
    said = table.upsert([{**ROWS[0], "tip": 1.0}], dry_run=True)
    assert list(map(str, said.schema_changes)) == ["tip added as double"]
    assert table.delete("fare > 1", dry_run=True).deleted == 1
    gone = table.delete_partitions("osl*", dry_run=True)
    assert (gone.dropped_rows, set(gone.replaced)) == (1, {"oslo"})
    assert re.search("1 row in 1 file group", repr(gone))
    with pytest.raises(SchemaError, match=r"fare .*'x' in row 0"):
        table.upsert([{**ROWS[0], "fare": "x"}], dry_run=True)
    assert files_of(path) == before


# --- forecast ------------------------------------------------------------------------------------------


def written(rows, size, ms=0, **more):
    return WriteStat("f", "p/f", "p", num_writes=rows, total_write_bytes=size, upsert_time_ms=ms, **more)


def test_a_rate_is_that_of_all_files_that_say_theirs():
    log = {"logVersion": "1"}
    found = WriteRate.of([written(10, 1000, 50), written(30, 1000), written(5, 900, 45, extra=log)])
    assert (found.record_bytes, found.ms_per_byte) == (50.0, 0.05)
    for stats in ([], [written(10, 1000)], [written(5, 900, 45, extra=log)], [written(0, 0, 5)]):
        assert WriteRate.of(stats) is None


def test_files_are_written_side_by_side_and_the_largest_takes_longest():
    rate = WriteRate(record_bytes=10.0, ms_per_byte=1.0)
    again = WriteStat("a", "", "p", prev_commit="1", num_inserts=10, num_update_writes=5)
    new = WriteStat("b", "", "p", num_inserts=20)
    log = WriteStat("c", "", "p", prev_commit="1", num_update_writes=30, extra={"logVersion": "1"})
    gone = WriteStat("d", "", "p", prev_commit="1", num_deletes=1000)
    sizes = {("p", "a"): 1000, ("p", "d"): 50}
    found = forecast([again, new, log, gone], sizes, rate, 2, spent=0.25)
    assert (found.bytes, found.seconds) == (1100 + 200 + 300, 0.25 + 1.1)
    assert forecast([again, new, log], sizes, rate, 1, 0.0).seconds == 1.6
    assert forecast([], {}, rate, 2, 0.5).bytes == 0
    unknown = forecast([again], {("p", "a"): -1}, rate, 1, 0.0)
    assert unknown.bytes == 100


@pytest.mark.req("NEW-07")
@pytest.mark.parametrize(
    "index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "BUCKET"]
)
def test_a_dry_run_says_what_resolved_each_key(tmp_path, index):
    path = str(tmp_path / "t")
    options = {"hoodie.index.type": index, "hoodie.metadata.enable": "true"}
    options |= {
        "BUCKET": {"hoodie.bucket.index.num.buckets": "2"},
        "RECORD_INDEX": {"hoodie.metadata.record.index.enable": "true"},
    }.get(index, {})
    rows = [{"id": f"k{n:03d}", "ts": 1, "v": n} for n in range(100, 200)]
    write_hudi(path, rows, key="id", ordering="ts", options=options)
    table = HudiTable.open(path)
    # Two are there; two are outside of all ranges; two are within, and of a filter's.
    asked = [{"id": k, "ts": 2, "v": 0} for k in ("k100", "k101", "a", "z", "k150x", "k160x")]
    said = table.upsert(asked, options=options, dry_run=True)
    keys = said.lookup.keys
    assert (keys.told, keys.ruled_out, keys.found, keys.in_vain) == {
        "SIMPLE": (0, 0, 2, 4), "GLOBAL_SIMPLE": (0, 0, 2, 4), "BLOOM": (0, 4, 2, 0), "GLOBAL_BLOOM": (0, 4, 2, 0),
        "RECORD_INDEX": (2, 4, 0, 0), "BUCKET": (6, 0, 0, 0),
    }[index]  # fmt: skip
    assert f"keys by {index}: {keys}" in repr(said)
    assert str(said.forecast) in repr(said)


@pytest.mark.req("NEW-07")
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
def test_false_positives_of_a_filter_are_counted(tmp_path, index):
    path = str(tmp_path / "t")
    options = {
        "hoodie.index.type": index,
        "hoodie.index.bloom.fpp": "0.5",
        "hoodie.index.bloom.num_entries": "99",
    }
    rows = [{"id": f"k{n:03d}", "ts": 1} for n in range(100, 200)]
    write_hudi(path, rows, key="id", ordering="ts", options=options)
    asked = [{"id": f"k{n:03d}x", "ts": 2} for n in range(100, 190)]
    keys = HudiTable.open(path).upsert(asked, options=options, dry_run=True).lookup.keys
    assert (keys.told, keys.found, keys.ruled_out + keys.in_vain) == (0, 0, 90)
    assert keys.ruled_out
    assert keys.in_vain


def test_a_table_whose_commits_say_no_times_has_no_rate(tmp_path):
    path = str(tmp_path / "t")
    rows = [{"id": "a", "ts": 1}]
    seeded = {"hudi.write.seed": "1"}
    write_hudi(path, rows, key="id", ordering="ts", options=seeded)
    assert rate_of(open_snapshot(open_storage(path))) is None
    assert HudiTable.open(path).upsert(rows, dry_run=True).forecast is None
