"""Record merger of the metadata table (HoodieMetadataPayload).

Lists of files and partitions are combined entry by entry, statistics of a column are widened; everything else is
replaced by what came later.

Source: HoodieMetadataPayload.preCombine of Apache Hudi 0.15; spec "Metadata table", sections 4 and 5.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.merge.user_merger import MergeContext

PAYLOAD = "HoodieMetadataPayload"
FUNCTION = f"{__name__}:merge_metadata"
FILES, STATS = "filesystemMetadata", "ColumnStatsMetadata"
_COUNTS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")


def merge_metadata(old: pa.RecordBatch, new: pa.RecordBatch, context: MergeContext) -> pa.RecordBatch:
    """The later records combined with the earlier ones of the same key."""
    for name, combine in ((FILES, combine_files), (STATS, combine_stats)):
        place = new.schema.get_field_index(name)
        if place < 0:
            continue
        both = pc.and_(old.column(name).is_valid(), new.column(name).is_valid())
        if not pc.any(both).as_py():
            continue
        pairs = zip(old.column(name).to_pylist(), new.column(name).to_pylist(), strict=True)
        values = [combine(a, b) if a is not None and b is not None else b for a, b in pairs]
        field = new.schema.field(place)
        new = new.set_column(place, field, pa.array(values, field.type))
    return new


def combine_files(old: list[tuple[str, Any]], new: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """File list entries `(name, {size, isDeleted})` combined with later ones.

    A live file that is deleted leaves the list; a deletion of what the list does not have stays, for an older
    list that it may meet.
    """
    out = dict(old)
    for name, entry in new:
        before = out.get(name)
        if before is None:
            out[name] = entry
        elif entry["isDeleted"]:
            if before["isDeleted"]:
                out[name] = entry
            else:
                del out[name]
        else:
            size = entry["size"] if before["isDeleted"] else max(before["size"], entry["size"])
            out[name] = {**entry, "size": max(0, size)}
    return list(out.items())


def combine_stats(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Column statistics of one file or partition combined with later ones."""
    if old["isDeleted"] or new["isDeleted"] or new.get("isTightBound"):
        return new
    out = dict(new)
    for name, better in (("minValue", min), ("maxValue", max)):
        out[name] = _bound(old.get(name), new.get(name), better)
    for name in _COUNTS:
        known = [v for v in (old.get(name), new.get(name)) if v is not None]
        out[name] = sum(known) if known else None
    return out


def _bound(old: Any, new: Any, better: Any) -> Any:
    """The smaller or larger of two union values `{member0: {value}, ...}`."""
    a, b = _value(old), _value(new)
    if a is None or b is None:
        return new if a is None else old
    if type(a) is not type(b):  # written in another form: the later one is at least its own
        return new
    return old if better(a, b) == a else new


def _value(union: Any) -> Any:
    for member in (union or {}).values():
        if member is not None:
            return member.get("value") if isinstance(member, dict) else member
    return None
