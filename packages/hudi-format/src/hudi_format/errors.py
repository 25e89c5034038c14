"""Every error this project raises on purpose.

One root, `HudiError`; below it one class per reaction of the caller, each with a stable code.  The
text is one line: what happened, where (table, instant, file), and what to do about it.  Errors
survive pickling, because they cross from Spark's Python workers to the driver.
"""

from __future__ import annotations

from typing import ClassVar


class HudiError(Exception):
    """Root of all errors.

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
        return text

    def __reduce__(self) -> tuple[object, ...]:
        fields = {"table": self.table, "instant": self.instant, "file": self.file, "remedy": self._remedy}
        return _rebuild, (type(self), self.message, {**fields, **self.details})

    def at(self, *, table: str = "", instant: str = "", file: str = "") -> HudiError:
        """Itself, with the places that were not known where it was raised filled in."""
        self.table = self.table or table
        self.instant = self.instant or instant
        self.file = self.file or file
        return self

    @property
    def remedy(self) -> str:
        """What the caller can do, or ""."""
        return self._remedy or (self.usual_remedy if self.file else "")

    @remedy.setter
    def remedy(self, text: str) -> None:
        self._remedy = text

    def advise(self, remedy: str) -> None:
        """Set what the caller can do, where nothing was said yet."""
        self._remedy = self._remedy or remedy


def _rebuild(cls: type[HudiError], message: str, fields: dict[str, object]) -> HudiError:
    return cls(message, **fields)  # type: ignore[arg-type]


class NotAHudiTableError(HudiError):
    """The path holds no Hudi table (nothing, or something else)."""

    code = "HUDI-E0101"


class TableExistsError(HudiError):
    """A table, or other data, is already at the path."""

    code = "HUDI-E0102"


class UnsupportedError(HudiError):
    """Asked for something that this version does not do; the remedy names the way round."""

    code = "HUDI-E0201"


class FunctionNotAllowedError(HudiError):
    """A table names a Python function that neither the call nor the process allows to run."""

    code = "HUDI-E0202"


class OptionError(HudiError, ValueError):
    """An option that cannot be used as given."""

    code = "HUDI-E0300"


class UnknownOptionError(OptionError):
    """An option that no release of Apache Hudi knows."""

    code = "HUDI-E0301"


class InvalidOptionError(OptionError):
    """A known option with a value that cannot be parsed or is not allowed."""

    code = "HUDI-E0302"


class ConflictingOptionError(OptionError):
    """An option that contradicts another one, or the table's own configuration."""

    code = "HUDI-E0303"


class CorruptFileError(HudiError):
    """Bytes that no conforming writer produces; `details["offset"]` is the first unexplained byte."""

    code = "HUDI-E0401"
    usual_remedy = (
        "check the table with `hudi verify`, and compare the file with a copy before you change anything."
    )


class MissingFileError(HudiError):
    """A file that the timeline says is there is not."""

    code = "HUDI-E0402"


class StaleSnapshotError(MissingFileError):
    """The state of the table that a read stands for is not there any more: cleaned or undone since it was read."""

    code = "HUDI-E0403"


class SchemaError(HudiError):
    """Columns or types that cannot be stored, or do not fit the table's."""

    code = "HUDI-E0501"


class MissingColumnError(SchemaError):
    """A key, partition, ordering or requested column that the data does not have."""

    code = "HUDI-E0502"


class RecordKeyError(HudiError):
    """A record whose key is null or empty."""

    code = "HUDI-E0503"


class OrderingValueError(HudiError):
    """A record whose ordering value is null."""

    code = "HUDI-E0504"


class PartitionPathError(HudiError):
    """A partition value that cannot become a safe path below the table."""

    code = "HUDI-E0505"


class DuplicateKeyError(HudiError):
    """Records to insert whose key is in the table, or in the data twice, where that was not to be."""

    code = "HUDI-E0506"


class UnknownPartitionError(HudiError):
    """A partition that the table does not have."""

    code = "HUDI-E0507"


class ValidationError(HudiError):
    """Rows, or the table that a write would make, break a rule of the user's; the table is as it was.

    `details`: `rule`; `rows`, how many break it, where that is known; `sample`, some of their record keys.
    """

    code = "HUDI-E0508"


class ConcurrentWriterError(HudiError):
    """Another writer is at work on the table; it may be tried again later."""

    code = "HUDI-E0601"


class WriteConflictError(ConcurrentWriterError):
    """Another writer first completed a change to what the write was made from: the same file groups, the schema, the
    table's properties; run the write again.

    `details`: `rival`, its instant, "" where none is known.
    """

    code = "HUDI-E0602"


class LockError(HudiError):
    """The table's lock was not obtained, or was lost."""

    code = "HUDI-E0603"


class ClockError(HudiError):
    """The clock gives a time that is not after the table's newest instant."""

    code = "HUDI-E0604"


class StorageError(HudiError):
    """The storage refused a call: no space, no permission, not reachable."""

    code = "HUDI-E0701"


class SpillError(HudiError):
    """Temporary files of a merge that exceeds its memory limit could not be written or read."""

    code = "HUDI-E0702"


class MergeFunctionError(HudiError):
    """A merge function of the user's raised, or gave what is no merged record."""

    code = "HUDI-E0509"


class WriteFailedError(HudiError):
    """A write that was started and could not be finished; nothing of it is visible."""

    code = "HUDI-E0801"


class LibraryError(HudiError):
    """A library that this one stands on failed, where table and arguments are sound; its version is named."""

    code = "HUDI-E0802"


class InstantNotFoundError(HudiError):
    """A time or instant that the table cannot be read at."""

    code = "HUDI-E0901"


class HollowCommitError(HudiError):
    """A commit is still open before completed ones, so a read at that point could change."""

    code = "HUDI-E0902"
