"""Small Java programs of this folder, run against Apache Hudi's bundle and PySpark's jars."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

from interop.bundles import hudi_bundle, jar


def run(program: str, version: str, arguments: Sequence[str] = (), *, prefix: str) -> list[str]:
    """Lines that a program prints after `prefix`, without it.

    Args:
        program: name of the class and its file.
        version: of Apache Hudi's bundle.

    Raises:
        RuntimeError: the program failed; with the end of what it said.
    """
    spark = Path(pyspark.__file__).parent / "jars"
    classes = f"{jar(hudi_bundle(version))}:{spark}/*"
    source = Path(__file__).with_name(f"{program}.java")
    command = ["java", "-Duser.timezone=UTC", "-cp", classes, str(source), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{program} on Apache Hudi {version}: {done.stderr[-2000:]}")
    return [line.removeprefix(prefix) for line in done.stdout.splitlines() if line.startswith(prefix)]
