"""Arguments that the commands share, and what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_format.storage import Storage, open_storage
from hudi_timeline.cli.output import Format
from hudi_timeline.table import HudiTable

Path = Annotated[str, typer.Argument(help="The table's path or URL.", metavar="PATH", show_default=False)]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print.")]
STORAGE_HELP = "A storage option, e.g. endpoint_url=http://localhost:9000; may be repeated."
StorageOptions = Annotated[
    list[str] | None, typer.Option("--storage-option", help=STORAGE_HELP, metavar="NAME=VALUE")
]


def open_table(path: str, storage: list[str] | None, options: list[str] | None = None) -> HudiTable:
    """The table that a command is about; `storage` and `options` are NAME=VALUE."""
    return HudiTable.open(path, storage_options=pairs(storage), options=pairs(options))


def table_storage(path: str, storage: list[str] | None) -> Storage:
    """The storage of a table that may be in no state to be opened."""
    return open_storage(path, pairs(storage))


def pairs(given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
        found[name] = value
    return found
