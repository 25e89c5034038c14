"""What a reader's options mean: one frozen value, parsed once at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReadConfig:
    """Parsed options of one read.

    Attributes:
        query_type: snapshot, read_optimized or incremental.
        as_of: instant or date as the user wrote it; parsed against the table's time zone later.
        begin, end: of an incremental query, (begin, end].
        paths: paths and globs to read with, or instead of, the path of the table.
        incr_path_glob: incremental queries read only files whose path ends like it; "" is all.
        columns: our own option `hoodie.python.read.columns`, top-level names; None is all.
        filter: our own option `hoodie.python.read.filter`, a text such as `city = 'oslo' and fare < 3`.
        fallback_full_scan: an incremental query whose files are gone reads the whole table.
        hollow_policy: FAIL or BLOCK, where a commit is open before completed ones.
        use_end_schema: incremental rows have the schema of the last instant, not the newest.
        extract_partition_values_from_path: partition columns hold the text of the path.
        metadata_enable: None if not given.
        raw: what was given, untouched; `canonical` the same under each option's main name.
    """

    query_type: str = "snapshot"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    paths: tuple[str, ...] = ()
    incr_path_glob: str = ""
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    fallback_full_scan: bool = False
    hollow_policy: str = "FAIL"
    use_end_schema: bool = False
    extract_partition_values_from_path: bool = False
    metadata_enable: bool | None = None
    raw: Mapping[str, str] = field(default_factory=dict)
    canonical: Mapping[str, str] = field(default_factory=dict)
