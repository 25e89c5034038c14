"""Sibling pins are ranges that hold the siblings' own versions."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"(hudi-\w+)(?:\[[\w,-]+\])?>=(\d+)\.(\d+),<(\d+)\.(\d+)\Z")


def versions() -> dict[str, tuple[int, int]]:
    out = {}
    for folder in sorted(p.parent for p in (ROOT / "packages").glob("*/pyproject.toml")):
        init = folder / "src" / folder.name.replace("-", "_") / "__init__.py"
        match = re.search(r'^__version__ = "(\d+)\.(\d+)', init.read_text(encoding="utf-8"), re.MULTILINE)
        if match is None:
            raise SystemExit(f"{init}: no __version__")
        out[folder.name] = int(match[1]), int(match[2])
    return out


def violations() -> list[str]:
    current = versions()
    found = []
    for package in current:
        project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8"))
        extras = project["project"].get("optional-dependencies", {})
        for dependency in (*project["project"]["dependencies"], *(d for e in extras.values() for d in e)):
            name = re.match(r"[\w-]+", dependency)
            if name is None or name[0] not in current:
                continue
            pin = PIN.match(dependency)
            if pin is None:
                found.append(f"{package}: {dependency!r} is not a range of a minor version")
                continue
            low, high = (int(pin[2]), int(pin[3])), (int(pin[4]), int(pin[5]))
            if not low <= current[pin[1]] < high:
                found.append(f"{package}: {dependency!r} leaves out {pin[1]} {current[pin[1]]}")
    return found


def main() -> int:
    found = violations()
    print("\n".join(found) or "pins: every sibling is in its range")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
