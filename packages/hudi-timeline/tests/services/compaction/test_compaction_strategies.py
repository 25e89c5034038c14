"""Which operations a strategy takes; the cases are those of Apache Hudi's TestHoodieCompactionStrategy."""

from datetime import date

import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline.options.compaction_config import parse_compaction_options
from hudi_timeline.services.compaction.compaction_strategies import (
    LOG_BYTES,
    LOG_FILES,
    TOTAL_IO_MB,
    choose_operations,
    choose_partitions,
    day_of,
)
from hudi_timeline.timeline.action_metadata import CompactionOperation

TODAY = date(2026, 3, 12)
DAYS = ["2026/03/12", "2026/03/02", "2026/03/01", "2025/12/31"]


def operation(name, *, partition="p", size=0, files=1, io=0):
    metrics = {LOG_BYTES: float(size), LOG_FILES: float(files), TOTAL_IO_MB: float(io)}
    return CompactionOperation(partition, name, "1", "", ("x",), metrics)


def chosen(operations, strategy, **options):
    given = {"hoodie.compaction.strategy": strategy}
    given |= {f"hoodie.compaction.{k.replace('__', '.')}": str(v) for k, v in options.items()}
    config = parse_compaction_options(given)
    return [o.file_id for o in choose_operations(operations, config, TODAY)]


def partitions(strategy, of=DAYS, **options):
    given = {"hoodie.compaction.strategy": strategy}
    given |= {f"hoodie.compaction.{k.replace('__', '.')}": str(v) for k, v in options.items()}
    return choose_partitions(of, parse_compaction_options(given), TODAY)


SIZES = [operation("a", size=10, files=5, io=40), operation("b", size=30, files=1, io=70),
         operation("c", size=20, files=3, io=1)]  # fmt: skip


@pytest.mark.req("TS-07")
@pytest.mark.parametrize(
    ("strategy", "options", "expected"),
    [
        ("LogFileSizeBasedCompactionStrategy", {}, "bca"),
        ("LogFileSizeBasedCompactionStrategy", {"logfile__size__threshold": 20}, "bc"),
        ("LogFileSizeBasedCompactionStrategy", {"target__io": 70}, "b"),
        ("LogFileSizeBasedCompactionStrategy", {"target__io": 71}, "bc"),
        ("LogFileNumBasedCompactionStrategy", {}, "acb"),
        ("LogFileNumBasedCompactionStrategy", {"logfile__num__threshold": 3}, "ac"),
        ("LogFileNumBasedCompactionStrategy", {"target__io": 1}, "a"),
        ("BoundedIOCompactionStrategy", {"target__io": 41}, "ab"),
        ("BoundedIOCompactionStrategy", {"target__io": 1}, "a"),
        ("UnBoundedCompactionStrategy", {"target__io": 1}, "abc"),
        ("LogFileNumBasedCompactionStrategy,LogFileSizeBasedCompactionStrategy", {"target__io": 41}, "ca"),
    ],
)  # fmt: skip
def test_a_strategy_by_size_takes_and_orders_as_apache_hudi_does(strategy, options, expected):
    if "," in strategy:  # the first takes a and c, the second orders them
        options = {"target__io": 41}
    assert "".join(chosen(SIZES, strategy, **options)) == expected


@pytest.mark.req("TS-07")
def test_days_are_taken_newest_first():
    assert partitions("DayBasedCompactionStrategy", daybased__target__partitions=2) == DAYS[:2]
    assert partitions("DayBasedCompactionStrategy", DAYS[::-1], daybased__target__partitions=3) == DAYS[:3]
    made = [operation(p, partition=p) for p in reversed(DAYS)]
    assert chosen(made, "DayBasedCompactionStrategy", daybased__target__partitions=2) == DAYS[:2]


@pytest.mark.req("TS-07")
def test_bounded_and_unbounded_partitions_are_complements():
    bounded = partitions("BoundedPartitionAwareCompactionStrategy", daybased__target__partitions=10)
    other = partitions("UnBoundedPartitionAwareCompactionStrategy", daybased__target__partitions=10)
    assert bounded == DAYS[:2]  # ten days before is the last that counts
    assert sorted(bounded + other) == sorted(DAYS)


def test_names_before_the_parts_of_a_day_do_not_count():
    assert day_of("year=2026/month=3/day=2") == date(2026, 3, 2)


@pytest.mark.parametrize("partition", ["oslo", "2026-03-02", "2026/13/02", "2026/03", ""])
def test_a_partition_that_is_no_day_is_refused(partition):
    with pytest.raises(UnsupportedError, match="is no day"):
        partitions("DayBasedCompactionStrategy", [partition])


def test_a_pattern_of_partitions_goes_with_another_strategy():
    both = "PartitionRegexBasedCompactionStrategy,UnBoundedCompactionStrategy"
    assert partitions(both, partition__path__regex="2026/.*") == sorted(DAYS[:3])
    assert partitions(both, partition__path__regex="2026") == []  # the whole path
    made = [operation(p, partition=p) for p in DAYS]
    assert chosen(made, both, partition__path__regex=".*/0[23]/.*|.*2") == DAYS[:3]
