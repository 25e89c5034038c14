"""Apache Hudi's own validator of metadata tables (HoodieMetadataTableValidator), run over tables of any writer.

    python tools/interop/metadata_validator.py JAR TABLE...

JAR is hudi-utilities of Apache Hudi 0.15.0, which its bundle for Spark does not contain.  Each table is looked at seven
times: the newest file slices and base files, all file groups, column statistics, bloom filters, and the record index
by number and by content.  Ends with 1 where the validator finds a difference that it does not find in tables of Apache
Hudi itself.

Three things are known of that release.  Without `ignoreFailed` it takes its own findings for an error while it closes,
and says that all is well.  And it compares bounds of dates and decimals in the form of the record with those in the
form of Java, which never are equal, in Apache Hudi's tables neither.  It counts the record index as of the table's last
commit, so that one which was built by a later restore seems empty.  Of this project's tables two more are known:
bounds of floats end in infinity, as Parquet's leave NaN out of account, and a column of nulls has no bounds, where
Apache Hudi stores the default of its type.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.java_gateway import set_field
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from interop.bundles import hudi_bundle, jar

VERSION = "0.15.0"
LOOKS = {
    "newest file slices": "validateLatestFileSlices",
    "newest base files": "validateLatestBaseFiles",
    "all file groups": "validateAllFileGroups",
    "column statistics": "validateAllColumnStats",
    "bloom filters": "validateBloomFilters",
    "size of the record index": "validateRecordIndexCount",
    "record index": "validateRecordIndexContent",
}
_SIDES = re.compile(r"\n[a-z ]*(?:from metadata|from file system and base files): ")
_RANGE = re.compile(
    r"filePath ='([^']*)', columnName='([^']*)', minValue=(.*?), maxValue=(.*?), nullCount=(-?\d+), "
    r"valueCount=(-?\d+), totalSize=(-?\d+), totalUncompressedSize=(-?\d+)}",
    re.DOTALL,
)


def session(utilities: str) -> SparkSession:
    """A Spark session with Apache Hudi and its utilities on its class path."""
    classes = f"{jar(hudi_bundle(VERSION))}:{utilities}"
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", classes)
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -Duser.timezone=UTC")
    )
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def findings(spark: SparkSession, table: str, look: str) -> list[str]:
    """What the validator says of a table; empty where both agree.

    Raises:
        ValueError: the table keeps no metadata table, which the validator takes for one without differences.
    """
    if not Path(table, ".hoodie", "metadata", ".hoodie", "hoodie.properties").is_file():
        raise ValueError(f"{table} has no metadata table")
    java: Any = spark._jvm
    validator = java.org.apache.hudi.utilities.HoodieMetadataTableValidator
    config = validator.Config()
    for name, value in {
        # With the scheme: it compares whole paths, of which the files' have one.
        "basePath": Path(table).resolve().as_uri().replace("file:///", "file:/"),
        "ignoreFailed": True, "parallelism": 1, "recordIndexParallelism": 4, LOOKS[look]: True,
    }.items():  # fmt: skip
        set_field(config, name, value)
    made = validator(spark.sparkContext._jsc, config)
    fine = made.run()
    said = [text for thrown in made.getThrowables() for text in _told(str(thrown.toString()))]
    # What it says of the whole is more than what it names only where it names nothing at all.
    named = len(made.getThrowables())
    return said if fine or named else ["it failed, and does not say of what"]


def _told(text: str) -> Iterator[str]:
    """A finding; of column statistics a line for each column that differs in a way that is not known."""
    sides = _SIDES.split(text)
    if len(sides) != 3 or "column stats" not in sides[0]:
        yield text[:1000]
        return
    stored, files = ({m[:2]: m[2:] for m in _RANGE.findall(side)} for side in sides[1:])
    for place in sorted(stored.keys() | files.keys()):
        reason = _reason(stored.get(place), files.get(place))
        if reason is not None:
            KNOWN[reason] += 1
        elif stored.get(place) != files.get(place):
            yield f"{place}: {stored.get(place)} in the metadata table, {files.get(place)} in the file"


KNOWN: Counter[str] = Counter()


def _reason(stored: tuple[str, ...] | None, file: tuple[str, ...] | None) -> str | None:
    """Why bounds differ, where that is known; None where they do not, or it is not."""
    if stored is None or file is None or stored == file or stored[2:] != file[2:]:
        return None
    low, high = stored[:2]
    if stored[2] == stored[3] and (low, high) == ("null", "null"):
        return "a column of nulls"
    if low == file[0] and high == "Infinity":
        return "a float's bound"
    if "ByteBuffer" in low and "ByteBuffer" in high:
        return "a decimal"
    if re.fullmatch(r"-?\d+", low) and re.fullmatch(r"[+-]?\d{4,}-\d\d-\d\d", file[0]):
        return "a date"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jar", type=Path)
    parser.add_argument("tables", nargs="+")
    given = parser.parse_args()
    spark = session(str(given.jar.resolve()))
    found = 0
    for table in given.tables:
        said = {look: findings(spark, table, look) for look in LOOKS}
        found += sum(map(len, said.values()))
        print(table, "agrees" if not any(said.values()) else "differs", flush=True)
        for look, lines in said.items():
            for line in lines:
                print(f"  {look}: {line}")
    print(f"{len(given.tables)} tables, {found} differences; known ones: {dict(KNOWN) or 'none'}")
    spark.stop()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
