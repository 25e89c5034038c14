"""Base files whose text columns repeat one value: read as dictionaries, merged, and given as plain text."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from properties_edits import edit_properties

from hudi_format.file_slice import base_rows
from hudi_format.log.writer import LogWriter
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable

SCHEMA = pa.schema(
    [(n, pa.string()) for n in ("id", "p", "same", "runs", "many")] + [("ts", pa.int64()), ("b", pa.binary())]
)
FULL = with_meta(SCHEMA)
ROWS = 8_000
LATER = "20990101000000000"
LIMIT = "hoodie.memory.merge.max.size"
ALIKE = {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "p", "same", "runs"}


def made_rows(n):
    return {
        "id": [f"k{i:05}" for i in range(n)],
        "p": ["x"] * n,
        "same": ["é always this"] * n,
        # nulls and an empty text in long runs
        "runs": [("", "one", None, "two")[4 * i // n] for i in range(n)],
        "many": [f"text {i % 977}" for i in range(n)],
        "ts": [5] * n,
        "b": [b"\xff"] * n,
    }


@pytest.fixture
def merged_table(tmp_path):
    """A table whose one slice has a log: each 7th row updated, each 100th late, deletes, and keys of its own."""
    path = tmp_path / "t"
    table = HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
    )  # fmt: skip
    # A large footer, so that the file that a test puts there fits in its size.
    table.insert(
        pa.table(made_rows(ROWS), schema=SCHEMA), options={"hoodie.index.bloom.num_entries": "60000"}
    )
    base = HudiTable.open(str(path)).read().files.to_pylist()[0]
    edit_properties(path, "COPY_ON_WRITE", "MERGE_ON_READ")
    payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    edit_properties(path, "", f"hoodie.compaction.payload.class={payload}")
    keys = [i for i in range(ROWS) if i % 7 == 0 or i % 100 == 0] + [ROWS, ROWS + 1]
    n = len(keys)
    news = {
        "_hoodie_commit_time": [LATER] * n,
        "_hoodie_commit_seqno": [f"{LATER}_{i}" for i in keys],
        "_hoodie_record_key": [f"k{i:05}" for i in keys],
        "_hoodie_partition_path": ["x"] * n,
        "_hoodie_file_name": [base["file_id"]] * n,
        "id": [f"k{i:05}" for i in keys],
        "p": ["x"] * n,
        "same": [None if i % 3 == 0 else f"new {i}" for i in keys],
        "runs": [None if i % 2 else "other" for i in keys],
        "many": ["text 1"] * n,
        "ts": [4 if i % 100 == 0 else 6 for i in keys],
        "b": [b"new"] * n,
    }
    storage = open_storage(str(path))
    with LogWriter(storage, "x", base["file_id"], base["instant"], instant=LATER, schema=to_avro(FULL, "t"),
                   write_token="0-1-2") as log:  # fmt: skip
        log.append_rows(pa.table(news, schema=FULL))
        log.append_deletes(pa.array(["k00001", "k07999"]), pa.array(["x", "x"]))
        (written,) = log.close()
    stat = {"fileId": base["file_id"], "path": written.file.path, "prevCommit": base["instant"], "numWrites": n,
            "fileSizeInBytes": written.file.size, "totalWriteBytes": written.size, "logVersion": 1, "logOffset": 0,
            "baseFile": base["path"].rpartition("/")[2], "logFiles": [written.file.name]}  # fmt: skip
    said = {"partitionToWriteStats": {"x": [stat]}, "compacted": False, "operationType": "UPSERT",
            "extraMetadata": {"schema": to_avro(SCHEMA, "t")}}  # fmt: skip
    for state in (".requested", ".inflight"):
        storage.touch(f".hoodie/{LATER}.deltacommit{state}")
    storage.publish(f".hoodie/{LATER}.deltacommit", json.dumps(said).encode())
    return str(path), news


def wanted(news):
    """The table's rows by key, without the meta columns, from what was written."""
    old = made_rows(ROWS)
    rows = {k: {c: old[c][i] for c in SCHEMA.names} for i, k in enumerate(old["id"])}
    for i, k in enumerate(news["id"]):
        if news["ts"][i] >= rows.get(k, {"ts": 0})["ts"]:
            rows[k] = {c: news[c][i] for c in SCHEMA.names}
    return [rows[k] for k in sorted(rows) if k not in ("k00001", "k07999")]


@pytest.mark.parametrize("group_rows", [3000, 4500])
def test_each_row_group_has_a_dictionary_of_its_own(merged_table, monkeypatch, group_rows):
    path, _ = merged_table
    (file,) = (Path(path) / "x").glob("*.parquet")
    size = file.stat().st_size
    rows = pq.read_table(file).replace_schema_metadata(None)
    runs = pa.array([("one", None, "two", "three", "four", "five")[6 * i // ROWS] for i in range(ROWS)])
    rows = rows.set_column(rows.schema.get_field_index("runs"), "runs", runs)
    pq.write_table(rows, file, row_group_size=group_rows, compression="gzip")
    data = file.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    file.write_bytes(data[:-footer] + bytes(size - len(data)) + data[-footer:])  # as large as its commit says
    chosen = []
    real = base_rows.repeating
    monkeypatch.setattr(base_rows, "repeating", lambda *given: chosen.append(real(*given)) or chosen[-1])
    found = [HudiTable.open(path).read(meta_columns=True).to_batches(n).read_all() for n in (700, 131072)]
    assert all({"p", "_hoodie_partition_path", "_hoodie_commit_time"} <= set(names) for names in chosen)
    assert len(chosen) == 2
    monkeypatch.setattr(base_rows, "repeating", lambda *_: [])
    plain = HudiTable.open(path).read(meta_columns=True).to_arrow()
    for got in found:
        got.validate(full=True)
        assert got.equals(plain)


@pytest.mark.req("QR-01")
def test_text_that_repeats_is_merged_as_any_other(merged_table, monkeypatch):
    path, news = merged_table
    chosen = []

    def told(*arguments):
        chosen.append(set(real(*arguments)))
        return chosen[-1]

    real = base_rows.repeating
    monkeypatch.setattr(base_rows, "repeating", told)
    got = HudiTable.open(path).read(meta_columns=True).to_arrow()
    assert chosen == [ALIKE]
    got.validate(full=True)
    assert got.schema.types == FULL.types
    assert got.sort_by("id").select(SCHEMA.names).to_pylist() == wanted(news)
    small = HudiTable.open(path).read(meta_columns=True).to_batches(batch_rows=1000).read_all()
    some = HudiTable.open(path).read(columns=["same", "_hoodie_file_name", "id"], filter="runs = 'other'")
    picked, spilled = (
        some.to_arrow(),
        HudiTable.open(path).read(options={LIMIT: "100000"}, meta_columns=True).to_arrow(),
    )

    monkeypatch.setattr(base_rows, "repeating", lambda *_: [])
    plain = HudiTable.open(path).read(meta_columns=True).to_arrow()
    assert got.equals(plain)
    assert small.equals(plain)
    assert spilled.sort_by("id").equals(plain.sort_by("id"))
    again = HudiTable.open(path).read(columns=["same", "_hoodie_file_name", "id"], filter="runs = 'other'")
    assert picked.num_rows > 300
    assert picked.equals(again.to_arrow())
