"""Damage to what completed commits wrote into log files is an error; what failed writes left is passed over (NEW-37).

Apache Hudi 0.15 and hudi-rs 0.5 answer with fewer rows.
"""

import json
import re

import pyarrow as pa
import pytest
from golden_tables import golden
from properties_edits import edit_properties

from hudi_format.errors import CorruptFileError
from hudi_format.log.reader import LogFileReader
from hudi_timeline.table import HudiTable

NAMES = {
    "v6": ["mor_avro_logs", "mor_parquet_logs", "mor_compacted_then_logs", "mor_rollback"],
    "v8": ["mor_avro_logs", "mor_parquet_logs"],
    "v9": ["mor_avro_logs", "mor_partial_updates"],
}
TABLES = [t for version, names in NAMES.items() for t in golden(version, *names)]


class Opened:
    """An unpacked table and the log files of its newest slices."""

    def __init__(self, table, folder):
        self.path = table.unpack(folder)
        self.rows = self.read()
        plan = HudiTable.open(str(self.path)).read().plan
        # Files of writes that were rolled back, and of rollbacks, are among the slices' too.
        self.logs = [f for part in plan.logs for f in part.slice.log_files if part.committed[f.path]]

    def blocks(self, log):
        return LogFileReader((self.path / log.path).read_bytes()).blocks

    def version_5(self):
        """The same table as older releases had it; the golden tables of version 5 were compacted."""
        edit_properties(self.path, "hoodie.table.version=6", "hoodie.table.version=5")

    def read(self, **more):
        found = HudiTable.open(str(self.path)).read(**more, meta_columns=True).to_arrow()
        return found.sort_by(
            [(n, "ascending") for n in found.column_names if pa.types.is_string(found[n].type)]
        )

    def timeline(self, suffix):
        return sorted(self.path.glob(f".hoodie/*{suffix}"))


@pytest.fixture
def opened(request, tmp_path):
    return Opened(request.param, tmp_path)


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", TABLES, ids=str, indirect=True)
@pytest.mark.sampled(12, values=False)
def test_every_log_file_of_a_completed_commit_is_missed_when_it_is_cut(opened):
    assert opened.logs
    for log in opened.logs:
        file = opened.path / log.path
        whole = file.read_bytes()
        ends = [b.end for b in LogFileReader(whole).blocks]
        for cut in {len(whole) // 2, len(whole) - 1, 20, 0, *ends[:-1]}:
            file.write_bytes(whole[:cut])
            with pytest.raises(CorruptFileError) as e:
                opened.read()
            assert e.value.file == log.path
            assert 0 <= e.value.details["offset"] <= cut
        file.write_bytes(whole)
    assert opened.read().equals(opened.rows)


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", TABLES, ids=str, indirect=True)
@pytest.mark.sampled(3)
def test_a_changed_block_of_a_completed_commit_is_missed(opened):
    log = opened.logs[-1]
    file = opened.path / log.path
    whole = file.read_bytes()
    block = LogFileReader(whole).blocks[-1]
    for at in (
        block.offset,
        block.offset + 9,
        block.offset + 17,
        block.end - 1,
    ):  # magic, size, version, pointer
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with pytest.raises(CorruptFileError) as e:
            opened.read()
        assert e.value.file == log.path


def torn_beside(opened, instant):
    """Half a block of an instant, in a log file of its own next to one of the table's."""
    log = opened.logs[-1]
    data = (opened.path / log.path).read_bytes()
    block = LogFileReader(data).blocks[-1]
    torn = data[block.offset : block.end - 9].replace(block.instant.encode(), instant.encode())
    name = re.sub(r"\.log\.\d+_.*", f".log.{log.version + 7}_9-9-9", log.name)
    path = (opened.path / log.path).with_name(name)
    path.write_bytes(torn)
    return path


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", [t for t in TABLES if t.version == "v6"], ids=str, indirect=True)
def test_the_torn_tail_of_a_write_that_is_not_complete_is_passed_over(opened):
    torn_beside(opened, "29991231235959999")
    assert opened.read().equals(opened.rows)


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", TABLES, ids=str, indirect=True)
def test_what_a_task_that_was_tried_twice_left_is_passed_over(opened):
    """The instant is complete, and its commit names another file."""
    block = opened.blocks(opened.logs[-1])[-1]
    torn_beside(opened, block.instant)
    assert opened.read().equals(opened.rows)


@pytest.mark.req("NEW-37", "FS-12")
@pytest.mark.parametrize("opened", golden("v6", "mor_avro_logs"), ids=str, indirect=True)
def test_commits_that_append_to_one_file(opened):
    """As on HDFS: the log files of a slice are one, and each commit gives its offset and the file's size then."""
    first = opened.logs[0]
    logs = [f for f in opened.logs if f.file_id == first.file_id]
    assert len(logs) > 1
    joined, places = b"", {}
    for log in logs:
        file = opened.path / log.path
        start, joined = len(joined), joined + file.read_bytes()
        places[log.path] = (start, len(joined))
        file.unlink()
    for commit in opened.timeline(".deltacommit"):
        said = json.loads(commit.read_bytes())
        for stat in (s for stats in said["partitionToWriteStats"].values() for s in stats):
            if stat["path"] in places:
                stat["logOffset"], stat["fileSizeInBytes"] = places[stat["path"]]
                stat["path"] = first.path
        commit.write_text(json.dumps(said))
    file = opened.path / first.path
    file.write_bytes(joined)
    same = opened.rows.drop_columns(["_hoodie_file_name"])
    assert opened.read().drop_columns(["_hoodie_file_name"]).equals(same)
    for start, end in places.values():
        for cut in (start, (start + end) // 2, end - 1):
            file.write_bytes(joined[:cut])
            with pytest.raises(CorruptFileError):
                opened.read()
        at = start + 8
        file.write_bytes(joined[:at] + b"\xff" + joined[at + 1 :])
        with pytest.raises(CorruptFileError):
            opened.read()
    # A write after them that failed, and one after that which did not, by the last commit's own word.
    file.write_bytes(joined + joined[:100])
    assert opened.read().num_rows == opened.rows.num_rows


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", golden("v6", "mor_avro_logs"), ids=str, indirect=True)
def test_damage_to_what_archived_commits_wrote_is_missed(opened):
    """Of an archived commit no ranges are known: its blocks say whose they are."""
    instants = sorted(
        {b.instant for f in opened.logs for b in LogFileReader((opened.path / f.path).read_bytes()).blocks}
    )
    assert len(instants) > 1
    for file in opened.path.glob(".hoodie/*commit*"):
        if file.name.split(".")[0] < instants[-1]:
            file.unlink()
    assert opened.read().equals(opened.rows)
    old = next(f for f in opened.logs if opened.blocks(f)[0].instant == instants[0])
    file = opened.path / old.path
    whole = file.read_bytes()
    for bad in (whole[: len(whole) * 9 // 10], whole[:3] + b"x" + whole[4:], whole[:17] + b"x" + whole[18:]):
        file.write_bytes(bad)
        with pytest.raises(CorruptFileError) as e:
            opened.read()
        assert e.value.file == old.path


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", golden("v6", "mor_avro_logs"), ids=str, indirect=True)
def test_a_commit_that_gives_no_sizes_is_checked_by_its_blocks(opened):
    for commit in opened.timeline(".deltacommit"):
        said = json.loads(commit.read_bytes())
        for stat in (s for stats in said["partitionToWriteStats"].values() for s in stats):
            stat["fileSizeInBytes"] = -1
        commit.write_text(json.dumps(said))
    assert opened.read().equals(opened.rows)
    file = opened.path / opened.logs[-1].path
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(CorruptFileError):
        opened.read()


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("opened", golden("v6", "mor_avro_logs"), ids=str, indirect=True)
def test_a_table_of_version_5_is_checked_too(opened):
    opened.version_5()
    assert opened.read().equals(opened.rows)
    torn_beside(opened, "29991231235959999")
    assert opened.read().equals(opened.rows)
    file = opened.path / opened.logs[0].path
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CorruptFileError):
        opened.read()
