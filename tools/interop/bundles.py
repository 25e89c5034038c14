"""Jars of other engines, from Maven Central, kept in the user's cache.

No repository is named here: Maven is asked where it is installed, else the Ivy that PySpark brings, and both
use the repository and proxy settings of the machine.  One jar each, without what it depends on: the bundles
are shaded.

    python bundles.py [VERSION OF APACHE HUDI ...]    fetch these; by default all that tests and benchmarks need
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


_LONGEST_S = 900  # for one jar of 100 MB
_ATTEMPTS = 3  # a repository does not answer each time


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


VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
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
    if _whole(target):
        return target
    if artifact in _missed:
        raise BundleError(_missed[artifact])
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent):
        # Another process may have fetched it meanwhile.
        return target if _whole(target) else _fetch(artifact, target)


_missed: dict[Artifact, str] = {}  # what this process could not get: it is not tried again for each test


def _fetch(artifact: Artifact, target: Path) -> Path:
    tried = []
    network = (("mvn", _maven), ("PySpark's Ivy", _ivy))
    for what, get in (("the local Maven repository", _local), *network * _ATTEMPTS):
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".get-") as scratch:
            try:
                found = get(artifact, Path(scratch))
                if not _whole(found):
                    raise BundleError("gave a part of the jar")
            except BundleError as e:
                tried.append(f"{what}: {e}")
                continue
            # A rename within one folder: another process sees the whole jar or none.
            part = Path(scratch) / "whole.jar"
            shutil.copyfile(found, part)
            part.replace(target)
            return target
    tried = list(dict.fromkeys(tried))
    _missed[artifact] = (
        f"cannot get {artifact.coordinates}. " + "; ".join(tried) + f". Put the jar at {target}, or set up "
        "Maven or Ivy to reach a repository that has it."
    )
    raise BundleError(_missed[artifact])


def _whole(path: Path) -> bool:
    """Whether a jar is there to its end, where its directory stands."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While one process fetches, others wait, as they need the same jars; each attempt of the first has an end."""
    with (folder / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
    # Output to a file, and a session of its own: a JVM that goes on would keep a pipe open.
    with (cwd / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired as e:
            raise BundleError(f"no answer in {e.timeout:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
    if code != 0:
        said = (cwd / "log.txt").read_text(errors="replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        telling = [line for line in lines if "ERROR" in line or "Error" in line or "Exception" in line]
        raise BundleError((telling or lines or [f"exit code {code}"])[0][:300])


def _only_jar(folder: Path) -> Path:
    found = sorted(folder.glob("*.jar"))
    if len(found) != 1:
        raise BundleError(f"gave {len(found)} jars")
    return found[0]


def main() -> None:
    """Fetch what is asked for, or everything that tests and benchmarks need, and say where it lies."""
    wanted = [hudi_bundle(version) for version in sys.argv[1:]]
    try:
        for artifact in wanted or [*map(hudi_bundle, VERSIONS), *DELTA_JARS]:
            print(jar(artifact))
    except BundleError as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
