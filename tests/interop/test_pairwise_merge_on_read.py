"""Merge-on-read tables: payload x block format x index x keys x engine, each pair of values at least once.

Two tables get the same rows, in turn from this project and from Apache Hudi 0.15.0, into each other's file slices.
After each step both hold the same rows, read by both, as they are and by the base files alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from interop import ours
from interop.apache_hudi import ApacheHudi
from interop.pairwise import covering_array
from interop.rows import assert_same_rows
from interop.samples import ALL_TYPES, TRIPS, Shape
from interop.twins import OWN, Twins

FACTORS = {
    "operation": ("bulk_insert", "insert", "upsert"),
    "keys": ("simple", "complex", "nonpartitioned"),
    "payload": (
        "OverwriteWithLatestAvroPayload",
        "DefaultHoodieRecordPayload",
        "EventTimeAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
    ),
    "index": ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE"),
    "types": ("trips", "all_types"),
    "blocks": ("avro", "parquet"),
    "small_files": ("0", "104857600"),
    "engine": ("python", "spark"),
}
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "simple": (("uuid",), ("city",), "SimpleKeyGenerator"),
    "complex": (("uuid", "kind"), ("city", "kind"), "ComplexKeyGenerator"),
    "nonpartitioned": (("uuid",), (), "NonpartitionedKeyGenerator"),
}


def _possible(case: Any) -> bool:
    # A record that may move to another partition would be compared with what is stored, or take values along.
    return case["payload"].startswith("OverwriteWith") or not case["index"].startswith("GLOBAL")


CASES = covering_array(FACTORS, _possible)
# Half a minute each; all of them are in nox session interop_full.
IN_CI = 2


def _shape(case: dict[str, str]) -> Shape:
    keys, partitions, keygen = KEYS[case["keys"]]
    return Shape(
        "pairwise", keys=keys, partitions=partitions, cities=("oslo", "pune"),
        schema=(ALL_TYPES if case["types"] == "all_types" else TRIPS).append(pa.field("day", pa.string())),
        options={
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{keygen}",
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{case['payload']}",
            "hoodie.index.type": case["index"],
            "hoodie.metadata.enable": "false",
            "hoodie.logfile.data.block.format": case["blocks"],
            "hoodie.parquet.small.file.limit": case["small_files"],
            "hoodie.compact.inline.max.delta.commits": "100",
        },
    )  # fmt: skip


@pytest.mark.req("WR-12", "WR-13", "TL-12", "PM-14")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id="-".join(c.values()), marks=[] if n < IN_CI else [pytest.mark.slow])
        for n, c in enumerate(CASES)
    ],
)
def test_twins(tmp_path: Path, pool: Any, apache: ApacheHudi, case: dict[str, str]) -> None:
    twins = Twins(tmp_path, _shape(case), apache, pool.ours() if case["engine"] == "spark" else None)
    twins.write(case["operation"], twins.new(30))
    twins.write("upsert", twins.changed(8) + twins.new(6))
    twins.check()
    twins.write("delete", twins.rows.some(list(twins.written.values()), 5))
    late = [r | {"ts": r["ts"] - 500} for r in twins.changed(4)]
    seen = {r["uuid"] for r in late}
    twins.write("upsert", late + [r for r in twins.changed(6) if r["uuid"] not in seen] + twins.new(3))
    twins.check()
    optimized = {"hoodie.datasource.query.type": "read_optimized"}
    for path in twins.paths:
        want = apache.read(path, **optimized).drop_columns(OWN)
        got = ours.table(path).read(query="read_optimized").to_arrow().drop_columns(OWN)
        assert_same_rows(got, want, ["uuid"], ordered_columns=False)
        assert ours.table(path).verify() == []
