"""One table through all operations, with a copy of its state after each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from interop.samples import Model, Rows, Shape

# Operation after operation; each row of a state's table was written by one of those before it.
STEPS = (
    "bulk_insert",
    "insert",
    "upsert",
    "delete",
    "insert_overwrite",
    "delete_partition",
    "upsert again",
    "insert_overwrite_table",
)


@dataclass(frozen=True)
class State:
    """A copy of a table, what it must hold, and the instant of its last commit."""

    path: Path
    want: pa.Table
    instant: str


Write = Callable[[Path, str, pa.Table, Sequence[str]], None]


def states(shape: Shape, folder: Path, write: Write) -> dict[str, State]:
    """Take a new table in `folder` through all steps; a copy of it after each.

    Args:
        write: of (path, operation, rows, partition paths); makes the table where it is not there.
    """
    rows, model = Rows(shape, null_elements=True), Model(shape)
    path = folder / "table"
    out: dict[str, State] = {}
    for step in STEPS:
        operation, partitions = step.partition(" ")[0], list[str]()
        current = list(model.rows.values())
        match operation:
            case "upsert":
                given = rows.changed(current, min(7, len(current))) + rows.new(5)
            case "delete":
                given = rows.some(current, 6)
            case "insert_overwrite":
                given = [r | {"city": current[0]["city"]} for r in rows.new(4)]
            case "delete_partition":
                given, partitions = [], [shape.path_of(current[-1])]
            case _:
                given = rows.new(18)
        if operation == "delete_partition" and not shape.partitions:
            continue
        write(path, operation, pa.Table.from_pylist(given, schema=shape.schema), partitions)
        model.apply(operation, given, partitions)
        copy = folder / step.replace(" ", "_")
        shutil.copytree(path, copy)
        out[step] = State(copy, model.table(), _last_instant(path))
    return out


def possible(shape: Shape) -> list[str]:
    """The steps that a table of the shape can take."""
    return [step for step in STEPS if shape.partitions or step != "delete_partition"]


def _last_instant(path: Path) -> str:
    names = [p.name.partition(".") for p in (path / ".hoodie").iterdir() if p.is_file()]
    return max(time for time, _, end in names if end in ("commit", "replacecommit"))
