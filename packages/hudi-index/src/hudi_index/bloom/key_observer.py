"""Observers of a base file's keys, which build its bloom filter and key range.

Source: footers written by Apache Hudi 0.15 (HoodieBloomFilterWriteSupport); the type code is left out for
SIMPLE, the range for a file without rows.  Keys are compared as Java's strings, by UTF-16 units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.text_buffers import text_chunks
from hudi_format.errors import CorruptFileError, RecordKeyError
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_TYPE, MAX_KEY, MIN_KEY, filter_entry
from hudi_format.parquet.layout import NO_OBSERVER, KeyObserver
from hudi_index.bloom.filter import DYNAMIC, SIMPLE, BloomFilter, parse_filter
from hudi_index.hashing.java import min_max, orders_part

_ENTRIES = 60000


class MinMaxObserver:
    """Collects the smallest and largest key.

    Args:
        seed_range: the range of keys that are in the file and are not shown to the observer.
    """

    def __init__(self, *, seed_range: tuple[str, str] | None = None) -> None:
        self._range = seed_range

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Take the keys of further rows; nulls are ignored."""
        found = min_max(keys)
        if found is None:
            return
        if self._range is None:
            self._range = found
            return
        merged = min_max(pa.array([*self._range, *found], pa.string()))
        self._range = merged if merged is not None else found

    def finish(self) -> Mapping[str, str]:
        """Entries for the footer; none without keys."""
        return {} if self._range is None else {MIN_KEY: self._range[0], MAX_KEY: self._range[1]}


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """Settings of bloom filters; the defaults are Apache Hudi's.

    Attributes:
        to_keys: a file of fewer keys than `entries` has a filter for their number: 43 bits for a key instead of 431 KB.
    """

    type_code: str = DYNAMIC
    entries: int = _ENTRIES
    fpp: float = 0.000000001
    max_entries: int = 100000
    to_keys: bool = False

    @classmethod
    def of(cls, type_code: str, entries: int | None, fpp: float, max_entries: int) -> BloomSettings:
        """Settings of options.

        Args:
            entries: None where the user gave none: the filter goes by the keys then.
        """
        return cls(type_code, _ENTRIES if entries is None else entries, fpp, max_entries, entries is None)

    def filter_for(self, number: int) -> BloomFilter:
        """An empty filter for a number of keys, and for no more than `entries`."""
        return BloomFilter.create(
            self.type_code, max(1, min(number, self.entries)), self.fpp, self.max_entries
        )


class BloomObserver:
    """Collects the bloom filter and the key range.

    Args:
        settings: of the filter.  Where it is made for the number of keys, they are kept until there are as many as
            `entries`; not with a seed.
        seed, seed_range: filter and range of keys that are in the file too, before all that `add` is given,
            and are not shown to the observer.  The filter is copied.  What `finish` gives is then equal to
            what a new observer that sees all keys would give, if the seed was made with the same settings
            from exactly these keys in their order; `seeded_observer` checks that.
        seed_text: the seed as it stands in a footer, if that is known: what `finish` gives if no key is added.
    """

    def __init__(
        self,
        settings: BloomSettings,
        *,
        seed: BloomFilter | None = None,
        seed_range: tuple[str, str] | None = None,
        seed_text: str | None = None,
    ) -> None:
        self._settings = settings
        self._waiting: list[pa.Array] | None = [] if settings.to_keys and seed is None else None
        self._filter = (
            settings.filter_for(1 if settings.to_keys else settings.entries) if seed is None else seed
        )
        self._shared = seed is not None  # to be copied before a key is added
        self._text = None if seed is None else seed_text
        self._range = MinMaxObserver(seed_range=seed_range)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Take the keys of further rows.

        Raises:
            RecordKeyError: a null or empty key.
        """
        if self._shared:
            self._filter, self._shared = self._filter.copy(), False
            self._filter.max_entries = self._settings.max_entries
        self._text = None
        if self._waiting is None:
            self._filter.add(keys)
        else:
            self._wait(self._waiting, keys)
        self._range.add(keys)

    def _wait(self, waiting: list[pa.Array], keys: pa.Array | pa.ChunkedArray) -> None:
        """Keep keys until it is known that the filter need not be smaller."""
        for chunk in text_chunks(keys):
            bad = pc.sum(pc.equal(pc.coalesce(pc.binary_length(chunk), 0), 0)).as_py()
            if bad:
                raise RecordKeyError(f"{bad} keys are null or empty")
            waiting.append(chunk)
        if sum(map(len, waiting)) >= self._settings.entries:
            self._settle(waiting)

    def _settle(self, waiting: list[pa.Array]) -> None:
        self._filter = self._settings.filter_for(sum(map(len, waiting)))
        for keys in waiting:
            self._filter.add(keys)
        self._waiting = None

    def finish(self) -> Mapping[str, str]:
        """Entries for the footer."""
        if self._waiting is not None:
            self._settle(self._waiting)
        out = {BLOOM_FILTER: self._filter.to_base64() if self._text is None else self._text}
        if self._filter.type_code != SIMPLE:
            out[BLOOM_TYPE] = self._filter.type_code
        return {**out, **self._range.finish()}


def observer_of(bloom: BloomSettings | None, *, virtual: bool = False) -> KeyObserver:
    """Observer for the keys of a new file.

    Args:
        bloom: settings of its filter; None for the key range alone.
        virtual: the file holds no keys; as in Apache Hudi's such files, the footer says nothing of them.
    """
    if virtual:
        return NO_OBSERVER
    return MinMaxObserver() if bloom is None else BloomObserver(bloom)


class SameKeysObserver:
    """Observer whose footer entries are known if it sees so many keys and no more.

    Args:
        entries: what `finish` gives then.
        number: how many keys.
        anew: takes the keys otherwise.  Until it is known they are kept.
    """

    def __init__(self, entries: Mapping[str, str], number: int, anew: KeyObserver) -> None:
        self._entries = entries
        self._left = number
        self._anew = anew
        self._waiting: list[pa.StringArray] | None = []

    def add(self, keys: pa.StringArray) -> None:
        """Take the keys of further rows; errors as those of the other observer, here or in `finish`."""
        if self._waiting is None:
            self._anew.add(keys)
            return
        self._waiting.append(keys)
        self._left -= len(keys)
        if self._left < 0:
            self._show(self._waiting)

    def _show(self, waiting: list[pa.StringArray]) -> None:
        self._waiting = None
        for keys in waiting:
            self._anew.add(keys)

    def finish(self) -> Mapping[str, str]:
        """Entries for the footer."""
        if self._waiting is not None:
            if self._left == 0:
                return self._entries
            self._show(self._waiting)
        return self._anew.finish()


def observer_of_rewritten(
    entries: Mapping[str, str], bloom: BloomSettings | None, *, num_rows: int, most_deleted: int = 0
) -> KeyObserver:
    """Observer for all keys of a rewritten file; of the old ones nothing is made anew.

    Args:
        entries: footer of the old file.
        bloom: as of `observer_of`.
        num_rows: rows of the old file, all of which stay, in their order, but for those deleted.
        most_deleted: how many rows the rewrite deletes at most.
    """
    anew = observer_of(bloom)
    if bloom is None or not bloom.to_keys or most_deleted:
        return anew
    # Of a filter for the number of its keys `seeded_observer` makes nothing: with one key more it is another.
    wanted = bloom.filter_for(num_rows)
    found = _sound(entries, wanted, bloom.max_entries, num_rows)
    if found is None or (found.type_code != SIMPLE and not _grown_alike(found, wanted, num_rows, 0, 0.0)):
        return anew
    same = {BLOOM_FILTER: filter_entry(entries)}
    same |= {n: entries.get(n) for n in (BLOOM_TYPE, MIN_KEY, MAX_KEY)}
    return SameKeysObserver({n: text for n, text in same.items() if text is not None}, num_rows, anew)


def footer_filter(entries: Mapping[str, str], *, max_entries: int = 100000) -> BloomFilter | None:
    """Bloom filter of a footer; None where it has none.

    Raises:
        CorruptFileError: an entry that is no filter.
    """
    text = filter_entry(entries)
    return parse_filter(text, entries.get(BLOOM_TYPE), max_entries=max_entries) if text else None


def footer_range(entries: Mapping[str, str]) -> tuple[str, str] | None:
    """Smallest and largest key of a footer; None where it has no range."""
    if MIN_KEY in entries and MAX_KEY in entries:
        return entries[MIN_KEY], entries[MAX_KEY]
    return None


def seeded_observer(
    entries: Mapping[str, str],
    settings: BloomSettings,
    *,
    num_rows: int,
    most_deleted: int = 0,
    stale_allowed: float = 0.0,
) -> BloomObserver | None:
    """Observer for a rewritten file, seeded from the old footer; sees appended keys only.

    Its filter is the one that a new observer would build from all keys, bit for bit, when nothing was ever
    deleted from the file group.  With deletes the filter and the range may hold keys that are gone, so that
    they say "maybe" more often than they must; `stale_allowed` bounds the share of such keys.

    Args:
        entries: footer of the old file.
        settings: of the new file's filter; one of a file of fewer keys, made for their number, is built anew.
        num_rows: rows of the old file, all of which stay, in their order, but for those deleted.
        most_deleted: how many rows the rewrite deletes at most.
        stale_allowed: how many keys that are gone, as a share of `num_rows`, the new filter may hold.

    Returns:
        None where the observer must see all keys: the footer has no sound filter and range, it was made
        with other settings, does not count `num_rows` keys, holds too many that are gone, or its range was
        taken in another order than Java's (Apache Hudi's bulk_insert by rows compares bytes).
    """
    if settings.to_keys and num_rows - most_deleted < settings.entries:
        return None
    wanted = settings.filter_for(settings.entries)
    old = _sound(entries, wanted, settings.max_entries, num_rows)
    if old is None:
        return None
    if old.type_code == SIMPLE:
        # It does not count its keys, so nothing shows how many are gone: it is carried on without deletes.
        if most_deleted:
            return None
    elif not _grown_alike(old, wanted, num_rows, most_deleted, stale_allowed):
        return None
    old.entries = settings.entries
    text, ends = filter_entry(entries), footer_range(entries)
    return BloomObserver(settings, seed=old, seed_range=ends, seed_text=text)


def _sound(
    entries: Mapping[str, str], wanted: BloomFilter, max_entries: int, num_rows: int
) -> BloomFilter | None:
    """Filter of a footer that has the type and shape of a wanted one, and a range that can be relied on."""
    try:
        old = footer_filter(entries, max_entries=max_entries)
    except CorruptFileError:
        return None  # built anew from the keys, the next file has a sound one
    if old is None or old.type_code != wanted.type_code or old.shape != wanted.shape:
        return None
    key_range = footer_range(entries)
    if (key_range is None) != (num_rows == 0) or (key_range is not None and any(map(orders_part, key_range))):
        return None
    return old


def _grown_alike(
    old: BloomFilter, wanted: BloomFilter, num_rows: int, most_deleted: int, stale_allowed: float
) -> bool:
    """Whether the old filter has the size of a new one, but for a few extra keys."""
    stale = old.total - num_rows + most_deleted
    if old.entries != wanted.entries or old.total < num_rows or stale > stale_allowed * num_rows:
        return False
    rows = len(old.rows)
    may_grow_to = max(1, -(-wanted.max_entries // wanted.entries))
    overflowed = old.count > old.entries
    return rows == may_grow_to if overflowed else rows <= may_grow_to
