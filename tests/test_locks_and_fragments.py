"""Checks of what sessions install, and of changelog fragments."""

import re
import shutil
from pathlib import Path

import pytest

import check_changes
import lock

ROOT = Path(__file__).parents[1]


def test_lock_files_are_of_what_is_asked_for():
    assert lock.violations() == []


@pytest.mark.parametrize("path", [lock.CONSTRAINTS, lock.LOWEST], ids=lambda p: p.stem)
def test_a_requirement_that_changes_makes_its_lock_file_old(monkeypatch, path):
    wanted = lock.wanted()
    monkeypatch.setattr(lock, "wanted", lambda: {**wanted, path: [*wanted[path], "something>=1"]})
    assert [v.partition(":")[0] for v in lock.violations()] == [f"requirements/{path.name}"]


@pytest.mark.parametrize("path", sorted(lock.wanted()), ids=lambda p: p.stem)
def test_each_requirement_has_one_version_and_no_address(path):
    text = path.read_text()
    assert "://" not in text
    for requirement in lock.wanted()[path]:
        name = re.match(r"[\w-]+", requirement)[0]
        assert lock.pinned(name.lower(), path)


def test_the_lowest_versions_are_those_that_are_declared():
    for requirement in lock.lowest():
        assert lock.pinned(requirement.partition("==")[0], lock.LOWEST).startswith(requirement)


@pytest.fixture
def tree(tmp_path):
    """A repository of one package without fragments."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "packages" / "a"
    (package / "changes").mkdir(parents=True)
    (package / "pyproject.toml").touch()
    (package / "CHANGELOG.md").write_text("# Changelog\n\n<!-- releases -->\n")
    return tmp_path


@pytest.mark.parametrize("name", [".gitkeep", "214.fixed.md", "214.fixed.2.md", "+memory.changed.md"])
def test_fragments_that_towncrier_reads_are_let_through(tree, name):
    (tree / "packages/a/changes" / name).write_text("Something is better.\n")
    assert list(check_changes.violations(tree)) == []


@pytest.mark.parametrize(
    "name", ["214.md", "214.bugfix.md", "fixed.md", "214.fixed.rst", "memory.fixed.md", "notes.txt"]
)
def test_fragments_that_would_be_missing_from_the_changelog_are_named(tree, name):
    (tree / "packages/a/changes" / name).write_text("Something is better.\n")
    assert [v.partition(":")[0] for v in check_changes.violations(tree)] == [f"packages/a/changes/{name}"]


def test_what_is_missing_is_named(tree):
    (tree / "packages/a/changes/1.fixed.md").touch()
    assert list(check_changes.violations(tree)) == ["packages/a/changes/1.fixed.md: says nothing"]
    shutil.rmtree(tree / "packages/a/changes")
    (tree / "packages/a/CHANGELOG.md").write_text("# Changelog\n")
    assert list(check_changes.violations(tree)) == ["packages/a/changes: the folder of fragments is missing"]
