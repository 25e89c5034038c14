"""Make golden tables for the payloads of Debezium, and for merges by defaults other than null, with Apache Hudi.

    python tools/golden/make_payload_tables.py 0.15.0|1.0.2|1.2.0 OUT [scenario ...]

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import datetime
import io
import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import fastavro

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import Maker, make, stories_of_deletes

MODELS = "org.apache.hudi.common.model."
ALL = "0.15.0 1.0.2 1.2.0"
TOAST = "__debezium_unavailable_value"


def _payload(name: str, ordering: str) -> dict[str, str]:
    return {
        "hoodie.datasource.write.precombine.field": ordering,
        "hoodie.datasource.write.payload.class": MODELS + name,
    }


def _postgres(t: Maker) -> None:
    ddl = (
        "id string, seq int, v string, w string, b binary, part string, "
        "_change_operation_type string, _event_lsn long"
    )

    def r(
        key: str, lsn: int | None, v: str | None, w: str | None, op: str = "u", b: bytes = b"b"
    ) -> tuple[object, ...]:
        return key, 0, v, w, b, "p", op, lsn

    gone, raw = TOAST, TOAST.encode()
    # 1.x takes the number 0 of another Java class for it, and fails.
    unknown = None if t.hudi == "0.15.0" else 0
    t.write(
        ddl, *(r(f"k{n:02d}", 100, f"v{n}", f"w{n}", "c") for n in range(12)),
        r("k12", 100, gone, "w", "c"), r("k13", unknown, "v13", "w13", "c"), operation="insert",
    )  # fmt: skip
    t.write(
        ddl, r("k00", 150, gone, "w2"), r("k01", 50, gone, "w2"), r("k02", 150, None, gone), r("k03", 150, "v", "w"),
        r("k04", 150, gone, gone, "d"), r("k05", 50, "v", "w", "d"), r("k06", 100, gone, "w2"),
        r("k07", 150, "v", "w", "D"), r("k08", 150, "v", "w", "u", raw), r("k12", 50, "v2", "w2"),
        r("k13", 1, gone, "w2"), r("k11", 150, gone, gone),
    )  # fmt: skip
    t.write(
        ddl, r("k00", 200, "w3", gone), r("k03", 120, gone, "late"), r("k02", 160, gone, "w3"), r("k20", 1, gone, "n"),
        r("k04", 120, "v3", "w3"), r("k09", 100, "w3", gone), r("k11", 200, gone, "w3"), r("k10", 120, "x", gone),
        r("k07", 200, "again", gone),
    )  # fmt: skip
    t.write(ddl, r("k10", 130, gone, "y"), r("k08", 140, gone, "late"), r("k09", 90, "late", "late", "d"))


def _mysql(t: Maker) -> None:
    ddl = (
        "id string, v string, part string, _change_operation_type string, _event_seq string, "
        "_event_bin_file string, _event_pos long"
    )

    def r(key: str, file: int, pos: int, v: str, op: str = "u") -> tuple[object, ...]:
        # The number of a file has no fixed width in the sequence: 2.5 is before 10.1.
        return key, v, "p", op, f"{file}.{pos}", f"mysql-bin.{file:06d}", pos

    t.write(ddl, *(r(f"k{n:02d}", 2, 100, "v1", "c") for n in range(10)), operation="insert")
    t.write(
        ddl, r("k00", 10, 5, "v2"), r("k01", 2, 99, "v2"), r("k02", 2, 1000, "v2"), r("k03", 2, 100, "v2"),
        r("k04", 10, 1, "v2", "d"), r("k05", 1, 500, "v2", "d"), r("k06", 2, 200, "v2", "D"),
    )  # fmt: skip
    t.write(
        ddl, r("k00", 9, 900, "v3"), r("k02", 2, 999, "v3"), r("k03", 2, 100, "v3"), r("k04", 3, 1, "v3"),
        r("k07", 1, 1, "v3"), r("k20", 1, 1, "v3"), r("k06", 10, 1, "v3"),
    )  # fmt: skip
    t.write(ddl, r("k02", 10, 1, "v4"), r("k20", 1, 0, "v4"), r("k00", 8, 1, "v4", "d"))


def _mysql_ties(t: Maker) -> None:
    """Changes and deletes at exactly the place of what is stored, or of what is logged before."""
    ddl = (
        "id string, v string, part string, _change_operation_type string, _event_seq string, "
        "_event_bin_file string, _event_pos long"
    )

    def r(key: str, pos: int, v: str, op: str = "u") -> tuple[object, ...]:
        # Texts of one width, whose order is that of their numbers.
        return key, v, "p", op, f"2.{pos}", "mysql-bin.000002", pos

    t.write(ddl, *(r(f"k{n:02d}", 500, "v1", "c") for n in range(10)), operation="insert")
    t.write(
        ddl, r("k00", 500, "v2", "d"), r("k01", 500, "v2"), r("k02", 499, "v2", "d"), r("k03", 501, "v2", "d"),
        r("k04", 501, "v2"), r("k05", 500, "v2", "d"), r("k06", 500, "v2"), r("k20", 100, "v2", "d"),
    )  # fmt: skip
    t.write(
        ddl, r("k00", 500, "v3"), r("k03", 501, "v3"), r("k04", 501, "v3", "d"), r("k06", 500, "v3", "d"),
        r("k07", 501, "v3"), r("k20", 100, "v3"),
    )  # fmt: skip
    t.write(ddl, r("k04", 501, "v4"), r("k07", 501, "v4", "d"), r("k20", 99, "v4"))


# Columns with defaults that are not null, by type; `low` and `high` are on either side of Java's cache of numbers.
DEFAULTS: dict[str, tuple[str, object, object, object]] = {
    # name: (type in SQL, the default in the schema, a value like it, another value)
    "low": ("int", 7, 7, 8),
    "high": ("int", 1000, 1000, 1001),
    "long_low": ("bigint", -5, -5, 5),
    "long_high": ("bigint", 5_000_000_000, 5_000_000_000, 5),
    "f": ("float", 1.5, 1.5, 2.5),
    "d": ("double", 0.0, 0.0, 2.5),
    "yes": ("boolean", True, True, False),
    "no": ("boolean", False, False, True),
    "s": ("string", "nothing", "nothing", "other"),
    "empty": ("string", "", "", "other"),
    "raw": ("binary", "x", b"x", b"other"),
    "list": ("array<int>", [], [], [1, 2]),
    "dict": ("map<string,int>", {}, {}, {"a": 1}),
    "record": ("struct<a:int>", {"a": None}, (None,), (2,)),
    "amount": ("decimal(10,2)", "\u0001", Decimal("0.01"), Decimal("2.50")),
    "day": ("date", 0, "1970-01-01", "2020-01-01"),
    "plain": ("string", None, None, "other"),
}


def _defaults(t: Maker) -> None:
    """Every column gets its default, another value, or nothing, as an update and as the later one of two."""
    required = "required" in t.name  # 1.x refuses a default other than null in a column that may be null
    names = list(DEFAULTS)
    ddl = "id string, ts long, part string, " + ", ".join(f"{n} {DEFAULTS[n][0]}" for n in names)

    def value(name: str, which: int) -> object:
        found = None if which == 0 and not required else DEFAULTS[name][which or 3]
        if required and name == "plain":
            found = "other"
        return datetime.date.fromisoformat(found) if name == "day" and isinstance(found, str) else found

    def r(key: str, ts: int, which: int) -> tuple[object, ...]:  # 0: nulls, 2: the defaults, 3: others
        return key, ts, "p", *(value(n, which) for n in names)

    t.write(
        ddl,
        *(r(f"k{n:02d}", 100, 3) for n in range(8)),
        r("k08", 100, 2),
        r("k09", 100, 0),
        operation="insert",
    )
    t.write(ddl, r("k00", 200, 2), r("k01", 200, 0), r("k02", 50, 2), r("k03", 200, 2), r("k08", 200, 3),
            r("k09", 200, 2), r("k05", 200, 3), r("k20", 100, 3), r("k21", 100, 2))  # fmt: skip
    t.write(
        ddl,
        r("k03", 300, 0),
        r("k05", 300, 2),
        r("k06", 50, 2),
        r("k20", 200, 2),
        r("k21", 200, 0),
        r("k08", 50, 2),
    )
    give_defaults(t.path, {n: d[1] for n, d in DEFAULTS.items() if d[1] is not None}, nullable=not required)


def give_defaults(table: Path, defaults: Mapping[str, object], nullable: bool) -> None:
    """Give columns defaults in the schema that each commit names, as a schema registry's has them."""
    for file in table.rglob("*"):
        if not file.name.endswith("commit") or ".hoodie" not in file.parts or not file.stat().st_size:
            continue
        content = file.read_bytes()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        if content[:4] != b"Obj\x01":
            commit = json.loads(content)
            if "schema" in commit.get("extraMetadata", {}):
                commit["extraMetadata"]["schema"] = _with(
                    commit["extraMetadata"]["schema"], defaults, nullable
                )
                file.write_text(json.dumps(commit))
            continue
        reader = fastavro.reader(io.BytesIO(content))
        records = list(reader)
        for record in records:
            more = record.get("extraMetadata") or {}
            if "schema" in more:
                more["schema"] = _with(more["schema"], defaults, nullable)
        out = io.BytesIO()
        assert reader.writer_schema is not None
        fastavro.writer(out, reader.writer_schema, records, metadata={})
        file.write_bytes(out.getvalue())


def _with(text: str, defaults: Mapping[str, object], nullable: bool) -> str:
    schema = json.loads(text)
    for field in schema["fields"]:
        if field["name"] in defaults:
            branches = [b for b in field["type"] if b != "null"]
            kind = [*branches, "null"] if nullable else branches[0]
            field |= {"type": kind, "default": defaults[field["name"]]}
    return json.dumps(schema)


SCENARIOS = {
    **{
        f"custom_{name}": (stories_of_deletes, _payload(f"{name}AvroPayload", "ts"), "1.0.2")
        for name in ("OverwriteNonDefaultsWithLatest", "PartialUpdate", "AWSDms", "FirstValue")
    },
    "payload_PostgresDebeziumAvroPayload": (
        _postgres, _payload("debezium.PostgresDebeziumAvroPayload", "_event_lsn"), ALL,
    ),
    "payload_MySqlDebeziumAvroPayload": (
        _mysql, _payload("debezium.MySqlDebeziumAvroPayload", "_event_seq"), "0.15.0 1.0.2",
    ),
    "payload_MySqlDebezium_ties": (
        _mysql_ties, _payload("debezium.MySqlDebeziumAvroPayload", "_event_seq"), "0.15.0 1.0.2",
    ),
    "payload_MySqlDebezium_ordered": (
        _mysql,
        {
            **_payload("debezium.MySqlDebeziumAvroPayload", "_event_bin_file,_event_pos"),
            "hoodie.table.ordering.fields": "_event_bin_file,_event_pos",
        },
        "1.2.0",
    ),
    **{
        f"defaults_{kind}": (_defaults, _payload(f"{name}AvroPayload", "ts"), versions)
        for name, short in (("OverwriteNonDefaultsWithLatest", "overwrite"), ("PartialUpdate", "partial"))
        for kind, versions in ((short, "0.15.0"), (f"required_{short}", "1.0.2 1.2.0"))
    },
}  # fmt: skip


if __name__ == "__main__":
    make(Maker, SCENARIOS)
