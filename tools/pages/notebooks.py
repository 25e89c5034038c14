"""The pages of the tutorial notebooks: run when the site is built, so that their outputs are those of "
"this version."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from traitlets.config import Config

from pages.links import ROOT

FOLDER = ROOT / "docs" / "notebooks"
LONGEST_S = 120  # of one cell
HOME = "/home/me"  # what pages call the folder in which a notebook runs


def executed(path: Path) -> Any:
    """A notebook after its cells have run, in an empty folder of their own.

    Raises:
        CellExecutionError: of the first cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # Sockets of that folder: no port is opened.
        sockets = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        # How far a write got is shown by the clock, which is another one each time.
        given = {**os.environ, "HUDI_PROGRESS": "false", "IPYTHONDIR": folder}
        client = NotebookClient(notebook, config=sockets, kernel_name="python3", timeout=LONGEST_S)
        with client.setup_kernel(cwd=folder, env=given):
            for number, cell in enumerate(notebook.cells):
                client.execute_cell(cell, number)
        text = nbformat.writes(notebook).replace(folder, HOME)
    return nbformat.reads(text, as_version=4)


def pages(folder: Path = FOLDER) -> dict[str, str | bytes]:
    """The page of each notebook, with the files that its outputs need."""
    found: dict[str, str | bytes] = {}
    for path in sorted(folder.glob("*.ipynb")):
        resources = {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
        text, made = MarkdownExporter().from_notebook_node(executed(path), resources=resources)
        source = f"[The notebook itself]({path.name}){{ download }}; what is below it printed when this page was made."
        title, _, rest = text.lstrip().partition("\n")
        found[f"notebooks/{path.stem}.md"] = f"{title}\n\n{source}\n{rest}"
        for name, content in made.get("outputs", {}).items():
            found[f"notebooks/{name}"] = content
    return found
