"""How many calls of its storage each operation makes, by kind.

    python benchmarks/macro/storage_calls.py [--out calls.json] [--repeat 3]
    python benchmarks/macro/storage_calls.py --compare before.json after.json > benchmarks/results/storage-calls.md

Counted on a local disk by the storage that fails on purpose, and on fsspec's memory, where a call is what a request is
to an object store.  Calls of heartbeats are left out: they come with time.  Each operation runs several times on a
table of its own, and the least counts: a table that was changed a moment ago is looked at once more.
It needs the public names of `hudi_timeline` only, so that it runs with any release.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_format
import hudi_timeline
from hudi_timeline import HudiTable
from hudi_timeline.testing import Faults

# In the order of the table's columns.
KINDS = (
    "list", "info", "read", "read_range", "open_input", "read_version", "files_below", "create", "publish", "touch",
    "open_output", "close_output", "delete", "delete_dir", "make_dir", "copy", "rename", "replace", "flush",
)  # fmt: skip
LOOKS = frozenset(
    {"list", "info", "read", "read_range", "open_input", "open_sized", "read_version", "files_below"}
)
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(begin: int, end: int, ts: int = 0) -> pa.Table:
    """Rows of three partitions."""
    keys = range(begin, end)
    return pa.table(
        {"id": [f"k{n}" for n in keys], "p": [f"p{n % 3}" for n in keys], "ts": [ts + n for n in keys]}
    )


# --- what is measured: (prepare, operation), both on a table's path ------------------------------------------


def made(uri: str, commits: int = 2, options: dict[str, str] | None = None) -> HudiTable:
    table = HudiTable.create(
        uri, rows(0, 1).schema, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    for n in range(commits):
        table.upsert(rows(0, 30, n), options=options or QUIET)
    return table


def opened(uri: str) -> HudiTable:
    return HudiTable.open(uri)


def newest(uri: str, back: int = 0) -> str:
    return str(opened(uri).timeline.completed_writes()[-1 - back].time)


def savepoint_and_more(uri: str) -> None:
    made(uri)
    opened(uri).savepoint()
    opened(uri).upsert(rows(0, 30, 9), options=QUIET)


CLEAN = {"hoodie.cleaner.commits.retained": "2", **QUIET}
ARCHIVE = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", **CLEAN}
RESTORED: dict[str, str] = {}


def restored(uri: str) -> None:
    opened(uri).restore(RESTORED[uri])


def to_restore(uri: str) -> None:
    savepoint_and_more(uri)
    RESTORED[uri] = newest(uri, 1)


def incremental(uri: str) -> None:
    opened(uri).read_incremental(RESTORED[uri]).to_arrow()


def to_increment(uri: str) -> None:
    made(uri, 3)
    RESTORED[uri] = newest(uri, 1)


def cleaned(uri: str) -> None:
    made(uri, 6)
    opened(uri).clean(options=CLEAN)


OPERATIONS: dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]] = {
    "create": (lambda uri: None, lambda uri: made(uri, 0)),
    "bulk_insert": (made, lambda uri: opened(uri).bulk_insert(rows(30, 60), options=QUIET)),
    "insert": (made, lambda uri: opened(uri).insert(rows(30, 60), options=QUIET)),
    "upsert": (made, lambda uri: opened(uri).upsert(rows(15, 45, 9), options=QUIET)),
    "upsert, services on": (made, lambda uri: opened(uri).upsert(rows(15, 45, 9))),
    "upsert, cleans and archives": (
        lambda uri: made(uri, 6),
        lambda uri: opened(uri).upsert(
            rows(15, 45, 9),
            options={k: v for k, v in ARCHIVE.items() if not k.endswith("automatic")},
        ),
    ),
    "delete by rows": (made, lambda uri: opened(uri).delete(rows(0, 9).select(["id", "p"]), options=QUIET)),
    "delete by filter": (made, lambda uri: opened(uri).delete("ts < 9", options=QUIET)),
    "insert_overwrite": (made, lambda uri: opened(uri).insert_overwrite(rows(0, 30), options=QUIET)),
    "delete_partitions": (made, lambda uri: opened(uri).delete_partitions("p1", options=QUIET)),
    "clean": (lambda uri: made(uri, 6), lambda uri: opened(uri).clean(options=CLEAN)),
    "clean, dry run": (
        lambda uri: made(uri, 6),
        lambda uri: opened(uri).clean(options=CLEAN, dry_run=True),
    ),
    "archive": (cleaned, lambda uri: opened(uri).archive(options=ARCHIVE)),
    "savepoint": (made, lambda uri: opened(uri).savepoint()),
    "delete_savepoint": (
        savepoint_and_more,
        lambda uri: opened(uri).delete_savepoint(opened(uri).savepoints[0]),
    ),
    "rollback": (made, lambda uri: opened(uri).rollback(newest(uri))),
    "restore": (to_restore, restored),
    "open": (made, opened),
    "read": (made, lambda uri: opened(uri).read().to_arrow()),
    "read, filtered": (made, lambda uri: opened(uri).read(filter="p = 'p1'").to_arrow()),
    "read_incremental": (to_increment, incremental),
}


# --- counting ------------------------------------------------------------------------------------------------


def is_counted() -> bool:
    return not threading.current_thread().name.startswith("hudi-heartbeat")


@contextmanager
def opened_storages(wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Whatever opens a storage in here is given what `wrap` makes of it."""
    at = next(
        importlib.import_module(name)
        for name in ("hudi_format.storage.open", "hudi_format.storage")
        if hasattr(_try(name), "open_storage")
    )
    plain = at.open_storage

    @functools.wraps(plain)
    def wrapping(*given: Any, **named: Any) -> Any:
        return wrap(plain(*given, **named))

    def put(old: object, new: object) -> None:
        for module in list(sys.modules.values()):
            if (
                getattr(module, "__name__", "").startswith("hudi_")
                and vars(module).get("open_storage") is old
            ):
                module.open_storage = new  # type: ignore[attr-defined]

    put(plain, wrapping)
    try:
        yield
    finally:
        put(wrapping, plain)


def _try(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def storage_class(name: str) -> Any:
    """A class of storages, wherever a release has it."""
    for folder in ("storage", "stores"):
        package = _try(f"hudi_format.{folder}")
        for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
            module = importlib.import_module(f"hudi_format.{folder}.{found.name}")
            if hasattr(module, name):
                return getattr(module, name)
    raise LookupError(name)


@contextmanager
def counted_methods(of: Any, names: set[str], counts: Counter[str]) -> Iterator[None]:
    """Calls of methods of a class; those that one makes of another are part of it."""
    inside = threading.local()
    plain = {n: vars(of)[n] for n in names if n in vars(of)}

    def counting(name: str, method: Any) -> Any:
        @functools.wraps(method)
        def call(*given: Any, **named: Any) -> Any:
            if getattr(inside, "call", False) or not is_counted():
                return method(*given, **named)
            counts[name] += 1
            inside.call = True
            try:
                return method(*given, **named)
            finally:
                inside.call = False

        return call

    for name, method in plain.items():
        setattr(of, name, counting(name, method))
    try:
        yield
    finally:
        for name, method in plain.items():
            setattr(of, name, method)


def on_disk(prepare: Callable[[str], Any], operation: Callable[[str], Any], folder: str) -> Counter[str]:
    uri = f"{folder}/{uuid.uuid4().hex}"
    prepare(uri)
    faults, flushes = Faults(), Counter[str]()
    with opened_storages(faults.wrap), counted_methods(storage_class("LocalStorage"), {"flush"}, flushes):
        operation(uri)
    return Counter(c.operation for c in faults.log) + flushes


def in_memory(prepare: Callable[[str], Any], operation: Callable[[str], Any], folder: str) -> Counter[str]:
    uri = f"memory://{uuid.uuid4().hex}/t"
    prepare(uri)
    counts = Counter[str]()
    kinds = {*KINDS, "open_sized"} - {"flush"}
    with counted_methods(storage_class("FsspecStorage"), kinds, counts):
        operation(uri)
    counts["open_input"] += counts.pop("open_sized", 0)
    return +counts


def measure(repeat: int) -> dict[str, dict[str, dict[str, int]]]:
    for module in pkgutil.iter_modules(hudi_timeline.__path__):  # imported late, they would not be seen
        if not module.name.startswith("_"):
            _try(f"hudi_timeline.{module.name}")
    found: dict[str, dict[str, dict[str, int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for store, count in (("disk", on_disk), ("memory", in_memory)):
            for name, (prepare, operation) in OPERATIONS.items():
                runs = []
                for _ in range(repeat):
                    runs.append(count(prepare, operation, folder))
                    time.sleep(0.02)
                found.setdefault(store, {})[name] = dict(min(runs, key=lambda c: c.total()))
                print(f"{store} {name}: {runs[0].total()}", file=sys.stderr)
    return found


# --- the table -----------------------------------------------------------------------------------------------


def totals(counts: dict[str, int]) -> tuple[int, int, int]:
    """Looks, changes and flushes."""
    looks = sum(n for k, n in counts.items() if k in LOOKS)
    flushes = counts.get("flush", 0)
    return looks, sum(counts.values()) - looks - flushes, flushes


def in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{k} {counts[k]}" for k in KINDS if counts.get(k))


def table_of(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Markdown."""
    for store, title in (("disk", "A local disk"), ("memory", "A store without a disk (fsspec's memory)")):
        yield f"\n{title}:\n"
        yield "| operation | looks before | now | changes before | now | flushes before | now | calls now, by kind |"
        yield "|---|---:|---:|---:|---:|---:|---:|---|"
        for name, now in after["calls"][store].items():
            was = before["calls"][store].get(name, {})
            pairs = [str(n) for pair in zip(totals(was), totals(now), strict=True) for n in pair]
            yield f"| {name} | {' | '.join(pairs)} | {in_words(now)} |"


def commit() -> str:
    where = Path(hudi_format.__file__).parent
    done = subprocess.run(
        ["git", "-C", str(where), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    asked = parser.parse_args()
    if asked.compare:
        before, after = (json.loads(p.read_text()) for p in asked.compare)
        print("\n".join(table_of(before, after)))
        return
    result = {"commit": commit(), "calls": measure(asked.repeat)}
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1))
    else:
        print("\n".join(table_of(result, result)))


if __name__ == "__main__":
    main()
