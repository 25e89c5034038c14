"""File names of base files and log files: construction and parsing.

Source: base files `<fileId>_<writeToken>_<instant>.<ext>`, log files
`.<fileId>_<instant>.log.<version>[_<writeToken>][.cdc]` (Hudi format, "File naming").
"""

from __future__ import annotations

import hashlib
import re
import uuid

from hudi_format.model import BaseFile, LogFile

PARTITION_METADATA = ".hoodie_partition_metadata"
META_DIR = ".hoodie"

BASE_NAME = r"(?P<file_id>[^_./][^_/]*)_(?P<token>[^_/]+)_(?P<instant>[0-9]+)\.(?:parquet|orc|hfile)"
"""Pattern of a base file's name, for Python and for Arrow."""
_BASE = re.compile(BASE_NAME)
_LOG = re.compile(r"\.([^_/]+)_([0-9]+)\.log\.([0-9]{1,10})(?:_([0-9]+-[0-9]+-[0-9]+))?(\.cdc)?")


def base_file_name(file_id: str, write_token: str, instant: str, extension: str = "parquet") -> str:
    return f"{file_id}_{write_token}_{instant}.{extension}"


def new_file_id_prefix(seed: str = "", *parts: object) -> str:
    """New file id without the trailing number of its insert bucket.

    Args:
        seed: what it is made of, with `parts`, which tell the file groups of one write apart; "" for a random one.
    """
    if not seed:
        return str(uuid.uuid4())
    text = "\0".join((seed, *map(str, parts)))
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))


def write_token(partition_id: int, stage_id: int, attempt_id: int) -> str:
    return f"{partition_id}-{stage_id}-{attempt_id}"


def new_stage_id() -> int:
    """New stage id of a write token, from 1 to 2^31 - 1.

    It is random: a plan that is run again writes files of other names.
    """
    return uuid.uuid4().int % ((1 << 31) - 1) + 1


def parse_base_file(partition: str, name: str, size: int = -1) -> BaseFile | None:
    """The base file with this name; None for hidden files, log files and foreign files."""
    match = _BASE.fullmatch(name)
    if match is None:
        return None
    return BaseFile(partition, name, match["file_id"], match["instant"], match["token"], size)


def is_base_file_name(name: str) -> bool:
    """Whether `parse_base_file` accepts the name."""
    return _BASE.fullmatch(name) is not None


def parse_log_file(partition: str, name: str, size: int = -1) -> LogFile | None:
    """The log file with this name, or None; also None for CDC logs, which belong to no slice."""
    return _log_file(partition, name, size, cdc=False)


def parse_cdc_file(partition: str, name: str, size: int = -1) -> LogFile | None:
    """The change-data-capture log file with this name, or None."""
    return _log_file(partition, name, size, cdc=True)


def _log_file(partition: str, name: str, size: int, *, cdc: bool) -> LogFile | None:
    match = _LOG.fullmatch(name)
    if match is None or bool(match[5]) != cdc:
        return None
    return LogFile(partition, name, match[1], match[2], int(match[3]), match[4] or "", size)


def parse_slice_file(partition: str, name: str, size: int = -1) -> BaseFile | LogFile | None:
    """The base file or log file with this name; None for others, and for CDC logs."""
    return parse_base_file(partition, name, size) or parse_log_file(partition, name, size)


def parse_data_file(partition: str, name: str, size: int = -1) -> BaseFile | LogFile | None:
    """The base file, log file or change-data-capture log file with this name, or None."""
    return parse_slice_file(partition, name, size) or parse_cdc_file(partition, name, size)


def log_file_name(file_id: str, instant: str, version: int, write_token: str, *, cdc: bool = False) -> str:
    """Name of a log file.

    `instant` is the slice's base instant, from table version 8 on the delta commit's own.
    """
    return f".{file_id}_{instant}.log.{version}_{write_token}{'.cdc' if cdc else ''}"


def log_sort_key(file: LogFile) -> tuple[str, int, str, bool]:
    """Sort key of a slice's log files in merge order: version 10 comes after 9.

    Source: HoodieLogFile.LogFileComparator of Apache Hudi; a file without a token comes first.
    """
    return file.instant, file.version, file.write_token, file.name.endswith(".cdc")


def is_bucket_file_id(file_id: str) -> bool:
    """Whether a file id has the shape of the bucket index: it begins with eight decimal digits.

    A random UUID has only decimal digits there with probability (10/16)^8, about 2 %; one group is
    therefore no evidence, see `looks_bucketed`.
    """
    return len(file_id) > 8 and file_id[:8].isdecimal() and file_id[8] == "-"


def looks_bucketed(file_ids: list[str]) -> bool:
    """Whether a partition's file ids are those of a bucket index.

    Every id must have the shape, and the numbers must be small: bucket ids count from 0, while a
    random UUID that happens to be all digits is spread over 0..99,999,999.
    """
    return bool(file_ids) and all(is_bucket_file_id(i) and int(i[:8]) < 1_000_000 for i in file_ids)
