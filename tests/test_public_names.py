"""The names at the roots of the packages, which are what is public of them."""

import ast
import importlib
from pathlib import Path

import pytest

from hudi_format import errors
from hudi_format._lazy import ERRORS

PACKAGES = Path(__file__).parents[1] / "packages"
ROOTS = ("hudi_format", "hudi_index", "hudi_timeline", "hudi_spark")


@pytest.mark.parametrize("root", ROOTS)
def test_each_public_name_is_there_and_known_to_type_checkers(root):
    module = importlib.import_module(root)
    for name in module.__all__:
        assert getattr(module, name) is not None
    stub = PACKAGES / root.replace("_", "-") / "src" / root / "__init__.pyi"
    imports = [n for n in ast.parse(stub.read_text()).body if isinstance(n, ast.ImportFrom)]
    stars = [n.module for n in imports if n.names[0].name == "*"]
    assert stars in ([], ["hudi_format.errors"])
    known = {a.asname for n in imports for a in n.names if a.name != "*"}
    assert known | {"__version__"} | (set(ERRORS) if stars else set()) == set(module.__all__)


@pytest.mark.parametrize("root", [r for r in ROOTS if r != "hudi_index"])
def test_errors_are_public_where_they_are_met(root):
    known = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, errors.HudiError)}
    assert known <= set(importlib.import_module(root).__all__)
