"""What a write gives back: counts from its statistics, and how they are said."""

from hudi_format.model import WriteStat
from hudi_index.lookup import LookupCount
from hudi_timeline import CommitResult


def stat(partition="p", prev="null", **more):
    given = {
        "num_writes": 0,
        "num_deletes": 0,
        "num_update_writes": 0,
        "num_inserts": 0,
        "total_write_bytes": 0,
    }
    return WriteStat(
        file_id="f",
        path=f"{partition}/f.parquet",
        partition=partition,
        prev_commit=prev,
        file_size_in_bytes=0,
        **{**given, **more},
    )


STATS = (
    stat("b", num_inserts=3, total_write_bytes=1_000_000),
    stat(
        "a",
        "1",
        num_inserts=1,
        num_update_writes=2,
        total_write_bytes=500_000,
        min_event_time=5,
        max_event_time=9,
    ),
    stat("a", "1", num_deletes=4, min_event_time=3, max_event_time=4),
)


def result(**more):
    given = {"instant": "20260101000000000", "action": "commit", "operation": "upsert", "table": "/t"}
    return CommitResult(**{**given, **more})


def test_counts_are_those_of_all_files():
    made = result(write_stats=STATS, replaced={"c": ("g",)})
    assert (made.inserted, made.updated, made.deleted) == (4, 2, 4)
    assert (made.files_written, made.files_rewritten, made.bytes_written) == (1, 2, 1_500_000)
    assert made.partitions == ("a", "b", "c")
    assert made.event_times == (3, 9)
    assert result(write_stats=STATS[:1]).event_times is None


def test_it_says_rows_files_bytes_and_seconds():
    made = result(write_stats=STATS, timings={"plan": 0.25, "write": 1.0})
    assert repr(made) == (
        "CommitResult(upsert 20260101000000000: 4 inserted, 2 updated, 4 deleted; 1 new and 2 rewritten files; "
        "1.5 MB, 1.25 s)"
    )


def test_what_went_without_anything_in_its_place_is_said():
    gone = {"replaced": {"x": ("g", "h"), "y": ("i",)}, "operation": "delete_partition"}
    assert "7 rows in 3 file groups of 2 partitions dropped" in repr(result(**gone, dropped_rows=7))
    assert ": 3 file groups of 2 partitions dropped;" in repr(result(**gone))
    assert "no rows changed" in repr(result())


def test_nothing_written_says_so():
    made = result(instant="", table="/a<b>")
    assert repr(made) == "CommitResult(nothing written to /a<b>)"
    assert made._repr_html_() == "<p>Nothing was written to <code>/a&lt;b&gt;</code>.</p>"


def test_a_notebook_shows_what_there_is_with_its_signs_escaped():
    html = result(
        write_stats=(stat("<b>"),),
        warnings=("a & b",),
        quarantined={"paid": 2},
        quarantine="/q",
        lookup=LookupCount("BLOOM"),
    )._repr_html_()
    for shown in ("&lt;b&gt;", "a &amp; b", "2 quarantined in /q (paid 2)"):
        assert shown in html
    assert "<b>" not in html
    assert "ordering field" not in html, "there is none"


def test_of_many_partitions_the_first_are_shown():
    html = result(write_stats=tuple(stat(f"p{n:02d}") for n in range(15)))._repr_html_()
    assert "p09 and 5 more" in html
    assert "p10" not in html
