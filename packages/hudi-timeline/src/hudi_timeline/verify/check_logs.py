"""Log file checks: block framing, and presence of committed data.

Source: spec "Log format"; what counts as damage says `hudi_format.log.corruption`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError
from hudi_format.file_names import parse_cdc_file, parse_log_file
from hudi_format.log.block import BlockType, Damage, LogBlock
from hudi_format.log.corruption import CommittedRange, check_file, check_header
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.reader import LogFileReader
from hudi_format.model import LogFile, join_path
from hudi_format.schema.avro import from_avro
from hudi_timeline.file_system_view.file_slices import add_range
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import TableFacts, live_files


@dataclass(frozen=True)
class _LogToCheck:
    file: LogFile
    changes: bool

    @property
    def path(self) -> str:
        return join_path(self.file.partition, self.file.name)


def check_logs(
    facts: TableFacts, report: VerifyReport, *, deep: bool = False, sound: set[str] | None = None
) -> None:
    """Run the log file checks.

    Args:
        deep: also decode what the blocks hold.
        sound: as of `verify`.
    """
    known = set() if sound is None else sound
    ranges = _ranges(facts)
    files = []
    for partition, entries in facts.partitions.items():
        for entry in entries:
            log = parse_log_file(partition, entry.name, entry.size)
            cdc = None if log is not None else parse_cdc_file(partition, entry.name, entry.size)
            if log is not None or cdc is not None:
                files.append(_LogToCheck(log or cdc, cdc is not None))  # type: ignore[arg-type]

    def one(file: _LogToCheck) -> Sequence[LogBlock]:
        return _check_file(facts, file, ranges, report, known, deep=deep)

    blocks = dict(zip((f.path for f in files), facts.each(one, files), strict=True))
    if not facts.config.version.names_logs_by_own_instant and not facts.is_metadata:
        _check_instants(facts, files, blocks, report)
    if files and facts.config.table_type == "COPY_ON_WRITE":
        _check_hidden(facts, files, report)


def _ranges(facts: TableFacts) -> dict[str, list[CommittedRange] | None]:
    """Byte ranges of completed instants by path; None where a size is missing."""
    out: dict[str, list[CommittedRange] | None] = {}
    for instant, commit in facts.written.items():
        for stat in commit.files:
            if parse_log_file(stat.partition, stat.path.rpartition("/")[2]) is None:
                continue
            add_range(out, instant, stat)
    return out


def _check_file(
    facts: TableFacts,
    file: _LogToCheck,
    ranges: Mapping[str, list[CommittedRange] | None],
    report: VerifyReport,
    known: set[str],
    *,
    deep: bool,
) -> Sequence[LogBlock]:
    own_instant = facts.config.version.names_logs_by_own_instant
    path, time = file.path, file.file.instant
    pending = time in facts.pending_times
    try:
        with LogFileReader.open(facts.storage, path) as log:
            blocks = log.blocks
            if file.changes:
                if not pending:
                    check_file(blocks, file=path, size=log.size)
            elif own_instant and pending:
                return blocks  # an open write's: it is completed or deleted
            else:
                visible = None if own_instant else facts.timeline.visible()
                unknown = facts.unreadable_times and path not in ranges
                committed = None if unknown else ranges.get(path, None if own_instant else ())
                check_file(blocks, file=path, size=log.size, visible=visible, committed=committed)
            _check_rest(file, blocks, report)
            if deep and path not in known:
                for block in blocks:
                    if block.type is not BlockType.CORRUPT and block.type is not BlockType.CDC_DATA:
                        _check_content(log, block, path, report)
                known.add(path)
            return blocks
    except MissingFileError:  # cleaned since the listing
        return ()
    except CorruptFileError as e:
        report.add("log-damaged", path, e.message, e.instant, offset=e.details.get("offset", 0))
        return ()


def _check_rest(file: _LogToCheck, blocks: Sequence[LogBlock], report: VerifyReport) -> None:
    """Check headers of valid blocks, and damage outside of committed ranges."""
    for block in blocks:
        if block.damage is not Damage.NONE:
            if not block.damage.may_be_cut_off:
                report.add("log-damaged-uncommitted", file.path, f"at byte {block.offset}: {block.damage.text}, "
                           f"{block.size} bytes that no completed commit wrote", block.instant,
                           offset=block.offset)  # fmt: skip
            continue
        if file.changes:
            continue
        try:
            check_header(block)
        except HudiError as e:
            report.add("log-header", file.path, e.message, block.instant, offset=block.offset)


def _check_content(log: LogFileReader, block: LogBlock, path: str, report: VerifyReport) -> None:
    try:
        if block.type is BlockType.DELETE:
            read_deletes(block, log.content(block))
        elif block.type is not BlockType.COMMAND:
            # The metadata table's records hold unions of many types.
            schema = (
                from_avro(block.schema, times_as_numbers=True) if block.type is BlockType.HFILE_DATA else None
            )
            deque(BlockDecoder(schema=schema).batches(block, log.content(block)), maxlen=0)
    except HudiError as e:
        report.add("log-content", path, e.message, block.instant, offset=block.offset)


def _check_instants(
    facts: TableFacts,
    files: Sequence[_LogToCheck],
    blocks: Mapping[str, Sequence[LogBlock]],
    report: VerifyReport,
) -> None:
    """Report blocks of unknown instants, which readers accept after archival."""
    undone: dict[tuple[str, str], set[str]] = {}
    for file in files:
        group = (file.file.partition, file.file.file_id)
        undone.setdefault(group, set()).update(b.target_instant for b in blocks[file.path] if b.is_rollback)
    archived = facts.timeline.archived()
    for file in files:
        group = (file.file.partition, file.file.file_id)
        for block in blocks[file.path]:
            time = block.instant
            if block.damage is not Damage.NONE or block.type is BlockType.COMMAND or not time:
                continue
            if time in facts.known_times or time in undone[group] or time in archived:
                continue
            report.add("log-block-of-no-instant", file.path,
                       f"the block at byte {block.offset} is of the instant {time}, which is on no timeline, "
                       "and was not rolled back", time, offset=block.offset)  # fmt: skip


def _check_hidden(facts: TableFacts, files: Sequence[_LogToCheck], report: VerifyReport) -> None:
    """Report log files of the newest slices of a table that was merge on read: other readers pass over them."""
    live = live_files(facts)
    for file in files:
        if not file.changes and file.path in live:
            report.add("log-of-copy-on-write", file.path,
                       "the table is copy on write, and the newest slice of its file group has this log file",
                       partition=file.file.partition)  # fmt: skip
