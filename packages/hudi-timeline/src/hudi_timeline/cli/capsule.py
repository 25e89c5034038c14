"""Command `hudi capsule`: table metadata for a bug report, without data."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

import typer

from hudi_timeline.cli.output import Format, StorageOptions, check_new, open_table, pairs, show_facts

Words = Annotated[
    list[str],
    typer.Argument(
        help="The table's path or URL; or: open FILE.zip DIR.", metavar="PATH", show_default=False
    ),
]


def capsule(
    words: Words,
    out: Annotated[FilePath | None, typer.Option("--out", "-o", help="The ZIP file to make.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", help="An option of the call that went wrong; may be repeated.", metavar="NAME=VALUE"
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--output", help="How to print.")] = Format.table,
    storage: StorageOptions = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a table's metadata to one file for a bug report; values and keys are hashed.

    Contains the timeline, footers and the listing.

    `hudi capsule open FILE.zip DIR` rebuilds the table's state from it.
    """
    from hudi_timeline.bug_capsule.make import make_capsule
    from hudi_timeline.bug_capsule.open import open_capsule

    if words[0] == "open" and len(words) == 3 and out is None:
        manifest = open_capsule(words[1], words[2])
        facts = {"table": words[2], "files": len(manifest["files"]), "left out": manifest["left_out"]}
        show_facts({**facts, "options": [f"{k}={v}" for k, v in manifest["options"].items()]}, output)
        return
    if len(words) != 1 or out is None:
        raise typer.BadParameter("give PATH -o FILE.zip, or open FILE.zip DIR")
    check_new(out, force=force)
    table = open_table(words[0], storage)
    made = make_capsule(table.storage, out, options=pairs(option))
    show_facts(
        {
            "capsule": str(made.path),
            "files": made.files,
            "bytes": made.bytes,
            "left out": list(made.left_out),
        },
        output,
    )
