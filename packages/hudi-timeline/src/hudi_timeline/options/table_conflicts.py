"""Options that contradict the table's properties, and those that these do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.errors import ConflictingOptionError, InvalidOptionError
from hudi_format.keygen.key_generator import is_provided, kind_of
from hudi_format.keygen.timestamp_based import STORED
from hudi_timeline.options.file_options import (
    BUCKET_ENGINE,
    HASH_FIELDS,
    INDEX_CLASS,
    INDEX_CLASSES,
    INDEX_TYPE,
    NUM_BUCKETS,
    SIMPLE_BUCKETS,
)
from hudi_timeline.options.registry import canonical, known_options, main_name, parse
from hudi_timeline.options.table_options import PAYLOAD


@dataclass(frozen=True, slots=True)
class _Pair:
    """An option and the table properties to compare it with, of which the first stored counts.

    Without `properties` the one of the option's name is meant.  `absent` is what a table means that stores none of
    them; None: what is not stored contradicts nothing.  A copy-on-write table of Apache Hudi stores neither its payload
    class, nor an ordering field if it has none.
    """

    option: str
    properties: tuple[str, ...] = ()
    absent: str | None = None


_PAIRS = (
    _Pair("hoodie.table.name"),
    _Pair("hoodie.database.name"),
    _Pair("hoodie.datasource.write.table.type", ("hoodie.table.type",), "COPY_ON_WRITE"),
    _Pair("hoodie.table.version"),
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
    _Pair("hoodie.datasource.write.hive_style_partitioning", absent="false"),
    _Pair("hoodie.datasource.write.partitionpath.urlencode", absent="false"),
    _Pair("hoodie.table.timeline.timezone"),
    _Pair("hoodie.datasource.write.drop.partition.columns", absent="false"),
    _Pair("hudi.merge"),
    _Pair("hoodie.table.cdc.enabled", absent="false"),
    _Pair("hoodie.table.cdc.supplemental.logging.mode", absent="DATA_BEFORE_AFTER"),
    _Pair("hoodie.populate.meta.fields", absent="true"),
    *map(_Pair, STORED),
)
# Stored as well, and no conflict here: a write may differ, or is refused with what its table has.
_INDEX = "hudi.index.type"
_ALSO_STORED = (
    _Pair("hoodie.write.table.version", ("hoodie.table.version",)),
    _Pair(PAYLOAD, ("hoodie.compaction.payload.class",)),
    _Pair(INDEX_TYPE, (_INDEX,)),
    _Pair(INDEX_CLASS, (_INDEX,)),
    _Pair(NUM_BUCKETS),
    _Pair(HASH_FIELDS),
    _Pair(BUCKET_ENGINE, absent=SIMPLE_BUCKETS),
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
        stored = _stored(pair, properties)
        value = given.text[pair.option]
        if stored is not None and not same_value(pair.option, value, stored):
            found.append((given.given_as[pair.option], value, stored))
    if not found:
        return
    lines = "; ".join(f"{key}: {stored!r}, {value!r}" for key, value, stored in found)
    raise ConflictingOptionError(
        f"Config conflict (option: the table's value, the given value): {lines}",
        remedy='omit the option, or write with mode("overwrite") to create the table anew.',
        options=[key for key, _, _ in found],
    )


def unstored(options: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """Options that the table's properties do not say, under the names that they were given with.

    What the properties say may change later, by a resize of buckets for one, and is to be read from them.
    """
    return {
        key: value for key, value in options.items() if not _says(properties, main_name(key) or key, value)
    }


def _says(properties: Mapping[str, str], option: str, value: str) -> bool:
    pair = next((p for p in (*_PAIRS, *_ALSO_STORED) if p.option == option), None)
    stored = None if pair is None else _stored(pair, properties)
    if stored is None or (option == _PARTITION_FIELD and ":" in value and ":" not in stored):
        return False  # a custom key generator needs the kinds of the fields with every write
    try:
        return same_value(option, value, stored)
    except InvalidOptionError:  # stored is what no option gives, as the name of an index of one's own
        return False


def _stored(pair: _Pair, properties: Mapping[str, str]) -> str | None:
    names = pair.properties or (pair.option,)
    return next((properties[p] for p in names if properties.get(p, "").strip()), pair.absent)


def same_value(option: str, one: str, other: str) -> bool:
    """Whether two values of an option mean the same."""
    return _normal(option, one) == _normal(option, other)


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
    value = parse(known_options()[option], text)
    return INDEX_CLASSES.get(str(value), value) if option in (INDEX_TYPE, INDEX_CLASS) else value
