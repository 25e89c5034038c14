"""URL schemes: their stores and the packages that reach them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote

from hudi_format.errors import UnsupportedError

OBJECTS = "objects"
"""No folders and no rename; writes on condition; a put appears whole."""
FOLDERS = "folders"
"""A tree of folders with a rename that refuses to overwrite; a file grows while it is written."""
MEMORY = "memory"
"""This process's own memory."""
UNKNOWN = "unknown"
"""What can be relied on is not known."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A store behind a URL scheme.

    Attributes:
        name: fsspec's name of it.
        kind: OBJECTS, FOLDERS, MEMORY or UNKNOWN.
        package: what `pip install` has to bring, "" where fsspec itself is enough.
        root: what the first part of a URL is called there.
    """

    name: str
    kind: str
    package: str = ""
    root: str = "bucket"


_S3 = Scheme("s3", OBJECTS, "s3fs")
_GCS = Scheme("gs", OBJECTS, "gcsfs")
_AZURE = Scheme("abfs", OBJECTS, "adlfs", "container")

SCHEMES = {
    "s3": _S3,
    "s3a": _S3,
    "s3n": _S3,
    "gs": _GCS,
    "gcs": _GCS,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "az": _AZURE,
    "wasb": _AZURE,
    "wasbs": _AZURE,
    "hdfs": Scheme("hdfs", FOLDERS, "pyarrow", "name node"),
    "webhdfs": Scheme("webhdfs", FOLDERS, "requests", "name node"),
    "sftp": Scheme("sftp", FOLDERS, "paramiko", "host"),
    "memory": Scheme("memory", MEMORY),
}


# A letter and a colon is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):").match
_HOST = re.compile(r"//([^/?#]*)").match


def _name_of(uri: str) -> str:
    """The scheme of a URL in lower case, or ""."""
    found = _SCHEME(uri)
    return found[1].lower() if found else ""


def local_path(uri: str) -> str | None:
    """Local path of a path or URL, as written; None for a URL of another store.

    In a URL of files `?`, `#` and all the rest are part of the path, as Hadoop and fsspec have it; `%20` and the like
    are decoded, but where only the undecoded name is there.  A name with a colon, such as `a:b`, is a path.

    Raises:
        UnsupportedError: a URL that lacks its slashes, or of the files of another host; or a NUL character, which no
            file system takes.
    """
    if "\0" in uri:
        raise UnsupportedError(
            f"{uri!r} has a NUL character, which no path may have", remedy="remove it from the path."
        )
    name = _name_of(uri)
    if name == "file":
        return _path_of(uri)
    if not name:
        return uri
    rest = uri[len(name) + 1 :]
    if rest.startswith(("//", ":")):  # fsspec chains stores with "::"
        scheme = scheme_of(uri)
        if scheme.kind == OBJECTS and not rest.strip("/"):
            raise UnsupportedError(
                f"{uri!r} has no {scheme.root}", table=uri, remedy=f"write {uri}{scheme.root}/path."
            )
        return None
    if name in SCHEMES:
        raise UnsupportedError(
            f"{uri!r} is not a URL: two slashes follow {name}:",
            table=uri,
            remedy=f"write {name}://, the {scheme_of(uri).root} and the path.",
        )
    if rest.startswith("/"):  # Hadoop's short form, such as dbfs:/t, would be written to the current folder
        raise UnsupportedError(
            f"{uri!r} is neither a URL nor a path: two slashes follow {name}:",
            table=uri,
            remedy=f"write {name}:/{rest} for the store, or ./{uri} for a folder of that name here.",
        )
    return uri


def _path_of(uri: str) -> str:
    path = uri[len("file:") :]
    host = _HOST(path)
    if host is not None:
        if host[1] not in ("", "localhost"):
            raise UnsupportedError(
                f"{uri!r} names files of the host {host[1]!r}",
                table=uri,
                remedy="a path from the root needs three slashes after file:.",
            )
        path = path[host.end() :]
    encoded = re.match(r".*?%[^/]*", path, re.DOTALL)
    if encoded is None:
        return path
    decoded = _decoded(encoded[0])
    if os.path.lexists(encoded[0]) and not os.path.lexists(decoded):
        return path
    return _decoded(path)


def _decoded(path: str) -> str:
    return unquote(path, errors="surrogateescape")


def scheme_of(uri: str) -> Scheme:
    """The store of a URL's scheme; unlisted schemes are passed to fsspec."""
    name = _name_of(uri)
    return SCHEMES.get(name, Scheme(name, UNKNOWN, f"the fsspec package for {name}://"))


def normalised(uri: str) -> str:
    """The URL with fsspec's scheme name, without a trailing slash."""
    name, rest = scheme_of(uri).name, uri[len(_name_of(uri)) :].rstrip("/")
    return f"{name}://" if rest == ":" else name + rest


def root_of(uri: str) -> str:
    """Bucket, container or host of a URL, without credentials before an `@`."""
    host = _HOST(uri[len(_name_of(uri)) + 1 :])
    container, _, rest = (host[1] if host else "").rpartition("@")
    return container if container and scheme_of(uri) is _AZURE else rest
