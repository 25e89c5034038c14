"""The table of extras, made of the packages' metadata."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pages.links import PACKAGES, ROOT

MARK = "<!-- extras -->"
# What each is for; a name without a line here has no row, which a test notices.
FOR = {
    "s3": "tables on S3 and on stores that speak its protocol",
    "gcs": "tables on Google Cloud Storage",
    "azure": "tables on Azure",
    "pandas": "`to_pandas()`, and rows from pandas",
    "polars": "`to_polars()`, `scan_hudi()`, and rows from Polars",
    "duckdb": "`to_duckdb()`",
    "sql": "SQL validators and rules of writes without a JVM",
    "plot": "`table.plot`",
    "notebook": "notebooks: a kernel, plots, frames",
    "zookeeper": "locks in ZooKeeper",
    "dynamodb": "locks in DynamoDB",
}


def extras(root: Path = ROOT) -> dict[str, dict[str, list[str]]]:
    """What each extra brings, by its name and package."""
    found: dict[str, dict[str, list[str]]] = {}
    for package in PACKAGES:
        text = (root / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
        for name, brings in tomllib.loads(text)["project"].get("optional-dependencies", {}).items():
            found.setdefault(name, {})[package] = brings
    return found


def table(root: Path = ROOT) -> str:
    """The rows: extra, purpose, packages that have it."""
    rows = [f"| `{n}` | {FOR[n]} | {', '.join(of)} |" for n, of in extras(root).items()]
    return "\n".join(["| extra | for | of |", "|---|---|---|", *rows])
