"""All exceptions that this project raises on purpose.

One root, `HudiError`; below it one class per reaction of the caller, each with a stable code.  The
text is one line: what happened, where (table, instant, file), and what to do about it.  Errors
survive pickling, because they cross from Spark's Python workers to the driver.
"""

from __future__ import annotations

# The roots of all packages import this module, so it imports nothing that takes time before an error is shown.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

# What ends a line where texts of other libraries, or values, have more than one.
_LINE_ENDS = r"\s*[\r\n]\s*"
# Frames of this project and of IPython itself.
_NOT_THE_CALLERS = r"[/\\](?:hudi_(?:format|index|timeline|spark)|pyspark_hudi|IPython|ipykernel)[/\\]"


class HudiError(Exception):
    """Root of all exceptions of this project.

    Attributes:
        code: stable identifier of the class, `HUDI-E` and four digits.
        message: what happened, without place and remedy.
        table: base path of the table at fault, or "".
        instant: instant time at fault, or "".
        file: file at fault, relative to the table or as the caller gave it, or "".
        details: further facts by name (column, option, offset ...).
    """

    code: ClassVar[str] = "HUDI-E0000"
    #: What the caller can do where a file is named and nothing better is said.
    usual_remedy: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        table: str = "",
        instant: str = "",
        file: str = "",
        remedy: str = "",
        **details: object,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.table = table
        self.instant = instant
        self.file = file
        self._remedy = remedy
        self.details = details

    def __str__(self) -> str:
        import re

        place = [
            f"{name} {value}"
            for name, value in (("table", self.table), ("instant", self.instant), ("file", self.file))
            if value
        ]
        text = f"[{self.code}] {self.message}"
        if place:
            text += f" ({', '.join(place)})"
        if self.remedy:
            text += f" Remedy: {self.remedy}"
        # One line that every terminal and log can be given: values are part of it, half a surrogate pair too.
        return re.sub(_LINE_ENDS, " ", text).encode("utf-8", "backslashreplace").decode()

    def __reduce__(self) -> tuple[object, ...]:
        fields = {"table": self.table, "instant": self.instant, "file": self.file, "remedy": self._remedy}
        return _rebuild, (type(self), self.message, {**fields, **self.details})

    def at(self, *, table: str = "", instant: str = "", file: str = "") -> HudiError:
        """This error with its empty location fields (table, instant, file) filled in."""
        self.table = self.table or table
        self.instant = self.instant or instant
        self.file = self.file or file
        return self

    @property
    def remedy(self) -> str:
        """Advice for the caller, or ""."""
        return self._remedy or (self.usual_remedy if self.file else "")

    @remedy.setter
    def remedy(self, text: str) -> None:
        self._remedy = text

    def _render_traceback_(self) -> list[str]:
        """Lines that IPython shows for it: the error, then where the caller's own code met it."""
        import re
        import traceback

        frames = traceback.extract_tb(self.__traceback__)
        own = [f for f in frames if not re.search(_NOT_THE_CALLERS, f.filename)]
        lines = [f"{type(self).__name__}: {self}", ""]
        lines += [f"  line {f.lineno} of {f.name}: {f.line}" for f in own]
        lines += [f"Note: {note}" for note in getattr(self, "__notes__", ())]
        return [*lines, "All frames: import sys, traceback; traceback.print_exception(sys.last_value)"]

    def advise(self, remedy: str) -> None:
        """Set the remedy unless there is one already."""
        self._remedy = self._remedy or remedy


def _rebuild(cls: type[HudiError], message: str, fields: dict[str, object]) -> HudiError:
    return cls(message, **fields)  # type: ignore[arg-type]


class NotAHudiTableError(HudiError):
    """No Hudi table at the path."""

    code = "HUDI-E0101"


class TableExistsError(HudiError):
    """A table or other data already exists at the path."""

    code = "HUDI-E0102"


class UnsupportedError(HudiError):
    """A feature that this version does not support; the remedy names an alternative."""

    code = "HUDI-E0201"


class FunctionNotAllowedError(HudiError):
    """A Python function named by the table that neither the call nor the process allows to run."""

    code = "HUDI-E0202"


class OptionError(HudiError, ValueError):
    """An option that cannot be used as given; base class of the option errors."""

    code = "HUDI-E0300"


class UnknownOptionError(OptionError):
    """An option key unknown to every release of Apache Hudi."""

    code = "HUDI-E0301"


class InvalidOptionError(OptionError):
    """A known option with a value that cannot be parsed or is not allowed."""

    code = "HUDI-E0302"


class ConflictingOptionError(OptionError):
    """An option that contradicts another option or the table's configuration."""

    code = "HUDI-E0303"


class CorruptFileError(HudiError):
    """Bytes that no conforming writer produces.

    `details["offset"]` is the first unexplained byte.
    """

    code = "HUDI-E0401"
    usual_remedy = (
        "run `hudi verify` on the table, and compare the file with a backup before you change anything."
    )


class MissingFileError(HudiError):
    """A file that the timeline lists and storage does not have."""

    code = "HUDI-E0402"
    usual_remedy = (
        "read again, as a cleaner may have removed the file meanwhile; if it is still not there, check the table with "
        "`hudi verify`, and put the file back from a copy of the table."
    )


class StaleSnapshotError(MissingFileError):
    """Files of the snapshot being read were cleaned or rolled back since it was taken."""

    code = "HUDI-E0403"


class SchemaError(HudiError):
    """Columns or types that cannot be stored or do not fit the table's schema."""

    code = "HUDI-E0501"


class MissingColumnError(SchemaError):
    """A key, partition, ordering or requested column that the data lacks."""

    code = "HUDI-E0502"


class RecordKeyError(HudiError):
    """A record whose key is null or empty."""

    code = "HUDI-E0503"


class OrderingValueError(HudiError):
    """A record whose ordering value is null."""

    code = "HUDI-E0504"


class PartitionPathError(HudiError):
    """A partition value without a safe path below the table."""

    code = "HUDI-E0505"


class DuplicateKeyError(HudiError):
    """Duplicate record keys in an insert: already in the table, or twice in the data."""

    code = "HUDI-E0506"


class UnknownPartitionError(HudiError):
    """A partition that the table does not have."""

    code = "HUDI-E0507"


class ValidationError(HudiError):
    """Rows, or the resulting table, violate a validation rule; the table is unchanged.

    `details`: `rule`; `rows`, how many break it, where that is known; `sample`, some of their record keys.
    """

    code = "HUDI-E0508"


class ConcurrentWriterError(HudiError):
    """Another writer is active on the table; retry later."""

    code = "HUDI-E0601"


class WriteConflictError(ConcurrentWriterError):
    """Conflict with a concurrent commit on the same files, schema or properties; retry.

    Attributes:
        rival: its instant, "" where none is known.
        owner: the rival's operation and writer in words, "" where nothing is known.
        file_groups: those that both changed, as partition/file id.
        keys: some of the record keys that both wrote.
        retry_safe: whether the same write may be run again, and means the same.

    They are in `details` too.
    """

    code = "HUDI-E0602"

    @property
    def rival(self) -> str:
        return str(self.details.get("rival") or "")

    @property
    def owner(self) -> str:
        return str(self.details.get("owner") or "")

    @property
    def file_groups(self) -> tuple[str, ...]:
        return self._texts("file_groups")

    @property
    def keys(self) -> tuple[str, ...]:
        return self._texts("keys")

    @property
    def retry_safe(self) -> bool:
        return self.details.get("retry_safe") is not False

    def _texts(self, name: str) -> tuple[str, ...]:
        found = self.details.get(name)
        return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()


class LockError(HudiError):
    """The table's lock was not obtained, or was lost."""

    code = "HUDI-E0603"


class ClockError(HudiError):
    """The clock is not after the table's newest instant."""

    code = "HUDI-E0604"


class StorageError(HudiError):
    """A storage call failed: no space, no permission, unreachable."""

    code = "HUDI-E0701"


class SpillError(HudiError):
    """Spill files of a merge beyond its memory limit could not be written or read."""

    code = "HUDI-E0702"


class MergeFunctionError(HudiError):
    """A user-defined merge function raised, or returned no valid record."""

    code = "HUDI-E0509"


class WriteFailedError(HudiError):
    """A write that started and failed; none of it is visible."""

    code = "HUDI-E0801"


class LibraryError(HudiError):
    """A dependency failed although table and arguments are valid; the message names its version.

    On Spark also one that the workers' Python lacks.
    """

    code = "HUDI-E0802"


class InstantNotFoundError(HudiError):
    """No instant, or no readable state, at the requested time."""

    code = "HUDI-E0901"


class HollowCommitError(HudiError):
    """A pending commit before completed ones: a read at that point could still change."""

    code = "HUDI-E0902"
