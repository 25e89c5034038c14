"""Translation of remote storage errors to StorageError, without secrets.

fsspec's packages raise what their client libraries do: OSError and its kinds, and classes that are none.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hudi_format.errors import HudiError, StorageError
from hudi_format.storage.schemes import Scheme, root_of

if TYPE_CHECKING:
    from hudi_format.storage.protocol import Storage

# Modules whose exceptions are the store's or the network's; any other exception is a mistake of the program.
_CLIENTS = (
    "botocore", "aiobotocore", "aiohttp", "s3fs", "gcsfs", "google", "adlfs", "azure", "urllib3", "requests",
    "paramiko", "fsspec", "asyncio", "ssl", "socket", "http",
)  # fmt: skip
NO_ROOT = ("NoSuchBucket", "ContainerNotFound")
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "conditionNotMet", "BlobAlreadyExists")
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError")
_UNREACHABLE = (
    "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError",
    "ClientConnectorError", "ServerDisconnectedError", "ConnectionError", "HTTPClientError", "FSTimeoutError",
    "TimeoutError", "ClientConnectionError", "ServerTimeoutError",
)  # fmt: skip
_SHORTEST_SECRET = 4


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def code_of(error: BaseException) -> str:
    """The store's error code, such as NoSuchBucket, or ""."""
    for e in _chain(error):
        response = getattr(e, "response", None)
        if isinstance(response, dict) and isinstance(response.get("Error"), dict):
            return str(response["Error"].get("Code") or "")
        code = getattr(e, "error_code", None) or getattr(e, "code", None)  # Azure's, Google's
        if isinstance(code, (str, int)) and code:
            return str(code)
    return next((c for c in (*NO_ROOT, *_TAKEN) if c in str(error)), "")


def is_taken(error: BaseException) -> bool:
    """Whether a conditional write was refused because its condition does not hold."""
    return isinstance(error, FileExistsError) or code_of(error) in ("412", *_TAKEN)


def _is_a_stores(error: BaseException) -> bool:
    # EOFError: paramiko's where a connection ends.
    return isinstance(error, (OSError, EOFError)) or type(error).__module__.partition(".")[0] in _CLIENTS


@contextmanager
def refusals(uri: str, path: str, scheme: Scheme, secrets: Iterable[str] = ()) -> Iterator[None]:
    """Turn a storage failure into a StorageError; FileNotFoundError and FileExistsError pass.

    Neither passes where the bucket is missing, and with it every file.
    """
    try:
        yield
    except HudiError:
        raise
    except (FileNotFoundError, FileExistsError) as e:
        if code_of(e) not in NO_ROOT:
            raise
        raise _refusal(e, uri, path, scheme, secrets) from None
    except Exception as e:
        if not _is_a_stores(e):
            raise
        raise _refusal(e, uri, path, scheme, secrets) from None


def _refusal(
    error: BaseException, uri: str, path: str, scheme: Scheme, secrets: Iterable[str]
) -> StorageError:
    code = code_of(error)
    names = {type(e).__name__ for e in _chain(error)}
    if code in NO_ROOT:
        what = f"the {scheme.root} {root_of(uri)!r} does not exist"
        remedy = f"create the {scheme.root}, or correct the path."
    elif names & set(_NO_CREDENTIALS):
        what, remedy = "no credentials were found", _credentials(scheme)
    elif isinstance(error, PermissionError) or code in ("401", "403") or str(error).startswith("Forbidden"):
        what = f"access was denied ({_reason(error, secrets) or code})"
        remedy = _credentials(scheme) + " Or grant them access."
    elif names & set(_UNREACHABLE):
        what = f"the store cannot be reached ({_reason(error, secrets)})"
        remedy = "check endpoint and network, and run it again; the next write rolls back an interrupted one."
    else:
        number = getattr(error, "errno", None)
        what = f"the store refused: {_reason(error, secrets) or errno.errorcode.get(number or 0, '?')}"
        remedy = "run it again; the next write rolls back an interrupted one."
    return StorageError(what, table=uri, file=path, remedy=remedy)


def _credentials(scheme: Scheme) -> str:
    if scheme.name == "s3":
        return (
            "give credentials by storage_options (key, secret), fs.s3a.access.key and fs.s3a.secret.key, "
            "or the environment that boto3 reads."
        )
    return f"give credentials by storage_options, as {scheme.package} takes them, or its environment."


def _reason(error: BaseException, secrets: Iterable[str]) -> str:
    text = (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip()
    line = text.splitlines()[0] if text else ""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            line = line.replace(secret, "***")
    return line[:300]


@contextmanager
def writing(storage: Storage, path: str) -> Iterator[None]:
    """Turn the error of a file that the storage does not take into a StorageError."""
    try:
        yield
    except OSError as e:
        reason = e.strerror or (str(e).splitlines() or [type(e).__name__])[0]
        raise StorageError(
            f"the storage refused: {reason}",
            table=storage.uri,
            file=path,
            remedy="check that the storage has space and is reachable, then run the write again.",
        ) from e
