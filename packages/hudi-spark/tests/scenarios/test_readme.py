import doctest
import re
from pathlib import Path

import pytest


@pytest.mark.spark
@pytest.mark.one_version
def test_the_readme_s_examples_run_as_they_stand(spark, tmp_path):
    readme = Path(__file__).parents[2] / "README.md"
    found = doctest.testfile(str(readme), module_relative=False, globs={"path": str(tmp_path / "trips")})
    assert found.attempted > 10
    assert found.failed == 0


@pytest.mark.spark
def test_the_first_page_s_snippet_runs_as_it_stands(spark, tmp_path):
    readme = Path(__file__).parents[4] / "README.md"
    text = re.findall(r"^```python\n(.*?)^```", readme.read_text(), re.MULTILINE | re.DOTALL)[0]
    frame = spark.createDataFrame([("a", "oslo", 1), ("b", "pune", 1)], "uuid string, city string, ts long")
    names = {"df": frame, "path": str(tmp_path / "trips")}
    # The session of the tests, which the builder would give too.
    text = text.replace('SparkSession.builder.master("local[*]")', "SparkSession.builder")
    exec(compile(text, "README.md", "exec"), names)
    assert names["spark"].read.format("hudi").load(names["path"]).count() == 2
