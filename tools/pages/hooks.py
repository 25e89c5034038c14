"""What mkdocs calls while it builds the site: pages made of the code, and links of documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mkdocs.structure.files import File

from pages import api, commands, errors, extras, findings, links, notebooks, options


def generated() -> dict[str, str | bytes]:
    """Pages that are no files of docs/, by their path in the site."""
    return {
        "reference/options.md": options.reference(),
        "reference/options-refused.md": options.refused(),
        "reference/options-without-effect.md": options.without_effect(),
        "reference/findings.md": findings.reference(),
        "reference/command-line.md": commands.reference(),
        **api.pages(),
        **errors.pages(),
        **notebooks.pages(),
        **{
            site: (links.ROOT / repository).read_text(encoding="utf-8")
            for repository, site in links.mirrored().items()
        },
    }


def on_files(files: Any, config: Any) -> Any:
    """The files of the site, with those that are made now."""
    for path, content in generated().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A page's text, with links of the site."""
    return links.of_site(markdown.replace(extras.MARK, extras.table()), page.file.src_uri)
