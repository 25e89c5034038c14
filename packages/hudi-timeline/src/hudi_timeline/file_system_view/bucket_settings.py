"""Settings of a bucket index in hoodie.properties, and the resizes that changed them.

A resize of all buckets changes their number along with its commit, which are two files.  So the properties first say
what they are to become and with which instant, and name an engine that no writer of Apache Hudi has, so that it writes
nothing while the number may be either; once the instant is completed, or undone, they say the one or the other.  What
completed resizes changed stays there: file groups of before one are not found by the number of after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hudi_format.errors import CorruptFileError, InvalidOptionError
from hudi_index.bucket import MOST_BUCKETS, BucketIndex
from hudi_index.consistent_hashing import ConsistentBucketIndex
from hudi_index.extendible_hashing import ExtendibleBucketIndex
from hudi_index.lookup import BUCKET
from hudi_timeline.options.file_options import (
    BUCKET_ENGINE,
    CONSISTENT_HASHING,
    EXTENDIBLE_HASHING,
    HASH_FIELDS,
    INDEX_TYPE,
    NUM_BUCKETS,
    SIMPLE_BUCKETS,
)
from hudi_timeline.table_config import BUCKET_RESIZES as RESIZES
from hudi_timeline.table_config import BUCKET_RESIZING as RESIZING
from hudi_timeline.table_config import INDEX, PROPERTIES_FILE
from hudi_timeline.timeline.active_timeline import Timeline

_T = TypeVar("_T")
# The engine of a table whose resize is not settled.
UNSETTLED = "RESIZING"
ENGINES: Mapping[str, type[BucketIndex]] = {
    SIMPLE_BUCKETS: BucketIndex,
    CONSISTENT_HASHING: ConsistentBucketIndex,
    EXTENDIBLE_HASHING: ExtendibleBucketIndex,
}


def name_of(engine: type[BucketIndex] | None) -> str:
    """Name of a kind of bucket index, as its option has it."""
    return next((name for name, kind in ENGINES.items() if kind is engine), SIMPLE_BUCKETS)


def recorded_settings(
    properties: Mapping[str, str], commits: Iterable[Mapping[str, str]] = ()
) -> BucketIndex | None:
    """Settings that a table says, in its properties or else its newest commit that says any.

    Those of before a resize that is not settled.

    Raises:
        InvalidOptionError: a number or an engine that is none.
        CorruptFileError: a resize that cannot be read.
    """
    resize = unsettled_resize(properties)
    if resize is not None:
        properties = resize.undone(properties)
    for said in (properties, *commits):
        number, fields = said.get(NUM_BUCKETS, "").strip(), said.get(HASH_FIELDS, "")
        if not number:
            continue
        names = tuple(f.strip() for f in fields.split(",") if f.strip())
        if not (number.isascii() and number.isdecimal() and 0 < int(number) <= MOST_BUCKETS):
            raise InvalidOptionError(
                f"the table says {NUM_BUCKETS}={number!r}, which is no number of buckets", file=PROPERTIES_FILE,
                remedy=f"correct it in {PROPERTIES_FILE}.", option=NUM_BUCKETS,
            )  # fmt: skip
        engine = said.get(BUCKET_ENGINE, "").strip().upper() or SIMPLE_BUCKETS
        if engine not in ENGINES:
            raise InvalidOptionError(
                f"the table says {BUCKET_ENGINE}={engine}, which is none of {', '.join(ENGINES)}",
                file=PROPERTIES_FILE, remedy=f"correct it in {PROPERTIES_FILE}.", option=BUCKET_ENGINE,
            )  # fmt: skip
        return ENGINES[engine](int(number), names)
    return None


def as_properties(index: BucketIndex) -> dict[str, str]:
    """Table properties, and commit entries, of the settings."""
    name = name_of(type(index))
    engine = {} if name == SIMPLE_BUCKETS else {str(BUCKET_ENGINE): name}
    return {NUM_BUCKETS: str(index.num_buckets), HASH_FIELDS: ",".join(index.fields), **engine}


def properties(index: BucketIndex) -> dict[str, str]:
    """Table properties of the index and its settings.

    Apache Hudi takes `hoodie.index.type` of a table for a fixed one.
    """
    return {INDEX: BUCKET, str(INDEX_TYPE): BUCKET, **as_properties(index)}


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """Change of the settings by a resize.

    Attributes:
        instant: of the resize.
        before, after: values by key of hoodie.properties; None for no entry.
    """

    instant: str
    before: Mapping[str, str | None]
    after: Mapping[str, str | None]

    @classmethod
    def of(
        cls, instant: str, stored: Mapping[str, str], index: BucketIndex, new: BucketIndex
    ) -> SettingsChange:
        """Change of a table's properties from one index to another."""
        before, after = as_properties(index), as_properties(new)
        changed = (k for k in {**before, **after} if before.get(k) != after.get(k))
        keys = sorted({str(BUCKET_ENGINE), *changed})
        return cls(instant, {k: stored.get(k) for k in keys}, {k: after.get(k) for k in keys})

    @classmethod
    def parse(cls, found: object) -> SettingsChange:
        """Change in a decoded entry.

        Raises:
            ValueError: it is none.
        """
        if not isinstance(found, dict) or not isinstance(found.get("instant"), str):
            raise ValueError("no resize")
        return cls(found["instant"], _values(found.get("before")), _values(found.get("after")))

    def plain(self) -> dict[str, object]:
        return {"instant": self.instant, "before": dict(self.before), "after": dict(self.after)}

    def announced(self) -> dict[str, str]:
        """Entries of a table before the resize's commit."""
        return {RESIZING: json.dumps(self.plain()), str(BUCKET_ENGINE): UNSETTLED}

    def undone(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The properties as they were before the resize."""
        return self._with(stored, self.before, [c for c in resizes(stored) if c.instant != self.instant])

    def done(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The properties as they are after the resize."""
        return self._with(stored, self.after, [*resizes(stored), self])

    @staticmethod
    def _with(
        stored: Mapping[str, str], values: Mapping[str, str | None], history: list[SettingsChange]
    ) -> dict[str, str]:
        gone = {RESIZING, RESIZES, *values}
        out = {k: v for k, v in stored.items() if k not in gone}
        out |= {k: v for k, v in values.items() if v is not None}
        return out | ({RESIZES: json.dumps([c.plain() for c in history])} if history else {})


def unsettled_resize(stored: Mapping[str, str]) -> SettingsChange | None:
    """Resize that is not settled; errors as `last_resize`."""
    text = stored.get(RESIZING, "").strip()
    return _read(lambda: SettingsChange.parse(json.loads(text)), RESIZING) if text else None


def is_done(change: SettingsChange, timeline: Timeline) -> bool | None:
    """Whether the resize of a change is completed; None while it is pending."""
    found = timeline.find(change.instant)
    if found is None:
        return change.instant in timeline.archived()
    return True if found.completed else None


def settled(stored: Mapping[str, str], timeline: Timeline) -> Mapping[str, str]:
    """The properties that count while a resize is not settled; errors as `last_resize`.

    Nor is one settled that Apache Hudi has undone: it leaves what the resize made of the properties.
    """
    change = unsettled_resize(stored)
    if change is not None:
        stored = change.done(stored) if is_done(change, timeline) else change.undone(stored)
    while (last := last_resize(stored)) is not None and not is_done(last, timeline):
        stored = last.undone(stored)
    return stored


def last_resize(stored: Mapping[str, str]) -> SettingsChange | None:
    """Newest completed resize that changed the settings.

    Raises:
        CorruptFileError: the entry cannot be read.
    """
    history = resizes(stored)
    return history[-1] if history else None


def resizes(stored: Mapping[str, str]) -> list[SettingsChange]:
    """Completed resizes that changed the settings, oldest first; errors as `last_resize`."""
    text = stored.get(RESIZES, "").strip()

    def parsed() -> list[SettingsChange]:
        found = json.loads(text)
        if not isinstance(found, list):
            raise ValueError("no list")
        return [SettingsChange.parse(f) for f in found]

    return _read(parsed, RESIZES) if text else []


def _read(parse: Callable[[], _T], key: str) -> _T:
    try:
        return parse()
    except (ValueError, RecursionError) as e:
        raise CorruptFileError(
            f"{key} says no resize: {e}", file=PROPERTIES_FILE,
            remedy=f"correct it in {PROPERTIES_FILE}, or take the entry out.",
        ) from None  # fmt: skip


def _values(found: object) -> dict[str, str | None]:
    known = {str(NUM_BUCKETS), str(HASH_FIELDS), str(BUCKET_ENGINE)}
    if not isinstance(found, dict) or not found.keys() <= known:
        raise ValueError("values of other keys")
    if not all(v is None or isinstance(v, str) for v in found.values()):
        raise ValueError("values that are no text")
    return found
