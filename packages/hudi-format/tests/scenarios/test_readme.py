from __future__ import annotations

import doctest
import tempfile
from pathlib import Path

import pytest


def test_the_readmes_example_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    readme = Path(__file__).parents[2] / "README.md"
    found = doctest.testfile(str(readme), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0
