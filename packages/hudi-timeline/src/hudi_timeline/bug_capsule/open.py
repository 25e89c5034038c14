"""Rebuilding of a table's metadata from a bug capsule."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, TableExistsError, UnsupportedError
from hudi_format.storage.safe_path import is_plain
from hudi_timeline.bug_capsule.make import FILES, FORMAT, MANIFEST

_REMEDY = "have the capsule made and sent again."
# What zipfile and json raise on damaged input; NotImplementedError and other RuntimeErrors: encrypted, patched data.
_UNREADABLE = (
    ArithmeticError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_LATEST_MS = 1 << 43  # year 2248; file systems know no year far beyond


def open_capsule(capsule: str | Path, folder: str | Path) -> dict[str, Any]:
    """Rebuild a table from a capsule; returns the capsule's manifest.

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
        archive = zipfile.ZipFile(capsule)
    except FileNotFoundError:
        raise
    except _UNREADABLE as e:
        raise _broken(e, capsule) from None
    with archive:
        try:
            found: dict[str, Any] = loads(_read(archive, MANIFEST))
            if found["format"] != FORMAT:
                raise UnsupportedError(
                    f"the capsule has format {found['format']!r:.40}; {FORMAT} is the newest known",
                    file=str(capsule),
                    remedy="open it with a newer release of hudi-timeline.",
                )
            entries = [(str(e["path"]), int(e["mtime_ms"])) for e in found["files"]]
        except _UNREADABLE as e:
            raise _broken(e, capsule) from None
        for path, mtime_ms in entries:
            try:
                data = _read(archive, FILES + path)
            except _UNREADABLE as e:
                raise _broken(e, capsule) from None
            _put(root, path, data, mtime_ms)
    # Every table has this folder, mostly empty; capsules hold files, and what is asked of a table depends on it.
    (root / ".hoodie" / ".schema").mkdir(parents=True, exist_ok=True)
    return found


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    entry = archive.getinfo(name)
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name[:80]} is compressed as no capsule is")  # others unfold without measure
    return archive.read(entry)


def _broken(error: Exception, capsule: str | Path) -> CorruptFileError:
    return CorruptFileError(
        f"not a bug capsule: {type(error).__name__}: {error}", file=str(capsule), remedy=_REMEDY
    )


def _put(root: Path, path: str, data: bytes, mtime_ms: int) -> None:
    parts = path.split("/")
    if not path or not is_plain(path) or "\\" in path:
        raise CorruptFileError(f"the capsule names {path!r}, which is not below the table", remedy=_REMEDY)
    if not 0 <= mtime_ms < _LATEST_MS:
        raise CorruptFileError(f"the capsule gives {path!r} the time {mtime_ms}", remedy=_REMEDY)
    target = root.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    # Version 6 takes an instant's time of completion from its file.
    os.utime(target, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
