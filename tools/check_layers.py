"""Imports go leftward: hudi_format <- hudi_index <- hudi_timeline <- hudi_spark, and pyspark only in the last.

Read from the sources, so that Cython modules and indented imports count too.  Also: `__init__.py` holds names
only, and a module has at most 600 lines.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ORDER = ("hudi_format", "hudi_index", "hudi_timeline", "hudi_spark")
# At any indentation: an import moved into a function is still an import.
IMPORT = re.compile(r"^\s*(?:from|c?import)\s+(hudi_\w+|pyspark\w*)", re.MULTILINE)
MOST_LINES = 600


def violations(root: Path) -> list[str]:
    found = []
    for package in ORDER:
        refused = {*ORDER[ORDER.index(package) + 1 :]}
        if package != "hudi_spark":
            refused |= {"pyspark", "pyspark_hudi"}
        src = root / "packages" / package.replace("_", "-") / "src"
        for path in sorted(src.rglob("*.p*")):
            if path.suffix not in {".py", ".pyx", ".pxd", ".pyi"}:
                continue
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(root)
            found += [f"{name}: {package} imports {m[1]}" for m in IMPORT.finditer(text) if m[1] in refused]
            lines = text.count("\n")
            if lines > MOST_LINES:
                found.append(f"{name}: {lines} lines; past {MOST_LINES} a module has two subjects")
            if path.name == "__init__.py" and re.search(r"^(?:def|class|for|if|while)\b", text, re.MULTILINE) \
                    and path.parent.name != "pyspark_hudi":  # fmt: skip
                found.append(f"{name}: __init__ holds names only")
    return found


def main() -> int:
    found = violations(Path(__file__).resolve().parent.parent)
    print("\n".join(found) or "layers: every import goes leftward")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
