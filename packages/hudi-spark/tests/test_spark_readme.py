import doctest
from pathlib import Path

import pytest


@pytest.mark.spark
def test_the_readme_s_examples_run_as_they_stand(spark, tmp_path):
    readme = Path(__file__).parents[1] / "README.md"
    found = doctest.testfile(str(readme), module_relative=False, globs={"path": str(tmp_path / "trips")})
    assert found.attempted > 10
    assert found.failed == 0
