"""Delete lists of versions 1 and 2, made by Apache Hudi 0.15.0's own classes in a JVM.

    PYTHONPATH=tools python -m interop.kryo_deletes > packages/hudi-format/tests/data/kryo_deletes.txt

Needs Java 17 and PySpark (for Kryo and Avro); Apache Hudi's bundle comes as `bundles` says.
"""

from __future__ import annotations

import sys

from interop.java_source import run


def lines() -> list[str]:
    """`<name> <hex bytes>` for each list."""
    return run("KryoDeletes", "0.15.0", prefix="kryo ")


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
