"""Random writes on Spark beside a model of the rows, and rows of merge-on-read tables that stay in their partition."""

import os
import random

import pytest

from hudi_timeline import HudiTable

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
DDL = "id string, p string, ts long, v double"
STEPS = 100 if os.environ.get("HUDI_SOAK") else 8


def held(session, path):
    found = session.read.format("hudi").load(path).select("id", "p", "ts", "v").collect()
    return sorted(tuple(r) for r in found)


EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


@pytest.mark.parametrize("kind_of_table", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize(
    ("index", "late"), [("SIMPLE", False), ("GLOBAL_SIMPLE", False), ("GLOBAL_BLOOM", True)]
)
@pytest.mark.sampled(3, values=False)
def test_random_writes_agree_with_a_model(session, tmp_path, index, late, kind_of_table):
    """With `late` records come in any order, and the greatest ordering value wins wherever it is stored."""
    draw = random.Random(index)
    path, model = str(tmp_path / "t"), {}
    options = {**OPTIONS, "hoodie.index.type": index, "hoodie.datasource.write.table.type": kind_of_table}
    logs = kind_of_table == "MERGE_ON_READ"
    if logs:
        options["hoodie.compact.inline.max.delta.commits"] = "3"
    if index == "SIMPLE":
        options["hoodie.parquet.small.file.limit"] = "0"
    if late:
        options["hoodie.datasource.write.payload.class"] = EVENT_TIME
    done = []
    for step in range(STEPS):
        kind = draw.choice(["upsert", "upsert", "delete", "insert"]) if model else "upsert"
        ids = {str(draw.randrange(12)) for _ in range(4)}
        if kind == "insert":
            ids -= set(model)
        elif kind == "delete":
            ids &= set(model)
        if not ids:
            continue
        done.append(kind)
        home = {i: model[i][1] if i in model and index == "SIMPLE" else draw.choice("ab") for i in ids}
        if index == "SIMPLE":
            home = {i: "ab"[int(i) % 2] for i in ids}
        if kind == "delete":
            home = {i: model[i][1] for i in ids}
        rows = [(i, home[i], draw.randrange(9) if late else step + 1, float(step)) for i in sorted(ids)]
        frame = session.createDataFrame(rows, DDL)
        write = {**options, "hoodie.datasource.write.operation": kind}
        frame.write.format("hudi").options(**write).mode("append").save(path)
        for row in rows:
            if kind == "delete":
                model.pop(row[0], None)
            elif not late or row[0] not in model or model[row[0]][2] <= row[2]:
                model[row[0]] = row
        assert held(session, path) == sorted(model.values()), done
    table = HudiTable.open(path)
    assert {i.action for i in table.timeline.completed_writes()} == {"commit", *["deltacommit"] * logs}
    assert [f for f in table.verify() if f.severity == "error"] == []


@pytest.mark.req("IX-06", "IX-12")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
@pytest.mark.sampled(2)
def test_rows_left_in_their_partition_have_its_value_in_every_read(session, tmp_path, index):
    path = str(tmp_path / "t")
    options = {
        **OPTIONS,
        "hoodie.index.type": index,
        "hoodie.simple.index.update.partition.path": "false",
        "hoodie.metadata.record.index.enable": str(index == "RECORD_INDEX").lower(),
    }
    for rows in ([("a", "x", 1, 1.0), ("b", "y", 1, 1.0)], [("a", "y", 2, 2.0)]):
        session.createDataFrame(rows, DDL).write.format("hudi").options(**options).mode("append").save(path)
    left, other = ("a", "x", 2, 2.0), ("b", "y", 1, 1.0)
    assert held(session, path) == [left, other]

    def found(condition):
        rows = session.read.format("hudi").load(path).filter(condition).select("id", "p", "ts", "v").collect()
        return sorted(tuple(r) for r in rows)

    for _ in ("of logs", "compacted"):
        assert found("p = 'x'") == [left]
        assert found("p = 'y'") == [other]
        assert found("p <> 'x'") == [other]
        assert found("p in ('x', 'z') or v = 1") == [left, other]
        HudiTable.open(path).compact()
