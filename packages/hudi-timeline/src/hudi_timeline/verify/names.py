"""Checks of names in the table's folders: data files, partition metadata files, and `.crc` files of local Hadoop."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping

from hudi_format import properties as props
from hudi_format.errors import CorruptFileError
from hudi_format.model import join_path
from hudi_format.names import (
    PARTITION_METADATA,
    parse_base_file,
    parse_cdc_file,
    parse_log_file,
)
from hudi_format.partition_metadata import depth_of
from hudi_timeline.leftovers import STAGING
from hudi_timeline.verify.facts import Facts, is_old
from hudi_timeline.verify.finding import Report

_CRC = re.compile(r"\.(.+)\.crc\Z")
_CRC_HEAD = b"crc\x00"
# Apache Hudi's consistent-hashing index leaves these among the data; Spark's committers leave `_SUCCESS`.
_KNOWN = re.compile(r"[0-9]{14,17}\.commit\Z|_SUCCESS\Z|_common_metadata\Z|_metadata\Z")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp\Z")
_LARGEST_CRC_CHECK = 8 << 20  # bytes of a data file whose .crc is recomputed without `deep`


def instant_of(partition: str, name: str) -> str | None:
    """The instant in the name of a data file, "" for a partition's own files; None for a name that is no name."""
    file = (
        parse_base_file(partition, name) or parse_log_file(partition, name) or parse_cdc_file(partition, name)
    )
    if file is not None:
        return file.instant
    known = name.startswith(PARTITION_METADATA) or _KNOWN.match(name) or _CRC.match(name)
    return "" if known else None


def check_names(facts: Facts, report: Report, *, deep: bool = False) -> None:
    """All checks of this module."""
    for folder, files in facts.folders.items():
        if folder.startswith(STAGING):
            continue
        hudi = [f.name for f in files if parse_base_file(folder, f.name) or parse_log_file(folder, f.name)]
        if folder not in facts.partitions:
            if hudi:
                path = join_path(folder, PARTITION_METADATA)
                report.add(
                    "partition-metadata-missing",
                    path,
                    f"the folder has {len(hudi)} data files and is not marked as a partition: no reader looks into it",
                    instant=min(filter(None, (instant_of(folder, n) for n in hudi))),
                    partition=folder,
                )
            continue
        for file in files:
            if instant_of(folder, file.name) is None:
                at_work = _TEMPORARY.match(file.name) and not is_old(file)
                if not at_work:
                    report.add(
                        "name-unknown", join_path(folder, file.name), "no name of a file of a Hudi table"
                    )
    _check_nested(facts, report)
    _check_partition_metadata(facts, report)
    _check_crcs(facts, report, deep=deep)


def _check_nested(facts: Facts, report: Report) -> None:
    for folder in facts.partitions:
        parts = folder.split("/") if folder else []
        around = next((p for n in range(len(parts)) if (p := "/".join(parts[:n])) in facts.partitions), None)
        if around is not None:
            report.add(
                "partition-nested",
                folder,
                f"the partition lies inside of {around or 'that of the whole table'}: without a metadata table "
                "Apache Hudi reads none of its rows",
                partition=folder,
            )


def _check_partition_metadata(facts: Facts, report: Report) -> None:
    found = [(p, f) for p, files in facts.partitions.items() for f in files if f.name == PARTITION_METADATA]

    def problem(item: tuple[str, object]) -> str:
        partition = item[0]
        path = join_path(partition, PARTITION_METADATA)
        try:
            entries: Mapping[str, str] = props.parse(facts.storage.read(path), path=path)
        except FileNotFoundError:
            return ""
        except CorruptFileError as e:
            return e.message
        depth = entries.get("partitionDepth", "")
        if depth != str(depth_of(partition)):
            return f"it says partitionDepth={depth}, the folder is {depth_of(partition)} deep"
        return "" if entries.get("commitTime", "").isdigit() else "it says no commitTime"

    for (partition, _), text in zip(found, facts.each(problem, found), strict=True):
        if text:
            report.add(
                "partition-metadata", join_path(partition, PARTITION_METADATA), text, partition=partition
            )


def _check_crcs(facts: Facts, report: Report, *, deep: bool) -> None:
    names: dict[str, dict[str, int]] = {
        folder: {f.name: f.size for f in files} for folder, files in facts.folders.items()
    }
    for folder in dict.fromkeys((".hoodie", facts.config.timeline_folder)):
        names[folder] = {e.name: e.size for e in facts.storage.list(folder) if not e.is_dir}
    todo = list(_crcs(names))
    for folder, name, target in [t for t in todo if t[2] not in names[t[0]]]:
        report.add("crc-orphan", join_path(folder, name), f"the file that it is of, {target}, is not there")
    there = [
        (folder, name, target)
        for folder, name, target in todo
        if target in names[folder] and (deep or names[folder][target] <= _LARGEST_CRC_CHECK)
    ]

    def differs(item: tuple[str, str, str]) -> bool:
        folder, name, target = item
        try:
            said = facts.storage.read(join_path(folder, name))
            return not _crc_holds(said, facts.storage.read(join_path(folder, target)))
        except FileNotFoundError:
            return False

    for (folder, name, target), wrong in zip(there, facts.each(differs, there), strict=True):
        if wrong:
            report.add("crc-mismatch", join_path(folder, name),
                       f"its checksums are not those of {target}: Hadoop's local file system refuses the file",
                       target=join_path(folder, target))  # fmt: skip


def _crcs(names: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str, str]]:
    for folder, files in names.items():
        for name in files:
            match = _CRC.match(name)
            if match is not None:
                yield folder, name, match[1]


def _crc_holds(said: bytes, data: bytes) -> bool:
    """Source: ChecksumFileSystem of Hadoop: "crc", 0, bytes for each checksum, CRC-32s."""
    if said[:4] != _CRC_HEAD or len(said) < 8:
        return False
    size = int.from_bytes(said[4:8], "big")
    if size <= 0 or len(said) - 8 != 4 * -(-len(data) // size):
        return False
    view = memoryview(data)
    return all(
        zlib.crc32(view[at : at + size]) == int.from_bytes(said[8 + n * 4 : 12 + n * 4], "big")
        for n, at in enumerate(range(0, len(data), size))
    )
