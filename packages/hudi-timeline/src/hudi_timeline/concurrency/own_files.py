"""Files that are made once, with stores that repeat a request or lose its answer.

A client that has no answer puts again, and is told that the file exists: by its own first put.  Or the caller is told
of a failure after the file has come.  What is there decides: a file with our content is ours, as contents of different
processes differ (Avro files by their sync marker, others by an instant or a token in them).  Empty files are alike, and
may be anyone's.
"""

from __future__ import annotations

from hudi_format.errors import ConcurrentWriterError, StorageError
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage


def create_own(storage: Storage, path: str, content: bytes) -> None:
    """Create a file, unless this very call has by an earlier request.

    Raises:
        FileExistsError: another's is there.
        StorageError: it is not there, or may be another's.
    """
    try:
        storage.create(path, content)
    except (FileExistsError, StorageError):
        if not content or not _holds(storage, path, content):
            raise


def create_if_absent(storage: Storage, path: str, content: bytes) -> None:
    """Create a file, unless there is one of an earlier attempt, with whatever content."""
    try:
        storage.create(path, content)
    except FileExistsError:
        return


def complete_own(storage: Storage, path: str, content: bytes, *, what: str, instant: str) -> None:
    """Create the completed file of a service under the table's lock, and see that it lasts.

    Args:
        what: is completed, for messages.

    Raises:
        ConcurrentWriterError: another process without this lock has completed it.
        StorageError: it is not completed, as far as the store tells.
    """
    try:
        create_own(storage, path, content)
    except FileExistsError:
        raise ConcurrentWriterError(
            f"this {what} was completed by another process meanwhile", table=storage.uri, instant=instant, file=path,
            remedy="look at the timeline; configure the same lock provider for all processes.",
        ) from None  # fmt: skip
    flush(storage, [path], written=False)


def _holds(storage: Storage, path: str, content: bytes) -> bool:
    try:
        return storage.read(path) == content
    except (FileNotFoundError, StorageError):
        return False
