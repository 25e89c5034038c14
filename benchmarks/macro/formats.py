"""What the formats cost, each figure beside its goal, in one run of a few seconds.

    python benchmarks/macro/formats.py [--scale smoke] [--out FOLDER]

The micro benchmarks have more cases; here are the figures that goals are set for.  Each is the best of some rounds
on one core, after a round that does not count; answers are checked.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from report import Measured, write

from hudi_format import (
    BlockType,
    Decoder,
    HFileReader,
    HFileWriter,
    LogFileReader,
    open_storage,
    payload_rule,
)
from hudi_format.log import _scan
from hudi_format.log.block_index import IndexColumn, index
from hudi_format.log.data_block import BATCH_ROWS
from hudi_format.log.encoder import avro_content, frame
from hudi_format.merge.key_index import KeyIndex
from hudi_format.merge.payloads import MergeRule
from hudi_format.merge.record_merger import decide

ROUNDS = 5


@dataclass(frozen=True)
class Figure:
    """One line of the table; `least` or `most` is the goal, None for a figure alone."""

    what: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def goal(self) -> str:
        if self.least is not None:
            return f"at least {self.least:g}"
        return "" if self.most is None else f"at most {self.most:g}"

    @property
    def verdict(self) -> str:
        if self.least is None and self.most is None:
            return ""
        held = self.value >= self.least if self.least is not None else self.value <= (self.most or 0)
        return "held" if held else "missed"


def best(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds of the fastest of some rounds."""
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def right(condition: object, what: str) -> None:
    if not condition:
        raise SystemExit(f"wrong answer: {what}")


def avro(rows: int) -> list[Figure]:
    """12 nullable columns: 4 texts, 4 longs, 4 doubles; 5 % of the values null."""
    kinds = {"s": "string", "l": "long", "d": "double"}
    names = [f"{k}{i}" for i in range(4) for k in "sld"]
    schema = {
        "type": "record", "name": "r",
        "fields": [{"name": n, "type": ["null", kinds[n[0]]]} for n in names],
    }  # fmt: skip
    parsed = fastavro.parse_schema(schema)
    r = random.Random(1)
    make: dict[str, Callable[[], Any]] = {
        "s": lambda: f"value-{r.randrange(10 ** r.randrange(3, 10))}",
        "l": lambda: r.randrange(10 ** r.randrange(1, 18)),
        "d": r.random,
    }
    stream, offsets = io.BytesIO(), [0]
    for _ in range(rows):
        row = {n: None if r.random() < 0.05 else make[n[0]]() for n in names}
        fastavro.schemaless_writer(stream, parsed, row)
        offsets.append(stream.tell())
    data, places = stream.getvalue(), np.array(offsets)
    decoder = Decoder(schema)
    some = max(rows // 10, 1)

    def ours() -> pa.Table:
        """In batches, as blocks of a log are decoded."""
        parts = (places[i : i + BATCH_ROWS + 1] for i in range(0, rows, BATCH_ROWS))
        return pa.Table.from_batches([decoder.decode(data, p[:-1], np.diff(p)) for p in parts])

    def theirs() -> pa.Table:
        given = io.BytesIO(data)
        found = [fastavro.schemaless_reader(given, parsed, None) for _ in range(some)]
        return pa.Table.from_pylist(found, decoder.schema)

    right(ours().slice(0, some).equals(theirs()), "Avro records")
    mine, other = len(data) / best(ours) / 1e6, int(places[some]) / best(theirs, 2) / 1e6
    return [
        Figure("Avro records to Arrow columns", mine, "MB/s", least=300),
        Figure("the same by fastavro and Table.from_pylist", other, "MB/s"),
        Figure("ratio of the two", mine / other, "x"),
    ]


def log_files(folder: Path, blocks: int) -> list[Figure]:
    """Blocks of a file in the page cache, and garbage."""

    def block(kind: BlockType, header: dict[int, str], content: bytes) -> bytes:
        before, after = frame(kind, header, len(content))
        return before + content + after

    schema = '{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}'
    content = bytes(avro_content(b"\2a" * 100, np.arange(0, 201, 2)))
    path = folder / "f.log"
    path.write_bytes(block(BlockType.AVRO_DATA, {2: schema, 0: "20261121051332794"}, content) * blocks)
    out = []
    with pa.memory_map(str(path)) as file:
        data = file.read_buffer()
        right(not index(data)[:, IndexColumn.DAMAGE].any() and len(index(data)) == blocks, "block headers")
        rate = blocks / best(lambda: index(data)) / 1e6
        out.append(Figure("log block headers of a mapped file", rate, "million/s", least=1))
        right(len(LogFileReader(file).blocks) == blocks, "blocks as values")
        rate = blocks / best(lambda: LogFileReader(file).blocks) / 1e6
        out.append(Figure("the same as values of Python, headers decoded", rate, "million/s", least=1))
    size = 250 * blocks
    noise = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    for name, garbage in (("random bytes", noise), ("zeros", np.zeros(size, np.uint8)),
                          ("#HUDI over and over", np.resize(np.frombuffer(b"#HUDI", np.uint8), size))):  # fmt: skip
        data = np.concatenate([garbage[: size - 7], np.frombuffer(b".#HUDI#", np.uint8)])
        found = _scan.find_magic(data, 0)
        right(data[found : found + 6].tobytes() == b"#HUDI#", name)
        if found < size - 6:  # the garbage itself has magics: nothing to pass over
            data = np.where(data == ord("#"), np.uint8(46), data)
            data[-6:] = np.frombuffer(b"#HUDI#", np.uint8)
            right(_scan.find_magic(data, 0) == size - 6, name)
        rate = size / best(lambda data=data: _scan.find_magic(data, 0)) / 1e9
        goal = 2 if name == "random bytes" else None
        out.append(Figure(f"next block after {name}", rate, "GB/s", least=goal))
    return out


class _Counting:
    """A storage that counts ranged reads."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.reads += 1
        data: bytes = self._storage.read_range(path, start, length)
        return data


def hfile(folder: Path, entries: int) -> list[Figure]:
    """A file of about 100 bytes an entry, from opening on."""
    numbers = pc.utf8_lpad(pa.array(np.arange(entries)).cast(pa.string()), 9, "0")
    keys = pc.binary_join_element_wise("driver-0000-", numbers, "")
    digits = np.frombuffer(np.random.default_rng(1).bytes(30 * entries).hex().encode(), "S60")
    values = pa.array(digits, pa.binary())
    storage = open_storage(str(folder))
    out = []
    rng = np.random.default_rng(2)
    few = keys.take(pa.array(rng.choice(entries, 10, replace=False))).to_pylist()
    many = keys.take(pa.array(rng.choice(entries, min(10_000, entries), replace=False)))
    for codec in ("none", "gz"):
        with storage.open_output(codec) as sink:
            writer = HFileWriter(sink, schema='"bytes"', codec=codec)
            writer.append(keys, values)
            size = writer.finish().size

        def scan(codec: str = codec) -> pa.Table:
            return HFileReader.open(storage, codec).scan()

        def ten(codec: str = codec) -> list[bytes | None]:
            reader = HFileReader.open(storage, codec)
            return [reader.get(key) for key in few]

        def batch(codec: str = codec) -> pa.Table:
            return HFileReader.open(storage, codec).lookup(many)

        right(scan().num_rows == entries and batch().num_rows == len(many), "HFile")
        right(all(v is not None for v in ten()), "HFile keys")
        whole = best(scan)
        name = f"HFile of {size / 1e6:.0f} MB, {'no codec' if codec == 'none' else codec}"
        out += [
            Figure(f"{name}: sequential key-values", entries / whole / 1e6, "million/s", least=1),
            Figure(f"{name}: 10 random keys, as fast as one scan", whole / best(ten), "x", least=20),
            Figure(f"{name}: 10,000 keys, time of one scan", best(batch) / whole, "x", most=1.2),
        ]
        counting = _Counting(storage)
        right(HFileReader.open(counting, codec).get(few[0]) is not None, "a cold key")
        out.append(Figure(f"{name}: ranged reads for one cold key", counting.reads, "", most=3))
    return out


def key_merge(many: int) -> list[Figure]:
    """32-byte keys of one upsert: incoming ones indexed, stored ones looked up, the winner decided."""
    out = []
    for stored_rows, name, goal in ((16_384, "in cache", 20.0), (many, f"{many:,} keys", None)):
        numbers = pc.utf8_lpad(pa.array(np.arange(stored_rows)).cast(pa.string()), 12, "0")
        stored = pc.binary_join_element_wise("driver-0000-0000-000", numbers, "")
        right(pc.min(pc.binary_length(stored)).as_py() == 32, "key length")
        rng = np.random.default_rng(3)
        hits = rng.permutation(stored_rows)[: stored_rows // 4]
        incoming = stored.take(pa.array(hits))
        old, new = pa.array(np.zeros(stored_rows, np.int64)), pa.array(np.ones(len(hits), np.int64))
        found = KeyIndex(incoming)
        want = np.full(stored_rows, -1)
        want[hits] = np.arange(len(hits))
        rule = payload_rule("EventTimeAvroPayload")

        def merged_with(
            index: KeyIndex, of: tuple = (stored, old, new), rule: MergeRule = rule
        ) -> np.ndarray:
            return decide(index.find(of[0]), rule, stored_ordering=of[1], ordering=of[2]).take

        right((merged_with(found) == want).all(), "merged keys")
        times = 50 if stored_rows < 100_000 else 1

        def look(index: KeyIndex = found, keys: pa.Array = stored, times: int = times) -> None:
            for _ in range(times):
                index.find(keys)

        def merge(
            keys: pa.Array = incoming, merged: Callable[..., object] = merged_with, times: int = times
        ) -> None:
            for _ in range(times):
                merged(KeyIndex(keys))

        rounds = 5 if times > 1 else 2
        looked = times * stored_rows / best(look, rounds) / 1e6
        merged = times * (stored_rows + len(hits)) / best(merge, rounds) / 1e6
        out.append(Figure(f"32-byte keys looked up, {name}", looked, "million/s", least=goal))
        out.append(Figure(f"32-byte keys merged, index and ordering included, {name}", merged, "million/s"))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: a hundredth")
    parser.add_argument("--out", type=Path, default=None, help="folder for formats.md and .json")
    given = parser.parse_args()
    part = 1 if given.scale == "full" else 100
    with tempfile.TemporaryDirectory() as scratch:
        figures = [
            *avro(200_000 // part), *log_files(Path(scratch), 1_000_000 // part),
            *hfile(Path(scratch), 1_000_000 // part), *key_merge(10_000_000 // part),
        ]  # fmt: skip
    lines = ["| what | found | | goal | |", "|---|---:|---|---|---|"]
    lines += [f"| {f.what} | {f.value:.4g} | {f.unit} | {f.goal} | {f.verdict} |" for f in figures]
    measured = Measured("formats")
    measured.more = {
        "figures": [f.__dict__ | {"verdict": f.verdict} for f in figures],
        "cores": os.cpu_count(),
    }
    write(measured, ["\n".join(lines)], given.out)


if __name__ == "__main__":
    main()
