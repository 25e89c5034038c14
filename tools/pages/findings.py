"""The list of what `hudi verify` can find, made of its kinds."""

from __future__ import annotations

from hudi_timeline.verify.findings import KINDS
from pages.options import text_of


def reference() -> str:
    """The page of all findings."""
    rows = [
        f"| `{code}` | {kind.severity.value} | {'yes' if kind.repairable else ''} | {text_of(kind.remedy)} |"
        for code, kind in sorted(KINDS.items())
    ]
    return "\n".join(
        [
            "# Findings of verify",
            "",
            "What `hudi verify PATH` and `HudiTable.verify()` can find. An `error`: some reader or "
            "writer fails, or gives wrong rows. A "
            "`warning`: nothing is wrong yet, and a later operation may go wrong by it, or an older "
            "state cannot be read. An `info`: a "
            "leftover that nobody reads.",
            "",
            "| finding | severity | `hudi repair` can mend it | what to do |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
