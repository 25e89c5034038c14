"""Row filters: pyarrow expressions or SQL WHERE text, checked against a schema.

Text: comparisons (`=`, `==`, `<>`, `!=`, `<`, `<=`, `>`, `>=`), `[NOT] IN (...)`, `[NOT] BETWEEN a AND b`,
`[NOT] LIKE 'a%'`, `IS [NOT] NULL`, a boolean column, `AND`, `OR`, `NOT`, parentheses.  Text literals stand in
single quotes (`''` is one quote), names bare, in backticks or in double quotes, fields of structs after dots;
`DATE '...'` and `TIMESTAMP '...'` are allowed and not needed: a literal takes the type of the column beside it.  A
comparison with a null is not true, as in SQL.

Tuples `(column, operator, value)` are taken as `pyarrow.parquet.read_table` takes them: all of a list must hold, or one
of several lists.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Generic, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import doubles, filtered, flags, integers, text, texts
from hudi_format.arrow.filter_conditions import ArrowConditions, Conditions, E, FilterColumn, paired
from hudi_format.errors import InvalidOptionError, MissingColumnError, SchemaError
from hudi_timeline.file_system_view.partition_values import cast_text
from hudi_timeline.reading.plan import Predicate

_SQL = "`hudi sql` and Scan.to_duckdb() take all of SQL"
_HELP = "write e.g. \"city = 'sf' and ts > 5\"; see hudi_timeline.reading.filters for all that is understood."


Condition: TypeAlias = str | pc.Expression | Sequence[Any]
"""Text, a pyarrow expression, or tuples."""


def make_predicate(filter: Condition, schema: pa.Schema) -> Predicate:
    """The filter as a predicate over the columns of `schema`.

    Raises:
        MissingColumnError: a column that the schema lacks, with the nearest name.
        InvalidOptionError: the text cannot be parsed, or a value is not of its column's type.
        SchemaError: an expression does not fit the columns' types.
        TypeError: neither text nor a pyarrow expression.
    """
    if isinstance(filter, str):
        parts, text = conditions(filter, schema, ArrowConditions()), filter
        expression = _all(parts)
    elif isinstance(filter, pc.Expression):
        parts, expression, text = [filter], filter, str(filter)
    elif isinstance(filter, (list, tuple)) and filter:
        expression = _of_tuples(filter)
        parts, text = [expression], str(filter)
    else:
        raise TypeError(
            "filter must be text, a pyarrow.compute.Expression or a list of tuples (column, operator, value), not "
            + ("an empty list" if isinstance(filter, (list, tuple)) else type(filter).__name__)
            + (
                "; scan_hudi() takes Polars expressions"
                if type(filter).__module__.startswith("polars")
                else ""
            )
        )
    _check_length(expression)
    try:
        filtered(pa.Table.from_batches([], schema), expression)
    except pa.ArrowInvalid as e:
        missing = re.search(r"No match for FieldRef\.(?:Name|Nested)\((.*)\) in", str(e))
        if missing is not None:
            raise missing_column(missing[1], schema) from None
        raise _misfit(text, e) from None
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise _misfit(text, e) from None
    inner = tuple(Predicate(p, _columns_of(p, schema), str(p)) for p in parts) if len(parts) > 1 else ()
    return Predicate(expression, _columns_of(expression, schema), text, inner)


def _of_tuples(filter: Sequence[Any]) -> pc.Expression:
    """The expression of tuples `(column, operator, value)`."""
    from pyarrow.parquet import filters_to_expression

    given = [filter] if isinstance(filter[0], str) else list(filter)
    try:
        for condition in (c for part in given for c in (part if isinstance(part, list) else [part])):
            if condition[1] in ("in", "not in") and isinstance(condition[2], (str, bytes)):
                # It would be taken for the list of its letters.
                raise ValueError(f"{condition[1]!r} wants a list of values, not one text")
        return filters_to_expression(given)
    except (ValueError, TypeError, IndexError, pa.ArrowException) as e:
        raise InvalidOptionError(
            f"cannot read the filter {filter!r}: {str(e).splitlines()[0]}",
            remedy="give tuples of column, operator (=, !=, <, <=, >, >=, in, not in) and value, "
            "such as [('city', '=', 'sf'), ('ts', '>', 5)].",
        ) from None


def _all(parts: Sequence[pc.Expression]) -> pc.Expression:
    return paired(operator.and_, parts)


def all_of(predicates: Sequence[Predicate], schema: pa.Schema) -> Predicate | None:
    """Conjunction of predicates; None for none."""
    if not predicates:
        return None
    first, *rest = predicates
    if not rest:
        return first
    expression = _all([p.expression for p in predicates])
    columns = {c for p in predicates for c in p.columns}
    text = " and ".join(f"({p.text})" for p in predicates)
    parts = tuple(part for p in predicates for part in p.conjuncts)
    return Predicate(expression, tuple(n for n in schema.names if n in columns), text, parts)


def _check_length(expression: pc.Expression) -> None:
    """Refuse expressions too long for Arrow, whose cost grows with the square of the length."""
    text = str(expression)
    if len(_JOINS.findall(text)) <= _MOST_PARTS:
        return
    joins = len(_JOINS.findall(_QUOTED.sub("", text)))
    if joins > _MOST_PARTS:
        raise InvalidOptionError(
            f"the filter joins {joins + 1} conditions, more than {_MOST_PARTS}",
            remedy="write many values of one column as `column in (...)`, or read and filter in parts.",
        )


_MOST_PARTS = 4000
_JOINS = re.compile(" (?:and|or) ")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def _misfit(text: str, error: Exception) -> SchemaError:
    return SchemaError(
        f"the filter {text!r} does not fit the columns' types: {str(error).splitlines()[0]}",
        remedy="compare a column with a value of its own type; the filter as a whole must be true or false.",
    )


def missing_column(name: str, schema: pa.Schema) -> MissingColumnError:
    """Error for a missing column, with the most similar name."""
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in schema.names], 1, 0.5)
    nearest = next((n for n in schema.names if near and n.lower() == near[0]), "")
    remedy = f"did you mean {nearest!r}?" if nearest else f"columns are: {', '.join(schema.names)}."
    return MissingColumnError(f"the table has no column {name!r}", remedy=remedy, column=name)


def _columns_of(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    # Expressions do not tell their fields; their text names each.  A name inside a literal is read in vain.
    text = str(expression)
    if "FieldPath(" in text:  # a field by number may be any
        return tuple(schema.names)
    words = set(_WORD.findall(text))
    return tuple(n for n in schema.names if (n in words if _WORD.fullmatch(n) else _names(text, n)))


def _names(text: str, name: str) -> bool:
    if _IS_WORD(name) is None:
        return name in text
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


_WORD = re.compile(r"\w+")
# What stands around a name in such a text is no part of a word.
_IS_WORD = re.compile(r"\w(?:.*\w)?", re.DOTALL).fullmatch


# --- the text form: tokens -> tree -> expression


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


_TOKEN = re.compile(
    r"""(?:
      (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>(?:[^\W\d]\w*|`[^`]+`|"[^"]+")(?:\s*\.\s*(?:[^\W\d]\w*|`[^`]+`|"[^"]+"))*)
    | (?P<op><=>|<=|>=|<>|!=|==|=|<|>|\(|\)|,|-|\+)
    )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_ESCAPES = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL).fullmatch
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPERATORS = {"=": "==", "<>": "!=", **{o: o for o in _NEGATED}}
_KEYWORDS = frozenset(
    ["and", "or", "not", "in", "between", "like", "is", "null", "true", "false", "date", "timestamp"]
)


@dataclass(frozen=True, slots=True)
class _Literal:
    value: str | int | float | Decimal | bool | None
    text: str


# A node makes its expression, or that of its negation.  Negations are pushed down to the comparisons, so that
# `not (a in (1))` leaves out rows with a null, as SQL does.
_Node = Callable[[bool], E]


def conditions(text: str, schema: pa.Schema, make: Conditions[E]) -> list[E]:
    """Conditions joined by AND in a filter text, in the language of `make`.

    Raises:
        InvalidOptionError: with the place at fault; `details["offset"]` counts characters from 0.
        MissingColumnError: see `make_predicate`.
    """
    try:
        return [node(False) for node in _FilterParser(text, schema, make).whole()]
    except RecursionError:
        raise InvalidOptionError(
            f"cannot read the filter {text[:40]!r}...: it is nested too deeply", remedy=_HELP, offset=0
        ) from None


class _FilterParser(Generic[E]):
    def __init__(self, text: str, schema: pa.Schema, make: Conditions[E]) -> None:
        self._make = make
        self._text = text
        self._schema = schema
        self._tokens = self._tokenize()
        self._at = 0

    def _tokenize(self) -> list[_Token]:
        out: list[_Token] = []
        at = 0
        while True:
            at = _SPACE.match(self._text, at).end()  # type: ignore[union-attr]  # no space matches too
            if at == len(self._text):
                break
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastgroup is None:
                bad = self._text[at]
                hint = {
                    '"': "the name has no closing double quote",
                    **dict.fromkeys("*/%|", f"there is no arithmetic in filters; {_SQL}"),
                    "'": "the text has no closing quote",
                    "`": "the name has no closing backtick",
                }.get(bad, f"{bad!r} is not understood")
                raise self._error(hint, at)
            kind = match.lastgroup
            word = match[kind]
            if kind == "name" and word.lower() in _KEYWORDS:
                kind, word = "word", word.lower()
            out.append(_Token(kind, word, match.start(match.lastgroup)))
            at = match.end()
        out.append(_Token("end", "", len(self._text)))
        return out

    def _error(self, reason: str, offset: int) -> InvalidOptionError:
        return InvalidOptionError(
            f"cannot read the filter {self._text!r}: {reason}, at character {offset + 1}",
            remedy=_HELP,
            offset=offset,
        )

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        token = self._next
        if token.kind in ("op", "word") and token.text in texts:
            self._at += 1
            return token
        return None

    def _expect(self, text: str, what: str) -> None:
        if self._take(text) is None:
            raise self._error(f"{what} is missing", self._next.start)

    def whole(self) -> list[_Node[E]]:
        """Conjuncts of the whole text."""
        if self._next.kind == "end":
            raise self._error("it is empty", 0)
        parts = self._parts()
        if self._next.kind == "word" and self._next.text == "or":
            parts = [self._either(self._joined(parts, conjunction=True))]
        if self._next.kind != "end":
            raise self._error(f"unexpected token {self._next.text!r}", self._next.start)
        return parts

    def _either(self, first: _Node[E] | None = None) -> _Node[E]:
        parts = [self._both() if first is None else first]
        while self._take("or"):
            parts.append(self._both())
        return self._joined(parts, conjunction=False)

    def _both(self) -> _Node[E]:
        return self._joined(self._parts(), conjunction=True)

    def _parts(self) -> list[_Node[E]]:
        parts = [self._single()]
        while self._take("and"):
            parts.append(self._single())
        return parts

    def _single(self) -> _Node[E]:
        if self._take("not"):
            inner = self._single()
            return lambda negated: inner(not negated)
        if self._take("("):
            inner = self._either()
            self._expect(")", "a closing parenthesis")
            return inner
        return self._comparison()

    def _comparison(self) -> _Node[E]:
        start = self._next.start
        left = self._operand()
        token = self._next
        if token.kind == "op" and token.text in _OPERATORS:
            self._at += 1
            return self._compare(_OPERATORS[token.text], left, self._operand(), start)
        if isinstance(left, _Literal):
            raise self._error("a comparison must follow a value", token.start)
        return self._about(left)

    def _about(self, column: FilterColumn) -> _Node[E]:
        """Predicate on a column: IS NULL, IN, BETWEEN, LIKE, or nothing (a boolean column)."""
        make = self._make
        if self._take("is"):
            wanted = self._take("not") is None
            self._expect("null", "NULL")
            return lambda negated: make.is_null(column) if wanted != negated else make.is_valid(column)
        flipped = self._take("not") is not None
        token = self._next
        if self._take("in"):
            return _maybe_negated(self._among(column), flipped)
        if self._take("between"):
            low = self._operand()
            self._expect("and", "AND")
            high = self._operand()
            both = [
                self._compare(">=", column, low, token.start),
                self._compare("<=", column, high, token.start),
            ]
            return _maybe_negated(self._joined(both, conjunction=True), flipped)
        if self._take("like"):
            return _maybe_negated(self._like(column), flipped)
        if flipped:
            raise self._error("IN, BETWEEN or LIKE must follow NOT", token.start)
        if not pa.types.is_boolean(column.type):
            raise self._error(f"a comparison must follow {column}", token.start)
        return lambda negated: self._signed(make.flag(column), negated)

    def _among(self, column: FilterColumn) -> _Node[E]:
        self._expect("(", "an opening parenthesis")
        values: list[pa.Scalar] = []
        has_null = False
        while True:
            start = self._next.start
            item = self._operand()
            if isinstance(item, FilterColumn):
                raise self._error("IN takes values, not columns", start)
            if item.value is None:
                has_null = True
            else:
                values.append(self._scalar(item, column, start))
            if self._take(",") is None:
                break
        self._expect(")", "a closing parenthesis")
        make, alike = self._make, len({v.type for v in values}) == 1
        zeros = [v.type for v in values if pa.types.is_floating(v.type) and v.as_py() == 0]
        values += [z for kind in zeros for z in doubles([0.0, -0.0]).cast(kind)]  # a set tells them apart
        either = self._joined([self._comparing("==", column, v) for v in values], conjunction=False)

        def node(negated: bool) -> E:
            if not values or (negated and has_null):  # `x NOT IN (1, NULL)` is never true
                return make.never()
            if not alike:
                return either(negated)
            found = make.among(column, values)
            if not negated:
                return found
            return make.joined([make.negated(found), make.is_valid(column)], conjunction=True)

        return node

    def _like(self, column: FilterColumn) -> _Node[E]:
        token = self._next
        pattern = self._operand()
        if isinstance(pattern, FilterColumn) or not isinstance(pattern.value, str):
            raise self._error("LIKE takes a text", token.start)
        if not pa.types.is_string(column.type):
            raise self._error(f"LIKE needs a text column, {column} is {column.type}", token.start)
        wanted = pattern.value
        if not _ESCAPES(wanted):  # of which Arrow takes some as they are, and others not
            raise self._error("a backslash in LIKE must stand before %, _ or a backslash", token.start)
        return lambda negated: self._signed(self._make.like(column, wanted), negated)

    def _compare(
        self, op: str, left: FilterColumn | _Literal, right: FilterColumn | _Literal, start: int
    ) -> _Node[E]:
        if isinstance(left, _Literal):
            left, right, op = right, left, _FLIPPED[op]
        if isinstance(left, _Literal):
            raise self._error("one side of a comparison must be a column", start)
        if isinstance(right, FilterColumn):
            return self._comparing(op, left, right)
        if right.value is None:
            raise self._error("a comparison with NULL is never true, use IS NULL", start)
        return self._comparing(op, left, self._scalar(right, left, start))

    def _comparing(self, op: str, left: FilterColumn, right: FilterColumn | pa.Scalar) -> _Node[E]:
        make = self._make
        if op not in ("==", "!=") and (pa.types.is_floating(left.type) or pa.types.is_floating(right.type)):
            # NaN is neither less nor greater, so `not (x < 1)` is not `x >= 1`.
            return lambda negated: self._signed(make.compare(op, left, right), negated)
        return lambda negated: make.compare(_NEGATED[op] if negated else op, left, right)

    def _signed(self, condition: E, negated: bool) -> E:
        return self._make.negated(condition) if negated else condition

    def _joined(self, parts: Sequence[_Node[E]], *, conjunction: bool) -> _Node[E]:
        if len(parts) == 1:
            return parts[0]

        def node(negated: bool) -> E:
            return self._make.joined([part(negated) for part in parts], conjunction=conjunction != negated)

        return node

    def _operand(self) -> FilterColumn | _Literal:
        token = self._next
        self._at += 1
        if token.kind == "string":
            return _Literal(token.text[1:-1].replace("''", "'"), token.text)
        if token.kind == "number":
            return _Literal(_number(token.text), token.text)
        if token.kind == "op" and token.text in "+-" and self._next.kind == "number":
            text = ("-" if token.text == "-" else "") + self._next.text
            self._at += 1
            return _Literal(_number(text), text)
        if token.kind == "word":
            if token.text in ("true", "false"):
                return _Literal(token.text == "true", token.text)
            if token.text == "null":
                return _Literal(None, token.text)
            if token.text in ("date", "timestamp"):
                if self._next.kind == "string":
                    return self._operand()
                return self._column(token)
        if token.kind == "name":
            if self._next.kind == "op" and self._next.text == "(":
                raise self._error(
                    f"there are no functions in filters, such as {token.text}; {_SQL}", token.start
                )
            return self._column(token)
        self._at -= 1
        raise self._error("a column or a value is missing", token.start)

    def _column(self, token: _Token) -> FilterColumn:
        written = self._text[token.start : token.start + len(token.text)]
        parts = [a or b or c for a, b, c in re.findall(r'`([^`]+)`|"([^"]+)"|([^\W\d]\w*)', written)]
        # A dotted name may also be one column's whole name.
        if ".".join(parts) in self._schema.names:
            parts = [".".join(parts)]
        index = self._schema.get_field_index(parts[0])
        if index < 0:
            if written.startswith('"'):  # as Spark has text
                raise self._error(
                    f"{written} would be a column, and there is none; text stands in 'single quotes'",
                    token.start,
                )
            raise missing_column(parts[0], self._schema)
        kind = self._schema.field(index).type
        for nth, part in enumerate(parts[1:], 1):
            inner = kind.get_field_index(part) if pa.types.is_struct(kind) else -1
            if inner < 0:
                raise MissingColumnError(
                    f"the field {part!r} is missing in {'.'.join(parts[:nth])}, which has type {kind}",
                    column=part,
                    remedy=(
                        f"its fields are {', '.join(kind.field(n).name for n in range(kind.num_fields))}."
                        if pa.types.is_struct(kind)
                        else f"name {'.'.join(parts[:nth])} alone: it has no fields."
                    ),
                )
            kind = kind.field(inner).type
        return FilterColumn(tuple(parts), kind)

    def _scalar(self, literal: _Literal, column: FilterColumn, start: int) -> pa.Scalar:
        """A literal in the type of the compared column."""
        value, to = literal.value, column.type
        numeric = pa.types.is_integer(to) or pa.types.is_floating(to) or pa.types.is_decimal(to)
        try:
            if isinstance(value, bool):
                if pa.types.is_boolean(to):
                    return flags([value])[0]
            elif isinstance(value, str):
                if pa.types.is_string(to) or pa.types.is_binary(to):
                    return text(value).cast(to)
                if numeric or pa.types.is_temporal(to) or pa.types.is_boolean(to):
                    return cast_text(texts([value]), to)[0]
            elif numeric:
                return _number_scalar(value, to)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidOperation, UnicodeEncodeError) as e:
            shown = literal.text.encode(errors="backslashreplace").decode()
            reason = str(e).splitlines()[0]
            raise self._error(
                f"{shown} cannot be converted to {to}, the type of {column} ({reason})", start
            ) from None
        quote = "; put the value in single quotes" if pa.types.is_string(to) else ""
        raise self._error(f"{literal.text} cannot be compared with {column}, which is {to}{quote}", start)


_MOST_DIGITS = 100  # of an int; Python reads no more than 4,300 of them


def _number(text: str) -> int | Decimal | float:
    if re.fullmatch(r"-?\d+", text) and len(text) <= _MOST_DIGITS:
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _number_scalar(value: int | float | Decimal | None, to: pa.DataType) -> pa.Scalar:
    """A number in a type comparable with `to` without loss."""
    if isinstance(value, float) and math.isinf(value) and not pa.types.is_floating(to):
        raise InvalidOperation("it is infinite")
    if pa.types.is_decimal(to):
        # Of its own digits: `price > 1.005` must not be rounded to the column's scale.
        return pa.scalar(Decimal(str(value)))
    if pa.types.is_integer(to):
        whole = Decimal(str(value))
        if whole == whole.to_integral_value() and -(2**63) <= whole < 2**63:
            return integers([int(whole)])[0]
        # Arrow compares long columns with fractions as 32-bit floats, and fails on values beyond 2**24.
        return pa.scalar(Decimal(f"{whole:f}"))
    return doubles([float(value or 0)])[0]


def _maybe_negated(node: _Node[E], flipped: bool) -> _Node[E]:
    return (lambda negated: node(not negated)) if flipped else node
