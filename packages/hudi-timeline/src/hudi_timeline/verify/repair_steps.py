"""Repair steps, each repeatable after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.table_config import PROPERTIES_FILE

CREATE, REPLACE, MOVE, SET = "create", "replace", "move", "set"


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One change of a repair.

    Attributes:
        kind: "create" a file, "replace" what is in it, "move" a file or folder into the backup folder, "set" entries of
            hoodie.properties.
        path: below the table.
        data: the file's new content.
        entries: of hoodie.properties.
        note: what the step does, where it is told by itself; "" for a part of another one.
    """

    kind: str
    path: str
    data: bytes = field(default=b"", repr=False)
    entries: Mapping[str, str] = field(default_factory=dict, compare=False)
    note: str = field(default="", compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The step as a JSON object."""
        out: dict[str, Any] = {"do": self.kind, "path": self.path}
        if self.kind in (CREATE, REPLACE):
            out["bytes"] = len(self.data)
        if self.kind == SET:
            out["entries"] = dict(self.entries)
        return out

    def __str__(self) -> str:
        if self.kind == SET:
            return f"set {', '.join(f'{k}={v}' for k, v in self.entries.items())} in {self.path}"
        size = f" ({len(self.data)} bytes)" if self.kind in (CREATE, REPLACE) else ""
        return f"{self.kind} {self.path}{size}"


def create(path: str, data: bytes = b"", note: str = "") -> RepairStep:
    return RepairStep(CREATE, path, data, note=note)


def replace(path: str, data: bytes, note: str = "") -> RepairStep:
    return RepairStep(REPLACE, path, data, note=note)


def move(path: str, note: str = "") -> RepairStep:
    return RepairStep(MOVE, path, note=note)


def set_properties(entries: Mapping[str, str]) -> RepairStep:
    return RepairStep(SET, PROPERTIES_FILE, entries=entries)


def apply(storage: Storage, step: RepairStep, backup: str) -> None:
    """Execute the step.

    Args:
        backup: the folder below the table that keeps what is taken away; "" to delete it.

    Raises:
        StorageError: the storage refused; the step may be done again.
    """
    if step.kind == CREATE:
        try:
            storage.create(step.path, step.data)
        except FileExistsError:  # an earlier run came this far, or a writer made it
            return
    elif step.kind == REPLACE:
        if backup and storage.info(step.path) is not None:
            storage.copy(step.path, f"{backup}/{step.path}")
        storage.publish(step.path, step.data)
    elif step.kind == SET:
        if backup:
            storage.copy(step.path, f"{backup}/{step.path}")
        table_config.update(storage, step.entries)
    else:
        _move(storage, step.path, backup)


def _move(storage: Storage, path: str, backup: str) -> None:
    info = storage.info(path)
    if info is None:
        return
    if backup:
        target = f"{backup}/{path}"
        storage.make_dir(target.rpartition("/")[0])
        storage.rename(path, target)
    elif info.is_dir:
        storage.delete_dir(path)
    else:
        storage.delete(path)
