"""Report of a write conflict: the rival, keys that both wrote, safety of a retry.

It is made after the lock is given back, of files that are there: of the rival's, and of those of the write that lost,
before they are rolled back.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.errors import HudiError, WriteConflictError
from hudi_format.file_names import parse_log_file
from hudi_format.file_slice.cdc_images import logged_keys
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import WriteStat
from hudi_format.parquet.reader import read_table
from hudi_format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.file_system_view.snapshot import TableSnapshot, is_base_file
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.transaction_options import OVERLAPPING
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction.conflict_strategies import FileGroup

# In the commit's extraMetadata: engine, process and host of its writer, as JSON.
WRITER_NOTE = "hudi.writer"
_GROUPS_READ, _KEYS_SHOWN = 3, 5
_META = pa.schema([(RECORD_KEY, pa.string()), (COMMIT_TIME, pa.string())])


def writer_note(options: TransactionConfig, engine: str) -> dict[str, str]:
    """Entry of a commit beside others that says who made it."""
    if options.mode not in OVERLAPPING:
        return {}
    who = {"engine": engine, "process": os.getpid(), "host": socket.gethostname()}
    return {WRITER_NOTE: json.dumps(who, sort_keys=True)}


def owner_of(snapshot: TableSnapshot, rival: str) -> str:
    """Operation and writer of an instant, in words; "" where nothing is known."""
    instant = snapshot.timeline.find(rival)
    if instant is None:
        return ""
    if instant.completed:
        commit = snapshot.commits.get(instant)
        return f"{commit.operation} by {_noted(commit.extra)}"
    who = heartbeat.liveness(snapshot.storage, rival).process
    return f"pending {instant.action} of {who}" if who else f"pending {instant.action}"


@contextmanager
def owners_named(current: Callable[[], TableSnapshot]) -> Iterator[None]:
    """Scope in which conflicts name the rival's owner, also those found before the commit.

    Args:
        current: gives the table after the conflict was found.
    """
    try:
        yield
    except WriteConflictError as error:
        if error.rival and not error.owner:
            try:
                owner = error.details["owner"] = owner_of(current(), error.rival)
                if owner:
                    error.message = f"{error.message}; the other write is {owner}"
            except (HudiError, OSError) as e:
                error.add_note(f"The owner of {error.rival} is not known: {e}")
        raise


def _noted(extra: Mapping[str, str]) -> str:
    """Writer by its note, which any writer may have made up."""
    try:
        note = json.loads(extra[WRITER_NOTE])
        return f"{str(note['engine'])[:40]} in process {int(note['process'])} on {str(note['host'])[:80]}"
    except (KeyError, ValueError, TypeError, RecursionError):
        return "a writer that left no name"


def complete(
    error: WriteConflictError,
    current: Callable[[], TableSnapshot],
    instant: str,
    metadata: CommitMetadata,
    *,
    every_group: bool = False,
) -> None:
    """Add to a conflict what its report says.

    Args:
        current: gives the table after the conflict was found.
        instant, metadata: of the write that lost.
        every_group: keys of all shared file groups are compared, not of a few.
    """
    rival = error.rival
    details = error.details
    details.setdefault("retry_safe", True)
    if not rival:
        return
    try:
        now = current()
        details["owner"] = owner_of(now, rival)
        shared = details.get("groups")
        groups = shared if isinstance(shared, list) else []
        most = len(groups) if every_group else _GROUPS_READ
        keys, whole = _shared_keys(now, instant, metadata, rival, groups, most)
    except (HudiError, OSError) as e:
        error.add_note(f"The report of the conflict is incomplete: {e}")
        return
    if keys or not details.get("keys"):
        details["keys"] = keys[:_KEYS_SHOWN]
    # Known to be others: the two do not contradict each other, and the write only has to be made again.
    details["keys_disjoint"] = whole and not keys
    more = []
    if details["owner"]:
        more.append(f"the other write is {details['owner']}")
    if keys:
        rest = f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
        more.append(f"both wrote the keys {', '.join(keys[:_KEYS_SHOWN])}{rest}")
    elif details["keys_disjoint"]:
        more.append("no key was written by both")
    more.append("a retry is safe" if error.retry_safe else "a retry is not safe")
    error.message = "; ".join((error.message, *more))


def _shared_keys(
    now: TableSnapshot,
    instant: str,
    metadata: CommitMetadata,
    rival: str,
    shared: Sequence[FileGroup],
    most: int,
) -> tuple[list[str], bool]:
    """Keys that both writes wrote in shared file groups, and whether these are all."""
    there = now.timeline.find(rival)
    if there is None or not there.completed or not shared:
        return [], False
    theirs = _by_group(now.commits.get(there))
    ours = _by_group(metadata)
    found: list[str] = []
    whole = len(shared) <= most
    for group in shared[:most]:
        if group not in ours or group not in theirs:
            return found, False
        mine = written_keys(now.storage, now.config, instant, ours[group])
        other = written_keys(now.storage, now.config, rival, theirs[group])
        if mine is None or other is None:
            return found, False
        found += pc.filter(mine, pc.is_in(mine, value_set=other)).to_pylist()
        # Of a record that was deleted nothing says in a base file which one it was.
        whole = whole and not any(s.num_deletes for s in (*ours[group], *theirs[group]))
    return list(dict.fromkeys(found)), whole  # a key that stands twice is one


def _by_group(metadata: CommitMetadata) -> dict[FileGroup, list[WriteStat]]:
    out: dict[FileGroup, list[WriteStat]] = {}
    for stat in metadata.stats:
        out.setdefault((stat.partition, stat.file_id), []).append(stat)
    return out


def written_keys(
    storage: Storage, config: TableConfig, instant: str, stats: Sequence[WriteStat]
) -> pa.Array | None:
    """Distinct record keys that a write wrote to files; None where files do not say.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: reading them.
    """
    if not config.populate_meta_fields:
        return None
    found: list[pa.Array] = []
    for stat in stats:
        if is_base_file(stat.path):
            rows = read_table(storage, stat.path, schema=_META)
            mine = rows.filter(pc.equal(rows.column(COMMIT_TIME), instant))
            found.append(one_array(mine.column(RECORD_KEY)).cast(pa.string()))
            continue
        partition, _, name = stat.path.rpartition("/")
        log = parse_log_file(partition, name)
        if log is None:
            return None
        merge = SliceMerge(rule=payload_rule(None), scope=BlockScope(instants=frozenset([instant])))
        found.append(logged_keys(storage, [log], merge, _META))
    return pc.unique(pa.chunked_array(found, pa.string()))
