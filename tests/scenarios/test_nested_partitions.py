"""Partitions inside of partitions ("2024" and "2024/01"): random histories with archival against a plain model.

A few histories here, the same each time; the long form by `HUDI_SOAK=1` (nox session `soak`).
"""

import os
import random
import warnings

import pyarrow as pa
import pytest

from hudi_format.errors import InstantNotFoundError, MissingFileError
from hudi_timeline import HudiTable

LONG = os.environ.get("HUDI_SOAK") == "1"
HISTORIES = 200 if LONG else 8
STEPS = 14

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
PARTITIONS = [
    "2024",
    "2024/01",
    "2024/01/05",
    "2024/_x",
    "2024/.y",
    "_a",
    "_a/__HIVE_DEFAULT_PARTITION__/b",
    "c",
]
SERVICES = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.parquet.small.file.limit": "0",
}

Model = dict[tuple[str, str], int]


class History:
    """A table and what it should hold, driven by random steps."""

    def __init__(self, path: str, seed: int) -> None:
        self.rng = random.Random(seed)
        rng = self.rng
        self.options = {**SERVICES}
        if rng.random() < 0.3:
            self.options["hoodie.cleaner.policy"] = "KEEP_LATEST_FILE_VERSIONS"
            self.options["hoodie.cleaner.fileversions.retained"] = "1"
        if rng.random() < 0.3:
            self.options["hoodie.clean.automatic"] = "false"
        self.table = HudiTable.create(
            path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
            options={"hoodie.datasource.write.hive_style_partitioning": str(rng.random() < 0.3).lower()},
        )  # fmt: skip
        self.hive = self.table.config.hive_style
        self.model: Model = {}
        self.states: dict[str, Model] = {}
        self.clock = 0

    def rows(self, n: int) -> list[dict[str, object]]:
        self.clock += 1
        chosen = {(str(self.rng.randrange(6)), self.rng.choice(PARTITIONS)) for _ in range(n)}
        return [{"id": i, "p": p, "v": self.clock, "ts": self.clock} for i, p in sorted(chosen)]

    def path(self, partition: str) -> str:
        return f"p={partition}" if self.hive else partition

    def step(self) -> str:
        rng = self.rng
        kinds = ["upsert"] * 6 + ["delete", "insert_overwrite", "insert_overwrite_table", "delete_partitions"]
        kinds += ["rollback", "savepoint_restore", "clean", "archive"]
        kind = rng.choice(kinds) if self.model else "upsert"
        table, options = self.table, self.options
        instant = ""
        if kind == "upsert":
            rows = self.rows(rng.randrange(1, 6))
            instant = table.upsert(rows, options=options).instant
            self.model = {**self.model, **{(r["id"], r["p"]): r["v"] for r in rows}}
        elif kind == "delete":
            gone = rng.sample(sorted(self.model), min(2, len(self.model)))
            rows = [{"id": i, "p": p, "v": 0, "ts": self.clock} for i, p in gone]
            instant = table.delete(rows, options=options).instant
            self.model = {k: v for k, v in self.model.items() if k not in gone}
        elif kind == "insert_overwrite":
            rows = self.rows(2)
            instant = table.insert_overwrite(rows, options=options).instant
            touched = {r["p"] for r in rows}
            self.model = {k: v for k, v in self.model.items() if k[1] not in touched}
            self.model |= {(r["id"], r["p"]): r["v"] for r in rows}
        elif kind == "insert_overwrite_table" and rng.random() < 0.4:
            rows = self.rows(3)
            instant = table.insert_overwrite_table(rows, options=options).instant
            self.model = {(r["id"], r["p"]): r["v"] for r in rows}
        elif kind == "delete_partitions":
            partition = rng.choice(sorted({p for _, p in self.model}))
            instant = table.delete_partitions([self.path(partition)], options=options).instant
            self.model = {k: v for k, v in self.model.items() if k[1] != partition}
        elif kind == "rollback":
            rows = self.rows(3)
            off = {**options, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
            table.rollback(table.upsert(rows, options=off).instant)
        elif kind == "savepoint_restore":
            off = {**options, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
            rows = self.rows(2)
            at = table.upsert(rows, options=off).instant
            self.model = {**self.model, **{(r["id"], r["p"]): r["v"] for r in rows}}
            self.states[at] = self.model
            table.savepoint(at)
            table.upsert(self.rows(3), options=options)
            table.insert_overwrite(self.rows(1), options=options)
            table.restore(at)
            table.delete_savepoint(at)
        elif kind == "clean":
            table.clean(options=options)
        elif kind == "archive":
            table.archive(options=options)
        if instant:
            self.states[instant] = self.model
        return kind

    def check(self) -> None:
        """Every way of reading gives what the model holds."""
        table = HudiTable.open(self.table.uri)
        assert _rows(table.read()) == self.model
        partition = self.rng.choice(PARTITIONS)
        kept = {k: v for k, v in self.model.items() if k[1] == partition}
        assert _rows(table.read(filter=f"p = '{partition}'")) == kept
        keys = sorted({i for i, _ in self.model})[:2]
        found = table.get(keys)
        ids = zip(found.column("id").to_pylist(), found.column("p").to_pylist(), strict=True)
        assert sorted(ids) == sorted(k for k in self.model if k[0] in keys)

    def check_history(self) -> None:
        """States that can be read are as they were; `verify` has nothing to say."""
        table = HudiTable.open(self.table.uri)
        writes = [i.time for i in table.timeline.completed_writes()]
        for at in writes:
            if at not in self.states:
                continue
            try:
                assert _rows(table.read(as_of=at)) == self.states[at], at
            except (
                InstantNotFoundError,
                MissingFileError,
            ):  # cleaned, or by what a cleaning before a restore says
                assert at != writes[-1] or table.timeline.of("restore")
        assert [
            f for f in table.verify(deep=True) if f.severity != "info" and f.code != "partition-nested"
        ] == []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changed = _rows(table.read_incremental("000", on_missing="full_scan"))
        assert changed == self.model


def _rows(scan) -> Model:
    found = scan.to_arrow()
    rows = zip(*(found.column(n).to_pylist() for n in ("id", "p", "v")), strict=True)
    out = {}
    for i, p, v in rows:
        assert (i, p) not in out
        out[i, p] = v
    return out


@pytest.mark.req("TL-05", "FS-09", "TS-19")
@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.sampled(3)
def test_no_row_of_a_partition_inside_of_a_partition_is_lost(tmp_path, seed):
    history = History(str(tmp_path / "t"), seed)
    done = []
    for _ in range(STEPS):
        done.append(history.step())
        try:
            history.check()
        except Exception as e:
            e.add_note(f"seed {seed}: {' '.join(done)}")
            raise
    history.check_history()
