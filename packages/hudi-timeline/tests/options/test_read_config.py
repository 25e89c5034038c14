"""Options of reads."""

import pickle

import pytest

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_timeline.options import ReadConfig, parse_read_options
from hudi_timeline.options.read_config import refuse_whole

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
PATHS = "hoodie.datasource.read.paths"
END = "hoodie.datasource.read.end.instanttime"


def test_no_options_are_a_snapshot():
    assert parse_read_options({}) == ReadConfig()


def test_an_incremental_read_has_its_bounds():
    config = parse_read_options({**INCREMENTAL, BEGIN: " 000 ", END: "20240101000000000"})
    assert (config.query_type, config.begin, config.end) == ("incremental", "000", "20240101000000000")
    assert pickle.loads(pickle.dumps(config)) == config


def test_the_older_name_of_the_query_type_is_taken():
    assert (
        parse_read_options({"hoodie.datasource.view.type": "READ_OPTIMIZED"}).query_type == "read_optimized"
    )


def test_columns_and_filter_come_as_options_of_our_own():
    config = parse_read_options({"hudi.read.columns": "a, b.c", "hudi.read.filter": " x = 1 "})
    assert config.columns == ("a", "b.c")
    assert config.filter == "x = 1"


@pytest.mark.parametrize(
    "option",
    ["hudi.read.columns", "hudi.read.filter", "as.of.instant", "hoodie.datasource.streaming.startOffset"],
)
@pytest.mark.parametrize("text", ["", "  ", " \n"])
def test_an_empty_choice_is_not_the_whole_table(option, text):
    """What a variable leaves that is not set."""
    with pytest.raises(InvalidOptionError, match=f"{option}=.*not empty|{option}=.*one at least") as e:
        parse_read_options({option: text})
    assert "leave it out" in e.value.remedy


def test_a_list_of_no_columns_is_refused():
    with pytest.raises(InvalidOptionError, match="one at least"):
        parse_read_options({"hudi.read.columns": " , "})


def test_the_wait_between_two_looks_of_a_stream_is_a_number_of_seconds():
    assert parse_read_options({"hudi.streaming.poll.seconds": "0.5"}).poll_seconds == 0.5
    assert parse_read_options({}).poll_seconds is None
    for text in ("0", "-1", "nan", "inf", "1e300", "soon", ""):
        with pytest.raises(InvalidOptionError, match="a number above 0"):
            parse_read_options({"hudi.streaming.poll.seconds": text})


def test_what_an_incremental_read_does_at_gaps_can_be_chosen():
    config = parse_read_options({
        "hoodie.read.timeline.holes.resolution.policy": "block",
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true",
        "hoodie.datasource.read.schema.use.end.instanttime": "true",
    })  # fmt: skip
    assert (config.hollow_policy, config.fallback_full_scan, config.use_end_schema) == ("BLOCK", True, True)


def test_completion_times_go_with_a_full_scan_only_in_tables_that_have_them():
    policy = {"hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME"}
    assert parse_read_options(policy).hollow_policy == "USE_TRANSITION_TIME"
    for whole in (
        {"hudi.read.incremental.on.missing": "full_scan"},
        {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"},
    ):
        for completion in (policy, {"hudi.read.incremental.order": "completion"}):
            asked = parse_read_options({**completion, **whole})
            with pytest.raises(ConflictingOptionError, match="completed"):
                refuse_whole(asked, "of version 6")
    refuse_whole(parse_read_options(policy), "of version 6")


def test_paths_are_a_list_for_snapshots():
    assert parse_read_options({PATHS: "/a/*, /b"}).paths == ("/a/*", "/b")
    with pytest.raises(ConflictingOptionError, match=r"path\.glob"):
        parse_read_options({**INCREMENTAL, BEGIN: "000", PATHS: "/a/*"})


def test_options_of_incremental_reads_alone():
    options = {
        "hoodie.datasource.read.incr.path.glob": "/a/*",
        "hoodie.datasource.read.incr.filters": "a > 1,b = 2",
        "hudi.read.incremental.on.missing": "FULL_SCAN",
    }
    config = parse_read_options({**INCREMENTAL, BEGIN: "000", **options})
    assert (config.incr_path_glob, config.incr_filters) == ("/a/*", "a > 1,b = 2")
    assert config.on_missing == "full_scan"
    for key in list(options)[:2]:
        with pytest.raises(ConflictingOptionError, match=key):
            parse_read_options({"hoodie.datasource.query.type": "snapshot", key: options[key]})


def test_a_writers_commit_metadata_in_the_same_map_is_passed_over():
    assert parse_read_options({"_source": "x"}) == ReadConfig()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (INCREMENTAL, BEGIN),
        ({**INCREMENTAL, BEGIN: "000", "as.of.instant": "2024-01-01"}, "as.of.instant"),
        ({BEGIN: "000"}, "hoodie.datasource.query.type=incremental"),
        ({END: "000"}, END),
    ],
)
def test_bounds_that_do_not_fit_the_query_are_refused(options, names):
    with pytest.raises(ConflictingOptionError) as e:
        parse_read_options(options)
    assert names in str(e.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.read.incr.skip_cluster", "true"),
    ],
)
def test_reads_that_are_not_provided_are_refused_with_a_way_round(key, value):
    with pytest.raises(UnsupportedError) as e:
        parse_read_options({key: value})
    assert key in str(e.value)
    assert e.value.remedy


def test_an_unknown_query_type_is_refused():
    with pytest.raises(InvalidOptionError, match="snapshot, read_optimized, incremental"):
        parse_read_options({"hoodie.datasource.query.type": "realtime"})
