"""What the documents say of tests: each that they name is there."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_TEST = re.compile(r"`([\w./-]+\.py)::(\w+)`")
_NAME = re.compile(r"[\w.-]+")
DIFFERENCES = ROOT / "docs" / "differences.md"


def test_each_difference_from_apache_hudi_has_a_reason_and_a_test():
    rows = [line for line in DIFFERENCES.read_text().splitlines() if line.startswith("| ")]
    rows = [r for r in rows if not r.startswith(("| Apache Hudi |", "|---"))]
    assert len(rows) > 20
    for row in rows:
        cells = [c.strip() for c in row.strip("|").split(" | ")]
        assert len(cells) == 4, row
        assert all(cells), row
        assert _TEST.search(cells[3]), f"no test holds this: {row}"


@pytest.mark.parametrize("document", [DIFFERENCES, ROOT / "SECURITY.md"], ids=lambda d: d.name)
def test_each_test_that_a_document_names_is_there(document):
    named = _TEST.findall(document.read_text())
    assert named
    for file, test in named:
        assert re.search(rf"^\s*def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"


@pytest.mark.parametrize(
    "document", [DIFFERENCES, ROOT / "SECURITY.md", ROOT / "README.md"], ids=lambda d: d.name
)
def test_each_link_of_a_document_leads_to_a_file(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_each_command_of_contributing_finds_a_test():
    """By the names of tests, and of the cases that are texts in their file, or pages."""
    commands = re.findall(r"`python -m pytest (\S+) -k (\w+)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(commands) >= 3
    for place, word in commands:
        path = ROOT / place
        files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        assert files, place
        names = [] if path.is_file() else [page.stem for page in (ROOT / "docs").rglob("*.md")]
        for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                names.append(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                names.append(node.value)
        assert any(word in name.lower() for name in names), f"{place} -k {word}"


def test_the_environment_of_contributing_has_what_tests_need():
    """The groups of all sessions of tests, hudi-rs for those beside Apache Hudi included."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]

    def of(group):
        return {
            name
            for entry in groups[group]
            for name in (of(entry["include-group"]) if isinstance(entry, dict) else {_NAME.match(entry)[0]})
        }

    (line,) = re.findall(
        r"^\$ pip install (pytest .*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    assert {_NAME.match(word.strip('"'))[0] for word in line.split()} == {
        *of("testing"),
        *of("engines"),
        *of("peers"),
    }


def test_the_rooms_of_the_architecture_are_those_of_the_packages():
    said = (ROOT / "docs" / "architecture.md").read_text().split("## The rooms")[1].split("[glossary.md]")[0]
    found = {
        name.strip(): rooms.split()
        for name, rooms in re.findall(r"^    (\w+)/([^/]+?)(?=\n    \w+/|\Z)", said, re.MULTILINE)
    }
    for package in ("hudi_format", "hudi_index", "hudi_timeline", "hudi_spark"):
        src = ROOT / "packages" / package.replace("_", "-") / "src" / package
        rooms = {p.parent.name for p in src.glob("*/__init__.py")}
        rooms |= {p.stem for p in src.glob("*.py") if not p.stem.startswith("_")}
        assert sorted(found[package]) == sorted(rooms), package
