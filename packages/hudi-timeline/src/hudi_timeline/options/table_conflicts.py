"""Options that contradict the table's properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.errors import ConflictingOptionError
from hudi_format.keygen.key_generator import is_provided, kind_of
from hudi_format.keygen.timestamp_based import STORED
from hudi_timeline.options.registry import canonical, known_options, parse


@dataclass(frozen=True, slots=True)
class _Pair:
    """An option and the table properties to compare it with, of which the first stored counts.

    `absent` is what a table means that stores none of them; None: what is not stored contradicts nothing.

    `absent` is what a table means that stores none of them; None: what is not stored contradicts nothing.  A
    copy-on-write table of Apache Hudi stores neither its payload class, nor an ordering field if it has none.
    """

    option: str
    properties: tuple[str, ...]
    absent: str | None = None


_PAIRS = (
    _Pair("hoodie.table.name", ("hoodie.table.name",)),
    _Pair("hoodie.database.name", ("hoodie.database.name",)),
    _Pair("hoodie.datasource.write.table.type", ("hoodie.table.type",), "COPY_ON_WRITE"),
    _Pair("hoodie.table.version", ("hoodie.table.version",)),
    _Pair("hoodie.datasource.write.recordkey.field", ("hoodie.table.recordkey.fields",), ""),
    _Pair("hoodie.datasource.write.partitionpath.field", ("hoodie.table.partition.fields",), ""),
    _Pair(
        "hoodie.datasource.write.precombine.field",
        ("hoodie.table.precombine.field", "hoodie.table.ordering.fields"),
    ),
    _Pair("hoodie.payload.ordering.field", ("hoodie.table.precombine.field", "hoodie.table.ordering.fields")),
    _Pair(
        "hoodie.datasource.write.keygenerator.class",
        ("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"),
    ),
    _Pair(
        "hoodie.datasource.write.keygenerator.type",
        ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"),
    ),
    _Pair(
        "hoodie.datasource.write.hive_style_partitioning",
        ("hoodie.datasource.write.hive_style_partitioning",),
        "false",
    ),
    _Pair(
        "hoodie.datasource.write.partitionpath.urlencode",
        ("hoodie.datasource.write.partitionpath.urlencode",),
        "false",
    ),
    _Pair("hoodie.table.timeline.timezone", ("hoodie.table.timeline.timezone",)),
    _Pair(
        "hoodie.datasource.write.drop.partition.columns",
        ("hoodie.datasource.write.drop.partition.columns",),
        "false",
    ),
    _Pair("hudi.merge", ("hudi.merge",)),
    _Pair("hoodie.table.cdc.enabled", ("hoodie.table.cdc.enabled",), "false"),
    _Pair(
        "hoodie.table.cdc.supplemental.logging.mode",
        ("hoodie.table.cdc.supplemental.logging.mode",),
        "DATA_BEFORE_AFTER",
    ),
    _Pair("hoodie.populate.meta.fields", ("hoodie.populate.meta.fields",), "true"),
    *(_Pair(key, (key,)) for key in STORED),
)
_CLASS = "hoodie.datasource.write.keygenerator.class"
_PARTITION_FIELD = "hoodie.datasource.write.partitionpath.field"
_KEYGEN_NAMES = {
    "nonpartitioned": "non_partition",
    "globaldelete": "global_delete",
    "timestampbased": "timestamp",
}


def check_against_table(options: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Refuse options that contradict the table's properties.

    The payload class may differ from write to write, as in Apache Hudi.

    Raises:
        ConflictingOptionError: one, with every key that differs, and both values.
    """
    given = canonical(options)
    found = []
    ignores = _ignores_partitions(given.text.get(_CLASS, ""))
    for pair in _PAIRS:
        if pair.option not in given.text or (ignores and pair.option == _PARTITION_FIELD):
            continue
        stored = next((properties[p] for p in pair.properties if properties.get(p, "").strip()), pair.absent)
        value = given.text[pair.option]
        if stored is not None and _normal(pair.option, value) != _normal(pair.option, stored):
            found.append((given.given_as[pair.option], value, stored))
    if not found:
        return
    lines = "; ".join(f"{key}: {stored!r}, {value!r}" for key, value, stored in found)
    raise ConflictingOptionError(
        f"Config conflict (option: the table's value, the given value): {lines}",
        remedy='omit the option, or write with mode("overwrite") to create the table anew.',
        options=[key for key, _, _ in found],
    )


def _ignores_partitions(class_name: str) -> bool:
    """Whether the given key generator, which is compared itself, ignores partition fields."""
    return is_provided(class_name) and kind_of(class_name) in ("NON_PARTITION", "GLOBAL_DELETE")


def _normal(option: str, text: str) -> object:
    """A value in its comparable form."""
    if option.startswith("hoodie.datasource.write.keygenerator."):
        short = text.strip().rpartition(".")[2].removesuffix("KeyGenerator").removesuffix("Avro").lower()
        return _KEYGEN_NAMES.get(short, short)
    if option == _PARTITION_FIELD:
        # The 1.x line stores `field:TYPE` for a custom key generator.
        return tuple(f.partition(":")[0].strip() for f in text.split(",") if f.strip())
    if option.endswith((".recordkey.field", ".precombine.field")):
        return tuple(f.strip() for f in text.split(",") if f.strip())
    if option == "hoodie.payload.ordering.field" or not text.strip():
        return text.strip()
    return parse(known_options()[option], text)
