"""Slices of tables of version 8 and later: the time of completion says where a log file belongs."""

import shutil

import pytest

from hudi_format.model import LogFile
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.file_slices import Completions, by_begin, newest_slice, slice_instants
from hudi_timeline.timeline.active_timeline import Timeline, load_timeline
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import parse_instant_file_2

pytestmark = pytest.mark.req("FS-11")


def log(instant, version=1):
    return LogFile("p", f".f_{instant}.log.{version}_0-0-0", "f", instant, version, "0-0-0", 1)


def completions(**times):
    """Delta commits by name, `d30=35`: requested at 30, completed at 35."""
    names = [f"{d[1:]}_{done}.deltacommit" for d, done in times.items()]
    timeline = Timeline.of_files([parse_instant_file_2(n, "t") for n in names])
    return Completions(None, None, timeline)


def slices(begun, logs, times):
    found = slice_instants(begun, [log(i) for i in logs], times)
    return {k: [f.instant for f in v] for k, v in found.items()}


def test_a_log_goes_to_the_newest_slice_begun_before_its_commit_was_completed():
    times = completions(d11=15, d21=25, d31=35)
    assert slices(["10", "30"], ["11", "21", "31"], times) == {"10": ["11", "21"], "30": ["31"]}


def test_a_commit_that_began_before_a_compaction_and_ended_after_it_belongs_to_the_new_slice():
    times = completions(d11=15, d29=35)
    assert slices(["10", "30"], ["11", "29"], times) == {"10": ["11"], "30": ["29"]}
    # completed just when the other was requested
    assert slices(["10", "30"], ["29"], completions(d29=30)) == {"10": [], "30": ["29"]}


def test_without_a_base_file_the_first_log_begins_the_slice():
    times = completions(d11=15, d12=13, d21=25)
    assert slices([], ["21", "12", "11"], times) == {"11": ["11", "12", "21"]}


def test_logs_older_than_every_base_file_are_a_slice_of_their_own():
    times = completions(d11=15, d12=16)
    assert slices(["20"], ["11", "12"], times) == {"20": [], "11": ["11", "12"]}


def test_a_pending_compaction_is_read_together_with_the_slice_before_it():
    times = completions(d11=15, d31=35)
    found = slice_instants(["10", "30"], [log("11"), log("31")], times)
    assert newest_slice(("p", "f"), found, "30", None) == ("10", [log("11"), log("31")])
    assert newest_slice(("p", "f"), found, "", None) == ("30", [log("31")])
    assert newest_slice(("p", "f"), slice_instants(["30"], [log("31")], times), "30", None) == (
        "30",
        [log("31")],
    )


def test_time_travel_sees_slices_and_logs_that_were_begun_until_then():
    times = completions(d11=15, d21=25, d31=35)
    found = slice_instants(["10", "30"], [log("11"), log("21"), log("31")], times)
    assert newest_slice(("p", "f"), found, "", "20") == ("10", [log("11")])
    assert newest_slice(("p", "f"), found, "", "30") == ("30", [])
    assert newest_slice(("p", "f"), found, "", "31") == ("30", [log("31")])
    assert newest_slice(("p", "f"), found, "", "09") is None


def test_versions_of_one_commit_are_in_the_order_of_their_numbers():
    times = completions(d11=15)
    found = slice_instants(["10"], [log("11", 10), log("11", 9), log("11")], times)
    assert [f.version for f in found["10"]] == [1, 9, 10]


def test_a_write_that_is_not_completed_has_no_time_of_completion():
    times = completions(d11=15, d31=35)
    assert times.of("21") == ""
    assert not times.is_completed("21")
    assert times.is_completed("11")


@pytest.mark.parametrize("version", ["v8", "v9"])
def test_of_archived_instants_the_history_tells(golden_timelines_2, tmp_path, version):
    shutil.copytree(golden_timelines_2 / version / "cow_archived", tmp_path / "t")
    storage = LocalStorage(str(tmp_path / "t"))
    config = table_config.load(storage)
    times = Completions(storage, config, load_timeline(storage, config))
    for instant in archived_instants(storage, config):
        assert times.is_completed(instant.time)
        assert times.of(instant.time) == instant.completion
    assert times.of("20200101000000000") == "20200101000000000"  # from before the upgrade


@pytest.mark.req("QR-04", "TS-34")
def test_as_of_its_own_instant_a_commit_that_a_compaction_overtook_is_there():
    """Seen when Apache Hudi 1.0.2 upgrades a table: the write has its time before the upgrade's compaction has."""
    slices = {"10": [log("11")], "30": [log("29"), log("31")]}
    assert newest_slice(("p", "f"), slices, "", "29") == ("10", [log("11"), log("29")])
    assert newest_slice(("p", "f"), slices, "", "28") == ("10", [log("11")])
    assert newest_slice(("p", "f"), {"30": [log("29"), log("31")]}, "", "29") == ("29", [log("29")])


@pytest.mark.req("FS-10")
@pytest.mark.parametrize(
    ("bases", "named", "pending", "want"),
    [
        # as version 6 names them
        (["10"], ["10"], "", {"10": ["10"]}),
        (["10"], ["10", "30"], "30", {"10": ["10"], "30": ["30"]}),
        (["30"], ["10", "30"], "", {"10": ["10"], "30": ["30"]}),
        ([], ["10"], "", {"10": ["10"]}),
        ([], ["10", "30"], "30", {"10": ["10"], "30": ["30"]}),
        ([], [], "", {}),
        # as version 8 named them before the table was taken down
        (["10"], ["15", "20"], "", {"10": ["15", "20"]}),
        (["10", "30"], ["15", "30", "35"], "", {"10": ["15"], "30": ["30", "35"]}),
        ([], ["15", "20"], "", {"15": ["15", "20"]}),
        (["30"], ["15", "20", "30"], "", {"15": ["15", "20"], "30": ["30"]}),
    ],
)
def test_logs_of_version_6_belong_to_what_they_are_named_after_or_to_what_is_before(
    bases, named, pending, want
):
    found = by_begin(bases, {i: [log(i)] for i in named}, pending)
    assert {k: [f.instant for f in v] for k, v in found.items()} == want
