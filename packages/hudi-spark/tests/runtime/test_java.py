"""Java as PySpark looks for it: what there is of it is told before Spark is started, in one line."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from hudi_format.errors import LibraryError
from hudi_spark.runtime.java import require_java

SCRIPT = """
import os, sys
from pyspark.sql import SparkSession
import hudi_spark
try:
    hudi_spark.configure(SparkSession.builder.master("local[1]")).getOrCreate()
except hudi_spark.HudiError as e:
    print(type(e).__name__, e)
"""


def said(tmp_path, **environment):
    """What a fresh process without Java says, whose PATH has Spark's other needs alone."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "ps"):
        found = next(f for d in os.environ["PATH"].split(os.pathsep) if os.path.exists(f := f"{d}/{name}"))
        (tools / name).symlink_to(found)
    clean = {n: v for n, v in os.environ.items() if not n.startswith(("JAVA", "SPARK", "PYSPARK"))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**clean, "PATH": str(tools), **environment},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("home", [None, "/no/such/java"])
@pytest.mark.one_version
def test_a_machine_without_java_is_told_in_one_line_before_spark_is_started(tmp_path, home):
    lines, noise = said(tmp_path, **({} if home is None else {"JAVA_HOME": home}))
    assert len(lines) == 1, (lines, noise)
    assert lines[0].startswith("LibraryError [HUDI-E0802] ")
    assert (home or "JAVA_HOME is unset, and PATH has no java") in lines[0]
    assert "install Java 17" in lines[0]
    assert noise == ""


@pytest.fixture
def without_java(tmp_path, monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("JAVA_HOME", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LibraryError):
        require_java(SimpleNamespace(_options={}))


def program(folder):
    folder.mkdir(exist_ok=True)
    (folder / "java").write_text("#!/bin/sh\n")
    (folder / "java").chmod(0o755)
    return folder


@pytest.mark.usefixtures("without_java")
def test_java_is_found_on_the_path_and_below_java_home(tmp_path, monkeypatch):
    program(tmp_path / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    require_java(None)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    require_java(None)
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")  # it alone counts where it is set
    with pytest.raises(LibraryError):
        require_java(None)


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize(
    "options", [{"spark.remote": "sc://server:15002"}, {"spark.api.mode": "connect"}], ids=str
)
def test_sessions_on_a_server_need_none(options):
    require_java(SimpleNamespace(_options=options))


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize(
    ("name", "value"), [("SPARK_REMOTE", "sc://server:15002"), ("PYSPARK_GATEWAY_PORT", "4242")]
)
def test_a_spark_that_runs_already_needs_none(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    require_java(SimpleNamespace(_options={}))


@pytest.mark.usefixtures("without_java")
def test_a_script_that_may_set_java_home_is_left_to_spark(tmp_path, monkeypatch):
    (tmp_path / "spark-env.sh").write_text("export JAVA_HOME=/opt/java\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    require_java(None)
