from __future__ import annotations

import doctest
from pathlib import Path


def test_the_readmes_example_runs_as_it_stands(tmp_path: Path) -> None:
    readme = Path(__file__).parents[1] / "README.md"
    found = doctest.testfile(str(readme), module_relative=False, globs={"folder": str(tmp_path)})
    assert found.attempted > 10
    assert found.failed == 0
