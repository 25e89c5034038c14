"""URL schemes: which store each means, and which package reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlparse

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
    """A store.

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


def scheme_of(uri: str) -> Scheme:
    """What a URL's scheme means; one that is not listed is handed to fsspec as it is."""
    name = urlparse(uri).scheme
    return SCHEMES.get(name, Scheme(name, UNKNOWN, f"the fsspec package for {name}://"))


def normalised(uri: str) -> str:
    """The URL with fsspec's name of its scheme, without a trailing slash."""
    given = urlparse(uri).scheme
    return (scheme_of(uri).name + uri[len(given) :]).rstrip("/")


def root_of(uri: str) -> str:
    """The bucket, container or host of a URL; never what may be a password before an `@`."""
    container, _, rest = urlparse(uri).netloc.rpartition("@")
    return container if container and scheme_of(uri) is _AZURE else rest
