"""A capsule opened: the table's state in a folder, without its data."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

from hudi_format.errors import CorruptFileError, TableExistsError, UnsupportedError
from hudi_timeline.capsule.gather import FILES, FORMAT, MANIFEST

_REMEDY = "have the capsule made and sent again."


def open_capsule(capsule: str | Path, folder: str | Path) -> dict[str, Any]:
    """Rebuild a table from a capsule, and give the capsule's manifest.

    Args:
        folder: where the table comes to lie; it must be empty or not there.

    Raises:
        CorruptFileError: no capsule, or a damaged one.
        TableExistsError: something is in the folder.
        UnsupportedError: a capsule of a newer format.
    """
    root = Path(folder)
    if root.exists() and any(root.iterdir()):
        raise TableExistsError(
            "the folder for the capsule's table is not empty", file=str(root), remedy="give an empty folder."
        )
    try:
        with zipfile.ZipFile(capsule) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            if manifest["format"] != FORMAT:
                raise UnsupportedError(
                    f"the capsule has format {manifest['format']}; {FORMAT} is the newest known",
                    file=str(capsule),
                    remedy="open it with a newer release of hudi-timeline.",
                )
            for entry in manifest["files"]:
                _put(root, str(entry["path"]), archive.read(FILES + entry["path"]), int(entry["mtime_ms"]))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as e:
        raise CorruptFileError(f"it is no capsule: {e}", file=str(capsule), remedy=_REMEDY) from None
    found: dict[str, Any] = manifest
    return found


def _put(root: Path, path: str, data: bytes, mtime_ms: int) -> None:
    parts = path.split("/")
    if not path or any(p in ("", ".", "..") for p in parts) or "\\" in path:
        raise CorruptFileError(f"the capsule names {path!r}, which is not below the table", remedy=_REMEDY)
    target = root.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    # Version 6 takes an instant's time of completion from its file.
    os.utime(target, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
