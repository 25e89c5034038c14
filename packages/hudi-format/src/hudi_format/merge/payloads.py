"""Payload classes and merge modes of Apache Hudi, as merge rules.

Records meet twice: within what is written or logged (`preCombine` of a payload), and against the stored row
(`combineAndGetUpdateValue`).  A rule says how either goes; `hudi_format.merge.record_merger` carries it out.

Source: behaviour of Apache Hudi 0.15's classes, checked against its own writes (tests/interop/test_payloads.py);
the modes of table versions 8 and 9 as their documentation says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeAlias

from hudi_format.errors import UnsupportedError

MODELS = "org.apache.hudi.common.model."
DEFAULT_PAYLOAD = "OverwriteWithLatestAvroPayload"
IS_DELETED = "_hoodie_is_deleted"  # a boolean column: the row is a delete


class Order(IntEnum):
    """The winner of two records; numbers as in the kernel."""

    LATER = 0
    GREATEST = 1  # of the ordering value; of equal ones the later
    GREATEST_FIRST = 2  # of equal ones the earlier
    LATER_DATA = 3  # the later one, but for entries of delete blocks, which are compared


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A marker text for unavailable values, in text and bytes columns only."""

    text: str


@dataclass(frozen=True, slots=True)
class Default:
    """A default value that is not null.

    Attributes:
        value: a number or a boolean; `()` for lists and maps without elements; None for a default that Apache Hudi
            takes no value for, so that every value counts, null too.
    """

    value: bool | int | float | tuple[()] | None


Gap: TypeAlias = Unavailable | Default | None


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Merge rule of records with equal keys; picklable, it crosses to executors.

    Attributes:
        name: the payload's short class name, or the merge mode.
        within: who wins among the records of one input or one log.
        against_stored: who wins against the stored row; ordering is compared only where the stored value
            is not null.
        fill_within, fill_stored: the winner's nulls are filled from the loser.
        late_fills: a record that is older than the stored row fills what that one lacks.
        unavailable: the text that is filled, rather than nulls; None for nulls.
        compared: the column that the payload itself compares with the stored row's, whatever the table's ordering
            field; "" for that field.
        sequence: ordering values are texts such as `10.254`, which are compared as two numbers.
        late_delete_loses: a record that is marked as deleted is compared like any other; else it deletes
            whatever is stored.
        delete_fields: `hoodie.payload.delete.field` and its marker are heeded, and then only they.
        delete_field, delete_marker: the payload's own mark of a delete, in any case of letters; of a table of
            version 9 the mark that it is configured with, in exactly these letters (`exact_marker`).
        event_time: commits say the range of `hoodie.payload.event.time.field` over the updated records.
        meta_of_winner: meta columns are those of the record that wins, and not of the later one.
        tombstones_compare: deletes of the log are compared with what follows, and with the stored row
            (table version 8 and later).
        by_value: the ordering value that a payload was made with is compared, not the one in the record's columns.
            Of a nested field Apache Hudi 0.15 makes none from the records of a log, so that these always win.
        by_defaults: a value is filled where it is its column's default: null, or what `defaults` says.
        defaults: columns whose default is not null, with what is filled there (see `hudi_format.merge.record_merger`).
        custom: a merge of the user's (`hudi_format.merge.user_merger`), as its option says it; "" for none.  Then of
            the above only `name` and the marks of deletion count.
        fixed: columns that such a merge must not change.
    """

    name: str
    within: Order = Order.GREATEST
    against_stored: Order = Order.LATER
    fill_within: bool = False
    fill_stored: bool = False
    late_delete_loses: bool = False
    delete_fields: bool = False
    delete_field: str = ""
    delete_marker: str = ""
    exact_marker: bool = False
    late_fills: bool = True
    unavailable: str | None = None
    compared: str = ""
    sequence: bool = False
    event_time: bool = False
    meta_of_winner: bool = False
    tombstones_compare: bool = False
    by_value: bool = False
    by_defaults: bool = False
    defaults: tuple[tuple[str, Gap], ...] = ()
    custom: str = ""
    fixed: tuple[str, ...] = ()

    @property
    def fills(self) -> bool:
        """Whether values of the stored record may stay."""
        return self.fill_within or self.fill_stored or bool(self.custom)

    def gap(self, column: str) -> Gap:
        """Values of a column that are filled from the losing record."""
        if self.unavailable is not None:
            return Unavailable(self.unavailable)
        return next((g for n, g in self.defaults if n == column), None)


_EVENT = Order.GREATEST
PAYLOADS: dict[str, MergeRule] = {
    r.name: r
    for r in (
        MergeRule(DEFAULT_PAYLOAD),
        MergeRule(
            "DefaultHoodieRecordPayload", against_stored=_EVENT,
            late_delete_loses=True, delete_fields=True, event_time=True,
        ),
        MergeRule("EventTimeAvroPayload", against_stored=_EVENT),
        MergeRule(
            "FirstValueAvroPayload", Order.GREATEST_FIRST, Order.GREATEST_FIRST,
            late_delete_loses=True, delete_fields=True, event_time=True,
        ),
        MergeRule("OverwriteNonDefaultsWithLatestAvroPayload", fill_stored=True, by_defaults=True),
        MergeRule(
            "PartialUpdateAvroPayload", against_stored=_EVENT, fill_within=True, fill_stored=True, by_value=True
        ),
        MergeRule("AWSDmsAvroPayload", delete_field="Op", delete_marker="D"),
    )
}  # fmt: skip

# What Debezium sends.
UNAVAILABLE = "__debezium_unavailable_value"
_CHANGE = MergeRule(
    "",
    against_stored=_EVENT,
    late_delete_loses=True,
    delete_field="_change_operation_type",
    delete_marker="d",
)
PAYLOADS |= {
    r.name: r
    for r in (
        replace(
            _CHANGE, name="PostgresDebeziumAvroPayload", compared="_event_lsn",
            fill_stored=True, late_fills=False, unavailable=UNAVAILABLE,
        ),
        replace(
            _CHANGE, name="MySqlDebeziumAvroPayload", compared="_event_seq",
            sequence=True, against_stored=Order.GREATEST_FIRST,
        ),
    )
}  # fmt: skip

COMMIT_TIME = MergeRule(
    "COMMIT_TIME_ORDERING", Order.LATER, Order.LATER, delete_fields=True, meta_of_winner=True
)
EVENT_TIME = MergeRule(
    "EVENT_TIME_ORDERING", _EVENT, _EVENT,
    late_delete_loses=True, delete_fields=True, tombstones_compare=True, meta_of_winner=True,
)  # fmt: skip
MODES = {r.name: r for r in (COMMIT_TIME, EVENT_TIME)}
# What table version 9 makes of a payload: mode, and whether nulls are filled.
_MODE_OF_PAYLOAD = {
    DEFAULT_PAYLOAD: COMMIT_TIME,
    "DefaultHoodieRecordPayload": EVENT_TIME,
    "EventTimeAvroPayload": EVENT_TIME,
}


# Where releases have had them; AWSDmsAvroPayload is still in the last one too, for those who name it so.
_PACKAGES = frozenset(
    (
        "",
        MODELS,
        "debezium.",
        f"{MODELS}debezium.",
        "com.uber.hoodie.common.model.",
        "org.apache.hudi.payload.",
    )
)


def payload_class(name: str) -> str:
    """Full name of a payload class, as every release of Apache Hudi has it.

    Args:
        name: with the package, with that of an earlier release, or without; of classes that are not built here the
            name stays, but for the package from before Apache.
    """
    package, dot, short = name.strip().rpartition(".")
    if short in PAYLOADS and package + dot in _PACKAGES:
        return MODELS + ("debezium." if "Debezium" in short else "") + short
    return name.replace("com.uber.hoodie", "org.apache.hudi")


def payload_rule(class_name: str | None) -> MergeRule:
    """Rule of a payload class (package optional); for None, of Apache Hudi's default.

    Raises:
        UnsupportedError: a class that is not built here.
    """
    full = payload_class(class_name or DEFAULT_PAYLOAD)
    rule = PAYLOADS.get(full.rpartition(".")[2])
    if rule is not None and full == payload_class(rule.name):
        return rule
    raise UnsupportedError(
        f"the payload class {class_name} is not supported",
        remedy=f"use one of {', '.join(PAYLOADS)}.",
        payload=class_name,
    )


def check_compared(rule: MergeRule, ordering_fields: Sequence[str]) -> None:
    """Refuse a payload that compares other columns than the table's ordering fields.

    Then the records of a log, or of a write, meet in one order, and the stored row in another.

    Raises:
        UnsupportedError: naming both.
    """
    if rule.compared and tuple(ordering_fields) != (rule.compared,):
        raise UnsupportedError(
            f"{rule.name} compares records by {rule.compared}, but the table orders them by "
            f"{', '.join(ordering_fields) or 'nothing'}",
            remedy=f"make {rule.compared} the table's ordering field, or use Apache Hudi.",
        )


UNAVAILABLE_VALUE = "hoodie.write.partial.update.unavailable.value"
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"


def mode_rule(
    mode: str | None,
    *,
    payload: str | None = None,
    has_ordering: bool = True,
    partial_update: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> MergeRule:
    """Merge rule of a table of version 8 or later.

    Args:
        mode: `hoodie.record.merge.mode`; None or "" where the table does not say.
        payload: its payload class, short or full; decides under CUSTOM, and where there is no mode.
        has_ordering: whether the table has ordering fields; decides where there is neither.
        partial_update: `hoodie.table.partial.update.mode`.
        properties: the table's `hoodie.record.merge.property.` entries, without the prefix.

    Raises:
        UnsupportedError: a merger or payload that is not built here.
    """
    given = properties or {}
    short = (payload or "").rpartition(".")[2]
    if mode in MODES:
        rule = MODES[mode]
    elif mode == "CUSTOM":
        rule = payload_rule(payload or "a user-defined merger")
        # Apache Hudi 1.0 merges logged records as it merges one with the stored row.  Entries of delete blocks it
        # compares, as under every mode but that of commit times.
        order = Order.LATER_DATA if rule.against_stored == Order.LATER else rule.against_stored
        rule = replace(
            rule, within=order, against_stored=order, fill_within=rule.fill_stored, tombstones_compare=True
        )
    elif mode:
        raise UnsupportedError(
            f"the merge mode {mode} is not supported",
            remedy="read the table with Apache Hudi 1.x.",
            mode=mode,
        )
    elif short:
        rule = _MODE_OF_PAYLOAD.get(short) or payload_rule(payload)
    else:
        rule = EVENT_TIME if has_ordering else COMMIT_TIME
    field, marker = given.get(DELETE_FIELD, ""), given.get(DELETE_MARKER, "")
    if field and marker:
        rule = replace(rule, delete_field=field, delete_marker=marker, exact_marker=True)
    if partial_update in (None, "", "NONE"):
        return rule
    rule = replace(rule, fill_within=True, fill_stored=True, meta_of_winner=True)
    if partial_update == "IGNORE_DEFAULTS":
        return replace(rule, by_defaults=True)
    if partial_update == "FILL_UNAVAILABLE" and given.get(UNAVAILABLE_VALUE):
        return replace(rule, unavailable=given[UNAVAILABLE_VALUE])
    raise UnsupportedError(
        f"the partial update mode {partial_update} is not supported",
        remedy="read the table with Apache Hudi 1.1 or later.",
        mode=partial_update,
    )
