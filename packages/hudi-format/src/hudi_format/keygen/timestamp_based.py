"""The timestamp-based key generator: partition values formatted as dates.

Source: TimestampBasedAvroKeyGenerator and HoodieDateTimeParser of Apache Hudi 0.15, its record path; checked on what
it writes.  Differences: a timestamp column needs a setting that gives the date meant (see `_numbers`), and an
unknown time zone is an error instead of GMT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import is_text
from hudi_format.errors import InvalidOptionError, PartitionPathError, SchemaError, UnsupportedError
from hudi_format.keygen.java_text import timestamp_micros
from hudi_format.keygen.joda_format import Moment, Parsed, Parser, parser, printer
from hudi_format.keygen.time_zones import Zone, local_zone, zone

PREFIX = "hoodie.keygen.timebased."
TYPE = PREFIX + "timestamp.type"
UNIT = PREFIX + "timestamp.scalar.time.unit"
INPUT = PREFIX + "input.dateformat"
DELIMITER = PREFIX + "input.dateformat.list.delimiter.regex"
INPUT_ZONE = PREFIX + "input.timezone"
OUTPUT = PREFIX + "output.dateformat"
OUTPUT_ZONE = PREFIX + "output.timezone"
BOTH_ZONES = PREFIX + "timezone"
PARSER_CLASS = "hoodie.keygen.datetime.parser.class"
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"

# What Apache Hudi keeps of them in hoodie.properties: what was given, but not the type.
STORED = (UNIT, INPUT, DELIMITER, INPUT_ZONE, OUTPUT, OUTPUT_ZONE, BOTH_ZONES, PARSER_CLASS)
OPTIONS = (TYPE, *STORED)

_PARSER = "org.apache.hudi.keygen.parser.HoodieDateTimeParser"
_TEXT_TYPES = ("DATE_STRING", "MIXED")
_MILLIS_OF = {
    "MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000,
}  # fmt: skip
_PER_MILLI = {"MICROSECONDS": 1000, "NANOSECONDS": 1_000_000}
_UNIT_OF_TYPE = {"UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS"}
# Milliseconds whose years Joda-Time counts.
_MOST = 9_223_372_017_043_200_000
_NULL_VALUE = 1


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """Settings for formatting a partition field.

    Attributes:
        unit: what a number counts since 1970-01-01, a name of java.util.concurrent.TimeUnit; "" where values are text.
        input_patterns: of values that are text; the first that fits a text counts.
        input_zone, output_zone: names of time zones; None for the text's own, else for `local`.
        local: the zone of the machine that plans the write.
        consistent: timestamp columns are taken for the instants they are.
    """

    unit: str
    input_patterns: tuple[str, ...]
    output_pattern: str
    input_zone: str | None
    output_zone: str | None
    local: Zone
    consistent: bool = False

    def __post_init__(self) -> None:
        printer(self.output_pattern, OUTPUT)
        for pattern in self.input_patterns:
            parser(pattern, INPUT)
        for name, option in ((self.input_zone, INPUT_ZONE), (self.output_zone, OUTPUT_ZONE)):
            if name is not None:
                zone(name, option)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> TimeSpec:
        """The spec of the given options.

        Args:
            options: by main name; others than those of this module are not looked at.

        Raises:
            InvalidOptionError: type, pattern or zone is missing or wrong.
            UnsupportedError: a type that Apache Hudi 0.15 does not have, another parser class.
        """
        kind = options.get(TYPE, "").strip().upper()
        if not kind:
            raise InvalidOptionError(
                f"the table's partition paths are formatted dates, but {TYPE} is missing",
                remedy="give it in every write, as Apache Hudi requires: UNIX_TIMESTAMP, "
                "EPOCHMILLISECONDS, SCALAR, DATE_STRING or MIXED; hoodie.properties does not store "
                "it.",
                option=TYPE,
            )
        if kind == "EPOCHMICROSECONDS":
            raise UnsupportedError(
                f"{TYPE}={kind} is unknown to Apache Hudi 0.15, which could not write to such a table",
                remedy=f"set {TYPE}=SCALAR and {UNIT}=MICROSECONDS.",
                option=TYPE,
            )
        if options.get(PARSER_CLASS, _PARSER).strip() not in (_PARSER, "", _PARSER.rpartition(".")[2]):
            raise UnsupportedError(
                f"{PARSER_CLASS}={options[PARSER_CLASS]}: Java classes are not supported",
                remedy="omit it, or store the partition value in a column.",
                option=PARSER_CLASS,
            )
        output = options.get(OUTPUT, "").strip()
        if not output:
            raise InvalidOptionError(
                f"{OUTPUT} is not given", remedy="give it, such as yyyy/MM/dd.", option=OUTPUT
            )
        both = options.get(BOTH_ZONES)
        return cls(
            unit=_unit(kind, options),
            input_patterns=_patterns(options) if kind in _TEXT_TYPES else (),
            output_pattern=output,
            input_zone=_zone_name(options.get(INPUT_ZONE) if both is None else both),
            output_zone=_zone_name(options.get(OUTPUT_ZONE) if both is None else both),
            local=local_zone(),
            consistent=options.get(CONSISTENT, "").strip().lower() == "true",
        )

    @property
    def null_text(self) -> str:
        """Text of a null value: one millisecond after 1970-01-01, in the first pattern."""
        place = zone(self.input_zone or self.output_zone or "GMT")
        offset = int(place.offsets(np.array([_NULL_VALUE]))[0])
        return printer(self.input_patterns[0], INPUT).text(Moment(_NULL_VALUE + offset, offset, place.name))


def _zone_name(text: str | None) -> str | None:
    return text.strip() if text and text.strip() else None


def _unit(kind: str, options: Mapping[str, str]) -> str:
    if kind in _TEXT_TYPES:
        return ""
    unit = _UNIT_OF_TYPE.get(kind) or options.get(UNIT, "").strip().upper() or "SECONDS"
    if unit not in _MILLIS_OF and unit not in _PER_MILLI:
        raise InvalidOptionError(
            f"{UNIT}={options.get(UNIT)} is not a time unit",
            remedy=f"use one of {', '.join((*_PER_MILLI, *_MILLIS_OF))}.",
            option=UNIT,
        )
    return unit


def _patterns(options: Mapping[str, str]) -> tuple[str, ...]:
    text = options.get(INPUT, "").strip()
    delimiter = options.get(DELIMITER, "").strip() or ","
    try:
        found = tuple(p.strip() for p in re.split(delimiter, text) if p.strip())
    except re.error as e:
        raise InvalidOptionError(
            f"{DELIMITER}={delimiter!r} is not a regular expression: {e}", option=DELIMITER,
            remedy="omit it if a comma separates the patterns.",
        ) from None  # fmt: skip
    if not found:
        raise InvalidOptionError(
            f"{INPUT} is not given",
            remedy="give the pattern of the column's texts, such as yyyy-MM-dd.",
            option=INPUT,
        )
    return found


def partition_texts(column: pa.Array, spec: TimeSpec, field: str) -> tuple[np.ndarray, list[str]]:
    """Formatted text of each value: a code per row, and the text of each code.

    Args:
        field: the column's name, for messages.

    Raises:
        SchemaError: a type that has no date in it, or not as the spec says.
        PartitionPathError: a text in none of the patterns; names the first rows.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return _from_texts(column, spec, field)
    utc = _numbers(column, spec, field)
    place = zone(spec.output_zone) if spec.output_zone is not None else spec.local
    offsets = place.offsets(utc)
    return _printed(utc + offsets, offsets, [place.name] * len(utc), spec)


def _printed(
    local: np.ndarray, offsets: np.ndarray, zones: list[str], spec: TimeSpec
) -> tuple[np.ndarray, list[str]]:
    """Texts of local times, formatted once per distinct time."""
    write = printer(spec.output_pattern, OUTPUT)
    steps = np.floor_divide(local, write.step)
    if write.shows_zone:
        seen: dict[tuple[int, int, str], int] = {}
        codes = np.empty(len(local), dtype=np.int32)
        for n, key in enumerate(zip(steps.tolist(), offsets.tolist(), zones, strict=True)):
            codes[n] = seen.setdefault(key, len(seen))
        return codes, [write.text(Moment(s * write.step, o, z)) for s, o, z in seen]
    encoded = pa.array(steps).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return codes, [write.text(Moment(s * write.step)) for s in encoded.dictionary.to_pylist()]


# --- numbers ---------------------------------------------------------------------------------------------


def _numbers(column: pa.Array, spec: TimeSpec, field: str) -> np.ndarray:
    """Milliseconds since 1970 in UTC (int64); a null is 1 in the spec's unit."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _timestamps(column, spec, field)
    if not spec.unit:
        raise SchemaError(
            f"partition column {field!r} has type {kind}, but {TYPE} says text",
            remedy=f"set {TYPE} to UNIX_TIMESTAMP, EPOCHMILLISECONDS or SCALAR.",
            column=field,
            type=str(kind),
        )
    if pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_decimal(kind):
        column = pc.trunc(column).cast(pa.decimal128(38, 0)) if kind.scale > 0 else column
    elif pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), 0.0, pc.trunc(column))
    elif not pa.types.is_integer(kind):
        raise SchemaError(
            f"partition column {field!r} has type {kind}, which has no date",
            remedy="use a column of numbers, dates, timestamps or text.",
            column=field,
            type=str(kind),
        )
    try:
        values = pc.fill_null(column.cast(pa.int64()), _NULL_VALUE).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as e:
        raise _too_far(field, str(e).splitlines()[0]) from None
    return _millis(values, spec.unit, field)


def _timestamps(column: pa.Array, spec: TimeSpec, field: str) -> np.ndarray:
    """Milliseconds of timestamps: UTC if keys are consistent, else Apache Hudi's interpretation."""
    if not spec.consistent and spec.unit != "MICROSECONDS":
        raise SchemaError(
            f"partition column {field!r} is a timestamp: without {CONSISTENT}, Apache Hudi takes "
            f"its microseconds for {spec.unit.lower() or 'text'}",
            remedy=f"set {CONSISTENT}=true, or {TYPE}=SCALAR with {UNIT}=MICROSECONDS.",
            column=field,
            option=CONSISTENT,
        )
    micros = timestamp_micros(column)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    values = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    out = _millis(
        values, "MICROSECONDS", field
    )  # java.sql.Timestamp's milliseconds too are cut off towards 1970
    if nulls.any():
        null = _millis(np.array([_NULL_VALUE]), spec.unit or "MILLISECONDS", field)[0]
        out = np.where(nulls, null, out)
    return out


def _millis(values: np.ndarray, unit: str, field: str) -> np.ndarray:
    if unit in _PER_MILLI:
        # Java's TimeUnit cuts off towards zero.
        return np.asarray(np.sign(values) * (np.abs(values) // _PER_MILLI[unit]), dtype=np.int64)
    factor = _MILLIS_OF[unit]
    if len(values) and (int(values.max()) > _MOST // factor or int(values.min()) < -_MOST // factor):
        raise _too_far(field, f"a value is outside the supported years, in {unit.lower()}")
    return np.asarray(values * factor, dtype=np.int64)


def _too_far(field: str, why: str) -> PartitionPathError:
    return PartitionPathError(
        f"partition column {field!r}: {why}", column=field,
        remedy=f"correct the values, or {TYPE} and {UNIT}.",
    )  # fmt: skip


# --- texts -----------------------------------------------------------------------------------------------


def _from_texts(column: pa.Array, spec: TimeSpec, field: str) -> tuple[np.ndarray, list[str]]:
    if not spec.input_patterns:
        raise SchemaError(
            f"partition column {field!r} is text, but {TYPE} says number",
            remedy=f"set {TYPE}=DATE_STRING and {INPUT}, or cast the column.",
            column=field,
        )
    encoded = column.cast(pa.string()).dictionary_encode()
    texts: list[str] = encoded.dictionary.to_pylist()
    codes = encoded.indices
    if codes.null_count:
        codes = pc.fill_null(codes, len(texts))
        texts.append(spec.null_text)
    rows = codes.to_numpy(zero_copy_only=False)
    parsers = [parser(pattern, INPUT) for pattern in spec.input_patterns]
    moments = [_moment(t, parsers, spec, field, rows, n) for n, t in enumerate(texts)]
    local = np.array([m.local_ms for m in moments], dtype=np.int64)
    offsets = np.array([m.offset_ms for m in moments], dtype=np.int64)
    places, out = _printed(local, offsets, [m.zone for m in moments], spec)
    return places[rows], out


def _moment(
    text: str, parsers: list[Parser], spec: TimeSpec, field: str, rows: np.ndarray, code: int
) -> Moment:
    """The moment of a text, in the zone of the partition path."""
    try:
        parsed = next((p for p in (r.parse(text) for r in parsers) if p is not None), None)
        if parsed is not None:
            return _shown(parsed, spec)
        why = f"matches none of the patterns {', '.join(spec.input_patterns)}"
    except ValueError as e:
        why = f"is not a date: {e}"
    where = np.flatnonzero(rows == code)[:3].tolist()
    raise PartitionPathError(
        f"partition column {field!r}: {text!r} {why}, first in row {', '.join(map(str, where))}",
        remedy=f"correct the values, or add their pattern to {INPUT}.",
        column=field,
        first_rows=where,
    )


def _shown(parsed: Parsed, spec: TimeSpec) -> Moment:
    own = zone(spec.input_zone) if spec.input_zone is not None else spec.local
    if parsed.offset_ms is not None:
        utc = parsed.local_ms - parsed.offset_ms
        if spec.input_zone is None and spec.output_zone is None:
            sign, minutes = "-" if parsed.offset_ms < 0 else "+", abs(parsed.offset_ms) // 60_000
            name = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if minutes else "UTC"
            return Moment(parsed.local_ms, parsed.offset_ms, name)
    else:
        utc = parsed.local_ms - own.offset_of_local(parsed.local_ms)
    place = own if spec.output_zone is None else zone(spec.output_zone)
    offset = int(place.offsets(np.array([utc]))[0])
    return Moment(utc + offset, offset, place.name)
