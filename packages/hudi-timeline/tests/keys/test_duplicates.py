"""Keys that stand more than once: found as counting all rows finds them."""

from collections import Counter

import pyarrow as pa
import pytest
from duplicated_tables import QUIET, SCOPES, TABLES, duplicated, keys_of, row

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import UnknownPartitionError
from hudi_timeline import HudiTable
from hudi_timeline.keys import duplicates as module
from hudi_timeline.keys.duplicates import find
from hudi_timeline.keys.keyed_slices import KeyedSlices


@pytest.mark.req("NEW-28")
@pytest.mark.parametrize("across", SCOPES)
@pytest.mark.parametrize("kind", TABLES)
def test_every_row_of_keys_that_stand_more_than_once_is_found(tmp_path, kind, across):
    table = duplicated(tmp_path / "t", kind)
    counts = Counter(keys_of(table, across))
    found = table.duplicates(across_partitions=across)
    assert found.schema == module.DUPLICATES
    rows = found.to_pylist()
    scoped = Counter(("" if across else r["partition"], r["key"]) for r in rows)
    assert scoped == {k: n for k, n in counts.items() if n > 1}
    assert {r["file_id"] for r in rows} <= set(table.inspect.files().column("file_id").to_pylist())
    if table.config.populate_meta_fields:
        written = {
            (r["_hoodie_record_key"], r["_hoodie_commit_seqno"])
            for r in table.read(meta_columns=True).to_arrow().to_pylist()
        }
        assert {(r["key"], r["commit_seqno"]) for r in rows} <= written
        operations = {c["instant"]: c["operation"] for c in table.inspect.commits().to_pylist()}
        assert all(r["operation"] == operations[r["commit_time"]] for r in rows)
        # The file that is named has the row.
        assert {r["kind"] for r in rows if r["file"].rpartition("/")[2].startswith(".")} <= {"log"}


@pytest.mark.parametrize("kind", TABLES)
def test_what_goes_to_disk_and_comes_in_pieces_is_the_same(tmp_path, kind):
    table = duplicated(tmp_path / "t", kind)
    keyed = KeyedSlices.of(module.open_snapshot(table.storage))
    for across in SCOPES:
        whole = list(find(keyed, across_partitions=across))
        pieces = list(find(keyed, across_partitions=across, limit=MemoryLimit(1)))
        assert len(pieces) >= len(whole)
        assert set(map(str, pa.concat_tables(pieces).to_pylist())) == set(
            map(str, pa.concat_tables(whole).to_pylist())
        )
        for piece in pieces:  # all rows of a key are in one
            assert min(Counter(piece.column("key").to_pylist()).values()) > 1


@pytest.mark.parametrize("kind", TABLES)
def test_nothing_that_arrow_deprecates_is_used(tmp_path, kind, recwarn):
    assert duplicated(tmp_path / "t", kind).duplicates().num_rows
    assert [w for w in recwarn if issubclass(w.category, (FutureWarning, DeprecationWarning))] == []


def test_keys_of_one_hash_are_told_apart(tmp_path, monkeypatch):
    table = duplicated(tmp_path / "t", "cow")
    before = table.duplicates().to_pylist()
    hashed = module.xxh64

    def few(keys, seed):
        return pa.array([None if h is None else h % 3 for h in hashed(keys, seed).to_pylist()], pa.uint64())

    monkeypatch.setattr(module, "xxh64", few)
    assert table.duplicates().to_pylist() == before


def test_writers_of_archived_commits_are_named(tmp_path):
    table = duplicated(tmp_path / "t", "cow")
    before = table.duplicates().to_pylist()
    keep = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    quiet = {"hoodie.table.services.enabled": "false"}
    for _ in range(4):
        table.bulk_insert([{"id": "other", "p": "z", "ts": 1, "v": "z"}], options=quiet)
    table.archive(options=keep)
    first = min(r["commit_time"] for r in before)
    assert first < table.timeline.first_active
    found = table.duplicates(partitions=["x", "y"]).to_pylist()
    assert found == before


def test_partitions_that_are_not_there_are_refused(tmp_path):
    table = duplicated(tmp_path / "t", "mor")
    assert {r["partition"] for r in table.duplicates(partitions="x").to_pylist()} == {"x"}
    with pytest.raises(UnknownPartitionError, match="nowhere"):
        table.duplicates(partitions=["x", "nowhere"])


def test_a_table_without_duplicates_and_an_empty_one_have_none(tmp_path):
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    table = HudiTable.create(tmp_path / "t", schema, record_keys="id")
    assert table.duplicates().num_rows == 0
    table.insert([{"id": "a", "v": 1}, {"id": "b", "v": 1}])
    assert table.duplicates().num_rows == table.duplicates(across_partitions=True).num_rows == 0


@pytest.fixture
def cleaned_meanwhile(monkeypatch):
    """Has the table written and cleaned once, after the slices were listed and before they are read."""

    def arrange(folder):
        real, left = module._hashes_twice, [1]

        def hashes(*args):
            if left:
                left.clear()
                other = HudiTable.open(folder)
                other.upsert([row("z", p, 9, "z") for p in "xy"], options=QUIET)
                if other.table_type == "MERGE_ON_READ":
                    other.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
                policy = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}
                other.clean(options={**policy, "hoodie.cleaner.fileversions.retained": "1"})
            return real(*args)

        monkeypatch.setattr(module, "_hashes_twice", hashes)
        return left

    return arrange


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_files_that_are_cleaned_while_it_looks_are_looked_for_again(tmp_path, cleaned_meanwhile, kind):
    folder = str(tmp_path / "t")
    duplicated(folder, kind)
    left = cleaned_meanwhile(folder)
    found = HudiTable.open(folder).duplicates()
    assert not left
    assert found.num_rows
    assert found.equals(HudiTable.open(folder).duplicates())


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_plan_beside_a_cleaning_is_of_the_state_that_is_there(tmp_path, cleaned_meanwhile, kind):
    folder = str(tmp_path / "t")
    table = duplicated(folder, kind)
    left = cleaned_meanwhile(folder)
    planned = table.deduplicate(dry_run=True)
    assert not left
    assert planned.rows
    assert planned == HudiTable.open(folder).deduplicate(dry_run=True)
