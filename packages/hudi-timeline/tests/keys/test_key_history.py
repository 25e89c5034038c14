"""Each commit that touched a key, with the row before and after: as time travel tells it."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from duplicated_tables import QUIET, SCHEMA, TABLES, row, rows_of

from hudi_format.errors import MissingFileError, UnsupportedError
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.keys import key_history
from hudi_timeline.reading.snapshot_query import START


def make(path, kind, **options):
    virtual = {"hoodie.populate.meta.fields": "false"} if "virtual" in kind else {}
    return HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ" if "mor" in kind else "COPY_ON_WRITE", options={**virtual, **options},
    )  # fmt: skip


def at(table, instant, key):
    found = table.read(as_of=instant, meta_columns=False).to_arrow().to_pylist()
    return [{n: r[n] for n in SCHEMA.names} for r in found if r["id"] == key]


def life(table, seed, steps=8):
    """Writes of any kind; every key goes through inserts, updates, deletes and replacements."""
    rng = random.Random(seed)
    last = 0
    for step in range(1, steps + 1):
        keys = rng.sample("abcdef", 3)
        here = rng.choice("xy")
        what = rng.choice(["upsert", "upsert", "upsert", "delete", "insert_overwrite", "compact"])
        made = [row(k, "x" if k in "abc" else "y", step, f"{k}{step}") for k in keys]
        if what == "upsert" or not last:
            table.upsert(made, options=QUIET)
        elif what == "delete":
            table.delete(made[:2], options=QUIET)
        elif what == "insert_overwrite":
            own = [r for r in made if r["p"] == here]
            if own:
                table.insert_overwrite(own, options=QUIET)
        elif table.table_type == "MERGE_ON_READ":
            table.compact(options=QUIET)
        last = step


@pytest.mark.req("NEW-19")
@pytest.mark.sampled(9)
@pytest.mark.parametrize("seed", [3, 11])
@pytest.mark.parametrize("kind", TABLES)
def test_history_is_what_time_travel_shows(tmp_path, kind, seed):
    table = make(tmp_path / "t", kind)
    life(table, seed)
    found = table.key_history([*"abcdef", "never"])
    assert found.complete_from == START
    changes = found.changes.to_pylist()
    assert {c["key"] for c in changes} <= set("abcdef")
    commits = [c for c in table.inspect.commits().to_pylist() if c["state"] == "COMPLETED"]
    operations = {c["instant"]: c["operation"] for c in commits}
    for key in "abcdef":
        previous = []
        for instant in operations:
            now = at(table, instant, key)
            own = [c for c in changes if (c["key"], c["instant"]) == (key, instant)]
            assert [c["before"] for c in own if c["before"]] == (previous if own else [])
            if own:
                assert [c["after"] for c in own if c["after"]] == now
                assert {c["operation"] for c in own} == {operations[instant]}
                assert {c["change"] for c in own} == {"u" if previous and now else "i" if now else "d"}
            else:
                assert now == previous
            previous = now


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_every_write_of_a_row_is_there_also_of_the_same_values(tmp_path, kind):
    table = make(tmp_path / "t", kind)
    for _ in range(3):
        table.upsert([row("a", "x", 1, "same")], options=QUIET)
    times = [i.time for i in table.timeline.completed_writes()]
    found = table.key_history("a").changes
    assert found.column("instant").to_pylist() == times
    assert found.column("change").to_pylist() == ["i", "u", "u"]


@pytest.mark.req("NEW-19")
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_it_says_from_when_on_it_is_whole_where_slices_were_cleaned(tmp_path, kind):
    table = make(tmp_path / "t", kind)
    for step in range(6):
        table.upsert([row("a", "x", step, f"a{step}")], options=QUIET)
        if kind == "mor":
            table.compact(options=QUIET)
    whole = table.key_history(["a"])
    table.clean(options={"hoodie.cleaner.commits.retained": "2"})
    found = table.key_history(["a"])
    assert whole.complete_from == START < found.complete_from
    later = [c for c in whole.changes.to_pylist() if c["instant"] >= found.complete_from]
    assert later
    assert [c for c in found.changes.to_pylist() if c["instant"] >= found.complete_from] == later
    # The oldest row that is left tells who wrote it, and no more.
    first = found.changes.to_pylist()[0]
    assert (first["change"], first["before"]) == (None, None)
    assert {(c["instant"], str(c["after"])) for c in found.changes.to_pylist()} <= {
        (c["instant"], str(c["after"])) for c in whole.changes.to_pylist()
    }


def test_rows_of_archived_commits_are_told_by_their_meta_columns(tmp_path):
    table = make(tmp_path / "t", "cow")
    table.upsert([row("a", "x", 1, "a1"), row("b", "x", 1, "b1")], options=QUIET)
    first = table.timeline.completed_writes()[0].time
    for step in range(6):
        table.upsert([row("a", "x", 2 + step, f"a{2 + step}"), row("z", "y", step, "z")], options=QUIET)
    keep = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    table.clean(options=keep)
    table.archive(options=keep)
    found = table.key_history(["b"])
    assert found.complete_from > first
    assert [
        (c["instant"], c["operation"], c["change"], c["after"]["v"]) for c in found.changes.to_pylist()
    ] == [(first, "UPSERT", None, "b1")]
    newest = table.key_history(["a"]).changes.to_pylist()[-1]
    assert (newest["change"], newest["before"]["v"], newest["after"]["v"]) == ("u", "a6", "a7")


def test_rows_before_a_commit_are_those_before_it_in_a_log_that_later_ones_share(tmp_path):
    table = make(tmp_path / "t", "mor")
    for n in range(1, 8):
        table.upsert([row("a", "x", n, str(n))], options=QUIET)
    few = {
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.cleaner.commits.retained": "2",
    }
    table.archive(options={**QUIET, **few})
    first, *others = table.key_history(["a"]).changes.to_pylist()
    assert first["change"] is None
    assert len(others) == len(table.timeline.completed_writes()) == 5
    for before, change in zip([first, *others], others, strict=False):
        assert (change["change"], change["before"]) == ("u", before["after"])
        assert [change["after"]] == at(table, change["instant"], "a")


def test_a_key_that_changes_its_partition_is_one_change(tmp_path):
    options = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "true"}
    table = make(tmp_path / "t", "cow")
    table.upsert([row("a", "x", 1, "a1")], options={**QUIET, **options})
    table.upsert([row("a", "y", 2, "a2")], options={**QUIET, **options})
    changes = table.key_history(["a"]).changes.to_pylist()
    assert [(c["change"], c["partition"]) for c in changes] == [("i", "x"), ("u", "y")]
    assert (changes[1]["before"]["p"], changes[1]["after"]["p"]) == ("x", "y")
    assert [c["change"] for c in table.key_history(["a"], partitions=["y"]).changes.to_pylist()] == ["i"]


def test_changes_of_a_pending_compaction_and_of_no_key(tmp_path):
    table = make(tmp_path / "t", "mor")
    for step in range(3):
        table.upsert([row("a", "x", step, f"a{step}")], options=QUIET)
    table.compact(mode="schedule", options=QUIET)
    table.upsert([row("a", "x", 5, "a5")], options=QUIET)
    found = table.key_history([{"id": "a"}])
    assert [c["after"]["v"] for c in found.changes.to_pylist()] == ["a0", "a1", "a2", "a5"]
    assert found.complete_from == START
    assert table.key_history([]).changes.num_rows == 0
    assert rows_of(table)[0]["v"] == "a5"


def test_a_table_without_keys_is_refused(tmp_path):
    options = {"hoodie.populate.meta.fields": "false"}
    table = HudiTable.create(
        tmp_path / "t", pa.schema([("v", pa.int64())]), record_keys=["v"], options=options
    )
    table.insert([{"v": 1}])
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    lines = [x for x in properties.read_text().splitlines() if "recordkey" not in x and "checksum" not in x]
    properties.write_text("\n".join(lines) + "\n")
    for ask in (lambda t: t.key_history(["1"]), lambda t: t.duplicates()):
        with pytest.raises(UnsupportedError, match="record keys"):
            ask(HudiTable.open(tmp_path / "t"))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_times_that_python_does_not_have_are_told(tmp_path, kind):
    path = str(tmp_path / "t")

    def rows(*numbers):
        times = pa.array(numbers, pa.timestamp("us", "UTC"))
        structs = pa.StructArray.from_arrays([times], ["t"])
        return pa.table({"id": ["a"] * len(numbers), "ts": [1] * len(numbers), "t": times, "s": structs})

    write_hudi(path, rows(2**62), key="id", ordering="ts", name="t", table_type=kind)
    table = HudiTable.open(path)
    table.upsert(rows(-(2**62)))
    table.upsert(rows(5))
    changes = HudiTable.open(path).key_history("a").changes
    for name in ("t", "s"):
        images = pa.table({"t": rows(2**62, -(2**62), 5).column(name)}).column(0).combine_chunks()
        found = [pc.struct_field(changes.column(side), name) for side in ("before", "after")]
        assert found[1].combine_chunks().equals(images)
        assert found[0].combine_chunks().slice(1).equals(images.slice(0, 2))


@pytest.mark.parametrize(("kind", "by"), [("cow", "clean"), ("mor", "clean"), ("cow", "rollback")])
def test_files_that_go_while_it_is_told_are_a_gap_and_no_error(tmp_path, monkeypatch, kind, by):
    folder = str(tmp_path / "t")
    table = make(folder, kind)
    for v in range(1, 5):
        table.upsert([row("a", "x", v, f"a{v}")], options=QUIET)
        if kind == "mor" and v % 2:
            table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    real, left = key_history.read_file_slice, [by]

    def read(*args, **given):
        if left:
            left.clear()
            other = HudiTable.open(folder)
            if by == "rollback":
                other.rollback(other.timeline.completed_writes()[-1].time)
            else:
                policy = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}
                other.clean(options={**policy, "hoodie.cleaner.fileversions.retained": "1"})
        return real(*args, **given)

    monkeypatch.setattr(key_history, "read_file_slice", read)
    changes = HudiTable.open(folder).key_history(["a"]).changes.to_pylist()
    assert not left
    assert changes[-1]["after"]["v"] == ("a3" if by == "rollback" else "a4")


def test_a_file_that_is_missing_is_an_error(tmp_path, monkeypatch):
    table = make(tmp_path / "t", "cow")
    table.upsert([row("a", "x", 1, "a1")], options=QUIET)
    reads = []

    def read(*args, **given):
        reads.append(1)
        raise MissingFileError("a file is not there", file="x/f.parquet")

    monkeypatch.setattr(key_history, "read_file_slice", read)
    with pytest.raises(MissingFileError):
        table.key_history(["a"])
    assert len(reads) == 2


def test_a_partition_column_that_only_paths_have_is_told_whatever_its_name(tmp_path):
    schema = pa.schema(
        [("id", pa.string()), ("v", pa.int64()), pa.field("partition", pa.string(), nullable=False)]
    )
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = HudiTable.create(
        tmp_path / "t", schema, name="t", record_keys=["id"], partition_fields=["partition"], options=options
    )
    for n in (1, 2):
        table.upsert([{"id": "a", "v": n, "partition": "x"}], options=QUIET)
    first, second = ({"id": "a", "v": n, "partition": "x"} for n in (1, 2))
    changes = table.key_history(["a"]).changes.to_pylist()
    assert [(c["before"], c["after"]) for c in changes] == [(None, first), (first, second)]
