"""Key generators and their settings, as one value.

Source: the key generators of Apache Hudi 0.15 and `HoodieSparkKeyGeneratorFactory`, which infers one from the fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_format.keygen.time_zones import Zone, local_zone
from hudi_format.keygen.timestamp_based import CONSISTENT, TimeSpec

Kind = Literal["SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM", "GLOBAL_DELETE"]

_PACKAGE = "org.apache.hudi.keygen."
_CLASS_OF: dict[Kind, str] = {
    "SIMPLE": _PACKAGE + "SimpleKeyGenerator",
    "COMPLEX": _PACKAGE + "ComplexKeyGenerator",
    "NON_PARTITION": _PACKAGE + "NonpartitionedKeyGenerator",
    "TIMESTAMP": _PACKAGE + "TimestampBasedKeyGenerator",
    "CUSTOM": _PACKAGE + "CustomKeyGenerator",
    "GLOBAL_DELETE": _PACKAGE + "GlobalDeleteKeyGenerator",
}
# By class name and by name of KeyGeneratorType; there is one of each for Avro records.
_KINDS: dict[str, Kind] = {
    name: kind
    for kind, full in _CLASS_OF.items()
    for short in [full.removeprefix(_PACKAGE)]
    for name in (short, re.sub("(Delete)?KeyGenerator$", r"Avro\g<0>", short), kind, f"{kind}_AVRO")
}
# Spark SQL's own wrapper stands for the generator that it wraps, or for the inferred one.
_SQL = "SqlKeyGenerator"
_SQL_ORIGIN = "hoodie.sql.origin.keygen.class"
CLASS_OPTION = "hoodie.datasource.write.keygenerator.class"
TYPE_OPTION = "hoodie.datasource.write.keygenerator.type"
KEY_OPTION = "hoodie.datasource.write.recordkey.field"
PARTITION_OPTION = "hoodie.datasource.write.partitionpath.field"

SIMPLE, TIMESTAMP = "SIMPLE", "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Settings of a key generator: sources of record key and partition path.

    Attributes:
        key_fields: columns of the record key, nested ones by dot path; none where the writer makes up keys
            (`auto`).
        partition_fields: columns of the partition path; none for NON_PARTITION and GLOBAL_DELETE.
        kind: SIMPLE (one key, one partition field), COMPLEX (any number), NON_PARTITION, TIMESTAMP (as SIMPLE, the
            partition value is a date in a pattern), CUSTOM (a kind for each partition field) or GLOBAL_DELETE (as
            NON_PARTITION; keys always with their field's name).
        hive_style: path levels are `field=value`.
        url_encode: special characters of values are written as %XX.
        times: how dates become text; None where no partition field is one.
        field_kinds: SIMPLE or TIMESTAMP for each partition field.
        timestamp_zone: timestamps in keys are text by this zone's clock; None: they are microseconds.
        refuses_null_texts: partition values that would be read back as null, see `partition_path.null_texts`, are an
            error; else they are in the partition of null.  So are paths that do not tell their values apart.
    """

    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    kind: Kind
    hive_style: bool = False
    url_encode: bool = False
    times: TimeSpec | None = None
    field_kinds: tuple[str, ...] = ()
    timestamp_zone: Zone | None = None
    refuses_null_texts: bool = False

    def __post_init__(self) -> None:
        if self.kind in ("SIMPLE", "TIMESTAMP") and (
            len(self.key_fields) > 1 or len(self.partition_fields) != 1
        ):
            raise ConflictingOptionError(
                f"{_CLASS_OF[self.kind].rpartition('.')[2]} takes one record key field and one partition field, not "
                f"{listed(self.key_fields)} and {listed(self.partition_fields)}",
                remedy=f"leave {CLASS_OPTION} out, or set it to ComplexKeyGenerator or CustomKeyGenerator (several "
                "fields) or NonpartitionedKeyGenerator (no partition field).",
                option=CLASS_OPTION,
            )
        if self.kind in ("NON_PARTITION", "GLOBAL_DELETE") and self.partition_fields:
            # As Apache Hudi: these generators ignore a partition field.
            object.__setattr__(self, "partition_fields", ())
        if not self.field_kinds:
            kind = TIMESTAMP if self.kind == "TIMESTAMP" else SIMPLE
            object.__setattr__(self, "field_kinds", (kind,) * len(self.partition_fields))
        if self.times is None and TIMESTAMP in self.field_kinds:
            raise ValueError("a partition field is a date, but has no TimeSpec for its text")

    @property
    def auto(self) -> bool:
        """Whether the writer generates the record keys."""
        return not self.key_fields

    @property
    def class_name(self) -> str:
        """Apache Hudi's class name of the key generator, as stored in hoodie.properties."""
        return _CLASS_OF[self.kind]

    @classmethod
    def from_class(
        cls,
        class_name: str | None,
        *,
        key_fields: Sequence[str],
        partition_fields: Sequence[str],
        type_name: str | None = None,
        hive_style: bool = False,
        url_encode: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> KeySpec:
        """The spec of a key generator: by class, else by type, else the one that Apache Hudi infers.

        Args:
            class_name: with or without package, also a name of KeyGeneratorType (`NON_PARTITION` ...).
            partition_fields: for CustomKeyGenerator each as `field:SIMPLE` or `field:TIMESTAMP`.
            type_name: name of KeyGeneratorType, which counts where there is no class.
            options: by main name: those of dates (`hoodie.keygen.timebased.*`) and of timestamps in keys.

        Raises:
            UnsupportedError: a key generator that is not built.
            ConflictingOptionError: fields that do not fit the generator.
            InvalidOptionError: partition fields without their kind, dates without their pattern.
        """
        given = options or {}
        keys, partitions = _fields(key_fields), _fields(partition_fields)
        option = CLASS_OPTION if class_name else TYPE_OPTION
        name = class_name or type_name
        if name and name.strip().endswith(_SQL):
            name = given.get(_SQL_ORIGIN, "").strip() or None
        kind = kind_of(name, option) if name else _inferred(keys, partitions)
        field_kinds: tuple[str, ...] = ()
        if kind == "CUSTOM":
            partitions, field_kinds = _custom_fields(partitions)
        dated = kind == "TIMESTAMP" or TIMESTAMP in field_kinds
        return cls(
            keys,
            partitions,
            kind,
            hive_style,
            url_encode,
            TimeSpec.from_options(given) if dated else None,
            field_kinds,
            local_zone() if given.get(CONSISTENT, "").strip().lower() == "true" else None,
        )


def _fields(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(n.strip() for n in names if n.strip())


def _inferred(key_fields: Sequence[str], partition_fields: Sequence[str]) -> Kind:
    if not partition_fields:
        return "NON_PARTITION"
    return "SIMPLE" if len(key_fields) <= 1 and len(partition_fields) == 1 else "COMPLEX"


def kind_of(name: str, option: str = CLASS_OPTION) -> Kind:
    """Kind of a key generator class (package optional) or of a KeyGeneratorType name.

    Raises:
        UnsupportedError: a key generator that is not built.
    """
    kind = known_kind(name)
    if kind is None:
        raise UnsupportedError(
            f"key generator {name} is not supported",
            remedy="use SimpleKeyGenerator, ComplexKeyGenerator, NonpartitionedKeyGenerator, "
            "TimestampBasedKeyGenerator or CustomKeyGenerator; for generated keys omit the "
            "record key field.",
            option=option,
        )
    return kind


def known_kind(name: str) -> Kind | None:
    """The same; None for a key generator that is not built."""
    short = name.strip().rpartition(".")[2]
    return _KINDS.get(short) or _KINDS.get(short.upper())


def is_provided(class_name: str) -> bool:
    """Whether this library implements a key generator class (with package)."""
    package, _, short = class_name.strip().rpartition(".")
    return (short.endswith("KeyGenerator") and short in _KINDS and package + "." == _PACKAGE) or short == _SQL


def _custom_fields(fields: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names, kinds = [], []
    for text in fields:
        name, _, kind = (part.strip() for part in text.rpartition(":"))
        if not name or kind.upper() not in (SIMPLE, TIMESTAMP):
            raise InvalidOptionError(
                f"{PARTITION_OPTION}: {text!r} has no type, which CustomKeyGenerator needs in every write",
                remedy=f"give each field as field:{SIMPLE} or field:{TIMESTAMP}; hoodie.properties does not keep it.",
                option=PARTITION_OPTION,
            )
        names.append(name)
        kinds.append(kind.upper())
    return tuple(names), tuple(kinds)


def listed(names: Sequence[str]) -> str:
    """The names for a message."""
    return ", ".join(names) or "none"
