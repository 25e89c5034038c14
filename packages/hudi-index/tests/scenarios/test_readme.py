import doctest
from pathlib import Path


def test_the_readmes_example_gives_what_it_says():
    readme = Path(__file__).parents[2] / "README.md"
    result = doctest.testfile(str(readme), module_relative=False, encoding="utf-8")
    assert result.attempted > 8
    assert result.failed == 0
