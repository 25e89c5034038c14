"""Faults of sdists and wheels that are to be released: python tools/check_release.py FOLDER."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

LICENSES = ("LICENSE", "NOTICE")
# Tags that package indexes take.
_TAKEN = re.compile(
    r"-(?:none-any|(?:manylinux_\d+_\d+|musllinux_\d+_\d+|manylinux\d+)_\w+(?:\.\w+)*)\.whl\Z"
)


def of_wheel(path: Path) -> Iterator[str]:
    """What is wrong with a wheel: its tag, licences, sources of Cython in it, extensions that are missing."""
    if not _TAKEN.search(path.name):
        yield "a package index does not take its tag"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    for wanted in LICENSES:
        if not any(n.endswith(f".dist-info/licenses/{wanted}") for n in names):
            yield f"no {wanted}"
    if not any(n.endswith("/py.typed") for n in names):
        yield "no py.typed"
    for name in names:
        if name.endswith((".pyx", ".c", ".pyc")) or name.split("/")[0] in ("tests", "changes"):
            yield f"{name} does not belong there"
    compiled = {n.split(".")[0] for n in names if n.endswith(".so")}
    for stub in (n for n in names if re.search(r"/_[^_/]\w*\.pyi\Z", n)):
        if stub.removesuffix(".pyi") not in compiled and not any(n == stub[:-1] for n in names):
            yield f"{stub} has no extension"


def of_sdist(path: Path) -> Iterator[str]:
    """What is missing in an sdist."""
    with tarfile.open(path) as sdist:
        names = {n.partition("/")[2] for n in sdist.getnames()}
    for wanted in (*LICENSES, "README.md", "pyproject.toml", "PKG-INFO"):
        if wanted not in names:
            yield f"no {wanted}"
    for stub in (n for n in names if re.search(r"/_[^_/]\w*\.pyi\Z", n)):
        if not {stub[:-1], f"{stub[:-1]}x"} & names:
            yield f"{stub} has no source"


def faults(folder: Path) -> list[str]:
    """All faults of a folder's files."""
    found = [f"{p.name}: {fault}" for p in sorted(folder.glob("*.whl")) for fault in of_wheel(p)]
    found += [f"{p.name}: {fault}" for p in sorted(folder.glob("*.tar.gz")) for fault in of_sdist(p)]
    if not any(folder.glob("*.whl")) or not any(folder.glob("*.tar.gz")):
        found.append(f"{folder}: no wheels, or no sdists")
    return found


def main(arguments: list[str]) -> int:
    found = faults(Path(arguments[0]))
    print("\n".join(found) or "release: licences, tags and contents are as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
