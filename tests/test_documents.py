"""What the documents say of tests: each that they name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_TEST = re.compile(r"`([\w./-]+\.py)::(\w+)`")
DIFFERENCES = ROOT / "docs" / "differences.md"


def test_each_difference_from_apache_hudi_has_a_reason_and_a_test():
    rows = [line for line in DIFFERENCES.read_text().splitlines() if line.startswith("| ")]
    rows = [r for r in rows if not r.startswith(("| Apache Hudi |", "|---"))]
    assert len(rows) > 20
    for row in rows:
        cells = [c.strip() for c in row.strip("|").split(" | ")]
        assert len(cells) == 4, row
        assert all(cells), row
        assert _TEST.search(cells[3]), f"no test holds this: {row}"


@pytest.mark.parametrize("document", [DIFFERENCES, ROOT / "SECURITY.md"], ids=lambda d: d.name)
def test_each_test_that_a_document_names_is_there(document):
    named = _TEST.findall(document.read_text())
    assert named
    for file, test in named:
        assert re.search(rf"^\s*def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"


@pytest.mark.parametrize(
    "document", [DIFFERENCES, ROOT / "SECURITY.md", ROOT / "README.md"], ids=lambda d: d.name
)
def test_each_link_of_a_document_leads_to_a_file(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target
