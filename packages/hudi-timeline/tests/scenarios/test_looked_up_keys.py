"""Keys that a write looked up, beside writes that add or delete the same ones before it commits.

`delete` of rows leaves out what it does not find, `insert` drops what it finds.  Where others change that before the
write commits, and share no file group with it, no serial order has what readers saw in between and see in the end.
"""

import shutil

import pyarrow as pa
import pytest
from rival_writers import (
    DURING,
    GLOBAL,
    OCC,
    Between,
    Older,
    adds_twice_and_cleans,
    beside,
    make,
    rows,
    values,
)

from hudi_format.errors import DuplicateKeyError, WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.writing import operation

TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}
BY_KEYS = {"hudi.write.conflict.detection": "keys"}
DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
FAIL = {"hoodie.datasource.insert.dup.policy": "fail"}
DETECTION = {"by file groups": {}, "by keys": BY_KEYS}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}

pytestmark = pytest.mark.req("CC-01")


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


def marked(*keys, gone=()):
    """Rows to upsert, of which some mark deletions."""
    given = rows(*keys, ts=9, v=9)
    return given.append_column("_hoodie_is_deleted", pa.array([k in gone for k in keys]))


def with_marks(path):
    """Give the table the column of `marked`."""
    HudiTable.open(path).upsert(marked("by"), options=OCC)


# By name: the write, and what the table has of it, beside another one that adds nx.
LOOKED_UP = {
    "delete": (lambda t, o: t.delete(rows("ax", "nx"), options=o), {"by": 1, "cq": 1}),
    "delete of what is not there": (lambda t, o: t.delete(rows("nx"), options=o), {"ax": 1, "by": 1, "cq": 1}),
    "insert that drops": (
        lambda t, o: t.insert(rows("ax", "nx", "mx", ts=9, v=9), options={**o, **DROP}),
        {"ax": 1, "by": 1, "cq": 1, "mx": 9, "nx": 5},
    ),
    "upsert that deletes": (
        lambda t, o: t.upsert(marked("ax", "nx", gone=("nx",)), options=o), {"ax": 9, "by": 9, "cq": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("detection", DETECTION)
@pytest.mark.parametrize(
    ("name", "act"),
    [*((n, "insert") for n in LOOKED_UP), ("delete", "upsert"), ("insert that drops", "bulk_insert")],
)
@pytest.mark.sampled(8)
def test_keys_that_a_later_instant_added_are_looked_up_again(path, monkeypatch, begun, name, detection, act):
    write, wanted = LOOKED_UP[name]
    with_marks(path) if "that deletes" in name else None
    begun.clear()
    between = beside(path, monkeypatch, "nx", act=act)
    result = write(HudiTable.open(path), {**OCC, **DETECTION[detection]})
    assert ("n", "x") in between.state[0]
    assert values(path) == sorted(wanted.items())
    assert (len(begun), result.retries) == (3, 0)
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.parametrize("detection", DETECTION)
@pytest.mark.parametrize("name", LOOKED_UP)
@pytest.mark.sampled(6)
def test_keys_that_an_earlier_instant_added_are_looked_up_again(path, begun, name, detection):
    write, wanted = LOOKED_UP[name]
    with_marks(path) if "that deletes" in name else None
    begun.clear()
    older = Older(path, "nx")
    table = HudiTable.open(path)
    options = {**OCC, **DETECTION[detection]}
    given = {}

    def checked(*args, **kwargs):
        return given.setdefault("write", original)(*args, **{**kwargs, "validators": [older.commits]})

    act = {"delete": "delete", "insert": "insert", "upsert": "upsert"}[name.split()[0]]
    original = getattr(table, act)
    setattr(table, act, checked)
    write(table, options)
    assert values(path) == sorted(wanted.items())
    assert len(begun) == 3
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.parametrize("name", LOOKED_UP)
def test_other_keys_cost_no_second_try(path, monkeypatch, begun, name):
    write, wanted = LOOKED_UP[name]
    with_marks(path) if "that deletes" in name else None
    begun.clear()
    beside(path, monkeypatch, "qx", "ny")
    write(HudiTable.open(path), OCC)
    assert len(begun) == 2
    alone = {"mx": 9, "nx": 9} if "drops" in name else {}
    assert values(path) == sorted({**wanted, **alone, "qx": 5, "ny": 5}.items())


@pytest.mark.parametrize("name", LOOKED_UP)
def test_a_compaction_or_clustering_of_others_costs_none(tmp_path, monkeypatch, begun, name):
    write, wanted = LOOKED_UP[name]
    path = str(tmp_path / "t")
    make(path, "MERGE_ON_READ").upsert(rows("by", v=1), options=OCC)
    with_marks(path) if "that deletes" in name else None
    compact = {**OCC, "hoodie.compact.inline.max.delta.commits": "1"}
    HudiTable.open(path).compact(mode="schedule", options=compact)
    begun.clear()
    between = Between(
        monkeypatch, path, lambda uri: HudiTable.open(uri).compact(mode="execute", options=compact), DURING
    )
    write(HudiTable.open(path), OCC)
    assert between.refused is None
    assert len(begun) == 1
    alone = {"mx": 9, "nx": 9} if "drops" in name else {}
    assert values(path) == sorted({**wanted, **alone}.items())


def test_an_insert_that_fails_on_known_keys_finds_those_that_others_added(path, monkeypatch, begun):
    between = beside(path, monkeypatch, "nx")
    with pytest.raises(DuplicateKeyError, match="1 rows have a key"):
        HudiTable.open(path).insert(rows("nx", "mx", v=9), options={**OCC, **FAIL})
    assert values(path) == [("ax", 1), ("by", 1), ("cq", 1), ("nx", 5)]
    assert between.state is not None
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("act", ["delete", "delete_partitions", "insert_overwrite"])
@pytest.mark.sampled(3)
def test_known_keys_that_others_delete_are_inserted(tmp_path, monkeypatch, begun, act, index):
    path = str(tmp_path / "t")
    options = {**OCC, **(BUCKETS if index == "BUCKET" else {})}
    make(path, **(BUCKETS if index == "BUCKET" else {})).insert(rows("nx"), options=options)
    begun.clear()

    def rival(uri):
        given = "x" if act == "delete_partitions" else rows("nx" if act == "delete" else "zx", v=5)
        getattr(HudiTable.open(uri), act)(given, options=options)

    between = Between(monkeypatch, path, rival, DURING)
    # A bucket's new rows go to its file group, which is the other one's too.
    retry = RETRY if index == "BUCKET" else {}
    HudiTable.open(path).insert(rows("nx", "mx", v=9), options={**options, **DROP, **retry})
    assert ("n", "x") not in between.state[0]
    assert {("mx", 9), ("nx", 9)} <= set(values(path))
    assert len(begun) == 3
    assert HudiTable.open(path).verify(deep=True) == []


def test_known_keys_that_others_change_are_no_conflict(path, monkeypatch, begun):
    beside(path, monkeypatch, "ax", act="upsert")
    HudiTable.open(path).insert(rows("ax", "mx", ts=9, v=9), options={**OCC, **DROP})
    assert values(path) == [("ax", 5), ("by", 1), ("cq", 1), ("mx", 9)]
    assert len(begun) == 2


@pytest.mark.parametrize("name", ["delete", "insert that drops"])
def test_with_a_global_index_all_partitions_count(tmp_path, monkeypatch, begun, name):
    write, _ = LOOKED_UP[name]
    path = str(tmp_path / "t")
    make(path, **GLOBAL)
    begun.clear()
    beside(path, monkeypatch, "ny")
    write(HudiTable.open(path), {**OCC, **GLOBAL})
    there = dict(values(path))
    assert (there.get("ny"), there.get("nx")) == ((None, None) if name == "delete" else (5, None))
    assert len(begun) == 3


@pytest.mark.parametrize("name", ["delete", "delete of what is not there"])
def test_first_file_groups_of_buckets_are_looked_into(tmp_path, monkeypatch, begun, name):
    write, wanted = LOOKED_UP[name]
    path = str(tmp_path / "t")
    make(path, "MERGE_ON_READ", **BUCKETS)
    begun.clear()

    def rival(uri):
        for v in (4, 5):  # the second one stands in a log
            HudiTable.open(uri).upsert(rows("nx", "ox", "qx", "rx", v=v), options=OCC)

    Between(monkeypatch, path, rival, DURING)
    write(HudiTable.open(path), {**OCC, **RETRY})
    left = {k: v for k, v in dict(values(path)).items() if k not in ("ox", "qx", "rx")}
    assert left == wanted


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["delete", "insert that drops"])
def test_keys_that_files_do_not_hold_are_made_of_their_columns(tmp_path, monkeypatch, begun, name, kind):
    write, wanted = LOOKED_UP[name]
    path = str(tmp_path / "t")
    virtual = {"hoodie.populate.meta.fields": "false"}
    table = HudiTable.create(
        path, rows("ax"), name="t", table_type=TYPES[kind], record_keys="id", partition_fields="p",
        ordering_fields="ts", options=virtual,
    )  # fmt: skip
    table.insert(rows("ax", "by", "cq", v=1, ts=1), options=OCC)
    begun.clear()
    beside(path, monkeypatch, "nx")
    write(HudiTable.open(path), OCC)
    assert values(path) == sorted(wanted.items())
    assert len(begun) == 3


@pytest.mark.parametrize(
    ("name", "tries"), [("delete", 2), ("insert that drops", 2), ("insert that drops all", 1)]
)
def test_keys_of_others_whose_files_were_cleaned_are_looked_up_again(
    tmp_path, monkeypatch, begun, name, tries
):
    path = str(tmp_path / "t")
    make(path)
    begun.clear()
    between = Between(monkeypatch, path, adds_twice_and_cleans, DURING)
    table = HudiTable.open(path)
    if name == "delete":
        table.delete(rows("ax", "nx"), options=OCC)
    else:
        ours = rows("ax", "nx", "mx", v=9) if tries == 2 else rows("ax", v=9)
        table.insert(ours, options={**OCC, **DROP})
    assert between.refused is None
    others = {"by": 1, "cq": 1}
    wanted = {"ax": 1, "nx": 6, **({"mx": 9} if tries == 2 else {})}
    assert values(path) == sorted((others if name == "delete" else {**others, **wanted}).items())
    assert len(begun) == 2 + tries


def test_a_stream_is_not_read_twice(path, monkeypatch):
    def stream():
        return pa.RecordBatchReader.from_batches(rows("ax").schema, rows("ax", "nx").to_batches())

    between = beside(path, monkeypatch, "nx")
    with pytest.raises(WriteConflictError) as e:
        HudiTable.open(path).delete(stream(), options=OCC)
    assert e.value.retry_safe
    assert e.value.keys == ("n",)
    assert "deletes" in e.value.remedy
    assert values(path) == sorted((k[0] + k[1], r["v"]) for k, r in between.state[0].items())
    beside(path, monkeypatch, "mx")
    table = HudiTable.open(path)
    gone = rows("ax", "nx", "mx")
    again = pa.RecordBatchReader.from_batches(gone.schema, gone.to_batches())
    assert table.delete(again, options={**OCC, **RETRY}).retries in (0, 1)
    assert values(path) == [("by", 1), ("cq", 1)]
