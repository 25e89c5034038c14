"""The reference of public names, which mkdocstrings makes of the sources' docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

from pages.links import PACKAGES, ROOT


def public(package: str, root: Path = ROOT) -> dict[str, str]:
    """The public names of a package's root, with the places where they are defined; errors have pages "
    "of their own."""
    module = package.replace("-", "_")
    stub = root / "packages" / package / "src" / module / "__init__.pyi"
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        alias.asname: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "hudi_format.errors"
        for alias in node.names
        if alias.asname is not None
    }


def page(package: str, root: Path = ROOT) -> str:
    """The page of a package's public names."""
    module = package.replace("-", "_")
    parts = [
        f"# {module}",
        f"What `{module}` exports; all of it is public, and everything else may move. Its "
        "[errors](../errors/index.md) have pages "
        "of their own.",
    ]
    for name, place in public(package, root).items():
        parts += [f"## {module}.{name}", f"::: {place}"]
    return "\n\n".join(parts) + "\n"


def pages(root: Path = ROOT) -> dict[str, str]:
    """The pages of all packages."""
    return {f"reference/{p.replace('-', '_')}.md": page(p, root) for p in PACKAGES}
