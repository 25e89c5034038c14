"""Errors that users of tables meet say what to do: by a remedy, or by the file, for which each class has one."""

import ast
from collections.abc import Iterator
from pathlib import Path

from hudi_format import errors

PACKAGES = Path(__file__).parents[1] / "packages"
CLASSES = {name for name, value in vars(errors).items() if isinstance(value, type)}
# Where an error without either is caught by who knows the file, or where it says that the caller is wrong.
OTHERWISE = {
    "bug_capsule/mask_files.py": "caught: what cannot be masked is left out",
    "concurrency/locks/file_system.py": "a lock that is taken twice",
    "concurrency/locks/provider.py": "a lock that is taken twice, or given back without being held",
    "transaction/rollback_guard.py": "caught: it is a part of the error that refuses the rollback",
    "validation/row_rules.py": "bad rows that are asked for where there are none",
}


def without_remedy() -> Iterator[tuple[str, int]]:
    for package in ("hudi_timeline", "hudi_spark"):
        src = PACKAGES / package.replace("_", "-") / "src" / package
        for path in sorted(src.rglob("*.py")):
            inner = path.relative_to(src).as_posix()
            if inner.startswith("testing/"):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                made = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
                # `**`, whose name is None, may have it.
                if made in CLASSES and not {k.arg for k in node.keywords} & {"remedy", "file", None}:
                    yield inner, node.lineno


def test_an_error_says_what_to_do():
    found = list(without_remedy())
    assert [place for place in found if place[0] not in OTHERWISE] == []
    assert {inner for inner, _ in found} == OTHERWISE.keys()
