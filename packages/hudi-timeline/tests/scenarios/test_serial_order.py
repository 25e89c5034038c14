"""What a write read or replaces, beside writes whose rows others saw first: the one that commits last counts for all.

Two writes that share no file group fit no serial order where the later one misses the rows of the earlier one.
"""

import shutil

import pyarrow as pa
import pytest
from rival_writers import DURING, OCC, Between, Older, beside, make, rows, state, values

from hudi_format.errors import WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.reading.scan import Scan
from hudi_timeline.timeline import avro_files
from hudi_timeline.writing import operation

TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}
SOURCE = pa.table({"id": ["n"], "p": ["x"], "ts": [9], "v": pa.array([9], pa.int32())})

pytestmark = pytest.mark.req("CC-01")


def merged(table, options, clause, *given):
    return getattr(table.merge(SOURCE, options=options), clause)(*given).execute()


# By name: the write, the row that another one adds to its range meanwhile, what the write makes of that row, and rows
# that are out of its range.
READS = {
    "update": (lambda t, o: t.update({"v": 9}, "p = 'x'", options=o), "nx", 9, ["qy"]),
    "update of all": (lambda t, o: t.update({"v": 9}, options=o), "ny", 9, []),
    "delete": (lambda t, o: t.delete("p = 'x' and id <= 'n'", options=o), "nx", None, ["qy", "qx"]),
    "merge that updates": (lambda t, o: merged(t, o, "when_matched_update", {"v": 9}), "nx", 9, ["qx"]),
    "merge that inserts": (lambda t, o: merged(t, o, "when_not_matched_insert"), "nx", 5, ["qx"]),
    "merge that deletes": (lambda t, o: merged(t, o, "when_not_matched_by_source_delete"), "mx", None, []),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = {name: tmp_path_factory.mktemp("made") / "t" for name in TYPES}
    for name, path in found.items():
        make(str(path), TYPES[name])
    return found


@pytest.fixture(params=TYPES)
def path(request, made, tmp_path):
    shutil.copytree(made[request.param], tmp_path / "t")
    return str(tmp_path / "t")


@pytest.fixture
def begun(monkeypatch):
    """Operations of the transactions that were begun."""
    found = []
    begin = operation.begin_transaction

    def beginning(*args, **kwargs):
        found.append(kwargs["operation"])
        return begin(*args, **kwargs)

    monkeypatch.setattr(operation, "begin_transaction", beginning)
    return found


@pytest.fixture
def asked_again(monkeypatch):
    """Number of files in which rows of others were looked for, each time."""
    found = []
    of_file_groups = Scan.of_file_groups

    def counted(scan, groups):
        part = of_file_groups(scan, groups)
        found.append(part.files.num_rows)
        return part

    monkeypatch.setattr(Scan, "of_file_groups", counted)
    return found


# --- rows of a filter


@pytest.mark.parametrize("name", READS)
@pytest.mark.sampled(4)
def test_rows_that_came_into_the_range_of_a_filter_are_read_again(path, monkeypatch, begun, name):
    write, key, value, _ = READS[name]
    between = beside(path, monkeypatch, key)
    result = write(HudiTable.open(path), OCC)
    assert (key[0], key[1]) in between.state[0]
    assert [v for k, v in values(path) if k == key] == [v for v in [value] if v]
    assert (len(begun), result.retries) == (3, 0)
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.parametrize("name", [n for n, (_, _, _, others) in READS.items() if others])
def test_rows_out_of_the_range_cost_no_second_try(path, monkeypatch, begun, asked_again, name):
    write, _, _, keys = READS[name]
    beside(path, monkeypatch, *keys)
    write(HudiTable.open(path), OCC)
    assert len(begun) == 2
    assert [v for k, v in values(path) if k in keys] == [5] * len(keys)
    # Of a partition that the filter does not allow no file is looked at, and what was seen is not looked at again.
    assert asked_again == [0 if keys == ["qy"] else 1]


def test_rows_that_others_changed_to_pass_the_filter_are_read_again(path, monkeypatch, begun):
    beside(path, monkeypatch, "ax", act="upsert")
    result = HudiTable.open(path).update({"v": 9}, "p = 'x' and v = 5", options=OCC)
    assert dict(values(path))["ax"] == 9
    assert (len(begun), result.retries) == (3, 0)


@pytest.mark.parametrize("act", ["delete", "delete_partitions", "insert_overwrite"])
def test_a_merge_adds_what_others_deleted_meanwhile(path, monkeypatch, begun, act):
    HudiTable.open(path).insert(rows("nx"), options=OCC)
    begun.clear()

    def rival(uri):
        given = "x" if act == "delete_partitions" else rows("nx" if act == "delete" else "zx", v=5)
        getattr(HudiTable.open(uri), act)(given, options=OCC)

    between = Between(monkeypatch, path, rival, DURING)
    merged(HudiTable.open(path), OCC, "when_not_matched_insert")
    assert ("n", "x") not in between.state[0]
    assert ("nx", 9) in values(path)
    assert len(begun) == 3


def test_a_filter_that_no_longer_fits_is_asked_anew(tmp_path, monkeypatch):
    """The error is the one of a write that begins now."""
    path = str(tmp_path / "t")
    make(path)

    def rival(uri):
        given = rows("nx", v=5, extra=None)
        drop = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
        HudiTable.open(uri).upsert(given, options={**OCC, **drop})

    Between(monkeypatch, path, rival, DURING)
    with pytest.raises(Exception, match="no column 'extra'"):
        HudiTable.open(path).delete("extra = 'e1' and p = 'x'", options=OCC)
    assert ("ax", 1) in values(path)


def test_a_compaction_beside_a_write_with_a_filter_is_no_conflict(tmp_path, monkeypatch, begun, asked_again):
    path = str(tmp_path / "t")
    compact = {**OCC, "hoodie.compact.inline.max.delta.commits": "1"}
    make(path, "MERGE_ON_READ").upsert(rows("by", v=1), options=OCC)
    HudiTable.open(path).compact(mode="schedule", options=compact)
    begun.clear()
    between = Between(
        monkeypatch, path, lambda uri: HudiTable.open(uri).compact(mode="execute", options=compact), DURING
    )
    HudiTable.open(path).update({"v": 9}, "v = 1 and id = 'a'", options=OCC)
    assert between.refused is None
    assert [i.action for i in HudiTable.open(path).timeline.completed_writes()].count("commit") == 1
    assert dict(values(path)) == {"ax": 9, "by": 1, "cq": 1}
    assert (len(begun), asked_again) == (1, [])


# --- what an overwrite replaces

OVERWRITES = {
    "insert_overwrite": (lambda t, o, v: t.insert_overwrite(rows("ax", v=9), options=o, validators=v), {"ax"}),
    "insert_overwrite_table": (
        lambda t, o, v: t.insert_overwrite_table(rows("by", v=9), options=o, validators=v), {"by"},
    ),
    "delete_partition": (lambda t, o, v: t.delete_partitions("x", options=o, validators=v), set()),
    "delete of a pattern": (lambda t, o, v: t.delete_partitions("*", options=o, validators=v), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", OVERWRITES)
@pytest.mark.parametrize("new", ["nx", "nn"])
def test_what_others_added_before_an_overwrite_commits_is_replaced_too(path, begun, name, new):
    write, left = OVERWRITES[name]
    older = Older(path, new)
    result = write(HudiTable.open(path), OCC, [older.commits])
    covered = new == "nx" or name in ("insert_overwrite_table", "delete of a pattern")
    there = dict(values(path))
    assert (new in there) == (not covered)
    assert left <= there.keys()
    assert (new[1] in result.replaced and len(result.replaced[new[1]]) == {"x": 2, "n": 1}[new[1]]) == covered
    assert len(begun) == 2
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.parametrize("name", OVERWRITES)
@pytest.mark.sampled(3)
def test_a_later_instant_that_was_completed_first_is_a_conflict(path, monkeypatch, name):
    write, left = OVERWRITES[name]
    between = beside(path, monkeypatch, "nx")
    with pytest.raises(WriteConflictError, match="a later instant") as e:
        write(HudiTable.open(path), OCC, [])
    assert e.value.retry_safe
    assert state(path) == between.state
    beside(path, monkeypatch, "mx")
    assert write(HudiTable.open(path), {**OCC, **RETRY}, []).retries == 1
    assert {k for k, _ in values(path) if k[1] == "x"} == {k for k in left if k[1] == "x"}
    assert HudiTable.open(path).verify(deep=True) == []


def test_others_partitions_are_no_conflict(path, monkeypatch, begun):
    beside(path, monkeypatch, "ny")
    HudiTable.open(path).insert_overwrite(rows("zx", v=9), options=OCC)
    assert {"ny", "zx"} <= dict(values(path)).keys()
    assert len(begun) == 2


def test_what_others_added_and_planned_to_cluster_is_a_conflict(path):
    older = Older(path, "nn")
    planned = ".hoodie/29990101000000000.replacecommit.requested"

    def plan(change):
        table = HudiTable.open(path)
        (added,) = (s for s in open_snapshot(table.storage).slices() if s.partition == "n")
        groups = [{"slices": [{"fileId": added.file_id, "partitionPath": "n"}]}]
        request = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": groups}}
        table.storage.create(planned, avro_files.render("HoodieRequestedReplaceMetadata", request))

    with pytest.raises(WriteConflictError, match="clustering 2999"):
        HudiTable.open(path).insert_overwrite(rows("an"), options=OCC, validators=[older.commits, plan])
    HudiTable.open(path).storage.delete(planned)
    assert [k for k, _ in values(path)] == ["ax", "by", "cq", "nn"]


@pytest.mark.parametrize("index", ["SIMPLE", "CONSISTENT_HASHING"])
def test_buckets_that_others_added_before_an_overwrite_commits(tmp_path, index):
    path = str(tmp_path / "t")
    table_type = "MERGE_ON_READ" if index == "CONSISTENT_HASHING" else "COPY_ON_WRITE"
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": index,
        "hoodie.bucket.index.num.buckets": "2",
        **({"hoodie.bucket.index.min.num.buckets": "1"} if index == "CONSISTENT_HASHING" else {}),
    }
    table = HudiTable.create(
        path, rows("ax"), name="t", table_type=table_type, record_keys="id", partition_fields="p",
        ordering_fields="ts", options=buckets,
    )  # fmt: skip
    table.upsert(rows("ax", v=1), options={**OCC, **buckets})
    older = Older(path, "nn")

    def overwrite():
        return HudiTable.open(path).delete_partitions("*", options=OCC, validators=[older.commits])

    if index == "SIMPLE":
        overwrite()
    else:
        with pytest.raises(WriteConflictError, match="added buckets"):
            overwrite()
        assert values(path) == [("ax", 1), ("nn", 5)]
        HudiTable.open(path).delete_partitions("*", options=OCC)
    assert values(path) == []
    HudiTable.open(path).upsert(rows("nn", "ax", v=7), options={**OCC, **buckets})
    assert values(path) == [("ax", 7), ("nn", 7)]
    assert HudiTable.open(path).verify(deep=True) == []
