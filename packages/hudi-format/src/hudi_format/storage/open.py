"""Opens the `Storage` of a base path; see `storage.protocol`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pyarrow as pa

from hudi_format.errors import OptionError
from hudi_format.storage.hadoop_options import storage_options_of, with_given
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.other_names import by_fsspec_names
from hudi_format.storage.protocol import Storage, is_flushing, is_object_store, is_wrapping
from hudi_format.storage.schemes import local_path, normalised, scheme_of


def normalised_path(uri: str | os.PathLike[str]) -> str:
    """A path or URL in the form of `Storage.uri`.

    Raises:
        UnsupportedError: no URL of a store; see `schemes.local_path`.
        OptionError: an empty text.
        TypeError: neither text nor a path.
    """
    text = _text(uri)
    path = local_path(text)
    return normalised(text) if path is None else os.path.abspath(os.path.expanduser(path))


def _text(uri: str | os.PathLike[str]) -> str:
    if uri is None or isinstance(uri, (bytes, int, float, list, tuple, set, dict)):
        raise TypeError(f"the table's path must be a path or URL as text, not {uri!r}")
    text = str(uri)
    if not text.strip():  # os.path would take it for the current folder
        raise OptionError(
            f"the table's path is empty: {text!r}",
            remedy="give a path or URL; the variable that was to hold it may not be set. The current folder is '.'.",
            option="path",
        )
    return text


def open_storage(
    uri: str | os.PathLike[str] | Storage,
    storage_options: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, str] | None = None,
) -> Storage:
    """The storage at `uri`: a local path, `file:` or any scheme of fsspec.

    Args:
        uri: or a storage that is open already, which is given back.
        storage_options: for fsspec: credentials, endpoints; also by the names of other libraries
            (`AWS_ACCESS_KEY_ID`, `s3.access-key-id`).
        options: a call's options; those of Hadoop's file systems among them (`fs.s3a.access.key` and so on)
            are translated.

    Raises:
        UnsupportedError: the package for the scheme is missing; the message names it.  Or it is no URL: see
            `schemes.local_path`.
        OptionError: options that contradict each other, or that the store does not take; or an empty text.
        TypeError: neither text nor a path.
    """
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options must be a mapping of names and values, not {storage_options!r:.80}")
    if hasattr(uri, "read_range"):
        return cast(Storage, uri)
    text = _text(cast(str, uri))
    if local_path(text) is not None:
        return LocalStorage(normalised_path(text))
    from hudi_format.storage.remote import FsspecStorage

    translated = storage_options_of(text, options or {})
    given = by_fsspec_names(text, storage_options or {})
    return FsspecStorage(text, with_given(translated, given, text))


def open_beside(storage: Storage, uri: str) -> Storage:
    """The storage at another URL, with the same credentials where it is the same store."""
    if is_wrapping(storage):
        return storage.wrap(open_beside(storage.inner, uri))
    if not storage.is_local:
        from hudi_format.storage.remote import FsspecStorage

        same = local_path(uri) is None and scheme_of(uri) == scheme_of(storage.uri)
        if same and isinstance(storage, FsspecStorage):
            return storage.beside(uri)
    return open_storage(uri)


def folder_and_name(uri: str) -> tuple[str, str]:
    """Folder (for `open_storage`) and name of a file given by the user.

    A link to a local file is followed, which a storage does within its folder only.
    """
    path = local_path(uri)
    if path is None:
        folder, _, name = uri.rstrip("/").rpartition("/")
        return folder, name
    folder, _, name = os.path.realpath(os.path.expanduser(path)).rpartition("/")
    return folder or "/", name


def as_durable_as_asked(storage: Storage, durability: str) -> Storage:
    """The storage with the durability of the option `hudi.durability`, flush or none."""
    return storage.unflushed() if durability == "none" and is_flushing(storage) else storage


def flush(storage: Storage, paths: Iterable[str], *, written: bool = True) -> None:
    """Flush paths; does nothing for storage without `FlushingStorage.flush`."""
    if is_flushing(storage):
        storage.flush(paths, written=written)


def open_sized(storage: Storage, path: str, size: int) -> pa.NativeFile:
    """A file of known size for Arrow's readers, which saves a request (bytes; -1: unknown)."""
    if size >= 0 and is_object_store(storage):
        return storage.open_sized(path, size)
    return storage.open_input(path)
