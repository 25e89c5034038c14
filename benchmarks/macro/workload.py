"""The headline workload: rows of a trips table, an upsert batch, keys to delete, and what must come out.

Everything follows from the number of rows and a seed, so that each engine's answers can be checked.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CITIES = ("amsterdam", "berlin", "chennai", "denver", "edinburgh", "fukuoka", "geneva", "houston")
KEY, PARTITION, ORDERING = "uuid", "city", "ts"
# The columns that the read aggregates; `rider` is counted, the others are summed.
SUMMED = ("fare", "tip", "distance", "passengers")


@dataclass(frozen=True)
class Facts:
    """Files of the workload, and the rows and sums that each state of the table has."""

    rows: int
    base: str
    upserts: str
    deletes: str
    after_insert: tuple[int, float]
    after_upsert: tuple[int, float]
    after_delete: int


COLUMNS = 12


def make(folder: Path, rows: int, seed: int = 1, columns: int = COLUMNS, updates: int | None = None) -> Facts:
    """Write the workload's files, or take those that are there.

    Args:
        columns: beyond the 12 of the trips, columns of numbers and texts are put before the last one.
        updates: keys that are updated; 5 % of all unless given.
    """
    tag = f"{rows}-{seed}" if columns == COLUMNS else f"{rows}-{seed}-{columns}"
    if updates is not None:
        tag += f"-updates{updates}"
    known = folder / f"facts-{tag}.json"
    if known.is_file():
        found = json.loads(known.read_text())
        return Facts(**{k: tuple(v) if isinstance(v, list) else v for k, v in found.items()})
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    base = _wide(_rows(rng, np.arange(rows)), rng, columns)
    picked = np.sort(rng.choice(rows, rows // 20 if updates is None else updates, replace=False))
    changed = base.take(pa.array(picked))
    changed = changed.set_column(1, ORDERING, pc.add(changed[ORDERING], 10**9))
    changed = changed.set_column(4, "fare", pc.add(changed["fare"], 1000.0))
    fresh = _wide(_rows(rng, np.arange(rows, rows + rows // 100)), rng, columns)
    upserts = pa.concat_tables([changed, fresh])
    upserts = upserts.take(pa.array(rng.permutation(upserts.num_rows)))
    gone = base.take(pa.array(np.sort(rng.choice(rows, rows // 100, replace=False)))).select([KEY, PARTITION])
    paths = [str(folder / f"{name}-{tag}.parquet") for name in ("base", "upserts", "deletes")]
    for path, table in zip(paths, (base, upserts, gone), strict=True):
        pq.write_table(table, path, compression="zstd", row_group_size=max(1, min(250_000, table.num_rows)))
    total = pc.sum(base["fare"]).as_py()
    facts = Facts(
        rows,
        *paths,
        after_insert=(rows, total),
        after_upsert=(
            rows + fresh.num_rows,
            total + 1000.0 * changed.num_rows + pc.sum(fresh["fare"]).as_py(),
        ),
        after_delete=rows + fresh.num_rows - gone.num_rows,
    )
    known.write_text(json.dumps(asdict(facts)))
    return facts


def _wide(rows: pa.Table, rng: np.random.Generator, columns: int) -> pa.Table:
    """The rows with more columns: one text for every three numbers, as wide tables of measurements have."""
    n = rows.num_rows
    words = pa.array([f"word-{x}" for x in range(5000)])
    for i in range(columns - COLUMNS):
        if i % 4 == 0:
            values = words.take(pa.array(rng.integers(0, len(words), n)))
        elif i % 4 == 1:
            values = pa.array(rng.integers(0, 1 << 40, n))
        else:
            values = pa.array(rng.random(n))
        rows = rows.add_column(rows.num_columns - 1, f"more{i}", values)
    return rows


def _rows(rng: np.random.Generator, ids: np.ndarray) -> pa.Table:
    n = len(ids)
    mixed = (ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).tolist()
    return pa.table(
        {
            KEY: [f"{m:016x}-{i:07d}" for m, i in zip(mixed, ids.tolist(), strict=True)],
            ORDERING: pa.array(1_700_000_000_000 + ids),
            "rider": [f"rider-{x}" for x in rng.integers(0, 200_000, n).tolist()],
            "driver": [f"driver-{x}" for x in rng.integers(0, 50_000, n).tolist()],
            "fare": rng.random(n) * 100,
            "tip": rng.random(n) * 10,
            "lat": rng.random(n) * 90,
            "lon": rng.random(n) * 180,
            "passengers": pa.array(rng.integers(1, 6, n).astype(np.int32)),
            "distance": rng.integers(0, 100_000, n),
            "note": [f"n{x}" for x in rng.integers(0, 1000, n).tolist()],
            PARTITION: pa.array(CITIES).take(pa.array(rng.integers(0, len(CITIES), n))),
        }
    )
