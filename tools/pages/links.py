"""Links of documents, as they are in the repository, turned into links of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("hudi-format", "hudi-index", "hudi-timeline", "hudi-spark")  # in layer order
# A link that is not code: `[text](target#part)`.
_LINK = re.compile(r"(?P<text>\[[^\]]*\])\((?P<target>[^)#\s]+)(?P<part>#[^)\s]*)?\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def mirrored(root: Path = ROOT) -> dict[str, str]:
    """Documents outside of docs/ that the site shows too: path in the repository to path in the site."""
    found = {"SECURITY.md": "security.md", "CONTRIBUTING.md": "contributing.md"}
    found |= {f"packages/{p}/README.md": f"packages/{p}.md" for p in PACKAGES}
    for path in sorted((root / "benchmarks" / "results").glob("*.md")):
        found[f"benchmarks/results/{path.name}"] = f"benchmarks/{path.name}"
    return found


def of_site(text: str, page: str, root: Path = ROOT) -> str:
    """A document's text with the links of its page.

    A link to a file that the site does not show becomes its text alone; one that leads to nothing is left, so that
    the build fails by it.

    Args:
        page: its path in the site.
    """
    shown = mirrored(root)
    home = {site: repository for repository, site in shown.items()}.get(page, f"docs/{page}")

    def turned(match: re.Match[str]) -> str:
        target = match["target"]
        if _ELSEWHERE.match(target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        for candidate in (path, f"{path}/README.md"):
            site = candidate[len("docs/") :] if candidate.startswith("docs/") else shown.get(candidate)
            if site is not None and (root / candidate).is_file():
                link = posixpath.relpath(site, posixpath.dirname(page) or ".")
                return f"{match['text']}({link}{match['part'] or ''})"
        outside = not path.startswith("docs/") and (root / path).exists()
        return match["text"][1:-1] if outside else match[0]

    # Code is left as it is: every second part lies between fences.
    parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(p if n % 2 else _LINK.sub(turned, p) for n, p in enumerate(parts))
