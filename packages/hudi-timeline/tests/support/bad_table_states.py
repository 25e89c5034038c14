"""States of a table that a write would damage or cannot trust, each with the code of the error that must come."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bad_input import Bad, rows

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

Arrange = Callable[[Path], None]
LATER = "20991231235959999"


def upsert(table: Path) -> object:
    return execute(LocalEngine(), open_storage(str(table)), rows("a"), {})


def set_to(**properties: str) -> Arrange:
    def arrange(path: Path) -> None:
        table_config.update(open_storage(str(path)), {k.replace("__", "."): v for k, v in properties.items()})

    return arrange


def version(number: str, layout: str = "1") -> Arrange:
    return set_to(hoodie__table__version=number, hoodie__timeline__layout__version=layout)


def write(name: str, data: bytes = b"") -> Arrange:
    def arrange(path: Path) -> None:
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    return arrange


def newest(path: Path, pattern: str) -> Path:
    return sorted(path.glob(pattern))[-1]


def on_newest(pattern: str, change: Callable[[Path], Any]) -> Arrange:
    def arrange(path: Path) -> None:
        change(newest(path, pattern))

    return arrange


def broken_history(commit: Path) -> None:
    folder = commit.parent / ".schema"
    folder.mkdir(exist_ok=True)
    (folder / f"{commit.stem}.schemacommit").write_bytes(b"{}")


def commit_names_a_missing_file(path: Path) -> None:
    file = newest(path, ".hoodie/*.commit")
    found = json.loads(file.read_bytes())
    for stats in found["partitionToWriteStats"].values():
        for stat in stats:
            stat["path"] = stat["path"].replace("-0_", "-9_")
            stat["fileId"] = stat["fileId"][:-1] + "9"
    file.write_bytes(json.dumps(found).encode())


def latest_file(path: Path) -> Path:
    return path / HudiTable.open(str(path)).read(filter="id = 'a'").plan_files()[0].path


def on_latest_file(change: Callable[[Path], Any]) -> Arrange:
    def arrange(path: Path) -> None:
        change(latest_file(path))

    return arrange


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def no_table(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def foreign(path: Path) -> None:
    no_table(path)
    (path / "notes.txt").write_text("mine")


STATES = [
    Bad("a folder without a table", "HUDI-E0101", lambda p: HudiTable.open(str(p)), no_table),
    Bad("a folder with something else", "HUDI-E0101", upsert, foreign),
    Bad("no properties", "HUDI-E0101", upsert, on_newest(".hoodie/hoodie.properties", lambda f: f.unlink())),
    Bad("empty properties", "HUDI-E0401", upsert, write(".hoodie/hoodie.properties")),
    Bad("properties of another table", "HUDI-E0401", upsert, on_newest(
        ".hoodie/hoodie.properties",
        lambda f: f.write_bytes(f.read_bytes().replace(b"hoodie.table.name=trips", b"hoodie.table.name=other")))),
    Bad("properties that are no text", "HUDI-E0401", upsert, write(".hoodie/hoodie.properties", b"\xff\xfe\x00")),
    Bad("table version 4", "HUDI-E0201", upsert, version("4")),
    Bad("table version 5", "HUDI-E0201", upsert, version("5")),
    Bad("table version 7", "HUDI-E0201", upsert, version("7")),
    Bad("table version 10", "HUDI-E0201", upsert, version("10")),
    Bad("a table version that is no number", "HUDI-E0401", upsert, on_newest(
        ".hoodie/hoodie.properties",
        lambda f: f.write_bytes(f.read_bytes().replace(b"table.version=6", b"table.version=six")))),
    Bad("timeline layout 0", "HUDI-E0201", upsert, version("6", "0")),
    Bad("an unknown table type", "HUDI-E0201", upsert, set_to(hoodie__table__type="SHREDDED")),
    Bad("ORC base files", "HUDI-E0201", upsert, set_to(hoodie__table__base__file__format="ORC")),
    Bad("a key generator of the user's", "HUDI-E0201", upsert,
        set_to(hoodie__table__keygenerator__class="com.example.Keys")),
    Bad("a schema history of another form", "HUDI-E0401", upsert, on_newest(".hoodie/*.commit", broken_history)),
    Bad("a restore that is not finished", "HUDI-E0201", upsert, write(f".hoodie/{LATER}.restore.inflight")),
    Bad("a bootstrap whose data lie elsewhere", "HUDI-E0201", upsert,
        write(".hoodie/00000000000001.commit", b'{"partitionToWriteStats":{}}')),
    Bad("an empty completed commit", "HUDI-E0401", upsert,
        on_newest(".hoodie/*.commit", lambda f: f.write_bytes(b""))),
    Bad("a commit that is no JSON", "HUDI-E0401", upsert,
        on_newest(".hoodie/*.commit", lambda f: f.write_bytes(b"{"))),
    Bad("a commit of another shape", "HUDI-E0401", upsert,
        on_newest(".hoodie/*.commit", lambda f: f.write_bytes(b"[1]"))),
    Bad("a commit with a schema that cannot be parsed", "HUDI-E0401", upsert, on_newest(
        ".hoodie/*.commit",
        lambda f: f.write_bytes(f.read_bytes().replace(b'\\"type\\":\\"record\\"', b'\\"type\\":\\"rekord\\"')))),
    Bad("a commit in the far future", "HUDI-E0604", upsert,
        write(f".hoodie/{LATER}.commit", b'{"partitionToWriteStats":{},"extraMetadata":{}}')),
    Bad("a base file that is gone", "HUDI-E0402", upsert, on_latest_file(lambda f: f.unlink()), begun=True),
    Bad("a base file cut short", "HUDI-E0401", upsert, on_latest_file(cut), begun=True),
    Bad("a base file of zeros", "HUDI-E0401", upsert,
        on_latest_file(lambda f: f.write_bytes(bytes(f.stat().st_size))), begun=True),
    Bad("a commit that names files which are not there", "HUDI-E0402", upsert, commit_names_a_missing_file,
        begun=True),
]  # fmt: skip
