"""Tables that Apache Hudi makes by random operations under random options: every question gets its answer.

A seed is a table; `python tools/interop/unseen.py` tries others.
"""

import pyarrow as pa
import pytest

from hudi_format.errors import InstantNotFoundError
from hudi_timeline import HudiTable
from interop.rows import assert_same_rows
from interop.samples import SHAPES, Rows
from interop.unseen import APACHE_FAILS, SAME, WRONG, History, compare

# Compaction of archived commits, partition columns beside moved rows, key generators of times, change data,
# clustering, images of changes from before columns were added.
SEEDS = [
    ("0.15.0", 17),
    ("0.15.0", 3),
    ("0.15.0", 15),
    ("1.2.0", 21),
    ("1.0.2", 26),
    ("1.2.0", 22),
    ("1.0.2", 29),
    ("1.2.0", 60),
    ("0.15.0", 124),
]


@pytest.mark.req("QR-01", "QR-02", "QR-03", "QR-07", "IN-01")
@pytest.mark.parametrize(
    ("version", "seed", "one_of"),
    [
        pytest.param(*SEEDS[0], 3, id="{}-{}, a third of the questions".format(*SEEDS[0])),
        *(pytest.param(v, s, 1, id=f"{v}-{s}") for v, s in SEEDS),
    ],
)
def test_every_question_gets_the_answer_of_apache_hudi(pool, tmp_path, version, seed, one_of):
    apache, history = pool.get(version), History(version, seed)
    path = tmp_path / "table"
    history.write(apache, path)
    found = compare(history, apache, path, one_of=one_of)
    wrong = [f"{o.kind}: {o.name}: {o.message}" for o in found if o.kind in WRONG]
    assert not wrong, "\n".join([str(history), *wrong])
    assert one_of * sum(o.kind == SAME for o in found) > 5
    assert sum(o.kind == APACHE_FAILS for o in found) < len(found) / 2


@pytest.mark.req("IN-01", "IN-12")
@pytest.mark.slow
def test_rows_that_a_compaction_took_from_archived_commits_are_read_from_the_start(apache, tmp_path):
    shape = SHAPES["simple"]
    rows = Rows(shape)
    options = {
        **shape.write_options(),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.automatic": "false",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.metadata.enable": "false",
    }
    given = rows.new(12)
    for n in range(5):
        batch = given if n == 0 else rows.changed(given, 4)
        apache.write(tmp_path / "t", pa.Table.from_pylist(batch, schema=shape.schema), options)
    asked = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
    want = apache.read(tmp_path / "t", **asked)
    scan = HudiTable.open(str(tmp_path / "t")).read_incremental("000", meta_columns=True)
    with pytest.warns(UserWarning, match="archived"):
        got = scan.to_arrow()
    assert_same_rows(got, want, ["uuid"])
    assert not scan.complete
    active = {r["instant"] for r in HudiTable.open(str(tmp_path / "t")).inspect.timeline().to_pylist()}
    assert set(want["_hoodie_commit_time"].to_pylist()) - active, "rows of archived commits were asked for"


def test_of_commits_that_were_archived_behind_a_savepoint_apache_hudi_leaves_the_rows_out(apache, tmp_path):
    """The savepoint's own commit stays on the timeline, so that a begin there looks as if nothing were missing."""
    rows = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HudiTable.create(str(tmp_path / "t"), rows, name="t", record_keys=["id"], ordering_fields=["ts"])
    options = {
        "hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
        "hoodie.archive.beyond.savepoint": "true",
    }  # fmt: skip
    times = []
    for n in range(8):
        times.append(table.upsert(pa.table({"id": [f"k{n}"], "ts": [n]}), options=options).instant)
        if n == 0:
            table.savepoint()
    table = HudiTable.open(str(tmp_path / "t"))
    active = [i.time for i in table.timeline.completed_writes()]
    assert active[0] == times[0]
    first = times.index(active[1])
    assert first > 1
    query = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": times[0],
    }
    theirs = sorted(apache.read(tmp_path / "t", **query)["id"].to_pylist())
    assert theirs == [f"k{n}" for n in range(first, 8)]
    with pytest.raises(InstantNotFoundError) as e:
        table.read_incremental(times[0]).to_arrow()
    assert e.value.details["oldest"] == active[1]
    with pytest.warns(UserWarning, match="archived"):
        skipped = table.read_incremental(times[0], on_missing="skip").to_arrow()
    assert sorted(skipped["id"].to_pylist()) == theirs
    whole = table.read_incremental(times[0], on_missing="full_scan").to_arrow()
    assert sorted(whole["id"].to_pylist()) == [f"k{n}" for n in range(1, 8)]
