"""What `TableVersion` says of a version is so in the tables that Apache Hudi wrote in it."""

import re
import zlib
from pathlib import Path

import pytest
from golden_tables import golden

from hudi_format.errors import HudiError
from hudi_format.file_names import parse_data_file
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.table_version import TableVersion
from hudi_timeline.timeline.commit_metadata import read_commit

VERSIONS = (5, 6, 8, 9)
# Came down from version 9, which left folders and properties of its own.
OTHERWISE = {"downgraded_from_9"}
_COMPLETED = re.compile(r"\d+(_\d+)?\.(?:commit|deltacommit|replacecommit)\Z")
_LOG = re.compile(r"\..+_(\d+)\.log\.\d+_[^.]+\Z")


@pytest.fixture(scope="module", params=VERSIONS, ids="v{}".format)
def tables(request, tmp_path_factory):
    """A version and its tables."""
    chosen = [t for t in golden(f"v{request.param}") if t.name not in OTHERWISE]
    folder = tmp_path_factory.mktemp("versions")
    return TableVersion(request.param), [HudiTable.open(str(t.unpack(folder / t.name))) for t in chosen]


def files(folder: Path) -> set[str]:
    return {f.name for f in folder.iterdir() if f.is_file()} if folder.is_dir() else set()


@pytest.mark.req("TM-04", "TM-22")
def test_the_timeline_lies_and_its_files_are_named_as_the_version_says(tables):
    version, found = tables
    completed = 0
    for table in found:
        config, root = table.config, Path(table.uri)
        assert config.version == version
        assert config.version.layout == version.own_layout
        assert (root / ".hoodie" / "timeline").is_dir() == version.has_timeline_folder, table
        assert (config.timeline_folder != ".hoodie") == version.has_timeline_folder
        for name in files(root / config.timeline_folder):
            match = _COMPLETED.match(name)
            if match is not None:
                completed += 1
                assert (match[1] is not None) == version.has_completion_times, f"{table}: {name}"
        assert {bool(i.completion) for i in table.timeline.completed_writes()} <= {
            version.has_completion_times
        }
    assert completed > 10


def test_archived_instants_lie_as_the_version_says(tables):
    version, found = tables
    in_manifests = in_logs = 0
    for table in found:
        config, root = table.config, Path(table.uri)
        in_manifests += bool(config.history_folder and "_version_" in files(root / config.history_folder))
        in_logs += any("archive" in n for n in files(root / ".hoodie" / config.archive_folder))
    assert bool(in_manifests) == version.has_lsm_history
    assert not (in_logs and version.has_lsm_history)


def test_log_files_are_named_after_what_the_version_says(tables):
    version, found = tables
    own = others = 0
    for table in found:
        if table.config.properties.get("hoodie.table.initial.version", str(version)) != str(version):
            continue  # its older log files have the names of another version
        for instant in table.timeline.completed_writes():
            for stat in read_commit(table.storage, instant).stats:
                match = _LOG.search(stat.path.rpartition("/")[2])
                if match is not None:
                    own += match[1] == instant.time
                    others += match[1] != instant.time
    if version.names_logs_by_own_instant:
        assert own > 50
        assert not others
    else:  # a commit's own where it began the slice
        assert others > 30


def test_properties_have_the_names_of_the_version(tables):
    version, found = tables
    for table in found:
        p = table.config.properties
        either = {"hoodie.table.precombine.field", "hoodie.table.ordering.fields"} & p.keys()
        assert either <= {version.ordering_key}, table
        assert ("hoodie.record.merge.mode" in p) == version.has_merge_mode, table
        assert len(table.config.ordering_fields) <= 1 or version.has_several_ordering_fields
        # The same in every version.
        names = f"{p.get('hoodie.database.name', '')}.{p['hoodie.table.name']}"
        assert p["hoodie.table.checksum"] == str(zlib.crc32(names.encode()))


def test_waiting_plans_have_copies_as_the_version_says(tables):
    version, found = tables
    for table in found:
        aside = files(Path(table.uri) / ".hoodie" / ".aux")
        for instant in table.timeline.pending("compaction"):
            copied = f"{instant.time}.compaction.requested" in aside
            assert copied <= version.copies_waiting_plans, table


@pytest.mark.parametrize("version", VERSIONS, ids="v{}".format)
def test_files_of_a_table_that_was_overwritten_are_none_of_the_table(version, tmp_path):
    found = shown = 0
    for kind in ("cow", "mor"):
        chosen = [t for t in golden(f"v{version}") if t.name.startswith(kind) and t.name not in OTHERWISE][:4]
        for one in chosen:
            table = HudiTable.open(str(one.unpack(tmp_path / one.name)))
            if not table.timeline.first_active:
                continue
            before = rows_of(table)
            codes = [f.code for f in table.verify()]
            old = f"20010101000000{'000' if len(table.timeline.first_active) > 14 else ''}"
            late = {}
            for partition, entries in walk(table.storage).items():
                for entry in entries:
                    file = parse_data_file(partition, entry.name)
                    if file is not None:  # of a file group of its own, as another table's are
                        name = entry.name.replace(file.file_id, f"{file.file_id[:9]}abcd{file.file_id[13:]}")
                        name = name.replace(file.instant, old)
                        late[f"{partition}/{name}".lstrip("/")] = table.storage.read(file.path)
            for path, content in late.items():
                table.storage.touch(path, content)
            shown += rows_of(table) != before
            table_config.update(table.storage, {table_config.OVERWRITTEN_UNTIL: old})
            assert rows_of(table) == before, one.name
            findings = table.verify()
            assert [f.code for f in findings if f.path not in late] == codes, one.name
            assert {f.code for f in findings if f.path in late} <= {"file-of-no-instant"}
            assert late.keys() == {f.path for f in findings if f.instant == old}, one.name
            found += len(late)
    assert found > 3
    assert shown > 1  # without the property they are taken for files of archived instants


def rows_of(table):
    """All rows, and the error where a table is none of those that can be read."""
    try:
        return sorted(map(repr, table.read().to_arrow().to_pylist()))
    except HudiError as e:
        return e.message
