"""File slices: which base file and which log files of a file group belong together, in either way of naming."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.file_names import log_sort_key
from hudi_format.model import BaseFile, LogFile
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.file_slices import SliceBuilder
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline, load_timeline
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import parse_instant_file

pytestmark = pytest.mark.req("FS-11")
GROUP = ("p", "f")
LAYOUT_1 = TableConfig({"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"})
LAYOUT_2 = TableConfig({"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"})


def log(instant, version=1):
    return LogFile("p", f".f_{instant}.log.{version}_0-0-0", "f", instant, version, "0-0-0", 1)


def base(instant):
    return BaseFile("p", f"f_0-0-0_{instant}.parquet", "f", instant, "0-0-0", 1)


def by_name(pending=""):
    """The builder of a table of version 6, with a pending compaction of the group."""
    return SliceBuilder(None, LAYOUT_1, Timeline.of_files([]), {GROUP: pending} if pending else {})


def by_completion(pending="", **times):
    """The builder of a table of version 8; its delta commit `d30=35` was requested at 30 and completed at 35."""
    names = [f"{d[1:]}_{done}.deltacommit" for d, done in times.items()]
    timeline = Timeline.of_files([parse_instant_file(n, "t") for n in names])
    return SliceBuilder(None, LAYOUT_2, timeline, {GROUP: pending} if pending else {})


def slices(builder, begun, logs):
    found = builder.attached(GROUP, begun, [log(i) for i in logs])
    return {k: [f.instant for f in v] for k, v in found.items()}


def newest(builder, bases, logs, as_of=None):
    """The instants that began the newest slice, of its base file ("" for none) and of its log files."""
    found = builder.newest(GROUP, {i: base(i) for i in bases}, [log(i) for i in logs], as_of)
    if found is None:
        return None
    own = "" if found.base_file is None else found.base_file.instant
    return found.base_instant, own, [f.instant for f in found.log_files]


def test_a_log_goes_to_the_newest_slice_begun_before_its_commit_was_completed():
    builder = by_completion(d11=15, d21=25, d31=35)
    assert slices(builder, ["10", "30"], ["11", "21", "31"]) == {"10": ["11", "21"], "30": ["31"]}


def test_a_commit_that_began_before_a_compaction_and_ended_after_it_belongs_to_the_new_slice():
    builder = by_completion(d11=15, d29=35)
    assert slices(builder, ["10", "30"], ["11", "29"]) == {"10": ["11"], "30": ["29"]}
    # completed just when the other was requested
    assert slices(by_completion(d29=30), ["10", "30"], ["29"]) == {"10": [], "30": ["29"]}


def test_without_a_base_file_the_first_log_begins_the_slice():
    builder = by_completion(d11=15, d12=13, d21=25)
    assert slices(builder, [], ["21", "12", "11"]) == {"11": ["11", "12", "21"]}


def test_logs_older_than_every_base_file_are_a_slice_of_their_own():
    assert slices(by_completion(d11=15, d12=16), ["20"], ["11", "12"]) == {"20": [], "11": ["11", "12"]}


def test_a_pending_compaction_is_read_together_with_the_slice_before_it():
    times = {"d11": 15, "d31": 35}
    assert newest(by_completion("30", **times), ["10"], ["11", "31"]) == ("10", "10", ["11", "31"])
    assert newest(by_completion(**times), ["10", "30"], ["11", "31"]) == ("30", "30", ["31"])
    assert newest(by_completion("30", **times), [], ["31"]) == ("30", "", ["31"])
    assert newest(by_name("30"), ["10"], ["10", "30"]) == ("10", "10", ["10", "30"])
    assert newest(by_name("30"), ["10"], ["10"]) == ("10", "10", ["10"])
    assert newest(by_name("30"), [], ["10", "30"]) == ("10", "", ["10", "30"])
    assert newest(by_name("30"), [], []) is None


def test_time_travel_sees_slices_and_logs_that_were_begun_until_then():
    builder = by_completion(d11=15, d21=25, d31=35)
    bases, logs = ["10", "30"], ["11", "21", "31"]
    assert newest(builder, bases, logs, "20") == ("10", "10", ["11"])
    assert newest(builder, bases, logs, "30") == ("30", "30", [])
    assert newest(builder, bases, logs, "31") == ("30", "30", ["31"])
    assert newest(builder, bases, logs, "09") is None
    assert newest(by_name(), bases, ["10", "30"], "20") == ("10", "10", ["10"])
    assert newest(by_name("30"), ["10"], ["10", "30"], "20") == ("10", "10", ["10"])


def test_versions_of_one_commit_are_in_the_order_of_their_numbers():
    found = by_completion(d11=15).attached(GROUP, ["10"], [log("11", 10), log("11", 9), log("11")])
    assert [f.version for f in found["10"]] == [1, 9, 10]


def test_a_write_that_is_not_completed_has_no_time_of_completion():
    builder = by_completion(d11=15, d31=35)
    assert builder.time_of("21") == ""
    assert not builder.counts("21")
    assert builder.counts("11")


@pytest.mark.parametrize("version", ["v8", "v9"])
def test_of_archived_instants_the_history_tells(golden_timelines_2, tmp_path, version):
    shutil.copytree(golden_timelines_2 / version / "cow_archived", tmp_path / "t")
    storage = LocalStorage(str(tmp_path / "t"))
    config = table_config.load(storage)
    builder = SliceBuilder(storage, config, load_timeline(storage, config), {})
    for instant in archived_instants(storage, config):
        assert builder.counts(instant.time)
        assert builder.time_of(instant.time) == instant.completion
    assert builder.time_of("20200101000000000") == "20200101000000000"  # from before the upgrade


@pytest.mark.req("QR-04")
def test_as_of_its_own_instant_a_commit_that_a_compaction_overtook_is_there():
    """Seen when Apache Hudi 1.0.2 upgrades a table: the write has its time before the upgrade's compaction has."""
    builder, logs = by_completion(d11=15, d29=35, d31=36), ["11", "29", "31"]
    assert slices(builder, ["10", "30"], logs) == {"10": ["11"], "30": ["29", "31"]}
    assert newest(builder, ["10", "30"], logs, "29") == ("10", "10", ["11", "29"])
    assert newest(builder, ["10", "30"], logs, "28") == ("10", "10", ["11"])
    assert newest(builder, ["30"], logs[1:], "29") == ("29", "", ["29"])


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
    found = slices(by_name(pending), bases, named)
    assert {k: v for k, v in found.items() if v} == want


TIMES = st.sampled_from([f"{n:02}" for n in range(10, 40)])


@pytest.mark.req("FS-10", "QR-04")
@given(
    bases=st.sets(TIMES, max_size=3),
    logs=st.dictionaries(TIMES, st.integers(0, 15), max_size=6),
    pending=st.sampled_from(["", "20", "30", "40"]),
    as_of=st.none() | TIMES,
    completed=st.booleans(),
)
def test_the_newest_slice_is_the_last_of_all_slices(bases, logs, pending, as_of, completed):
    bases -= {pending}
    times = {f"d{i}": int(i) + later for i, later in logs.items()}
    builder = by_completion(pending, **times) if completed else by_name(pending)
    files = [log(i, v) for i in logs for v in (1, 2)]
    every = builder.attached(GROUP, bases, files)

    assert sorted((f for found in every.values() for f in found), key=log_sort_key) == sorted(
        files, key=log_sort_key
    )
    for begin, found in every.items():
        assert begin in bases or begin == pending or begin == found[0].instant
        for file in found:  # there is no later slice that it could belong to
            at = builder.time_of(file.instant)
            assert begin <= at
            assert not [b for b in bases if begin < b <= at]

    got = builder.newest(GROUP, {i: base(i) for i in bases}, files, as_of)
    shown = sorted(i for i in bases if as_of is None or i <= as_of)
    wanted = [f for f in files if as_of is None or f.instant <= as_of]
    if not shown:  # what was logged makes a slice without a base file
        assert (got is None) == (not wanted)
    else:
        assert got is not None
        assert (got.base_instant, got.base_file) == (shown[-1], base(shown[-1]))
        assert set(got.log_files) == {f for f in wanted if builder.time_of(f.instant) >= shown[-1]}
    if got is not None:
        assert list(got.log_files) == sorted(got.log_files, key=log_sort_key)
        # Older base files decide nothing.
        own = {} if got.base_file is None else {got.base_instant: got.base_file}
        again = builder.newest(GROUP, own, files, as_of)
        assert again is not None
        assert (again.base_file, again.log_files) == (got.base_file, got.log_files)
