"""Delete lists of versions 1 and 2, made by Apache Hudi 0.15.0's own classes in a JVM.

    python tools/interop/kryo_deletes.py > packages/hudi-format/tests/data/kryo_deletes.txt

Needs Java 17 and PySpark (for Kryo and Avro); Apache Hudi's bundle comes as `bundles` says.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
from bundles import hudi_bundle, jar


def lines() -> list[str]:
    """`<name> <hex bytes>` for each list."""
    spark = Path(pyspark.__file__).parent / "jars"
    classes = f"{jar(hudi_bundle('0.15.0'))}:{spark}/*"
    source = Path(__file__).with_name("KryoDeletes.java")
    command = ["java", "-Duser.timezone=UTC", "-cp", classes, str(source)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.removeprefix("kryo ") for line in done.stdout.splitlines() if line.startswith("kryo ")]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
