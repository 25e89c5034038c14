"""Markers: a file per data file that a write starts, for rollback of a failed write.

`.hoodie/.temp/<instant>/<partition>/<data file>.marker.<CREATE|MERGE|APPEND>`, written before the data
file.  Apache Hudi's timeline server batches the same lines into `MARKERS<n>` files; both are read.

Source: DirectWriteMarkers and TimelineServerBasedWriteMarkers of Apache Hudi 0.15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hudi_format.errors import CorruptFileError, PartitionPathError
from hudi_format.file_names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.keygen.partition_path import check_safe
from hudi_format.model import join_path
from hudi_format.storage.parallel import walk_folders
from hudi_format.storage.protocol import Storage, is_object_store

TEMP_FOLDER = ".hoodie/.temp"
CREATE = "CREATE"
MERGE = "MERGE"
APPEND = "APPEND"
IO_TYPES = (CREATE, MERGE, APPEND)

_MARKER = re.compile(r"(.+)\.marker\.(CREATE|MERGE|APPEND)\Z", re.DOTALL)
_BATCH_FILE = re.compile(r"MARKERS\d+\Z")


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file announced by a write, whether it was written or not."""

    partition: str
    file_name: str
    io_type: str

    @property
    def path(self) -> str:
        """Path of the data file below the table."""
        return join_path(self.partition, self.file_name)


def marker_folder(instant: str) -> str:
    return f"{TEMP_FOLDER}/{instant}"


def marker_path(instant: str, partition: str, data_file: str, io_type: str) -> str:
    """Path of a marker below the table."""
    if io_type not in IO_TYPES:
        raise ValueError(f"io_type is one of {', '.join(IO_TYPES)}, not {io_type!r}")
    return join_path(marker_folder(instant), join_path(partition, f"{data_file}.marker.{io_type}"))


def create(storage: Storage, instant: str, partition: str, data_file: str, io_type: str) -> None:
    """Create a marker, before the first byte of its data file is written."""
    storage.touch(marker_path(instant, partition, data_file, io_type))


def list_instants(storage: Storage) -> list[str]:
    """Instants with a marker folder, in order."""
    return sorted(e.name for e in storage.list(TEMP_FOLDER) if e.is_dir and e.name.isdigit())


def has_markers(storage: Storage, instant: str) -> bool:
    """Whether the instant has a marker folder, even an empty one."""
    folder = storage.info(marker_folder(instant))
    return folder is not None and folder.is_dir


def list_markers(storage: Storage, instant: str, *, partition: str | None = None) -> list[Marker]:
    """Data files announced by the write, in path order; [] without a marker folder.

    Args:
        partition: only those of this partition; other folders of direct markers are not listed.

    Raises:
        CorruptFileError: a marker that names a path outside the table or below `.hoodie`.
    """
    root = marker_folder(instant)
    found: set[Marker] = set()
    files = _files_below(storage, root) if partition is None else _files_of(storage, root, partition)
    for relative in files:
        if _BATCH_FILE.match(relative):
            found.update(_batch(storage, f"{root}/{relative}"))
        elif (marker := _parse(relative, f"{root}/{relative}")) is not None:
            found.add(marker)
    return _in_order(m for m in found if partition is None or m.partition == partition)


def _files_below(storage: Storage, root: str) -> Iterable[str]:
    if is_object_store(storage):
        return storage.files_below(root)
    walked = walk_folders(storage, root)
    paths = (join_path(folder, e.name) for folder, entries in walked for e in entries if not e.is_dir)
    return [path.removeprefix(f"{root}/") for path in paths]


def _files_of(storage: Storage, root: str, partition: str) -> list[str]:
    """Direct markers of one partition, and batches of markers of all."""
    folders = dict.fromkeys(("", partition))
    listed = ((folder, storage.list(join_path(root, folder))) for folder in folders)
    return [join_path(folder, e.name) for folder, entries in listed for e in entries if not e.is_dir]


def _in_order(found: Iterable[Marker]) -> list[Marker]:
    return sorted(found, key=lambda m: (m.partition, m.file_name, m.io_type))


def _batch(storage: Storage, path: str) -> list[Marker]:
    lines = storage.read(path).decode("utf-8", "replace").splitlines()
    # A line cut off by a crash of the server has no marker suffix; its data file was not begun.
    return [m for m in (_parse(line.strip(), path) for line in lines) if m is not None]


def _parse(relative: str, path: str) -> Marker | None:
    match = _MARKER.match(relative)
    if match is None:
        return None
    partition, _, name = match[1].rpartition("/")
    try:
        check_safe(partition)
    except PartitionPathError:
        raise _unsafe(match[1], path) from None
    # The pattern allows a leading slash, which would leave an empty partition.
    if match[1].startswith("/") or name in ("", ".", "..") or "\x00" in name or name == ".hoodie":
        raise _unsafe(match[1], path)
    return Marker(partition, name, match[2])


def _unsafe(target: str, path: str) -> CorruptFileError:
    return CorruptFileError(
        f"a marker names {target!r}, which is not a data file of the table",
        file=path,
        remedy=f"delete {path}; nothing outside the table was touched.",
    )


def append_token(partition_id: int, instant: str, attempt_id: int) -> str:
    """Write token of a log file of the instant.

    Up to table version 6 a log file's name says the slice's instant and not the write's.  Its token says the latter
    (time of day, in milliseconds), so that no two writes make files of one name, and a file of an attempt that lost can
    be told from another's.
    """
    return f"{partition_id}-{int(instant[-9:])}-{attempt_id}"


def log_files(markers: list[Marker], instant: str) -> list[Marker]:
    """Markers of log files that `instant` made for itself, told by their write token."""
    own = str(int(instant[-9:]))
    out = []
    for marker in markers:
        log = parse_log_file(marker.partition, marker.file_name)
        if marker.io_type == APPEND and log is not None and log.write_token.split("-")[1:2] == [own]:
            out.append(marker)
    return out


def own_files(markers: list[Marker], instant: str) -> list[Marker]:
    """Markers of base and CDC files of `instant`, the only files its rollback may delete."""
    out = []
    for marker in markers:
        cdc = parse_cdc_file(marker.partition, marker.file_name)  # a log file to Apache Hudi: of type APPEND
        base = parse_base_file(marker.partition, marker.file_name) if marker.io_type != APPEND else None
        file = cdc or base
        if file is not None and file.instant == instant:
            out.append(marker)
    return out


def file_id_of(data_file: str) -> str:
    """File id of an announced file, of any kind: what its name says before the first `_`."""
    return data_file.removeprefix(".").partition("_")[0]


def delete(storage: Storage, instant: str) -> None:
    """Delete the marker folder of an instant; does nothing where there is none."""
    storage.delete_dir(marker_folder(instant))
