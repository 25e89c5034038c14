"""Make golden tables of versions 8 and 9 whose logs have partial updates from before and after changes of the schema.

    python tools/golden/make_partial_tables.py 1.0.2|1.2.0 OUT [scenario ...]

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import COMMIT, COMMON, EVENT, SCHEMA_ON_READ, Maker, make

COLUMNS = "id string, ts long, seq int, v string, w string, f float, part string"


class PartialMaker(Maker):
    """A table that is written by SQL, with partial updates wherever a MERGE assigns some of the columns."""

    def begin(self, ddl: str, *rows: tuple[object, ...]) -> None:
        self.history(False)
        self.write(ddl, *rows, operation="insert")
        self.catalog()
        settings = {
            **COMMON,
            "hoodie.spark.sql.merge.into.partial.updates": "true",
            # Apache Hudi 1.2.0 takes a renamed column for one that is missing.
            "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
        }
        for key, value in settings.items():
            self.spark.sql(f"SET {key}={value}")

    def catalog(self) -> None:
        """Make the catalog look at the table's columns as they are now."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name}")
        self.spark.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.path}'")

    def merge(self, assigned: dict[str, str], *source: tuple[str, int, str]) -> None:
        """Rows of (key, ordering value, SQL literal); `assigned` are columns and their expressions over `s.x`."""
        values = ", ".join(f"('{k}', {ts}L, {x}, 'p')" for k, ts, x in source)
        sets = ", ".join(f"t.{c} = {e}" for c, e in {**assigned, "ts": "s.ts"}.items())
        self.sql(
            f"MERGE INTO {self.name} AS t USING (SELECT * FROM VALUES {values} AS s(id, ts, x, part)) AS s "
            f"ON t.id = s.id WHEN MATCHED THEN UPDATE SET {sets}"
        )

    def history(self, on: bool) -> None:
        """Whether statements heed and keep the schema history; Apache Hudi refuses partial updates where they do."""
        self.spark.sql(f"SET {SCHEMA_ON_READ}={str(on).lower()}")

    def alter(self, text: str) -> None:
        self.history(True)
        self.read_options = {SCHEMA_ON_READ: "true"}
        self.sql(f"ALTER TABLE {self.name} {text}")
        self.history(False)

    def delete(self, key: str) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE id = '{key}'")


def _rows(count: int) -> list[tuple[object, ...]]:
    return [(f"k{n:02d}", 100, n, f"v{n}", f"w{n}", n + 0.1, "p") for n in range(count)]


def _changed(t: PartialMaker) -> None:
    """Partial updates of every kind, then changes of the columns, then updates and deletes of whole rows."""
    t.begin(COLUMNS, *_rows(12))
    t.merge({"v": "s.x"}, ("k00", 200, "'a'"), ("k01", 200, "'a'"), ("k02", 50, "'a'"), ("k03", 200, "'a'"))
    t.merge({"w": "s.x"}, ("k00", 150, "'b'"), ("k01", 250, "'b'"), ("k04", 250, "'b'"), ("k10", 250, "'b'"))
    t.merge({"seq": "s.x"}, ("k00", 260, "70"), ("k05", 260, "75"), ("k06", 260, "76"))
    t.merge({"f": "cast(s.x as float)"}, ("k06", 270, "0.3"), ("k07", 270, "0.7"), ("k08", 20, "0.8"))
    t.delete("k03")
    t.alter("RENAME COLUMN v TO v2")
    t.alter("ALTER COLUMN seq TYPE bigint")
    t.alter("ALTER COLUMN f TYPE double")
    t.alter("ADD COLUMNS (z string)")
    t.alter("DROP COLUMN w")


def _updated(t: PartialMaker) -> None:
    _changed(t)
    t.history(True)
    t.sql(f"UPDATE {t.name} SET z = 'new', v2 = 'new', ts = 500 WHERE id IN ('k01', 'k05', 'k09')")
    t.sql(f"DELETE FROM {t.name} WHERE id = 'k10'")


def _again(t: PartialMaker) -> None:
    """A column that was dropped, and another one of its name; a swap of names."""
    t.begin(COLUMNS, *_rows(8))
    t.merge({"v": "s.x"}, ("k00", 200, "'a'"), ("k01", 200, "'a'"), ("k02", 50, "'a'"))
    t.merge({"w": "s.x"}, ("k00", 250, "'b'"), ("k03", 250, "'b'"))
    t.alter("DROP COLUMN v")
    t.alter("RENAME COLUMN w TO u")
    t.alter("ADD COLUMNS (v string)")
    t.history(True)
    t.sql(f"UPDATE {t.name} SET v = 'new', ts = 500 WHERE id IN ('k01', 'k03')")


def _forgotten(t: PartialMaker) -> None:
    """Partial updates after changes of the columns: Apache Hudi 1.0.2 writes them without the schema history."""
    t.begin(COLUMNS, *_rows(10))
    t.merge({"v": "s.x"}, ("k00", 200, "'a'"), ("k01", 200, "'a'"), ("k02", 50, "'a'"), ("k03", 200, "'a'"))
    t.merge({"w": "s.x"}, ("k00", 150, "'b'"), ("k01", 250, "'b'"), ("k04", 250, "'b'"))
    t.alter("RENAME COLUMN v TO v2")
    t.merge({"v2": "s.x"}, ("k00", 300, "'c'"), ("k05", 300, "'c'"), ("k04", 240, "'c'"))
    t.delete("k03")
    t.merge({"w": "s.x"}, ("k01", 400, "'d'"), ("k06", 400, "'d'"), ("k02", 300, "'d'"))


def _added(t: PartialMaker) -> None:
    t.begin(COLUMNS, *_rows(10))
    t.merge({"v": "s.x"}, ("k00", 200, "'a'"), ("k01", 200, "'a'"), ("k02", 50, "'a'"))
    t.alter("ADD COLUMNS (z string)")
    t.merge({"z": "s.x"}, ("k00", 300, "'b'"), ("k03", 300, "'b'"), ("k01", 150, "'b'"))
    t.merge({"w": "s.x"}, ("k00", 250, "'c'"), ("k01", 400, "'c'"))
    t.delete("k03")


def _stacked(t: PartialMaker) -> None:
    """Late partial updates that meet one in time, or a whole record, within the log."""
    t.begin(COLUMNS, *_rows(8))
    t.merge({"v": "s.x"}, ("k00", 50, "'a'"), ("k01", 200, "'a'"), ("k02", 50, "'a'"), ("k03", 50, "'a'"))
    t.merge({"w": "s.x"}, ("k00", 300, "'b'"), ("k01", 150, "'b'"), ("k02", 60, "'b'"))
    t.write(COLUMNS, ("k03", 300, 9, "full", "full", 0.5, "p"), ("k01", 120, 9, "full", "full", 0.5, "p"))
    t.merge({"seq": "s.x"}, ("k03", 200, "70"), ("k04", 200, "70"), ("k00", 100, "70"))


def _plain(t: PartialMaker) -> None:
    t.begin(COLUMNS, *_rows(10))
    t.merge({"v": "s.x"}, ("k00", 200, "'a'"), ("k01", 200, "'a'"), ("k02", 50, "'a'"), ("k04", 200, "'a'"))
    t.merge({"seq": "s.x"}, ("k00", 250, "77"), ("k05", 250, "78"))
    wider = "id string, ts long, seq long, v string, w string, f double, part string, z string"
    t.write(
        wider,
        ("k01", 300, 5_000_000_000, "full", "full", 0.1, "p", "z"),
        ("k06", 300, 6_000_000_000, "full", "full", 0.1, "p", "z"),
        ("k04", 150, 1, "old", "old", 0.5, "p", "z"),
    )
    t.catalog()
    t.merge({"z": "s.x"}, ("k00", 400, "'late'"), ("k02", 300, "'late'"), ("k06", 200, "'late'"))
    t.merge({"seq": "s.x"}, ("k05", 400, "7000000000L"), ("k07", 400, "8000000000L"))
    t.delete("k07")


SCENARIOS = {
    f"partial_{name}{suffix}": (build, mode, versions)
    for suffix, mode, versions in (("", EVENT, "1.0.2 1.2.0"), ("_commit_time", COMMIT, "1.2.0"))
    for name, build in (
        ("changed", _changed), ("updated", _updated), ("again", _again), ("forgotten", _forgotten),
        ("added", _added), ("evolved", _plain), ("stacked", _stacked),
    )
}  # fmt: skip


if __name__ == "__main__":
    make(PartialMaker, SCENARIOS)
