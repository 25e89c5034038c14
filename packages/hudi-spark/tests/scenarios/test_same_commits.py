"""The same generated rows leave the same table on both engines: rows, and, ids and clock aside, the commits' bytes."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from typed_values import KINDS

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.combine.before.insert": "true",
}
EVENT_TIME = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
HISTORIES = {
    "upsert": (["insert", "upsert", "delete"], EVENT_TIME),
    "global": (["bulk_insert", "upsert", "insert_overwrite"], {"hoodie.index.type": "GLOBAL_BLOOM"}),
    "logged": (
        ["insert", "upsert", "insert", "delete"],
        {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER"},
    ),
    "replace": (["insert", "insert_overwrite_table"], {WRITE + "hive_style_partitioning": "true"}),
}  # fmt: skip
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())]
    + [(f"v{n}", kind) for n, (kind, _) in enumerate(KINDS.values())]
)
_TOKEN = re.compile(r"_\d+-\d+-\d+([_.])")
# Durations and sizes: a footer holds the writer's instant and its file's name.
_MEASURED = {"runtimeStats", "totalWriteBytes", "fileSizeInBytes"}


@st.composite
def frames(draw):
    """Rows of a few keys and partitions; ordering values that differ, as rows of Spark have no order of their own."""
    ids = draw(st.lists(st.sampled_from([f"k{n}" for n in range(12)]), min_size=8, max_size=16))
    columns = [ids, [f"p{draw(st.integers(0, 2))}" for _ in ids], draw(st.permutations(range(len(ids))))]
    for _, values in KINDS.values():
        columns.append([draw(st.one_of(st.none(), values)) for _ in ids])
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _commits(path):
    """Each completed write as it stands in the timeline, without measures; instants and file groups by their order."""
    files = [f for f in (path / ".hoodie").iterdir() if f.suffix in (".commit", ".replacecommit")]
    instants = {f.name.partition(".")[0]: f"<{n}>" for n, f in enumerate(sorted(files))}
    groups = {}
    out = []
    for file in sorted(files):
        found = json.loads(file.read_bytes())
        for partition, stats in found["partitionToWriteStats"].items():
            for stat in stats:
                # At most one group of each partition begins in one commit of so few rows.
                groups.setdefault(
                    stat["fileId"], f"<group {partition} {instants[file.name.partition('.')[0]]}>"
                )
                for name in _MEASURED:
                    assert stat.pop(name) is not None
        text = _TOKEN.sub(r"_<token>\1", json.dumps(found, sort_keys=True))
        for known in (groups, instants):
            for name, place in known.items():
                text = text.replace(name, place)
        out.append((file.suffix, json.loads(text)))
    assert len(set(groups.values())) == len(groups)
    return out


def _rows(path):
    """All rows; the names of instants and files are each table's own."""
    table = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    own = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
    times = sorted(set(table["_hoodie_commit_time"].to_pylist()))
    order = pa.array([times.index(t) for t in table["_hoodie_commit_time"].to_pylist()])
    return table.drop_columns(own).append_column("commit", order).sort_by(
        [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    )  # fmt: skip


def _changes(path):
    """What the table says of its changes, commits by their order."""
    found = HudiTable.open(str(path)).read_changes("000", images="struct").to_arrow()
    times = sorted(set(found["ts_ms"].to_pylist()))
    return sorted(
        repr((times.index(c["ts_ms"]), c["op"], c["before"], c["after"])) for c in found.to_pylist()
    )


@pytest.mark.sampled(4)
@pytest.mark.req("NEW-02", "WR-07")
@pytest.mark.parametrize("history", HISTORIES)
def test_generated_rows_leave_the_same_rows_and_commits(spark, tmp_path, history):
    operations, more = HISTORIES[history]

    @settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[frames()] * len(operations)))
    def check(tables):
        # The first that is tried is the simplest, nothing but nulls of one key.
        assume(all(len(set(t["id"].to_pylist())) > 2 for t in tables))
        ours, theirs = tmp_path / "python", tmp_path / "spark"
        ours.mkdir()
        reader = spark.read.option("datetimeRebaseMode", "CORRECTED")
        for n, (operation, table) in enumerate(zip(operations, tables, strict=True)):
            given = {**BASE, **more, WRITE + "operation": operation}
            # Without a JVM times without a zone become UTC, unless the data's types are asked for.
            execute(LocalEngine(), open_storage(str(ours)), table, given | {"hudi.write.types": "data"})
            pq.write_table(table, tmp_path / f"{n}.parquet")
            frame = reader.parquet(str(tmp_path / f"{n}.parquet"))
            frame.write.format("hudi").options(**given).mode("append").save(str(theirs))
        assert _rows(theirs) == _rows(ours)
        assert _commits(theirs) == _commits(ours)
        assert _changes(theirs) == _changes(ours)

    check()
