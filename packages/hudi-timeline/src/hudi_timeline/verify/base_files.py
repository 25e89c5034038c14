"""Checks of base files by their footers: readable, as many rows as the commit says, a bloom filter that is one."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.orc as po

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.model import BaseFile
from hudi_format.names import parse_base_file
from hudi_format.parquet.footer import Footer, read_footer
from hudi_format.schema.meta_columns import META_COLUMNS
from hudi_index.bloom.observer import BLOOM, OLD_BLOOM, TYPE_CODE
from hudi_index.bloom.probe import filter_text
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import Report


@dataclass(frozen=True)
class CheckedFile:
    """A base file that could be read.  `footer` is None for other files than Parquet's."""

    file: BaseFile
    rows: int
    footer: Footer | None = None


def check_base_files(facts: Facts, report: Report) -> list[CheckedFile]:
    """All checks of this module; the files that can be read."""
    rows = {s.path: s.num_writes for commit in facts.commits.values() for s in commit.stats}
    files = [
        base
        for partition, entries in facts.partitions.items()
        for entry in entries
        if (base := parse_base_file(partition, entry.name, entry.size)) is not None
        and base.instant not in facts.pending_times
    ]

    def one(file: BaseFile) -> CheckedFile | None:
        return _check(facts, file, rows.get(file.path), report)

    return [f for f in facts.each(one, files) if f is not None]


def _check(facts: Facts, file: BaseFile, written: int | None, report: Report) -> CheckedFile | None:
    try:
        found = _open(facts, file)
    except (MissingFileError, UnsupportedError):
        return None  # cleaned since the listing; or encrypted, say, and not ours to judge
    except CorruptFileError as e:
        lacks = e.details.get("column") in META_COLUMNS
        report.add(
            "base-file-meta-columns" if lacks else "base-file-unreadable", file.path, e.message, file.instant
        )
        return None
    if written is not None and found.rows != written and not facts.is_metadata:
        report.add("base-file-rows", file.path, f"it has {found.rows} rows, its commit says {written}", file.instant,
                   rows=found.rows, committed=written)  # fmt: skip
    if found.footer is None:
        return found
    if facts.config.populate_meta_fields:
        missing = [c for c in META_COLUMNS if c not in found.footer.schema.names]
        if missing:
            report.add(
                "base-file-meta-columns", file.path, f"it has no column {', '.join(missing)}", file.instant
            )
            return None
    try:
        # Its headers and length; all of it is decoded where the data is read too.
        text = found.footer.entries.get(BLOOM) or found.footer.entries.get(OLD_BLOOM)
        if text:
            filter_text(memoryview(text.encode()), found.footer.entries.get(TYPE_CODE))
    except CorruptFileError as e:
        report.add("base-file-bloom", file.path, e.message, file.instant)
    return found


def _open(facts: Facts, file: BaseFile) -> CheckedFile:
    storage, path = facts.storage, file.path
    if path.endswith(".hfile"):
        reader = HFileReader.open(storage, path)
        return CheckedFile(file, sum(b.num_rows for b in reader.batches()))
    if path.endswith(".orc"):
        try:
            with storage.open_input(path) as source:
                return CheckedFile(file, int(po.ORCFile(source).nrows))
        except FileNotFoundError:
            raise MissingFileError("the base file is missing", file=path) from None
        except (pa.ArrowException, OSError, ValueError) as e:
            raise CorruptFileError(
                f"the base file cannot be read as ORC: {str(e).splitlines()[0]}", file=path
            ) from None
    footer = read_footer(storage, path)
    return CheckedFile(file, footer.num_rows, footer)
