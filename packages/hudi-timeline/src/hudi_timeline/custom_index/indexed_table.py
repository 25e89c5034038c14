"""A table as an index of one's own sees it, and the look-up of a write by that index.

Where it cannot be asked, keys are looked for in the files of all partitions, with a warning: that finds the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_format.errors import ConcurrentWriterError, HudiError, OptionError, UnsupportedError
from hudi_format.model import FileSlice, VisibleInstants
from hudi_format.storage.protocol import Storage
from hudi_index.custom_index.index_class import CustomIndex, KeyStore, load_index
from hudi_index.lookup import CUSTOM, GLOBAL_SIMPLE, LookupTask
from hudi_index.record_index import UNREADABLE
from hudi_timeline.custom_index.catch_up import StoreNote, next_change
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import TableSnapshot, open_snapshot
from hudi_timeline.options import parse_write_options
from hudi_timeline.options.file_options import INDEX_CLASS
from hudi_timeline.table_config import INDEX_CLASS as NAMED_BY_TABLE

_TRIES = 5


@dataclass(frozen=True, slots=True)
class TableOfIndex:
    """State of a table for its index; an `IndexedTable`."""

    snapshot: TableSnapshot
    groups: Mapping[str, tuple[str, ...]]

    @property
    def uri(self) -> str:
        return self.snapshot.storage.uri

    @property
    def visible(self) -> VisibleInstants:
        return self.snapshot.visible()

    def catch_up(self, store: KeyStore, *, anew: bool = False) -> None:
        snapshot = self.snapshot
        for _ in range(_TRIES):
            text = store.note()
            if anew or (text and StoreNote.parse(text).is_ahead(snapshot.timeline)):
                # Another writer has brought it further, or commits were undone: the timeline says which.
                snapshot = snapshot.reloaded()
            change = next_change(snapshot, text, anew=anew)
            if change is None or store.change(change):
                return
        raise ConcurrentWriterError(
            f"other writers changed the index each of the {_TRIES} times that it was brought up to date",
            table=self.uri,
            remedy="run the write again.",
        )


def with_custom_index(
    task: LookupTask,
    slices: Mapping[str, Sequence[FileSlice]],
    snapshot: TableSnapshot,
    index: CustomIndex | None,
) -> LookupTask:
    """The task of a look-up with an index of one's own, or of one without it.

    Args:
        task: of the index CUSTOM.
        slices: of the whole table.
        index: None where the write names none.

    Raises:
        StorageError: its store does not answer.
        OptionError: its arguments.
    """
    groups = {p: tuple(s.file_id for s in of) for p, of in slices.items()}
    if not any(groups.values()):
        return replace(task, index=GLOBAL_SIMPLE)
    if index is None:
        known = snapshot.config.properties.get(NAMED_BY_TABLE, "")
        why = (
            f"the write does not name it ({INDEX_CLASS}={known or '...'}), and code that only the table names is not "
            "loaded"
        )
    else:
        try:
            return replace(task, locator=index.locator(TableOfIndex(snapshot, groups)), groups=groups)
        except UNREADABLE as e:
            why = str(e)
    instead = (
        "the index of the table could not be asked, and keys were looked for in the files of all partitions "
        f"({GLOBAL_SIMPLE}): {why}"
    )
    return replace(task, index=GLOBAL_SIMPLE, instead=instead)


def custom_index(name: str | None, arguments: Mapping[str, str]) -> CustomIndex | None:
    """Index that a user's options name; None where they name none.

    Raises:
        InvalidOptionError: no such class.
        OptionError: of its arguments; what else it raises is one too.
    """
    if not name:
        return None
    cls = load_index(name)
    try:
        return cls(dict(arguments))
    except HudiError:
        raise
    except Exception as e:
        raise OptionError(
            f"the index {name} could not be made: {e!r}",
            remedy="correct the options below hudi.index.argument.",
            option=INDEX_CLASS,
        ) from e


def rebuild_index(storage: Storage, options: Mapping[str, str]) -> int:
    """Make an index of one's own anew from the files; returns the number of file groups.

    Raises:
        OptionError: options without `hoodie.index.class`, or a class or arguments that are none.
        StorageError, CorruptFileError: of the store, or of the table.
        UnsupportedError: a table with virtual keys.
    """
    config = parse_write_options(options)
    index = custom_index(config.index_class, config.index_arguments)
    if index is None:
        raise OptionError(
            f"{INDEX_CLASS} names no custom index",
            table=storage.uri,
            remedy=f"give {INDEX_CLASS}=sqlite, or a class of yours; those of the metadata table are built by "
            "`hudi index run`.",
            option=INDEX_CLASS,
        )
    snapshot = open_snapshot(storage)
    if not snapshot.config.populate_meta_fields:
        raise UnsupportedError(
            f"a table with virtual keys has no index {CUSTOM}",
            table=snapshot.storage.uri,
            remedy="use the index SIMPLE or BUCKET.",
        )
    groups: dict[str, list[str]] = {}
    for part in newest_slices_of(snapshot):
        groups.setdefault(part.partition, []).append(part.file_id)
    index.rebuild(TableOfIndex(snapshot, {p: tuple(ids) for p, ids in groups.items()}))
    return sum(map(len, groups.values()))
