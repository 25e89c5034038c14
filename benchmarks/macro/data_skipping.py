"""What the metadata table's indexes save a reader: planning of filtered reads, and look-ups of keys.

    python benchmarks/macro/data_skipping.py [--works skip,get] [--repeat 5] [--sizes 10000,100000] [--rows 1000000]
    python benchmarks/macro/data_skipping.py --scale smoke

skip    a table of N files whose metadata table alone exists (planning.py): a filter on one key planned by its listing,
        and by its listing and column statistics
get     a table of rows in 20 files with a record index of 10 shards: 1,000 keys by `get` through the index, by `get`
        through footers, and by a filtered scan; each must give the same rows

HFiles of the indexes are made with our writer, out of Arrow columns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from planning import AT, FILES_EACH, THROUGH, file_id, many_files, partition
from report import machine, machine_line

from hudi_format import Encoder, HFileReader, HFileWriter, LocalStorage, WriteStat
from hudi_index.hashing.name_ids import file_name_id, name_id, name_ids
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.records import BOUND
from hudi_timeline import HudiTable, table_config
from hudi_timeline.timeline.commit_metadata import CommitMetadata

SKIPPING = {**THROUGH, "hoodie.enable.data.skipping": "true"}
KEYS, SHARDS, FILES = 1_000, 10, 20


# --- index files ------------------------------------------------------------------------------------------


def schema_text(folder: Path) -> str:
    """Avro schema of the metadata table's records."""
    path = next((folder / ".hoodie/metadata/files").glob("*.hfile"))
    text = HFileReader.from_buffer(path.read_bytes()).schema
    if text is None:
        raise SystemExit("an HFile without a schema")
    return text


def declare(folder: Path, instant: str, names: Sequence[str], schema: str) -> None:
    """Deltacommit of the metadata table that wrote these files."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for name in names:
        inside = name.partition("/")[0]
        group = name.partition("/")[2].partition("_")[0]
        stats[inside] = (*stats.get(inside, ()), WriteStat(group, name, inside))
    metadata = CommitMetadata(stats, extra={"schema": schema}, operation="UPSERT_PREPPED").to_json()
    timeline = folder / ".hoodie/metadata/.hoodie"
    for ending, data in ((".requested", b""), (".inflight", b""), ("", metadata)):
        (timeline / f"{instant}.deltacommit{ending}").write_bytes(data)


def write_index(folder: Path, name: str, shard: int, records: pa.Table, schema: str, instant: str) -> str:
    """A base file of one shard, and its path; the records are in the order of their keys."""
    batch = records.combine_chunks().to_batches()[0]
    keys = batch.column("key")
    batch = batch.set_column(0, batch.schema.field(0), pa.array([""] * len(keys), pa.string()))
    data, places = Encoder(schema, batch.schema).encode(batch)
    buffers = [None, pa.py_buffer(places.astype("int64")), data]
    values = pa.Array.from_buffers(pa.large_binary(), len(keys), buffers)
    path = f"{name}/{k.file_group_id(name, shard)}_0-1-2_{instant}.hfile"
    target = folder / ".hoodie/metadata" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as sink:
        writer = HFileWriter(sink, schema=schema)
        writer.append(keys, values)
        writer.finish()
    return path


def add_statistics(folder: Path, files: int) -> None:
    """Partition `column_stats` with the bounds of `id`: file n has the ids of ten numbers from 10 n on."""
    if (folder / "with-statistics").exists():
        return
    written = "20250101000000000"
    names = [f"{file_id(n)}_0-1-2_{written}.parquet" for n in range(files)]
    folders = name_ids(pa.array([partition(n) for n in range(files // FILES_EACH)])).to_pylist()
    column = name_id("id")
    keys = [column + folders[n // FILES_EACH] + file_name_id(name) for n, name in enumerate(names)]
    schema = schema_text(folder)
    # The encoder asks for the types of Avro's times.
    times = {"member9": pa.time64("us")}
    kind = pa.struct(
        [pa.field(m.name, pa.struct([("value", times.get(m.name, m.type[0].type))])) for m in BOUND]
    )

    def bound(end: int) -> list[dict[str, Any]]:
        return [{"member6": {"value": f"{10 * n + end:010d}"}} for n in range(files)]

    columns = {
        "fileName": pa.array(names), "columnName": pa.array(["id"] * files),
        "minValue": pa.array(bound(0), kind),
        "maxValue": pa.array(bound(9), kind),
        "valueCount": pa.array([10] * files), "nullCount": pa.array([0] * files),
        "totalSize": pa.array([100] * files), "totalUncompressedSize": pa.array([100] * files),
        "isDeleted": pa.array([False] * files),
    }  # fmt: skip
    stats = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    records = pa.table({"key": keys, "type": pa.array([3] * files, pa.int32()), "ColumnStatsMetadata": stats})
    at = f"{AT}012"
    declare(folder, at, [write_index(folder, k.COLUMN_STATS, 0, records.sort_by("key"), schema, at)], schema)
    built = {"hoodie.table.metadata.partitions": "column_stats,files"}
    table_config.update(LocalStorage(str(folder)), built)
    (folder / "with-statistics").touch()


def add_record_index(folder: Path, rows: pa.Table, schema: str, instant: str) -> None:
    """Partition `record_index` of the table's keys."""
    paths = []
    for shard, numbers in _by_shard(rows.column("_hoodie_record_key")):
        part = rows.take(numbers).sort_by("_hoodie_record_key")
        ids = [uuid.UUID(name[:36]).int for name in part.column("_hoodie_file_name").to_pylist()]
        count = len(ids)
        low = [(i & (2**64 - 1)) - (2**64 if i & 2**63 else 0) for i in ids]
        high = [(i >> 64) - (2**64 if i >> 127 else 0) for i in ids]
        columns = {
            "partitionName": part.column("_hoodie_partition_path").combine_chunks().cast(pa.string()),
            "fileIdHighBits": pa.array(high, pa.int64()), "fileIdLowBits": pa.array(low, pa.int64()),
            "fileIndex": pa.array([int(n[37]) for n in part.column("_hoodie_file_name").to_pylist()], pa.int32()),
            "fileId": pa.array([""] * count), "instantTime": pa.array([0] * count, pa.int64()),
            "fileIdEncoding": pa.array([0] * count, pa.int32()),
        }  # fmt: skip
        where = pa.StructArray.from_arrays(list(columns.values()), list(columns))
        keys = part.column("_hoodie_record_key").combine_chunks().cast(pa.string())
        records = pa.table(
            {"key": keys, "type": pa.array([5] * count, pa.int32()), "recordIndexMetadata": where}
        )
        paths.append(write_index(folder, k.RECORD_INDEX, shard, records, schema, instant))
    declare(folder, instant, paths, schema)


def _by_shard(keys: pa.ChunkedArray) -> list[tuple[int, pa.Array]]:
    found = pa.array(k.shards(keys.cast(pa.string()), SHARDS))
    return [(n, pc.indices_nonzero(pc.equal(found, n))) for n in range(SHARDS)]


# --- measured ---------------------------------------------------------------------------------------------


def measured(call: Callable[[], object], repeat: int) -> dict[str, list[float]]:
    """Seconds that passed, and processor seconds of this process: the two differ on a machine with other work."""
    call()
    out: dict[str, list[float]] = {"passed": [], "processor": []}
    for _ in range(repeat):
        began, before = time.perf_counter(), time.process_time()
        call()
        out["passed"].append(time.perf_counter() - began)
        out["processor"].append(time.process_time() - before)
    return out


def measure_skip(folder: Path, files: int, repeat: int) -> dict[str, Any]:
    uri = many_files(folder, files)
    add_statistics(folder, files)
    filter = f"id = '{5 * files:010d}'"

    def planned(options: dict[str, str], right: int) -> None:
        found = HudiTable.open(uri).read(filter=filter, options=options).plan
        if found.files.num_rows != right or found.warnings:
            raise SystemExit(f"{found.files.num_rows} files to read; right is {right}; {found.warnings}")

    return {
        "files": files,
        "listing": measured(lambda: planned(THROUGH, files), repeat),
        "listing and statistics": measured(lambda: planned(SKIPPING, 1), repeat),
    }


def indexed_table(folder: Path, rows: int) -> str:
    """A table with a record index, in 20 files of equally many rows."""
    uri = str(folder / "table")
    if (folder / "made").exists():
        return uri
    files = Path(many_files(folder / "pattern", FILES_EACH))
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.float64())])
    table = HudiTable.create(uri, schema, name="t", record_keys=["id"], partition_fields=["p"])
    numbers = list(range(rows))
    random.Random(7).shuffle(numbers)
    data = {
        "id": pa.array([f"key-{n:010d}" for n in numbers]),
        "p": pa.array([f"p{n % FILES:02d}" for n in range(rows)]),
        "v": pa.array([n / 2 for n in range(rows)]),
    }
    table.bulk_insert(pa.table(data, schema=schema), options={"hoodie.metadata.enable": "false"})
    stored = HudiTable.open(uri).read(
        ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    ).to_arrow()  # fmt: skip
    own = Path(uri) / ".hoodie/metadata/.hoodie"
    own.mkdir(parents=True)
    properties = files / ".hoodie/metadata/.hoodie/hoodie.properties"
    (own / "hoodie.properties").write_bytes(properties.read_bytes())
    instant = HudiTable.open(uri).timeline.completed_writes()[-1].time
    add_record_index(Path(uri), stored, schema_text(files), f"{instant}013")
    table_config.update(LocalStorage(uri), {"hoodie.table.metadata.partitions": "record_index"})
    (folder / "made").touch()
    return uri


def measure_get(folder: Path, rows: int, repeat: int) -> dict[str, Any]:
    uri = indexed_table(folder, rows)
    chosen = random.Random(1)
    keys = [f"key-{n:010d}" for n in chosen.sample(range(rows), min(KEYS, rows))]
    one = keys[:1]

    def rows_of(found: pa.Table, wanted: list[str]) -> None:
        if sorted(found.column("id").to_pylist()) != sorted(wanted):
            raise SystemExit(f"{found.num_rows} rows of {len(wanted)} keys")

    def scanned(wanted: list[str]) -> pa.Table:
        condition = pc.field("_hoodie_record_key").isin(pa.array(wanted))
        return HudiTable.open(uri).read(filter=condition).to_arrow()

    size = sum(pq.read_metadata(p).num_rows for p in Path(uri).rglob("*.parquet"))
    ways: dict[str, Callable[[list[str]], pa.Table]] = {
        "record index": lambda wanted: HudiTable.open(uri).get(wanted, options=THROUGH),
        "footers": lambda wanted: HudiTable.open(uri).get(wanted),
        "filtered scan": scanned,
    }
    out: dict[str, Any] = {"rows": size, "keys": len(keys)}
    for name, way in ways.items():
        out[f"one key, {name}"] = measured(lambda way=way: rows_of(way(one), one), repeat)  # type: ignore[misc]
        out[f"{len(keys):,} keys, {name}"] = measured(lambda way=way: rows_of(way(keys), keys), repeat)  # type: ignore[misc]
    return out


def said(found: dict[str, Any]) -> str:
    rows = []
    for of in found.get("skip", ()):
        rows += [
            (f"plan of {of['files']:,} files, by {n}", of[n]) for n in ("listing", "listing and statistics")
        ]
    if "get" in found:
        of = found["get"]
        rows += [(f"{name}, of {of['rows']:,} rows", v) for name, v in of.items() if isinstance(v, dict)]
    lines = ["| medians | ms | processor, ms |", "|---|---:|---:|"]
    for name, of in rows:
        passed, processor = (statistics.median(of[n]) * 1e3 for n in ("passed", "processor"))
        lines.append(f"| {name} | {passed:.0f} | {processor:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", default="skip,get")
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--scale", choices=("full", "smoke"), default="full", help="smoke: small tables, once"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for data_skipping.md and .json")
    given = parser.parse_args()
    smoke = given.scale == "smoke"
    repeat = 1 if smoke else given.repeat
    sizes = [1000] if smoke else [int(s) for s in given.sizes.split(",")]
    works = given.works.split(",")
    found: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if "skip" in works:
            found["skip"] = [measure_skip(folder / f"skip-{n}", n, repeat) for n in sizes]
        if "get" in works:
            found["get"] = measure_get(folder / "get", 2000 if smoke else given.rows, repeat)
    load = os.getloadavg()[0]
    found["load"] = load
    whole = f"On {machine_line()}. The load average was {load:.1f} at the end.\n\n{said(found)}\n"
    print(whole)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "data_skipping.md").write_text(whole)
        (given.out / "data_skipping.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
