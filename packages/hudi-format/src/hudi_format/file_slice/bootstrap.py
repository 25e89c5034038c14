"""Index of a metadata-only bootstrap: the source file of each skeleton file.

Source: HFileBootstrapIndex of Apache Hudi 0.15; spec "Queries", section 6.  Rows of both files are in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_format.avro.container import read_container
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.model import join_path
from hudi_format.storage.protocol import Storage

FOLDER = ".hoodie/.aux/.bootstrap/.fileids"
INSTANT = "00000000000001"
"""The instant of the skeleton files."""
_REMEDY = "restore the folder .hoodie/.aux/.bootstrap from a backup."


@dataclass(frozen=True, slots=True)
class BootstrapSourceFile:
    """Source file with the data columns of a skeleton file.

    Attributes:
        partition: path below the bootstrap's base path (`hoodie.bootstrap.base.path`), with `column=value` levels
            where it has partition columns.
        name: of the file.
    """

    partition: str
    name: str

    @property
    def path(self) -> str:
        """Path below the bootstrap's base path."""
        return join_path(self.partition, self.name)


def read_sources(
    storage: Storage, groups: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], BootstrapSourceFile]:
    """Source files of file groups, by partition path and file id.

    Raises:
        CorruptFileError: no index, a damaged one, or one that lacks a group.
        UnsupportedError: an entry that is compressed as Apache Hudi compresses none.
    """
    names = sorted(e.name for e in storage.list(FOLDER) if e.name.endswith(f"_{INSTANT}.hfile"))
    wanted = {f"part={p};fileid={f}": (p, f) for p, f in groups}
    if not wanted:
        return {}
    if not names:
        raise CorruptFileError(
            "the bootstrap index is missing", table=storage.uri, file=FOLDER, remedy=_REMEDY
        )
    path = f"{FOLDER}/{names[-1]}"
    entries = HFileReader.open(storage, path).lookup(sorted(wanted)).to_pylist()
    out: dict[tuple[str, str], BootstrapSourceFile] = {}
    for entry in entries:
        try:
            found = _source(entry["value"])
        except (CorruptFileError, UnsupportedError) as e:
            e.advise(_REMEDY)
            raise e.at(table=storage.uri, file=path) from None
        out[wanted[entry["key"].decode()]] = found
    missing = set(wanted.values()) - set(out)
    if missing:
        raise CorruptFileError(
            f"the bootstrap index has no source file for the file group {min(missing)[1]}",
            table=storage.uri, file=path, remedy=_REMEDY,
        )  # fmt: skip
    return out


def _source(data: bytes) -> BootstrapSourceFile:
    """The source file of an index entry.

    Raises:
        CorruptFileError: it names none.
    """
    _, record = read_container(data, what="entry of the bootstrap index")
    partition = record.get("bootstrapPartitionPath")
    status = record.get("bootstrapFileStatus")
    path = status.get("path") if isinstance(status, dict) else None
    uri = path.get("uri") if isinstance(path, dict) else None
    name = uri.rpartition("/")[2] if isinstance(uri, str) else ""
    if not name or not isinstance(partition, str | None):
        raise CorruptFileError("an entry of the bootstrap index names no file")
    return BootstrapSourceFile(partition or "", name)
