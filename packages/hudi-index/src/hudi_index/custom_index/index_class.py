"""Indexes of one's own: what an index class has to have, and how it is found by its name.

    class MyIndex(CustomIndex):
        def __init__(self, arguments): ...              # of the options `hudi.index.argument.NAME`
        def locator(self, table): ...                   # a `KeyLocator`

An index is asked which file group each incoming key is in, over all partitions.  Most keep keys in a store of some
kind: `StoredIndex` is all of an index but the store, which has three methods (`KeyStore`).  A store is brought up to
date from completed commits only, before it is asked, and what it says counts only if the commit that it goes by is on
the timeline: a failed, undone or later write is never believed.

Source: `HoodieIndex` and `SparkHoodieHBaseIndex` of Apache Hudi 0.15, which checks the commit of each entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol

import numpy as np
import pyarrow as pa

from hudi_format.arrow.arrays import one_array
from hudi_format.errors import InvalidOptionError
from hudi_format.model import VisibleInstants
from hudi_index.metadata_table import keys as k
from hudi_index.record_index import Group, KeyLocator, Located

ENTRY_POINTS = "hudi_index.indexes"
"""Group of entry points that name index classes."""
BUILT_IN = {"sqlite": "hudi_index.custom_index.sqlite_index:SqliteIndex"}
_SHARDS = 32


@dataclass(frozen=True, slots=True, eq=False)
class StoredKeys:
    """Entries of a store for keys that were asked for.

    Attributes:
        keys: each as often as the store has it.
        group: number of each one's file group in `groups` (int64).
        groups: each once.
        instant: number of the instant of each entry in `instants` (int64).
    """

    keys: pa.Array
    group: np.ndarray
    groups: tuple[Group, ...]
    instant: np.ndarray
    instants: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StoreChange:
    """One atomic change of a store.

    Attributes:
        after: the note that the store must have; with another one nothing changes.
        note: the store's note afterwards.
        renew: all entries go first.
        groups: file groups that change: entries of theirs that are not in `keys` go.
        keys: those that the file groups hold, in any order.
        group: number of each key's file group in `groups` (int64).
        instant: of the entries that are new.
    """

    after: str
    note: str
    renew: bool
    groups: tuple[Group, ...]
    keys: pa.Array
    group: np.ndarray
    instant: str


class KeyStore(Protocol):
    """Store of keys and their file groups.

    It is picklable, as tasks carry it, and usable by several threads.  A key may have several entries, one for each
    file group.
    """

    def note(self) -> str:
        """Text that came with the last change; "" for an empty store.

        Raises:
            StorageError, CorruptFileError.
        """
        ...

    def change(self, change: StoreChange) -> bool:
        """Make a change, all of it or nothing; False where the store has another note by now.

        Raises:
            StorageError, CorruptFileError.
        """
        ...

    def find(self, keys: pa.Array) -> StoredKeys:
        """Entries of distinct keys, in any order; absent keys have none.

        Raises:
            StorageError, CorruptFileError.
        """
        ...


class IndexedTable(Protocol):
    """State of a table, as far as its index is told."""

    @property
    def uri(self) -> str: ...

    @property
    def visible(self) -> VisibleInstants:
        """Instants whose entries count."""
        ...

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of the file groups by partition; keys in others are looked for in the files."""
        ...

    def catch_up(self, store: KeyStore, *, anew: bool = False) -> None:
        """Bring a store to the state of the table.

        Args:
            anew: whatever it has, in one change: who looks keys up meanwhile finds those of before.

        Raises:
            HudiError: of the table's files, or of the store.
        """
        ...


class CustomIndex(ABC):
    """Base class of indexes of one's own.

    Args:
        arguments: the options below `hudi.index.argument.`, without that.
    """

    @abstractmethod
    def __init__(self, arguments: Mapping[str, str]) -> None: ...

    @abstractmethod
    def locator(self, table: IndexedTable) -> KeyLocator:
        """Locator of keys in this state of the table."""

    def rebuild(self, table: IndexedTable) -> None:
        """Make the index anew."""
        del table  # one that keeps nothing has nothing to do


class StoredIndex(CustomIndex):
    """Index over a store of keys."""

    @abstractmethod
    def store(self, table: IndexedTable) -> KeyStore:
        """The store of the table.

        Raises:
            StorageError, InvalidOptionError.
        """

    def locator(self, table: IndexedTable) -> KeyLocator:
        store = self.store(table)
        table.catch_up(store)
        return StoreLocator(store, table.visible)

    def rebuild(self, table: IndexedTable) -> None:
        table.catch_up(self.store(table), anew=True)


@dataclass(frozen=True, slots=True)
class StoreLocator:
    """Locator by a store.

    Attributes:
        believed: instants whose entries count.
    """

    stored: KeyStore
    believed: VisibleInstants

    @property
    def count(self) -> int:
        return _SHARDS

    def shards(self, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        return k.shards(keys, _SHARDS)

    def locate(self, keys: pa.Array | pa.ChunkedArray) -> Located:
        found = self.stored.find(one_array(keys).cast(pa.string()).unique())
        known = np.array([i in self.believed for i in found.instants] or [True])
        counts = known[found.instant] if len(found.instant) else np.empty(0, dtype=bool)
        if counts.all():
            return Located(found.keys, found.group, found.groups)
        lost = next(i for i in found.instants if i not in self.believed)
        mask = pa.array(counts)
        return Located(
            found.keys.filter(mask),
            found.group[counts],
            found.groups,
            found.keys.filter(pa.array(~counts)).unique(),
            f"it has keys of the commit {lost}, which was not completed when this write began, or was undone",
        )


def load_index(name: str) -> type[CustomIndex]:
    """Index class by its name: of an entry point, or as `module:Class`.

    Only what a user's options say may be asked for here, never what a table says.

    Raises:
        InvalidOptionError: there is none, or it is no `CustomIndex`.
    """
    text = BUILT_IN.get(name.strip(), name.strip())
    module, colon, attribute = text.partition(":")
    try:
        if colon:
            found = getattr(import_module(module), attribute)
        else:
            chosen = [e for e in entry_points(group=ENTRY_POINTS) if e.name == text]
            if not chosen:
                raise LookupError("no installed package has an index of that name")
            found = chosen[0].load()
    except (ImportError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise InvalidOptionError(
            f"the index class {text!r} cannot be loaded: {e}",
            remedy="name it module:Class, or by an entry point of the group "
            f"{ENTRY_POINTS}: {', '.join(installed_indexes())}.",
            value=text,
        ) from None
    if not (isinstance(found, type) and issubclass(found, CustomIndex)):
        raise InvalidOptionError(
            f"{text!r} is not a hudi_index.CustomIndex",
            remedy="make it a subclass, with a method locator.",
            value=text,
        )
    return found


def installed_indexes() -> list[str]:
    """Names of the index classes of installed packages, this one's included."""
    return sorted({*BUILT_IN, *(e.name for e in entry_points(group=ENTRY_POINTS))})
