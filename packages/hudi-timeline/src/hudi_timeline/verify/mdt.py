"""Checks of the metadata table: is it there, does it list what is there; deep: do its indexes say what is so.

Source: spec "Metadata table", sections 1, 4, 5 and 10.
"""

from __future__ import annotations

from hudi_format.errors import CorruptFileError, MissingFileError, NotAHudiTableError, UnsupportedError
from hudi_format.model import join_path
from hudi_format.names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_timeline.metadata_listing import GONE, NOT_LISTED, OTHER_SIZE, differences
from hudi_timeline.metadata_table import FILES, FOLDER, built
from hudi_timeline.table_config import META_FOLDER
from hudi_timeline.verify.archived_facts import Removed
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import Report

_CODES = {NOT_LISTED: "mdt-not-listed", GONE: "mdt-gone", OTHER_SIZE: "mdt-size"}
_TEXTS = {
    NOT_LISTED: "the file is there, and the metadata table does not list it",
    GONE: "the metadata table lists the file, and it is not there",
    OTHER_SIZE: "it has another size than the metadata table says",
}


def check_presence(facts: Facts, report: Report) -> bool:
    """Whether there is a metadata table that readers ask."""
    storage, config = facts.storage, facts.config
    there = {e.name for e in storage.list(FOLDER)}
    if not built(config):
        if there:
            report.add(
                "mdt-not-used", FOLDER, "a metadata table lies here, and hoodie.properties does not name it"
            )
        return False
    if META_FOLDER not in there or storage.info(f"{FOLDER}/{META_FOLDER}/hoodie.properties") is None:
        report.add("mdt-missing", FOLDER, "hoodie.properties names a metadata table, which is not there")
        return False
    sound = True
    for partition in config.metadata_partitions:
        if not any(not e.is_dir for e in storage.list(f"{FOLDER}/{partition}")):
            report.add("mdt-missing", f"{FOLDER}/{partition}",
                       f"hoodie.properties names the metadata partition {partition}, which is not there")  # fmt: skip
            sound = False
    return sound and FILES in config.metadata_partitions


def check_listing(facts: Facts, report: Report) -> None:
    """The metadata table's listing against storage.  What open writes put there does not count."""
    try:
        found = differences(facts.storage)
    except UnsupportedError:
        return  # of a kind that is not read; its own checks have been
    except (CorruptFileError, MissingFileError, NotAHudiTableError) as e:
        if not any(f.path.startswith(FOLDER) and f.severity == "error" for f in report.findings()):
            report.add("mdt-unreadable", e.file or FOLDER, f"it cannot be read: {e.message}", e.instant)
        return
    going = Removed()
    for pending in facts.timeline.files:
        if pending.time in facts.pending_times:
            going.take(facts.contents.get(pending.path))
    for difference in found:
        path = join_path(difference.partition, difference.name)
        file = (
            parse_base_file(difference.partition, difference.name)
            or parse_log_file(difference.partition, difference.name)
            or parse_cdc_file(difference.partition, difference.name)
        )
        if difference.name and (file is None or report.names(path)):
            continue  # no file of the table; or found already, and the metadata table says what should be
        if not difference.name and not _counts(facts, difference.partition):
            continue
        instant = file.instant if file is not None else ""
        if difference.kind == GONE and going.has(difference.partition, difference.name):
            continue  # an open clean or rollback has come so far
        grows = difference.kind == OTHER_SIZE and (difference.stored or 0) > (difference.listed or 0)
        if instant in facts.pending_times or (grows and facts.pending_times):
            continue
        sizes = (
            f" ({difference.stored} bytes, it says {difference.listed})"
            if difference.kind == OTHER_SIZE
            else ""
        )
        what = (
            _TEXTS[difference.kind]
            if difference.name
            else _TEXTS[difference.kind].replace("file", "partition")
        )
        report.add(_CODES[difference.kind], path, what + sizes, instant)


def _counts(facts: Facts, partition: str) -> bool:
    """Whether a partition that one of the two lacks is more than an empty folder, or than one of an open write."""
    files = facts.partitions.get(partition, ())
    hudi = [parse_base_file(partition, f.name) or parse_log_file(partition, f.name) for f in files]
    return any(f is not None and f.instant not in facts.pending_times for f in hudi)
