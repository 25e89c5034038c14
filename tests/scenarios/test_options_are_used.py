"""An option that is parsed is heeded: each field of a parsed configuration is read by the code that it is for."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import pytest

from hudi_timeline.options.read_config import ReadConfig
from hudi_timeline.options.service_config import CallbackConfig, ServiceConfig
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.write_config import WriteConfig

PACKAGES = Path(__file__).parents[2] / "packages"
CONFIG_ROOM = "hudi_timeline/options/"
# What values of these classes are called where they are read.
NAMES = {"config", "_config", "_options", "c", "asked", "options", "services", "callback"}
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
                # A part of another configuration has its field's name; a `Transaction` is none.
                if name in NAMES or (name == "transaction" and isinstance(of, ast.Attribute)):
                    found.add(node.attr)
    return frozenset(found)


def unread(cls: type) -> list[str]:
    known = read_attributes()
    return [f.name for f in fields(cls) if f.name not in known and f.name not in MEANT]


@pytest.mark.parametrize("cls", [WriteConfig, ReadConfig, ServiceConfig, CallbackConfig, TransactionConfig])
@pytest.mark.sampled(3)
def test_each_parsed_field_is_read(cls):
    assert unread(cls) == []


def test_a_field_that_nothing_reads_is_found():
    @dataclass
    class Made:
        operation: str = ""
        nobody_reads_this: str = ""

    assert unread(Made) == ["nobody_reads_this"]
