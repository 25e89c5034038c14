"""Options that contradict what the table says about itself."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_format.config.registry import canonical
from hudi_format.errors import ConflictingOptionError

_LISTS = frozenset({"hoodie.table.recordkey.fields", "hoodie.table.partition.fields"})
_CLASSES = frozenset({"hoodie.table.keygenerator.class", "hoodie.compaction.payload.class"})
_BOOLEANS = frozenset(
    {"hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode"}
)

# (option, property of the table)
_PAIRS = (
    ("hoodie.table.name", "hoodie.table.name"),
    ("hoodie.database.name", "hoodie.database.name"),
    ("hoodie.datasource.write.table.type", "hoodie.table.type"),
    ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields"),
    ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields"),
    ("hoodie.datasource.write.precombine.field", "hoodie.table.precombine.field"),
    ("hoodie.datasource.write.keygenerator.class", "hoodie.table.keygenerator.class"),
    ("hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"),
    ("hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.hive_style_partitioning"),
    ("hoodie.datasource.write.partitionpath.urlencode", "hoodie.datasource.write.partitionpath.urlencode"),
    ("hoodie.table.timeline.timezone", "hoodie.table.timeline.timezone"),
)
# A copy-on-write table of Apache Hudi does not store its payload class, nor one without ordering the field:
# what is not stored contradicts nothing.
_ONLY_IF_STORED = frozenset(
    {"hoodie.compaction.payload.class", "hoodie.table.precombine.field", "hoodie.database.name",
     "hoodie.table.timeline.timezone", "hoodie.table.keygenerator.class"}
)  # fmt: skip


def check_against_table(options: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Compare options with the table's own properties.

    Raises:
        ConflictingOptionError: with every key that differs, and both values.
    """
    given, _ = canonical({k: v for k, v in options.items() if not k.startswith("_")})
    found = []
    for option, stored_key in _PAIRS:
        value = given.get(option, given.get(stored_key))
        stored = properties.get(stored_key, "")
        if value is None or (stored_key in _ONLY_IF_STORED and not stored):
            continue
        if _normal(stored_key, value) != _normal(stored_key, stored):
            found.append((option, stored, value))
    if not found:
        return
    lines = "; ".join(f"{key}: the table has {stored!r}, given is {value!r}" for key, stored, value in found)
    raise ConflictingOptionError(
        f"Config conflict (key, current value, given value): {lines}",
        remedy='leave the option out, or write with mode("overwrite") to make the table anew.',
        options=[key for key, _, _ in found],
    )


def _normal(key: str, value: str) -> str:
    text = value.strip()
    if key in _LISTS:
        return ",".join(part.strip().partition(":")[0] for part in text.split(",") if part.strip())
    if key in _CLASSES:
        return text.rpartition(".")[2]
    if key in _BOOLEANS:
        return text.lower() or "false"
    return text.upper() if key in ("hoodie.table.type", "hoodie.table.timeline.timezone") else text
