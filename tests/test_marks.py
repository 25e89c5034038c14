"""Marks of tests: requirement rows that there are, and files that suites leave out or put first by name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = {line.split()[0] for line in (ROOT / "tests" / "requirement_rows.txt").read_text().splitlines()}
SUITES = [ROOT / "packages" / "hudi-spark" / "tests", ROOT / "tests" / "interop"]


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for folder in (*sorted(ROOT.glob("packages/*/tests")), ROOT / "tests"):
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if ".mark." in text:
                yield path.relative_to(ROOT), ast.parse(text)


def marks(module: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
            yield node


def test_rows_are_named_once_and_in_one_form():
    named = [line.split()[0] for line in (ROOT / "tests" / "requirement_rows.txt").read_text().splitlines()]
    assert len(named) == len(set(named))
    assert not [n for n in named if not re.fullmatch(r"([A-Z]{2}|NEW)-\d{2}", n)]


def test_each_mark_names_rows_that_there_are():
    wrong, seen = [], 0
    for path, module in sources():
        for mark in marks(module):
            seen += 1
            named = [a.value if isinstance(a, ast.Constant) else ast.unparse(a) for a in mark.args]
            if mark.keywords or not named or len(named) != len(set(named)) or set(named) - ROWS:
                wrong.append(f"{path}:{mark.lineno}: {named}")
    assert not wrong
    assert seen > 500


def test_each_mark_is_on_a_test_or_on_all_of_a_file():
    """A mark on a fixture or a helper would prove nothing."""
    for path, module in sources():
        held = set()
        for node in ast.walk(module):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name.lower().startswith("test"):
                held |= {id(m) for d in node.decorator_list for m in marks(ast.Module([ast.Expr(d)], []))}
            elif isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["pytestmark"]:
                held |= {id(m) for m in marks(ast.Module([node], []))}
        assert [f"{path}:{m.lineno}" for m in marks(module) if id(m) not in held] == []


@pytest.mark.parametrize("suite", SUITES, ids=lambda s: s.relative_to(ROOT).as_posix())
def test_files_that_a_suite_names_are_there(suite):
    """`ONE_OF` and `LONGEST` say which cases CI does, and which files go first."""
    there = {p.stem for p in suite.rglob("test_*.py")}
    tests = "\n".join(p.read_text() for p in suite.rglob("test_*.py"))
    named = {}
    for node in ast.parse((suite / "conftest.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("ONE_OF", "LONGEST", "ONE_VERSION"):
                named[name] = set(ast.literal_eval(node.value))
    assert named["ONE_OF"] <= there
    assert named.get("LONGEST", set()) <= there
    assert {n for n in named.get("ONE_VERSION", ()) if f"def {n}(" not in tests} == set()
