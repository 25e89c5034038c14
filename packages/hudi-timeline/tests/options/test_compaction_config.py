"""Compaction options: classes by name, and those that contradict each other."""

import pytest

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_timeline.options.compaction_config import CompactionConfig, parse_compaction_options
from hudi_timeline.options.service_config import parse_service_options

STRATEGY = "hoodie.compaction.strategy"
PACKAGE = "org.apache.hudi.table.action.compact.strategy."


def test_the_defaults_are_those_of_apache_hudi():
    config = parse_compaction_options({})
    assert config == CompactionConfig()
    assert config.strategies == (PACKAGE + "LogFileSizeBasedCompactionStrategy",)
    assert (config.delta_commits, config.delta_seconds, config.trigger) == (5, 3600, "NUM_COMMITS")
    assert (config.target_io_mb, config.target_partitions) == (512000, 10)


@pytest.mark.parametrize("package", ["", PACKAGE, PACKAGE.replace("org.apache.hudi", "com.uber.hoodie")])
def test_a_strategy_is_known_with_and_without_its_package(package):
    assert parse_compaction_options({STRATEGY: package + "UnBoundedCompactionStrategy"}).strategy_names == (
        "UnBoundedCompactionStrategy",
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.compact.inline.max.delta.commits", "0"),
        ("hoodie.compact.inline.max.delta.commits", "-1"),
        ("hoodie.compact.inline.max.delta.seconds", "-1"),
    ],
)
def test_a_trigger_that_is_always_due_is_refused(option, value):
    with pytest.raises(InvalidOptionError, match=option):
        parse_compaction_options({option: value})


@pytest.mark.parametrize("parse", [parse_compaction_options, parse_service_options])
def test_a_class_of_the_user_is_refused_by_name(parse):
    with pytest.raises(UnsupportedError, match=r"com.example.Mine, a class that needs a JVM"):
        parse({STRATEGY: "com.example.Mine"})


def test_a_pattern_needs_its_strategy_and_the_strategy_a_pattern():
    with pytest.raises(ConflictingOptionError, match="does not go by it"):
        parse_compaction_options({"hoodie.compaction.partition.path.regex": "a.*"})
    with pytest.raises(ConflictingOptionError, match="no pattern"):
        parse_compaction_options({STRATEGY: "PartitionRegexBasedCompactionStrategy"})
    with pytest.raises(InvalidOptionError, match="a regular expression"):
        parse_compaction_options({"hoodie.compaction.partition.path.regex": "a("})
