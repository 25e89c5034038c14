"""An option that is parsed is heeded: each field of a parsed configuration is read by the code that it is for."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from hudi_timeline.options.config_key import ConfigKey, given_value, keys_of
from hudi_timeline.options.option_types import TEXT

PACKAGES = Path(__file__).parents[2] / "packages"
CONFIG_ROOM = "hudi_timeline/options/"
# What values of these classes are called where they are read.
NAMES = {
    "config",
    "_config",
    "_options",
    "c",
    "asked",
    "options",
    "services",
    "callback",
    "settings",
    "indexes",
}
PARTS = {"transaction", "compaction"}
MEANT = {"drop_duplicates": "it is the policy `drop` of `duplicate_policy` once the options are parsed"}


def sources() -> Iterator[ast.Module]:
    for file in sorted(PACKAGES.glob("*/src/**/*.py")):
        if CONFIG_ROOM not in file.as_posix():
            yield ast.parse(file.read_text())


@cache
def read_attributes() -> frozenset[str]:
    """Attributes that are read of something with one of `NAMES`."""
    found = set()
    for module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                of = node.value
                name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
                # A part of another configuration has its field's name; a `Transaction` is none, nor is a module.
                if name in NAMES or (name in PARTS and isinstance(of, ast.Attribute)):
                    found.add(node.attr)
    return frozenset(found)


def configurations() -> list[type]:
    """Classes with the parsed values of options: those in the room of options whose fields are bound to one."""
    found = []
    for file in sorted(PACKAGES.glob("hudi-timeline/src/hudi_timeline/options/*.py")):
        module = import_module(f"hudi_timeline.options.{file.stem}")
        classes = [
            c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__
        ]
        found += [c for c in classes if is_dataclass(c) and keys_of(c)]
    return found


def derived(cls: type) -> dict[str, set[str]]:
    """Fields that each of its properties is made of, and of those that it has from another."""
    trees = [ast.parse(textwrap.dedent(inspect.getsource(c))).body[0] for c in cls.__mro__ if is_dataclass(c)]
    return {
        node.name: {
            a.attr for a in ast.walk(node) if isinstance(a, ast.Attribute) and ast.unparse(a.value) == "self"
        }
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def unread(cls: type) -> list[str]:
    known = {*read_attributes(), *MEANT}
    for name, made_of in derived(cls).items():
        if name in known:
            known |= made_of
    return [f.name for f in fields(cls) if f.name not in known]


@pytest.mark.parametrize("cls", configurations(), ids=lambda c: c.__name__)
@pytest.mark.sampled(3)
def test_each_parsed_field_is_read(cls):
    assert unread(cls) == []


def test_all_configurations_are_looked_at():
    names = {c.__name__ for c in configurations()}
    assert names >= {
        "CompactionConfig",
        "FileConfig",
        "IndexConfig",
        "LockConfig",
        "ReadConfig",
        "TransactionConfig",
        "WriteConfig",
    }


def test_a_field_that_nothing_reads_is_found():
    @dataclass
    class Made:
        operation: str = ""
        nobody_reads_this: str = given_value(ConfigKey("hoodie.made.up", TEXT))
        only_another_reads: str = ""

        @property
        def nobody_asks(self) -> str:
            return self.only_another_reads

        @property
        def table_type(self) -> str:
            return self.operation

    assert unread(Made) == ["nobody_reads_this", "only_another_reads"]
