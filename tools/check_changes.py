"""Changelog fragments have names that towncrier reads: `packages/PACKAGE/changes/ISSUE.KIND.md`, or `+WORD.KIND.md`.

towncrier passes over files of other names, and what they say would be missing from the changelog.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IGNORED = {".gitkeep", "README.md"}


def violations(root: Path = ROOT) -> Iterator[str]:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    kinds = [kind["directory"] for kind in settings["type"]]
    name = re.compile(rf"(?:[0-9]+|\+[a-z0-9-]+)\.(?:{'|'.join(kinds)})(?:\.[0-9]+)?\.md\Z")
    for package in sorted(p.parent for p in (root / "packages").glob("*/pyproject.toml")):
        folder = package / settings["directory"]
        where = folder.relative_to(root)
        if not folder.is_dir():
            yield f"{where}: the folder of fragments is missing"
            continue
        if settings["start_string"].strip() not in (package / settings["filename"]).read_text(
            encoding="utf-8"
        ):
            yield f"{package.relative_to(root)}/{settings['filename']}: has no line {settings['start_string'].strip()}"
        for path in sorted(folder.iterdir()):
            if path.name in IGNORED:
                continue
            if not path.is_file() or not name.match(path.name):
                yield f"{where}/{path.name}: is not named ISSUE.KIND.md or +WORD.KIND.md; kinds are {', '.join(kinds)}"
            elif not path.read_text(encoding="utf-8").strip():
                yield f"{where}/{path.name}: says nothing"


def main() -> int:
    found = list(violations())
    print("\n".join(found) or "changes: every fragment has a name that counts")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
