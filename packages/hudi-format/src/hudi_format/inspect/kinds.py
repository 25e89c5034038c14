"""Which kind of file it is, told by its bytes, and who looks into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_format.errors import MissingFileError, UnsupportedError
from hudi_format.inspect.base_file import inspect_orc, inspect_parquet
from hudi_format.inspect.hfile import inspect_hfile
from hudi_format.inspect.log import inspect_log
from hudi_format.inspect.report import Report
from hudi_format.log.blocks import MAGIC
from hudi_format.names import parse_cdc_file, parse_log_file
from hudi_format.storage import Storage, folder_and_name, normalised_path, open_storage

_HFILE_TRAILER = b'TRABLK"$'
_TRAILER_BYTES = 4096  # an HFile ends with a trailer of this size
_INSPECTORS = {"log": inspect_log, "parquet": inspect_parquet, "orc": inspect_orc, "hfile": inspect_hfile}


def inspect_file(uri: str, storage_options: Mapping[str, Any] | None = None) -> Report:
    """A look into one log file, HFile or base file.

    Args:
        uri: a local path, or any address that fsspec knows.

    Raises:
        MissingFileError: there is no such file.
        UnsupportedError: a file of another kind.
        CorruptFileError: damage that leaves nothing to show.
    """
    folder, name = folder_and_name(normalised_path(uri))
    if folder.endswith(("/", ":")) and "://" in uri:  # a bucket or a host is never a file
        folder = uri
    storage = open_storage(folder, storage_options)
    info = storage.info(name)
    if info is None or info.is_dir:
        what = "there is no such file" if info is None else "it is a folder and no file"
        raise MissingFileError(what, table=storage.uri, file=name)
    return _INSPECTORS[_kind(storage, name, info.size)](storage, name)


def _kind(storage: Storage, name: str, size: int) -> str:
    if parse_log_file("", name) or parse_cdc_file("", name):
        return "log"
    head = tail = b""
    if size > 0:
        with storage.open_input(name) as source:
            head = bytes(source.read(min(size, 8)))
            source.seek(max(0, size - _TRAILER_BYTES))
            tail = bytes(source.read())
    if head.startswith(MAGIC):
        return "log"
    if head.startswith(b"PAR1") or tail.endswith(b"PAR1") or name.endswith(".parquet"):
        return "parquet"
    if head.startswith(b"ORC") or name.endswith(".orc"):
        return "orc"
    if _HFILE_TRAILER in tail or name.endswith(".hfile"):
        return "hfile"
    raise UnsupportedError(
        "neither a log file, nor an HFile, nor a base file",
        table=storage.uri,
        file=name,
        remedy="give one of those; `hudi show` looks at the files of the timeline.",
    )
