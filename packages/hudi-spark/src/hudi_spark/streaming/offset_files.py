"""Offset files: announce commits to PySpark 3.5's file source of a stream.

That version of Spark lets no Python package be a stream's source.  But its own file source follows a folder, exactly
once and across restarts.  So a folder gets one small file for each step forward of the table, whose name says which
changes it stands for, `<stream>_<begin>_<end>.hudi`; the rows are read from the table by the tasks.

What was given out lies in the query's checkpoint, in the log of the file source.  From there a restart learns where to
go on, and which files of unfinished batches it must make again, so that the folder itself may be lost.

Source: Spark's FileStreamSource, FileStreamSourceLog and CommitLog, whose files are those of a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from hudi_format.errors import CorruptFileError
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage

_NAME = re.compile(r"([0-9a-f]{12})_(\d+)_(\d+)\.hudi\Z")
ERROR = "error: "
_BATCH = re.compile(r"(\d+)(\.compact)?\Z")


@dataclass(frozen=True, slots=True)
class OffsetFile:
    """Changes of one stream in (begin, end]."""

    stream: str
    begin: str
    end: str

    @property
    def name(self) -> str:
        return f"{self.stream}_{self.begin}_{self.end}.hudi"

    @classmethod
    def parse(cls, name: str) -> OffsetFile | None:
        match = _NAME.match(name)
        return None if match is None else cls(*match.groups())


def stream_id(uri: str, format: str) -> str:
    """Id of a stream in its offset files, stable across restarts."""
    return hashlib.sha256(f"{format}\n{uri}".encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class IssuedOffsets:
    """One file in the log of a file source."""

    source: str
    batch: int
    path: str
    marker: OffsetFile


def given_out(checkpoint: Storage) -> Iterator[IssuedOffsets]:
    """Offset files issued according to a query's checkpoint.

    Raises:
        CorruptFileError: a log of the checkpoint that cannot be read.
    """
    for source in checkpoint.list("sources"):
        if not source.is_dir:
            continue
        folder = f"sources/{source.name}"
        for entry in checkpoint.list(folder):
            if entry.is_dir or _BATCH.match(entry.name) is None:
                continue
            path = f"{folder}/{entry.name}"
            for line in checkpoint.read(path).decode().splitlines()[1:]:
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                    found, batch = unquote(str(value["path"])), int(value["batchId"])
                except (ValueError, KeyError, TypeError) as e:
                    # Sources of another kind have other lines.
                    if "path" not in line:
                        continue
                    raise CorruptFileError(
                        f"an unreadable line in the query's checkpoint: {e}",
                        file=path,
                        remedy="restore the checkpoint from a backup, or start with a new one.",
                    ) from None
                marker = OffsetFile.parse(found.rpartition("/")[2])
                if marker is not None:
                    yield IssuedOffsets(source.name, batch, found, marker)


def finished(checkpoint: Storage) -> dict[str, int]:
    """By source, the newest batch in its log that the query finished."""
    names = (e.name for e in checkpoint.list("commits") if not e.is_dir)
    last = max((int(n) for n in names if n.isdigit()), default=-1)
    if last < 0:
        return {}
    # A version, the query's own settings, and a line for each source.
    offsets = checkpoint.read(f"offsets/{last}").decode().splitlines()[2:]
    found = ((str(n), json.loads(line)) for n, line in enumerate(offsets) if line.startswith("{"))
    return {source: int(value["logOffset"]) for source, value in found if "logOffset" in value}


def create(folder: str, name: str, error: str = "") -> None:
    """Create an offset file.

    Spark reads its one line: its own name, or an error for the query to fail with.
    """
    try:
        open_storage(folder).create(
            name, f"{ERROR}{' '.join(error.split())}\n".encode() if error else f"{name}\n".encode()
        )
    except FileExistsError:
        return
