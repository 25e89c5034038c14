"""Records that move between partitions, under payloads of Debezium and merges of the user's, beside a plain model."""

import random

import pyarrow as pa
import pytest
from moving_records import MERGES, Source, after, shown

from hudi_timeline import HudiTable, allow_functions

INDEXES = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")
MOVING = {"GLOBAL_SIMPLE": "simple", "GLOBAL_BLOOM": "bloom", "RECORD_INDEX": "record"}
PLAIN = {
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.precombine.field": "",
}


def held(table):
    """Records by key, with their partition, whose value its column has."""
    found = {}
    for row in table.read(meta_columns=True).to_arrow().to_pylist():
        assert row["id"] not in found, "a key is in the table once"
        where = row["_hoodie_partition_path"]
        assert row["p"] == where
        found[row["id"]] = where, {n: v for n, v in row.items() if not n.startswith("_hoodie_") and n != "p"}
    return found


@pytest.mark.sampled(48, values=False)
@pytest.mark.req("NEW-04", "IX-06", "IX-08", "IX-12", "PM-08", "PM-10", "PM-15")
@pytest.mark.parametrize("moves", [True, False], ids=["moves", "stays"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("merge", MERGES)
def test_records_meet_wherever_they_are(tmp_path, merge, index, kind, moves):
    rule, rng = MERGES[merge], random.Random(f"{merge} {index} {kind} {moves}")
    options = {
        **PLAIN,
        "hoodie.index.type": index,
        f"hoodie.{MOVING[index]}.index.update.partition.path": str(moves).lower(),
        "hoodie.datasource.write.precombine.field": rule.ordering,
        **rule.options,
    }
    if index == "RECORD_INDEX":
        options["hoodie.metadata.record.index.enable"] = "true"
    table = HudiTable.create(
        str(tmp_path), rule.schema, name="t", table_type=kind, record_keys=["id"], partition_fields=["p"],
        ordering_fields=[rule.ordering], options=options,
    )  # fmt: skip
    logs = kind == "MERGE_ON_READ"
    keys = [f"k{n}" for n in range(16)]
    source = Source(rng, rule, keys, strict=logs, distinct=logs and not moves)
    # The record index knows what logs have deleted.
    state, ghosts = {}, {} if logs and not moves and index != "RECORD_INDEX" else None
    with allow_functions("merge_functions.*"):
        for step in range(6):
            rows = source.rows()
            table.upsert(pa.Table.from_pylist(rows, rule.schema), options=options)
            state = after(state, rows, rule, moves=moves, ghosts=ghosts)
            assert held(table) == shown(state), f"after write {step}"
            if logs and step == 3:
                table.compact()
                ghosts = None if ghosts is None else {}
                assert held(table) == shown(state), f"after the compaction that follows write {step}"
        assert len(state) > 3
        assert table.verify(deep=True) == []
