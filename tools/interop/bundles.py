"""Jars of other engines, from Maven Central, kept in the user's cache.

No repository is named here: Maven is asked where it is installed, else the Ivy that PySpark brings, and both
use the repository and proxy settings of the machine.  One jar each, without what it depends on: the bundles
are shaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_IVY_SCRIPT = """
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.jars.ivy", sys.argv[2])
    .getOrCreate()
)
spark.sql(f"ADD JAR 'ivy://{sys.argv[1]}?transitive=false'")
spark.stop()
"""


class BundleError(RuntimeError):
    """A jar could not be had; the message says what was tried."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One jar, by its Maven coordinates."""

    group: str
    name: str
    version: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


def hudi_bundle(version: str) -> Artifact:
    """The bundle of Apache Hudi for Spark 3.5 and Scala 2.12."""
    return Artifact("org.apache.hudi", "hudi-spark3.5-bundle_2.12", version)


DELTA_JARS = (
    Artifact("io.delta", "delta-spark_2.12", "3.3.2"),
    Artifact("io.delta", "delta-storage", "3.3.2"),
)


def cache_folder() -> Path:
    """Where jars are kept: `hudi-python/jars` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "hudi-python" / "jars"


def jar(artifact: Artifact) -> Path:
    """The path of an artifact's jar, which is fetched where it is not in the cache.

    Raises:
        BundleError: neither Maven nor PySpark's Ivy could get it.
    """
    target = cache_folder() / artifact.file_name
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    tried = []
    for what, get in (("the local Maven repository", _local), ("mvn", _maven), ("PySpark's Ivy", _ivy)):
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".get-") as scratch:
            try:
                found = get(artifact, Path(scratch))
            except BundleError as e:
                tried.append(f"{what}: {e}")
                continue
            # A rename within one folder: another process sees the whole jar or none.
            part = Path(scratch) / "whole.jar"
            shutil.copyfile(found, part)
            part.replace(target)
            return target
    raise BundleError(
        f"cannot get {artifact.coordinates}. " + "; ".join(tried) + f". Put the jar at {target}, or set up "
        "Maven or Ivy to reach a repository that has it."
    )


def _local(artifact: Artifact, _: Path) -> Path:
    """The jar in Maven's default local repository."""
    folder = Path.home() / ".m2" / "repository" / artifact.group.replace(".", "/")
    path = folder / artifact.name / artifact.version / artifact.file_name
    if not path.is_file():
        raise BundleError("not there")
    return path


def _maven(artifact: Artifact, scratch: Path) -> Path:
    """The jar as Maven resolves it: `dependency:copy` gets one artifact and nothing it depends on."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise BundleError("not installed")
    _run([mvn, "-q", "-B", "dependency:copy", f"-Dartifact={artifact.coordinates}",
          f"-DoutputDirectory={scratch}"], cwd=scratch)  # fmt: skip
    return _only_jar(scratch)


def _ivy(artifact: Artifact, scratch: Path) -> Path:
    """The jar as PySpark's `ADD JAR ivy://` resolves it."""
    _run([sys.executable, "-c", _IVY_SCRIPT, artifact.coordinates, str(scratch)], cwd=scratch)
    return _only_jar(scratch / "jars")


def _run(command: list[str], cwd: Path) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1200, check=False)
    except subprocess.TimeoutExpired as e:
        raise BundleError(f"no answer in {e.timeout:.0f} s") from None
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        telling = [line for line in lines if "ERROR" in line or "Error" in line or "Exception" in line]
        raise BundleError((telling or lines or [f"exit code {done.returncode}"])[0][:300])


def _only_jar(folder: Path) -> Path:
    found = sorted(folder.glob("*.jar"))
    if len(found) != 1:
        raise BundleError(f"gave {len(found)} jars")
    return found[0]


def main() -> None:
    """Fetch everything that tests and benchmarks need, and say where it lies."""
    for artifact in (hudi_bundle("0.15.0"), hudi_bundle("1.0.2"), *DELTA_JARS):
        print(jar(artifact))


if __name__ == "__main__":
    main()
