"""What it costs to open tables and to know their files.

    python benchmarks/macro/planning.py [--works open,view] [--repeat 7] [--sizes 1000,10000,100000,1000000]
    python benchmarks/macro/planning.py --scale smoke

open    a table of 1,000 commits opened and one of its three partitions planned: again and again in one process (warm),
        and in a new one, less what the import of pyarrow alone takes (cold); beside hudi-rs, warm
view    a table of N files in N/100 partitions, whose metadata table (one HFile, made with our writer) alone is read:
        the newest files of all partitions with the peak memory of a process of their own, and those of one partition
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from processes import peak_rss
from report import machine, machine_line

from hudi_format import HFileReader, HFileWriter, LocalStorage, WriteStat
from hudi_timeline import HudiTable, table_config
from hudi_timeline.timeline.commit_metadata import CommitMetadata

HERE = Path(__file__).resolve()
GOLDEN = HERE.parents[2] / "tests" / "golden" / "v6"
AT = "20260101000000000"
FILES_EACH = 100
THROUGH = {"hoodie.metadata.enable": "true"}
ROW = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"},{"name":"p","type":"string"}]}'
PROPERTIES = {
    "hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id", "hoodie.table.partition.fields": "p",
}  # fmt: skip


def file_id(n: int) -> str:
    return f"{n:08d}-0000-4000-8000-000000000000-0"


# --- a table of many commits -----------------------------------------------------------------------------


def many_commits(folder: Path, instants: int, kept: int = 10) -> str:
    """A table whose commits each wrote a new version of the one file in each of three partitions."""
    storage = LocalStorage(str(folder))
    if (folder / "made").exists():
        return storage.uri
    table_config.create(storage, PROPERTIES)
    for partition in "abc":
        storage.publish(f"{partition}/.hoodie_partition_metadata", b"commitTime=1\npartitionDepth=1\n")
    for n in range(instants):
        instant = f"20260101{n:09d}"
        stats = {
            p: (
                WriteStat(
                    file_id(i),
                    f"{p}/{file_id(i)}_0-1-2_{instant}.parquet",
                    p,
                    num_writes=10,
                    file_size_in_bytes=4,
                ),
            )
            for i, p in enumerate("abc")
        }
        metadata = CommitMetadata(stats, extra={"schema": ROW}, operation="UPSERT")
        for name, data in (("commit.requested", b""), ("inflight", b""), ("commit", metadata.to_json())):
            (folder / ".hoodie" / f"{instant}.{name}").write_bytes(data)
        if n >= instants - kept:
            for stat in metadata.stats:
                (folder / stat.path).write_bytes(b"PAR1")
    (folder / "made").touch()
    return storage.uri


def plan_one(uri: str) -> None:
    plan = HudiTable.open(uri).read(filter="p = 'b'").plan
    if plan.files.column("partition").to_pylist() != ["b"]:
        raise SystemExit(f"a wrong plan: {plan.files}")


def plan_one_with_hudi_rs(uri: str) -> None:
    from hudi import HudiReadOptions, HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(uri).build()
    if len(table.get_file_slices(HudiReadOptions(filters=[("p", "=", "b")]))) != 1:
        raise SystemExit("hudi-rs: a wrong plan")


def seconds_of(call: Callable[[], object], repeat: int) -> list[float]:
    call()
    out = []
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        out.append(time.perf_counter() - began)
    return out


def process_seconds(code: str, repeat: int, compiled: Path) -> list[float]:
    """Of new processes that find their modules compiled, as installed packages are."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    out = []
    for _ in range(repeat):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        out.append(time.perf_counter() - began)
    return out


def measure_open(folder: Path, instants: int, repeat: int) -> dict[str, Any]:
    uri = many_commits(folder, instants)
    code = f"from hudi_timeline import HudiTable; HudiTable.open({uri!r}).read(filter=\"p = 'b'\").plan"
    compiled = folder.parent / "compiled"
    process_seconds(code, 1, compiled)
    return {
        "instants": instants,
        "warm": seconds_of(lambda: plan_one(uri), 3 * repeat),
        "warm, hudi-rs": seconds_of(lambda: plan_one_with_hudi_rs(uri), 3 * repeat),
        "cold": process_seconds(code, repeat, compiled),
        "import pyarrow": process_seconds("import pyarrow", repeat, compiled),
    }


# --- a table of many files -------------------------------------------------------------------------------


def partition(n: int) -> str:
    return f"part-{n:06d}"


def many_files(folder: Path, files: int) -> str:
    """A table of which only the metadata table exists: no data file, no folder of a partition."""
    storage = LocalStorage(str(folder))
    if (folder / "made").exists():
        return storage.uri
    table_config.create(storage, {**PROPERTIES, "hoodie.table.metadata.partitions": "files"})
    with zipfile.ZipFile(GOLDEN / "cow_partitioned.zip") as archive:
        inside = "cow_partitioned/.hoodie/metadata/"
        storage.publish(
            ".hoodie/metadata/.hoodie/hoodie.properties", archive.read(f"{inside}.hoodie/hoodie.properties")
        )
        base = next(n for n in archive.namelist() if n.startswith(f"{inside}files/") and n.endswith(".hfile"))
        schema = HFileReader.from_buffer(pa.py_buffer(archive.read(base))).schema
    if schema is None:
        raise SystemExit("the golden table's HFile has no schema")
    data = CommitMetadata({}, extra={"schema": ROW}, operation="BULK_INSERT").to_json()
    name = f"files/files-0000-0_0-1-2_{AT}.hfile"
    stat = WriteStat("files-0000-0", name, "files")
    metadata = CommitMetadata(
        {"files": (stat,)}, extra={"schema": schema}, operation="UPSERT_PREPPED"
    ).to_json()
    for path, action, content in (
        (".hoodie", "commit", data),
        (".hoodie/metadata/.hoodie", "deltacommit", metadata),
    ):
        storage.publish(f"{path}/{AT}.{action}.requested", b"")
        storage.publish(f"{path}/{AT}.{'' if action == 'commit' else 'deltacommit.'}inflight", b"")
        storage.publish(f"{path}/{AT}.{action}", content)
    parsed = fastavro.parse_schema(json.loads(schema))
    written = "20250101000000000"  # before the active timeline: long archived

    def value(kind: int, entries: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"key": "", "type": kind, "filesystemMetadata": entries})
        return out.getvalue()

    partitions = files // FILES_EACH
    target = folder / ".hoodie" / "metadata" / name
    target.parent.mkdir(parents=True)
    with target.open("wb") as sink:
        writer = HFileWriter(sink, schema=schema)
        every = {partition(n): {"size": 0, "isDeleted": False} for n in range(partitions)}
        writer.append(pa.array(["__all_partitions__"]), pa.array([value(1, every)], pa.binary()))
        for n in range(partitions):
            entries = {
                f"{file_id(n * FILES_EACH + i)}_0-1-2_{written}.parquet": {
                    "size": 1_000_000 + i,
                    "isDeleted": False,
                }
                for i in range(FILES_EACH)
            }
            writer.append(pa.array([partition(n)]), pa.array([value(2, entries)], pa.binary()))
        writer.finish()
    (folder / "made").touch()
    return storage.uri


def view_of(uri: str, files: int, wanted: str | None) -> dict[str, Any]:
    """In this process: seconds for the newest files, and the most memory."""
    # What the first such read imports is not counted: pandas among it, which pyarrow wants for Python values.
    import hudi_timeline.reading.metadata_listing  # noqa: F401

    pa.array([0])
    before = peak_rss()
    began = time.perf_counter()
    filter = None if wanted is None else f"p = '{wanted}'"
    plan = HudiTable.open(uri).read(filter=filter, options=THROUGH).plan
    seconds = time.perf_counter() - began
    right = files if wanted is None else FILES_EACH
    if plan.files.num_rows != right:
        raise SystemExit(f"{plan.files.num_rows} files; right is {right}")
    return {"seconds": seconds, "peak_mb": peak_rss() / 1e6, "before_mb": before / 1e6}


def measure_view(folder: Path, files: int, repeat: int) -> dict[str, Any]:
    uri = many_files(folder, files)
    found: dict[str, Any] = {"files": files, "partitions": files // FILES_EACH}
    found["hfile_mb"] = sum(p.stat().st_size for p in folder.rglob("*.hfile")) / 1e6
    for name, wanted in (("all", ""), ("one", partition(files // FILES_EACH // 2))):
        runs = []
        for _ in range(repeat):
            command = [sys.executable, str(HERE), "--view", uri, str(files), wanted]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        found[name] = runs
    return found


# --- what is said ----------------------------------------------------------------------------------------


def said_of_open(found: dict[str, Any]) -> str:
    middle = {k: statistics.median(v) for k, v in found.items() if isinstance(v, list)}
    over = middle["cold"] - middle["import pyarrow"]
    verdict = {True: "held", False: "missed"}
    return "\n".join(
        [
            f"A table of {found['instants']:,} commits of 3 files opened, one of its 3 partitions planned; medians.",
            "",
            "| | ms | goal | |",
            "|---|---:|---|---|",
            f"| warm | {middle['warm'] * 1e3:.0f} (least {min(found['warm']) * 1e3:.0f}) | under 50 ms "
            f"| {verdict[middle['warm'] < 0.05]} |",
            f"| warm, hudi-rs | {middle['warm, hudi-rs'] * 1e3:.0f} "
            f"(least {min(found['warm, hudi-rs']) * 1e3:.0f}) | | |",
            f"| a new process, less `import pyarrow` ({middle['import pyarrow'] * 1e3:.0f} ms) | {over * 1e3:.0f} "
            f"| at most 300 ms | {verdict[over <= 0.3]} |",
        ]
    )


def said_of_views(found: list[dict[str, Any]]) -> str:
    lines = [
        "The newest files of a table out of its metadata table's HFile, 100 files a partition; every run in a process "
        "of its own, imports not counted, memory of the process at its most; medians.",
        "",
        "| files | partitions | HFile MB | all, s | most MB | one partition, s |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for of in found:
        all_s, one_s = (statistics.median(r["seconds"] for r in of[n]) for n in ("all", "one"))
        peak = max(r["peak_mb"] for r in of["all"])
        counts = f"{of['files']:,} | {of['partitions']:,} | {of['hfile_mb']:.1f}"
        lines.append(f"| {counts} | {all_s:.2f} | {peak:.0f} | {one_s:.3f} |")
    last = found[-1]
    if last["files"] == 1_000_000:
        all_s = max(r["seconds"] for r in last["all"])
        one_s = max(r["seconds"] for r in last["one"])
        peak = max(r["peak_mb"] for r in last["all"])
        lines += [
            "",
            "| goal at 1,000,000 files | found, worst run | |",
            "|---|---:|---|",
            f"| all under 20 s | {all_s:.1f} s | {'held' if all_s < 20 else 'missed'} |",
            f"| under 2 GB | {peak / 1e3:.2f} GB | {'held' if peak < 2000 else 'missed'} |",
            f"| one partition under 0.5 s | {one_s:.2f} s | {'held' if one_s < 0.5 else 'missed'} |",
        ]
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--view"]:
        uri, files, wanted = sys.argv[2:]
        print(json.dumps(view_of(uri, int(files), wanted or None)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", default="open,view")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument(
        "--repeat", type=int, default=7, help="of `open`; views are repeated a third as often"
    )
    parser.add_argument("--tables", type=Path, default=None, help="where tables are kept; default: nowhere")
    parser.add_argument("--make", action="store_true", help="make the tables, and measure nothing")
    parser.add_argument(
        "--scale", choices=("full", "smoke"), default="full", help="smoke: small tables, once"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for planning.md and .json")
    given = parser.parse_args()
    smoke = given.scale == "smoke"
    repeat = 1 if smoke else given.repeat
    sizes = [1000] if smoke else [int(s) for s in given.sizes.split(",")]
    text, kept = [f"On {machine_line()}."], {"machine": machine()}
    instants = 20 if smoke else 1000
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.tables or Path(scratch)
        if given.make:
            many_commits(folder / f"open-{instants}", instants)
            for n in sizes:
                many_files(folder / f"view-{n}", n)
            return
        if "open" in given.works.split(","):
            kept["open"] = measure_open(folder / f"open-{instants}", instants, repeat)
            text.append(said_of_open(kept["open"]))
        if "view" in given.works.split(","):
            kept["view"] = [measure_view(folder / f"view-{n}", n, max(1, repeat // 3)) for n in sizes]
            text.append(said_of_views(kept["view"]))
    whole = "\n\n".join(text) + "\n"
    print(whole)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "planning.md").write_text(whole)
        (given.out / "planning.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
