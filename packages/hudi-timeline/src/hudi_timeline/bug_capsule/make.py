"""Creation of a bug capsule: metadata for a bug report, without data."""

from __future__ import annotations

import json
import re
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_format import properties
from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, OptionError
from hudi_format.file_names import (
    META_DIR,
    PARTITION_METADATA,
    parse_base_file,
    parse_cdc_file,
    parse_log_file,
)
from hudi_format.model import join_path
from hudi_format.storage.parallel import subfolders, walk_folders
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import __version__, metadata_config, table_config
from hudi_timeline.bug_capsule.mask import BASE, Mask
from hudi_timeline.bug_capsule.mask_files import (
    TooLarge,
    masked_archive,
    masked_base_file,
    masked_file,
    masked_history,
    masked_log,
    meet_values,
    parsed,
    partitions_of,
)
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.reading.metadata_listing import list_by_metadata
from hudi_timeline.table_config import TableConfig

FORMAT = 1
MANIFEST = "capsule.json"
FILES = "files/"
_FOLDERS = (".temp", ".heartbeat", ".schema", ".aux", ".locks", ".index_defs", "timeline")
_SECRET_NAME = re.compile(
    r"secret|passw|token|credential|access\.?key|private|signature|\bsas\b|api\.?key|auth\.|account\.key",
    re.I,
)
_SECRET_VALUE = re.compile(r"://[^/@\s]+:[^/@\s]+@|AKIA[0-9A-Z]{16}|-----BEGIN|eyJ[A-Za-z0-9_-]{20,}\.")


@dataclass(frozen=True)
class Capsule:
    """A created capsule.

    Attributes:
        path: the file.
        files: how many of the table's files it stands for.
        left_out: what is not in it, one sentence each.
    """

    path: Path
    files: int
    bytes: int
    left_out: tuple[str, ...] = field(default=())


def make_capsule(
    storage: Storage,
    target: str | Path,
    *,
    options: Mapping[str, str] | None = None,
    key: bytes | None = None,
) -> Capsule:
    """Write a capsule of a table.

    Args:
        target: the ZIP file to make.
        options: of the call that went wrong.
        key: of the hashes; a random one, forgotten at the end, if not given.

    Raises:
        OptionError: an option or property looks like a secret; nothing was written.
        NotAHudiTableError, StorageError.
    """
    config = table_config.load(storage)
    refuse_secrets(storage, {**config.properties, **(options or {})})
    listing = _listing(storage)
    left_out: list[str] = []
    for hashed in (True, False):
        mask = Mask(key or secrets.token_bytes(32), storage.uri, hashed=hashed)
        gathering = _Gathering(storage, config, listing, mask, last=not hashed)
        try:
            content = gathering.content()
        except TooLarge:
            continue  # masks of many short keys are longer than the keys: ranks alone are not
        left_out = gathering.left_out
        break
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "made_by": f"hudi-timeline {__version__}",
        "table_version": config.version,
        "options": {k: v.replace(storage.uri, BASE) for k, v in (options or {}).items()},
        "files": [{"path": p, "size": len(data), "mtime_ms": mtime} for p, (data, mtime) in content.items()],
        "metadata_table": gathering.metadata_table(),
        "left_out": left_out,
    }
    target = Path(target)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        for path, (data, _) in content.items():
            archive.writestr(FILES + path, data)
    return Capsule(target, len(content), target.stat().st_size, tuple(left_out))


def refuse_secrets(storage: Storage, options: Mapping[str, str]) -> None:
    """Raise OptionError where an option may hold a secret; its value is not shown."""
    bad = sorted(k for k, v in options.items() if v and (_SECRET_NAME.search(k) or _SECRET_VALUE.search(v)))
    if bad:
        raise OptionError(
            f"{', '.join(bad)}: a capsule takes no option that may hold a secret",
            table=storage.uri,
            remedy="omit it, or remove it from hoodie.properties: credentials belong to storage options.",
            option=bad[0],
        )


def _listing(storage: Storage) -> dict[str, FileInfo]:
    def into(folder: str, entries: Sequence[FileInfo]) -> list[str]:
        return [f for f in subfolders(folder, entries) if f != metadata_config.FOLDER]

    walked = walk_folders(storage, into=into)
    found = {join_path(folder, e.name): e for folder, entries in walked for e in entries if not e.is_dir}
    return dict(sorted(found.items()))


class _Gathering:
    """Collects the files of one capsule."""

    def __init__(
        self, storage: Storage, config: TableConfig, listing: dict[str, FileInfo], mask: Mask, *, last: bool
    ) -> None:
        self._storage, self._config, self._listing, self._mask = storage, config, listing, mask
        self._last = last
        self._sizes: dict[str, int] = {}
        self.left_out: list[str] = []
        keys = config.record_key_fields
        self._key = keys[0] if len(keys) == 1 else ""

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Content and modification time by masked path.

        Raises TooLarge.
        """
        self._meet()
        out = {}
        for path, info in self._listing.items():
            name = path.rpartition("/")[2]
            if (name.startswith(".") and name.endswith(".crc")) or self._is_foreign(path):
                continue
            try:
                out[self._masked_path(path)] = self._content(path, info), self._mtime(path, info)
            except (FileNotFoundError, MissingFileError):
                continue  # cleaned since the listing
        if any(p.endswith(".crc") for p in self._listing):
            self.left_out.append("Hadoop's .crc files: contents are others.")
        if any(map(self._is_foreign, self._listing)):
            self.left_out.append(
                "files below .hoodie that are not of Apache Hudi's, such as backups of repairs."
            )
        if metadata_config.built(self._config):
            self.left_out.append(
                "the metadata table's files: capsule.json holds its listing and its records of files; the rebuilt "
                "table has none, and hoodie.properties says so."
            )
        return out

    def _is_foreign(self, path: str) -> bool:
        """Whether a file lies in a folder below .hoodie whose names may contain data."""
        top, *inner = path.split("/")
        return top == META_DIR and len(inner) > 1 and inner[0] not in (*_FOLDERS, self._config.archive_folder)

    def _mtime(self, path: str, info: FileInfo) -> int:
        """Modification time of a file.

        A writer that is dead here is dead elsewhere, where its process cannot be looked for.
        """
        folder, _, name = path.rpartition("/")
        if folder == heartbeat.FOLDER and not heartbeat.liveness(self._storage, name).alive:
            return 0
        return info.mtime_ms

    def _masked_path(self, path: str) -> str:
        if not path.startswith(f"{META_DIR}/"):
            return self._mask.path(path)
        inner = path.removeprefix(f"{META_DIR}/")
        if not inner.startswith(".temp/"):
            return path
        temp, instant, *rest = inner.split("/", 2)
        return "/".join((META_DIR, temp, instant, *map(self._mask.path, rest)))

    def _meet(self) -> None:
        mask = self._mask
        partitions = {p.rpartition("/")[0] for p in self._listing if not p.startswith(f"{META_DIR}/")}
        for path in self._listing:
            if "/MARKERS" in path:
                lines = self._storage.read(path).decode(errors="replace").splitlines()
                partitions.update(line.rpartition("/")[0] for line in lines)
            elif path.startswith(f"{META_DIR}/.temp/"):
                partitions.add(path.split("/", 3)[-1].rpartition("/")[0])
            elif self._is_instant(path):
                mask.instants.add(re.split(r"[._]", path.rpartition("/")[2])[0])
                partitions |= partitions_of(parsed(self._storage.read(path)))
        for partition in partitions - {""}:
            mask.meet_partition(partition)
        for path in self._listing:
            folder, _, name = path.rpartition("/")
            if parse_base_file(folder, name) is not None and name.endswith(".parquet"):
                try:
                    meet_values(self._storage, path, mask)
                except HudiError:
                    continue  # damage; it goes in as zeros

    def _is_instant(self, path: str) -> bool:
        return (
            path.rpartition("/")[0] == self._config.timeline_folder and path.rpartition("/")[2][:1].isdigit()
        )

    def _content(self, path: str, info: FileInfo) -> bytes:
        folder, _, name = path.rpartition("/")
        if path in (table_config.PROPERTIES_FILE, table_config.BACKUP_FILE):
            return self._properties(self._storage.read(path))
        if path.startswith(f"{META_DIR}/"):
            return self._metadata(path)
        if name.startswith(PARTITION_METADATA):
            return self._storage.read(path)
        if parse_log_file(folder, name) is not None or parse_cdc_file(folder, name) is not None:
            return masked_log(self._storage.read(path))
        if parse_base_file(folder, name) is not None and name.endswith(".parquet"):
            return self._base_file(path, folder, info)
        return bytes(info.size)

    def _metadata(self, path: str) -> bytes:
        data = self._storage.read(path)
        if self._is_instant(path):
            return masked_file(data, self._mask)
        folder = path.rpartition("/")[0]
        if folder.startswith(f"{META_DIR}/timeline/"):
            return self._history(path, data)
        if folder == f"{META_DIR}/{self._config.archive_folder}":
            return masked_archive(data, self._mask) if data else data
        if folder == heartbeat.FOLDER:
            return b""
        if folder.startswith(f"{META_DIR}/.schema") or path.endswith("/MARKERS.type"):
            return data  # names and types of columns are no data
        if "/MARKERS" in path:
            lines = data.decode(errors="replace").splitlines()
            return "".join(f"{self._mask.path(line)}\n" for line in lines).encode()
        return bytes(len(data))

    def _history(self, path: str, data: bytes) -> bytes:
        """A masked file of the LSM timeline.

        Manifests name files and their sizes, and come after them in the listing.
        """
        name = path.rpartition("/")[2]
        if name.endswith(".parquet"):
            try:
                found = masked_history(data, self._mask)
            except (pa.ArrowException, OSError, ValueError):
                return bytes(len(data))
            self._sizes[name] = len(found)
            return found
        manifest = parsed(data) if name.startswith("manifest_") else None
        if not isinstance(manifest, dict):
            return data
        for entry in manifest.get("files") or ():
            entry["fileLen"] = self._sizes.get(entry["fileName"], entry["fileLen"])
        return json.dumps(manifest).encode()

    def _properties(self, data: bytes) -> bytes:
        """The properties without a metadata table."""
        try:
            found = properties.parse(data)
        except CorruptFileError:
            return bytes(len(data))
        if not metadata_config.built(self._config):
            return data
        dropped = table_config.METADATA_PARTITIONS
        if dropped not in found:
            return data
        # The checksum of all entries goes with one of them, as where another program writes the file.
        gone = (dropped.encode(), table_config.CONTENT_CHECKSUM_LINE)
        return b"".join(line for line in data.splitlines(True) if not line.startswith(gone))

    def _base_file(self, path: str, folder: str, info: FileInfo) -> bytes:
        try:
            return masked_base_file(
                self._storage, path, self._mask, size=info.size, partition=folder, key=self._key
            )
        except TooLarge:
            if not self._last:
                raise
            self.left_out.append(f"the size of {self._mask.path(path)}: it takes more bytes masked.")
            return masked_base_file(
                self._storage, path, self._mask, size=None, partition=folder, key=self._key
            )
        except MissingFileError:
            raise
        except HudiError:
            return bytes(info.size)

    def metadata_table(self) -> dict[str, Any] | None:
        """Masked listing of the metadata table; None where there is none."""
        if not metadata_config.built(self._config):
            return None
        try:
            listed = list_by_metadata(self._storage)
        except HudiError as e:
            return {"unreadable": e.code}
        return {
            self._mask.partition(p) if p in self._mask.partitions else self._mask.digest("text", p): [
                [self._mask.name(name), size] for name, size in files.items()
            ]
            for p, files in listed.files.items()
        }
