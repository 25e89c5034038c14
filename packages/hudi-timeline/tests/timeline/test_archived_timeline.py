"""The archived timeline of layout 1, and incremental reads that reach into it."""

import warnings
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids, states

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    InstantNotFoundError,
    InvalidOptionError,
)
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.table_config import load
from hudi_timeline.timeline.action_metadata import CleanMetadata
from hudi_timeline.timeline.archived_timeline import (
    archive_files,
    archived_actions,
    archived_cleans,
    archived_instants,
    archived_write_between,
    archived_write_with_time,
)

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.string()), ("v", pa.int64())])
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
ON_MISSING = "hudi.read.incremental.on.missing"


def row(id, v, written):
    return {"id": id, "v": v, "p": "a", "_hoodie_commit_time": at(written)}


@pytest.fixture
def made(tmp_path):
    """Commits 10 and 20 archived, 30 and 40 active; all rows are in two files."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    table.commit(at(30), {("a", file_id(0)): [row("1", 1, 10), row("2", 2, 20), row("3", 3, 30)]})
    table.commit(at(40), {("a", file_id(1)): [row("4", 4, 40)]})
    table.archive(1, *states(at(10)), *states(at(12), "clean"))
    table.archive(2, *states(at(20)), (at(25), "commit", "INFLIGHT"))
    return table


def test_the_instants_of_an_archive(made):
    storage = LocalStorage(str(made.path))
    config = load(storage)
    assert [p[-7:] for p in archive_files(storage, config)] == ["1_1-0-1", "2_1-0-1"]
    assert [str(i) for i in archived_instants(storage, config)] == [
        f"{at(10)} commit completed",
        f"{at(12)} clean completed",
        f"{at(20)} commit completed",
        f"{at(25)} commit inflight",
    ]
    assert archived_write_between(storage, config, "0", None).time == at(20)
    assert archived_write_between(storage, config, at(5), at(15)).time == at(10)
    assert archived_write_between(storage, config, at(10), at(15)) is None, "a clean is no write"
    assert archived_write_between(storage, config, at(20), None) is None, "an inflight write wrote nothing"


@pytest.mark.req("IN-17")
def test_a_begin_before_archived_commits_is_refused_with_the_oldest_that_works(made):
    with pytest.raises(InstantNotFoundError) as e:
        made.open().read_incremental(at(10))
    assert at(20) in e.value.remedy
    assert at(30) in e.value.remedy
    assert e.value.details["oldest"] == at(30)
    assert ids(made.open().read_incremental(at(20), meta_columns=True).to_arrow()) == ["3", "4"], (
        "nothing after it is archived"
    )
    assert made.open().read_incremental(at(20)).complete
    assert ids(made.open().read_incremental(at(10), at(15), meta_columns=True).to_arrow()) == [], (
        "no commit lies between"
    )


@pytest.mark.req("IN-17")
def test_the_beginning_gives_what_is_left_and_says_so(made):
    scan = made.open().read_incremental("000", meta_columns=True)
    with pytest.warns(UserWarning, match=at(30)):
        assert ids(scan.to_arrow()) == ["3", "4"]
    assert not scan.complete
    with pytest.raises(InstantNotFoundError):
        made.open().read_incremental("000", on_missing="error")


@pytest.mark.parametrize("begin", ["000", at(5), at(10)])
def test_what_is_missing_can_be_chosen(made, begin):
    want = ["1", "2", "3", "4"] if begin != at(10) else ["2", "3", "4"]
    for more in (
        {"on_missing": "full_scan"},
        {"options": {FALLBACK: "true"}},
        {"options": {ON_MISSING: "full_scan"}},
    ):
        scan = made.open().read_incremental(begin, **more, meta_columns=True)
        assert ids(scan.to_arrow()) == want
        assert scan.complete
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scan = made.open().read_incremental(begin, on_missing="skip", meta_columns=True)
        assert ids(scan.to_arrow()) == ["3", "4"]
        assert not scan.complete


def test_contradictions_and_other_words_are_refused(made):
    with pytest.raises(ConflictingOptionError, match=ON_MISSING):
        made.open().read_incremental("000", on_missing="error", options={FALLBACK: "true"})
    with pytest.raises(InvalidOptionError, match="full_scan"):
        made.open().read_incremental("000", on_missing="guess")


def test_an_archive_without_writes_hides_nothing(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA)
    table.commit(at(30), {("a", file_id(0)): [row("3", 3, 30)]})
    table.archive(1, *states(at(10), "clean"), *states(at(11), "rollback"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan = table.open().read_incremental("000", meta_columns=True)
        assert ids(scan.to_arrow()) == ["3"]
    assert scan.complete


def test_a_damaged_archive_counts_as_missing_commits(made):
    path = made.archive(2, *states(at(20)))
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * 40 + data[140:])
    storage = LocalStorage(str(made.path))
    with pytest.raises(CorruptFileError) as e:
        archived_instants(storage, load(storage))
    assert ".commits_.archive.2" in str(e.value)
    with pytest.raises(InstantNotFoundError):
        made.open().read_incremental(at(5))
    path.write_bytes(data + data[:60])  # a writer that died while it appended
    assert archived_write_between(storage, load(storage), at(10), None).time == at(20)


@pytest.mark.parametrize(
    ("glob", "want"),
    [
        ("/a/*", ["3", "4"]),
        ("{x,a}/*0000_*", ["3"]),
        ("no/*", []),
        ("[a-c]/*", ["3", "4"]),
        ("[^b]/?????*", ["3", "4"]),
    ],
)
def test_a_pattern_chooses_files_by_their_full_paths(made, glob, want):
    options = {"hoodie.datasource.read.incr.path.glob": glob}
    scan = made.open().read_incremental(at(20), options=options, meta_columns=True)
    found = ids(scan.to_arrow())
    assert found == want or glob.startswith("{")
    full = made.open().read_incremental(at(10), on_missing="full_scan", options=options, meta_columns=True)
    assert len(ids(full.to_arrow())) >= len(found)
    for each in (scan, full):
        assert sum(f["read"] for f in each.explain().files.to_pylist()) == len(each.files)


@pytest.mark.parametrize("glob", ["[a", "{a,b", "x\\"])
def test_a_pattern_that_does_not_close_is_refused(made, glob):
    options = {"hoodie.datasource.read.incr.path.glob": glob}
    with pytest.raises(InvalidOptionError, match="path pattern"):
        made.open().read_incremental(at(20), options=options).to_arrow()


def test_filters_may_come_as_an_option(made):
    options = {"hoodie.datasource.read.incr.filters": "v > 3, id = '4'"}
    assert ids(made.open().read_incremental(at(20), options=options, meta_columns=True).to_arrow()) == ["4"]
    assert ids(
        made.open().read_incremental(at(20), filter="v < 9", options=options, meta_columns=True).to_arrow()
    ) == ["4"]
    assert (
        ids(
            made.open()
            .read_incremental(at(20), filter="v < 4", options=options, meta_columns=True)
            .to_arrow()
        )
        == []
    )


GOLDEN = Path(__file__).parent.parents[3] / "tests" / "golden" / "v6" / "cow_archived.zip"


def test_apache_hudis_own_archive(tmp_path):
    with zipfile.ZipFile(GOLDEN) as z:
        z.extractall(tmp_path)
    storage = LocalStorage(str(tmp_path / "cow_archived"))
    found = archived_instants(storage, load(storage))
    assert all(i.completed for i in found)
    active = HudiTable.open(storage.uri).timeline
    writes = [i.time for i in found if i.action == "commit"]
    assert len(writes) + len(active.completed_writes()) == 11, "every write of the scenario"
    assert max(writes) < active.first_active
    newest = archived_write_with_time(
        storage, load(storage), max(writes), None, by_completion=True, unless=lambda _: False
    )
    assert newest is not None, "it was completed after its own time"
    assert newest[1].time == max(writes)
    scan = HudiTable.open(storage.uri).read_incremental(max(writes))
    assert scan.complete
    assert scan.to_arrow().num_rows == 24


@pytest.mark.parametrize("version", [6, 8, 9])
def test_archived_cleans_are_those_of_all_archived_instants(tmp_path, version):
    """In both layouts; files from before a time are not opened."""
    with zipfile.ZipFile(GOLDEN.parent.parent / f"v{version}" / "cow_archived.zip") as file:
        file.extractall(tmp_path)
    storage = LocalStorage(str(tmp_path / "cow_archived"))
    config = load(storage)
    everything = archived_actions(storage, config, frozenset({"clean"}))
    want = [(i, did) for i, did in everything if i.action == "clean" and i.completed]
    found = list(archived_cleans(storage, config))
    assert found == want
    assert any(isinstance(did, CleanMetadata) for _, did in found)
    assert list(archived_cleans(storage, config, written_since_ms=1 << 62)) == []
