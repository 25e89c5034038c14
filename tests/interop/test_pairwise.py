"""Operation x key generator x payload x index x types x partition style, each pair of values at least once.

Two tables get the same rows.  One is begun by this project and the other by Apache Hudi 0.15.0; at every step the
two change places.  After each, both tables hold the same rows, read by both.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from interop.apache_hudi import ApacheHudi
from interop.pairwise import covering_array, pairs_of
from interop.samples import ALL_TYPES, TRIPS, Shape
from interop.twins import Twins

KEYGEN = "hoodie.datasource.write.keygenerator.class"
TIME_BASED = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}

FACTORS = {
    "operation": ("bulk_insert", "insert", "upsert"),
    "keys": ("simple", "complex", "nonpartitioned", "timestamp", "custom"),
    "payload": (
        "OverwriteWithLatestAvroPayload",
        "DefaultHoodieRecordPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
    ),
    "index": ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"),
    "types": ("trips", "all_types"),
    "style": ("plain", "hive", "url_encoded"),
}
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str, dict[str, str]]] = {
    "simple": (("uuid",), ("city",), "SimpleKeyGenerator", {}),
    "complex": (("uuid", "kind"), ("city", "kind"), "ComplexKeyGenerator", {}),
    "nonpartitioned": (("uuid",), (), "NonpartitionedKeyGenerator", {}),
    "timestamp": (("uuid",), ("day",), "TimestampBasedKeyGenerator", TIME_BASED),
    # Apache Hudi cannot tell the columns apart where the slashes of one of several stand in the path.
    "custom": (
        ("uuid", "kind"),
        ("city:SIMPLE", "day:TIMESTAMP"),
        "CustomKeyGenerator",
        TIME_BASED | {"hoodie.keygen.timebased.output.dateformat": "yyyyMMdd"},
    ),
}


FILLING = ("OverwriteNonDefaultsWithLatestAvroPayload", "PartialUpdateAvroPayload")


def _possible(case: Any) -> bool:
    if case["keys"] == "nonpartitioned" and case["style"] != "plain":
        return False
    # Refused: a record that moves to another partition would have to take values along.
    return not (case["payload"] in FILLING and case["index"].startswith("GLOBAL"))


CASES = covering_array(FACTORS, _possible)
# Half a minute each; all of them are in nox session interop_full.
IN_CI = (0,)


def _shape(case: dict[str, str]) -> Shape:
    keys, partitions, keygen, options = KEYS[case["keys"]]
    schema = (ALL_TYPES if case["types"] == "all_types" else TRIPS).append(pa.field("day", pa.string()))
    return Shape(
        "pairwise", keys=keys, partitions=partitions,
        hive_style=case["style"] == "hive", url_encode=case["style"] == "url_encoded", schema=schema,
        cities=("oslo", "são paulo", "x=y") if case["style"] == "url_encoded" else ("oslo", "pune"),
        options={
            KEYGEN: f"org.apache.hudi.keygen.{keygen}",
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{case['payload']}",
            "hoodie.index.type": case["index"],
            "hoodie.metadata.enable": "false",
            **options,
        },
    )  # fmt: skip


def test_the_array_covers_every_pair() -> None:
    covered = set().union(*(pairs_of(c) for c in CASES))
    missing = {
        (x, y)
        for a, b in combinations(FACTORS, 2)
        for x in FACTORS[a]
        for y in FACTORS[b]
        if ((a, x), (b, y)) not in covered
    }
    assert missing == {("nonpartitioned", s) for s in FACTORS["style"][1:]} | {
        (p, i) for p in FILLING for i in FACTORS["index"][2:]
    }


@pytest.mark.req("WR-01", "PM-01")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id="-".join(c.values()), marks=[pytest.mark.in_ci] if n in IN_CI else [])
        for n, c in enumerate(CASES)
    ],
)
def test_two_tables_with_one_history_are_twins(
    tmp_path: Path, apache: ApacheHudi, case: dict[str, str]
) -> None:
    twins = Twins(tmp_path, _shape(case), apache)
    twins.write(case["operation"], twins.new(30))
    twins.check()
    twins.write("upsert", twins.changed(8) + twins.new(6))
    twins.check()
    twins.write("delete", twins.rows.some(list(twins.written.values()), 5))
    late = [r | {"ts": r["ts"] - 500} for r in twins.changed(4)]
    seen = {r["uuid"] for r in late}
    twins.write("upsert", late + [r for r in twins.changed(6) if r["uuid"] not in seen] + twins.new(3))
    twins.check()
