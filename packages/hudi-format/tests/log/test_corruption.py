"""Damage to what was committed is an error; a write that was cut off is not (NEW-37)."""

import json
import zipfile
from contextlib import nullcontext

import pytest
from golden_logs import golden_logs
from golden_tables import ROOT
from log_bytes import avro, rollback

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.log.corruption import CommittedRange, check_file, committed_range
from hudi_format.log.reader import LogFileReader
from hudi_format.log.scanner import BlockScope, SliceLog
from hudi_format.model import LogFile, VisibleInstants
from hudi_format.storage.open import open_storage

A, B = avro("1", "x" * 100), avro("2", "y" * 200)
ALL = VisibleInstants(frozenset({"1", "2"}))
FIRST = VisibleInstants(frozenset({"1"}))


def check(data, visible=None, committed=None):
    log = LogFileReader(data, file="p/f.log")
    check_file(log.blocks, file=log.file, size=log.size, visible=visible, committed=committed)


@pytest.mark.req("NEW-37", "LF-14")
def test_a_torn_block_of_an_instant_that_is_not_complete_is_no_damage():
    for cut in range(len(B)):
        check(A + B[:cut], FIRST)
        check(A + B[:cut] + A, FIRST)
        check(A + B[:cut], FIRST, [CommittedRange("1", 0, len(A))])


@pytest.mark.req("NEW-37")
def test_a_torn_block_of_a_completed_instant_is_damage_with_file_and_offset():
    named = len(A) + 22 + 4 + 8 + 1  # up to the end of INSTANT_TIME, which here comes first
    for cut in range(named, len(A + B)):
        with pytest.raises(CorruptFileError) as caught:
            check((A + B)[:cut], ALL)
        assert caught.value.file == "p/f.log"
        assert caught.value.instant == "2"
        assert caught.value.details["offset"] == len(A)


@pytest.mark.req("NEW-37")
def test_what_the_commits_say_finds_every_cut():
    said = [CommittedRange("1", 0, len(A)), CommittedRange("2", len(A), len(A + B))]
    check(A + B, ALL, said)
    check(A + B + B[:77], ALL, said)
    for cut in range(len(A + B)):
        with pytest.raises(CorruptFileError) as caught:
            check((A + B)[:cut], ALL, said)
        assert caught.value.details["offset"] <= cut


@pytest.mark.req("NEW-37")
def test_what_the_commits_say_finds_every_change_of_the_frame_and_the_instant():
    said = [CommittedRange("1", 0, len(A)), CommittedRange("2", len(A), len(A + B))]
    frame = [*range(22), *range(len(A) - 12, len(A))]
    start = A.index(b"1", 22)
    for place in [*frame, start]:
        for flip in (1, 0x80):
            data = bytearray(A + B)
            data[place] ^= flip
            log = LogFileReader(bytes(data))
            kinds = {b.type for b in log.blocks}
            if 18 <= place < 22 and len(kinds) == 2 and log.blocks[0].damage == 0:
                continue  # another type: its content is read, and refused, as that type
            with pytest.raises(CorruptFileError):
                check(bytes(data), ALL, said)


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize(
    ("data", "visible"),
    [
        (b"g" * 50 + A, FIRST),
        (A + b"g" * 22 + B, ALL),
        (A + b"%" + B[1:], FIRST),
        (A + B[:21] + b"\x09" + B[22:], FIRST),
        (A[:40] + B, None),
    ],
)
def test_bytes_that_no_interrupted_write_leaves_are_damage(data, visible):
    with pytest.raises(CorruptFileError, match="at byte"):
        check(data, visible)


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize(
    "said",
    [
        CommittedRange("1", 0, len(A + B)),
        CommittedRange("2", 0, len(A)),
        CommittedRange("1", 5, len(A)),
        CommittedRange("1", 0, len(A) - 3),
        CommittedRange("2", len(A), len(A + B) + 1),
    ],
)
def test_ranges_that_the_file_does_not_have_are_damage(said):
    with pytest.raises(CorruptFileError, match="committed data is damaged at byte"):
        check(A + B, ALL, [said])


@pytest.mark.req("NEW-37")
def test_damage_outside_of_what_was_committed_is_passed_over():
    failed = B[:90]
    said = [CommittedRange("1", 0, len(A)), CommittedRange("1", len(A) + 90, len(A) + 90 + len(A))]
    check(A + failed + A, ALL, said)
    check(b"g" * 30, ALL, [])


@pytest.mark.req("NEW-37")
def test_damage_to_what_archived_instants_wrote_is_missed():
    """Instant 1 is archived: its commit says nothing any more; 2 is active, and vouches for its range."""
    later = VisibleInstants(frozenset({"2"}), "2")
    said = [CommittedRange("2", len(A), len(A + B))]
    check(A + B, later, said)
    check(A[:30] + B, later, [CommittedRange("2", 30, 30 + len(B))])  # its header names no instant yet
    check(A[:30], later, None)
    for bad in (A[:-3] + b"xxx", A[:14] + b"xxxx" + A[18:]):
        with pytest.raises(CorruptFileError):
            check(bad + B, later, said)
    with pytest.raises(CorruptFileError):
        check(A + A[:-1] + B, later, [CommittedRange("2", 2 * len(A) - 1, 2 * len(A) - 1 + len(B))])
    bad = A + b"#HUDI!" + A[6:]
    with pytest.raises(CorruptFileError):
        check(bad + B, later, [CommittedRange("2", len(bad), len(bad + B))])
    # A task that was tried twice left half a block of an active instant in a file that its commit does not name.
    check(B[:-1], later, ())
    with pytest.raises(CorruptFileError):
        check(B[:-1], later, None)
    # A file that was begun by an active instant: nobody wrote to it before.
    said = [CommittedRange("2", 60, 60 + len(B))]
    for name, lost in (("p/.f_1.log.1_0-0-0", True), ("p/.f_2.log.1_0-0-0", False)):
        log = LogFileReader(b"g" * 60 + B, file=name)
        with pytest.raises(CorruptFileError) if lost else nullcontext():
            check_file(log.blocks, file=name, size=log.size, visible=later, committed=said)


def test_two_magics_that_share_a_byte_lose_no_block():
    assert [b.size for b in LogFileReader(b"#HUDI" + A).blocks] == [5, len(A)]
    check(b"#HUDI" + A, FIRST)


@pytest.mark.req("NEW-37")
def test_write_statistics_give_the_ranges():
    stat = {"path": "p/f", "logOffset": 40, "fileSizeInBytes": 100, "totalWriteBytes": 100}
    assert committed_range("7", stat) == CommittedRange("7", 40, 100)  # the whole file's size
    assert committed_range("7", {**stat, "fileSizeInBytes": 30}) == CommittedRange("7", 40, 70)
    assert committed_range("7", {"fileSizeInBytes": 100}) == CommittedRange("7", 0, 100)
    assert committed_range("7", {"logOffset": 0, "fileSizeInBytes": -1}) is None
    assert committed_range("7", {"logOffset": 0}) is None


@pytest.mark.req("NEW-37")
def test_half_of_a_golden_log_file_is_missed():
    """What Apache Hudi 0.15 and hudi-rs 0.5 answer with fewer rows and no error."""
    tried = 0
    for path, data in golden_logs("v6", "mor_avro_logs").items():
        blocks = LogFileReader(data, file=path).blocks
        instant = blocks[0].instant
        said = [CommittedRange(instant, 0, len(data))]
        check(data, VisibleInstants(frozenset({instant})), said)
        for cut in (len(data) // 2, *range(0, len(data), 37)):
            with pytest.raises(CorruptFileError):
                check(data[:cut], VisibleInstants(frozenset({instant})), said)
        tried += 1
    assert tried > 10


@pytest.mark.req("NEW-37")
def test_a_slice_with_a_damaged_file_is_not_opened(tmp_path):
    storage = open_storage(str(tmp_path))
    storage.touch("p/a", A)
    storage.touch("p/b", B[:150])
    files = [LogFile("p", "a", "f", "0", 1), LogFile("p", "b", "f", "0", 2)]
    with SliceLog(storage, files, BlockScope(visible=FIRST)) as log:
        assert ([b.instant for b in log.blocks], log.ordered.corrupt) == (["1"], 1)
    with pytest.raises(CorruptFileError) as caught:
        SliceLog(storage, files, BlockScope(visible=ALL))
    assert caught.value.file == "p/b"
    with SliceLog(storage, files, BlockScope(visible=ALL), committed={"p/b": ()}) as log:
        assert [b.instant for b in log.blocks] == ["1"]
    with pytest.raises(MissingFileError):
        SliceLog(storage, [*files, LogFile("p", "c", "f", "0", 3)], BlockScope(visible=FIRST))


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("version", ["v5", "v6"])
def test_what_golden_commits_say_fits_their_log_files(version):
    """No false alarm: every log file that a delta commit of Apache Hudi names passes."""
    logs = golden_logs(version)
    checked = 0
    for archive in sorted((ROOT / version).glob("*.zip")):
        with zipfile.ZipFile(archive) as z:
            commits = {
                n: json.loads(z.read(n)) for n in z.namelist() if n.endswith(".deltacommit") and z.read(n)
            }
        said = {}
        for name, commit in commits.items():
            base, _, file = name.rpartition("/.hoodie/")
            for stat in (s for stats in commit["partitionToWriteStats"].values() for s in stats):
                part = committed_range(file.partition(".")[0], stat)
                if ".log." in stat["path"] and part is not None:
                    said.setdefault(f"{base}/{stat['path']}", []).append(part)
        for path in said.keys() & logs.keys():
            instants = VisibleInstants(frozenset(p.instant for p in said[path]))
            check(logs[path], instants, said[path])
            with pytest.raises(CorruptFileError):
                check(logs[path][:-1], instants, said[path])
            checked += 1
    assert checked > 10


def test_a_rollback_block_is_not_asked_for_a_completed_instant():
    check(A + rollback("9", "2"), FIRST, [CommittedRange("1", 0, len(A))])
