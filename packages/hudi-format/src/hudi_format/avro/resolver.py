"""Avro schema resolution: compiles a writer's and a reader's schema into decoder steps.

The writer's schema gives the order of the steps, one `Step` for each of its types that is met on the way;
the reader's schema gives the columns, one `Sink` for each level of them.  What the reader does not want
becomes a step that passes over it.

Source: Avro 1.11 specification, "Schema Resolution"; promotions beyond it are those of
`hudi_format.schema.casts.promotes`, as Apache Hudi 0.15 evolves tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.avro.defaults import default_bytes, has_default
from hudi_format.avro.types import AvroField, AvroType
from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError, UnsupportedError
from hudi_format.schema.avro import MEMBER, is_union, union_number
from hudi_format.schema.casts import promotes, refusal

MAX_STEPS = 200_000  # types that name each other can unfold to any number
_NUMBERS = {"int": 0, "long": 1, "float": 2, "double": 3}
_DAY = {"time32": 86_400_000, "time64": 86_400_000_000}  # milliseconds, microseconds
_NUMBER_OPS = {
    ("int", "int"): "int32", ("int", "long"): "int64", ("long", "long"): "long64",
    ("int", "float"): "long_float", ("long", "float"): "long_float", ("float", "float"): "float32",
    ("int", "double"): "long_double", ("long", "double"): "long_double", ("float", "double"): "float_double",
    ("double", "double"): "double64",
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Sink:
    """Output buffers of one level of a column.

    Attributes:
        path: the column's name, dots between levels.
        nullable: whether rows may be null.
        kinds: the reader's types that values may have; all of them have one Arrow type.
        kids: sinks of a struct's fields, of a list's elements, of a map's keys and values.
        names: of a struct's fields.
        whole_union: it is a struct with a field for each type of a union; of one that was given as a struct, fields may
            be left out.
        filled: Arrow type of a leaf as it is decoded; None until a step fills it.
        wanted: Arrow type of a leaf that the reader asks for.
    """

    number: int
    path: str
    nullable: bool
    kinds: list[AvroType]
    kids: list[Sink] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    whole_union: bool = False
    filled: pa.DataType | None = None
    wanted: pa.DataType | None = None

    @property
    def layout(self) -> str:
        kind = self.kinds[0].kind
        if kind in ("array", "map"):
            return "list"
        if kind == "record":
            return "struct"
        leaf = self.filled or self.wanted
        if pt.is_boolean(leaf):
            return "bool"
        return "utf8" if pt.is_string(leaf) else "bytes" if pt.is_binary(leaf) else "fixed"

    @property
    def width(self) -> int:
        """Bytes of one row's value; 0 for variable width."""
        leaf = self.filled or self.wanted
        if leaf is None or self.layout != "fixed":
            return 0
        # The bits of a large fixed type are more than Arrow counts.
        return int(leaf.byte_width if pt.is_fixed_size_binary(leaf) else leaf.bit_width // 8)

    def arrow(self, wanted: bool) -> pa.DataType:
        """Arrow type of the column, as wanted or as decoded."""
        return self.arrow_of([k.arrow(wanted) for k in self.kids], wanted)

    def arrow_of(self, inner: Sequence[pa.DataType], wanted: bool) -> pa.DataType:
        """Arrow type of the column, composed of the types of `kids`."""
        kind = self.kinds[0].kind
        if kind == "array":
            return pa.list_(pa.field("element", inner[0], self.kids[0].nullable))
        if kind == "map":
            return pa.map_(pa.string(), pa.field("value", inner[1], self.kids[1].nullable))
        if kind == "record":
            parts = zip(self.names, inner, self.kids, strict=True)
            return pa.struct([pa.field(n, t, k.nullable) for n, t, k in parts])
        return self.wanted if wanted or self.filled is None else self.filled


@dataclass(slots=True, eq=False)
class DecodeStep:
    """One decoder instruction; `hudi_format.avro._decode` documents each `op`.

    Attributes:
        null_branch: place of null in the two-branch union around the value; -1 without one.
        size: bytes of a fixed value or of the writer's int or long, fewest bytes of an item, number
            of symbols, or the end of a day.
        digits: of a decimal.
        text: bytes of a default, or the symbols of an enumeration end to end.
        spans: where each symbol begins and how long it is; -1, 0 for one that cannot be read.
    """

    op: str
    sink: int = -1
    kids: list[DecodeStep] = field(default_factory=list)
    null_branch: int = -1
    size: int = 0
    digits: int = 0
    text: bytes = b""
    spans: list[int] = field(default_factory=list)
    path: str = ""


@dataclass(slots=True, eq=False)
class Program:
    """Steps of the outermost record, and the columns they fill.

    `columns` are in the reader's order; those in `absent` are null in every row and no step fills them.
    """

    steps: list[DecodeStep]
    sinks: list[Sink]
    columns: list[tuple[str, Sink]]
    absent: set[int]
    least: int


def resolve(writer: AvroType, reader: AvroType, columns: Sequence[str] | None = None) -> Program:
    """The program that decodes the writer's records into the reader's columns.

    Raises:
        MissingColumnError: a name in `columns` that the reader does not have.
        SchemaError: a column that cannot become what the reader wants; names it.
        UnsupportedError: a schema of more than `MAX_STEPS` types.
    """
    fields = reader.fields
    if columns is not None:
        by_name = {f.name: f for f in fields}
        unknown = [c for c in columns if c not in by_name]
        if unknown:
            raise MissingColumnError(f"the schema has no column {unknown[0]}", column=unknown[0])
        if len(set(columns)) < len(columns):
            raise ValueError("a column is requested twice")
        fields = [by_name[c] for c in columns]
    try:
        return _Resolver().program(writer, fields)
    except RecursionError as e:
        raise CorruptFileError("an Avro schema nested too deeply") from e


def _one_type(kinds: list[AvroType]) -> AvroType:
    """The single type that a union is read as: a number, or a record with a field per type."""
    number = union_number([k.kind for k in kinds])
    if number is not None:
        return AvroType(number, {"type": number})
    null = AvroType("null", {"type": "null"})
    members = [AvroType("union", {"type": "union"}, branches=[null, k]) for k in kinds]
    fields = [AvroField(f"{MEMBER}{n}", m, (), None) for n, m in enumerate(members)]
    return AvroType("record", {"type": "record"}, fields=fields)


def _place(branch: AvroType, union: Sink, others: list[AvroType]) -> int | None:
    """The index of the union member that a value is assigned to.

    None where that member is not wanted, -1 where none has its type.

    That is the value's own place in its union where the wanted members are what stands there; else it goes by type:
    writers had other unions, or one type, before.
    """
    kinds = [k.kinds[0] for k in union.kids]
    numbers = [int(name.removeprefix(MEMBER)) for name in union.names]
    same = [n for n, k in enumerate(kinds) if _alike(branch, k)]
    # Two records of a union differ in their names, which may be another's for the same record elsewhere.
    named = [n for n in same if kinds[n].node.get("name") == branch.node.get("name")]
    if _same_places(union, others):
        own = next(n for n, b in enumerate(others) if b is branch)
        if own not in numbers:
            return -1 if union.whole_union else None
        place = numbers.index(own)
        if branch.kind != "record" or place in named:
            return place
        # A union of the same records in another order.
        fields = {f.name for f in branch.fields}
        fitting = [n for n in same if {f.name for f in kinds[n].fields} == fields]
        moved = named or fitting
        return place if place in moved or len(moved) != 1 else moved[0]
    return (named or same or [-1])[0]


def _same_places(union: Sink, others: list[AvroType]) -> bool:
    """Whether a struct's fields are the members of a union, at the same positions."""
    kinds = [
        (int(name.removeprefix(MEMBER)), k.kinds[0]) for name, k in zip(union.names, union.kids, strict=True)
    ]
    return len(others) > 1 and all(n < len(others) and _alike(others[n], kind) for n, kind in kinds)


def _may_hold(union: Sink, record: AvroType) -> bool:
    """Whether some member is a record that has a field of this one."""
    names = {f.name for f in record.fields}
    return any(names.intersection(k.names) for k in union.kids if k.kinds[0].kind == "record")


def _alike(writer: AvroType, reader: AvroType) -> bool:
    if writer.kind in ("array", "map", "record"):
        return writer.kind == reader.kind
    if reader.kind in ("array", "map", "record"):
        return False
    return bool(writer.arrow("") == reader.arrow(""))


class _Resolver:
    def __init__(self) -> None:
        self._sinks: list[Sink] = []
        self._steps = 0
        self._skips: dict[int, DecodeStep] = {}
        self._open: list[AvroType] = []  # the reader's records around the sink being made

    def program(self, writer: AvroType, fields: list[AvroField]) -> Program:
        sinks = [self._sink(f.type, f.name) for f in fields]
        absent: set[int] = set()
        steps = self._fields(writer, fields, sinks, "", absent)
        pairs = zip((f.name for f in fields), sinks, strict=True)
        return Program(steps, self._sinks, list(pairs), absent, writer.least)

    def _step(self, op: str, sink: int = -1, path: str = "", **more: object) -> DecodeStep:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise UnsupportedError(f"a schema of more than {MAX_STEPS} types")
        return DecodeStep(op, sink, path=path, **more)  # type: ignore[arg-type]

    # --- the reader's side ---

    def _sink(self, kind: AvroType, path: str) -> Sink:
        kinds = [b for b in kind.branches if b.kind != "null"] if kind.kind == "union" else [kind]
        if not kinds or kinds[0].kind == "null":
            raise SchemaError(f"column {path} has Avro's type null, which cannot be a column", column=path)
        first = kinds[0]
        out = Sink(len(self._sinks), path, len(kinds) < len(kind.branches), kinds)
        self._sinks.append(out)
        if len(self._sinks) > MAX_STEPS:
            raise UnsupportedError(f"a schema of more than {MAX_STEPS} types")
        if len(kinds) > 1:
            first = _one_type(kinds)
            out.kinds = [first]
            out.whole_union = True
        if first.kind == "array":
            out.kids = [self._sink(first.inside, f"{path}.element")]
        elif first.kind == "map":
            key = AvroType("string", {"type": "string"})
            out.kids = [self._sink(key, f"{path}.key"), self._sink(first.inside, f"{path}.value")]
        elif first.kind == "record":
            if first in self._open:
                raise SchemaError(
                    f"column {path} has a recursive type, which cannot be a column", column=path
                )
            self._open.append(first)
            out.names = [f.name for f in first.fields]
            out.kids = [self._sink(f.type, f"{path}.{f.name}") for f in first.fields]
            self._open.pop()
        else:
            out.wanted = first.arrow(path)
        return out

    # --- steps that fill sinks ---

    def _fields(
        self, writer: AvroType, fields: list[AvroField], sinks: list[Sink], path: str, absent: set[int] | None
    ) -> list[DecodeStep]:
        """Steps of a record's fields in the writer's order, then of fields that the writer lacks."""
        places = {f.name: i for i, f in enumerate(writer.fields)}
        source: dict[int, int] = {places[f.name]: i for i, f in enumerate(fields) if f.name in places}
        taken = set(source.values())
        for i, f in enumerate(fields):
            found = [places[a] for a in f.aliases if a in places and places[a] not in source]
            if i not in taken and found:
                source[found[0]] = i
                taken.add(i)
        steps: list[DecodeStep] = []
        for place, f in enumerate(writer.fields):
            if place in source:
                steps.append(self._read(f.type, sinks[source[place]]))
            else:
                self._append_skip(steps, f.type)
        for i, f in enumerate(fields):
            if i not in taken:
                steps += self._default(f, sinks[i], absent)
        return steps

    def _default(self, f: AvroField, sink: Sink, absent: set[int] | None) -> list[DecodeStep]:
        if not has_default(f):
            raise MissingColumnError(
                f"column {sink.path} is missing in the data, must not be null and has no default",
                column=sink.path,
            )
        raw = default_bytes(f, sink.path)
        if sink.nullable and self._is_null(f.type, raw):
            if absent is not None:
                absent.add(sink.number)
                return []
            return [self._step("null_row", sink.number, sink.path)]
        inner = self._read(f.type, sink)
        return [self._step("default", sink.number, sink.path, kids=[inner], text=raw)]

    @staticmethod
    def _is_null(kind: AvroType, raw: bytes) -> bool:
        """Whether a value is null, from the first byte of its union branch number."""
        return len(raw) == 1 and raw[0] < 128 and kind.branches[raw[0] // 2].kind == "null"

    def _read(self, writer: AvroType, sink: Sink) -> DecodeStep:
        if writer.kind != "union":
            return self._of_branch(writer, sink, [writer])
        others = [b for b in writer.branches if b.kind != "null"]
        if len(writer.branches) == 2 and len(others) == 1 and not self._in_union(others[0], sink, others):
            step = self._value(others[0], sink, False)
            step.null_branch = 1 - writer.branches.index(others[0])
            return step
        kids: list[DecodeStep] = []
        refused: SchemaError | None = None
        for branch in writer.branches:
            try:
                kids.append(self._of_branch(branch, sink, others))
            except SchemaError as e:
                refused = e
                kids.append(self._step("unreadable", sink.number, sink.path))
        if refused is not None and all(k.op in ("unreadable", "null_row") for k in kids):
            raise refused
        return self._step("union", sink.number, sink.path, kids=kids)

    def _of_branch(self, branch: AvroType, sink: Sink, others: list[AvroType]) -> DecodeStep:
        """Step for null, or for one of the writer's other types."""
        if self._in_union(branch, sink, others):
            return self._member(branch, sink, others)
        return self._value(branch, sink, len(others) > 1)

    @staticmethod
    def _in_union(writer: AvroType, sink: Sink, others: list[AvroType]) -> bool:
        """Whether a value becomes one member of a union, not the whole column.

        A record may itself have fields of such names, now or when it was written: it is the whole, unless it stands in
        a union of the same types or one of the members has a field of it.
        """
        if writer.kind == "null" or not is_union(sink.names):
            return False
        if writer.kind != "record":
            return True
        if len(others) == 1 and not sink.whole_union and not _may_hold(sink, writer):
            return False
        named = any(is_union([f.name]) for f in writer.fields)
        return not named or _same_places(sink, others)

    def _member(self, branch: AvroType, sink: Sink, others: list[AvroType]) -> DecodeStep:
        """Step for a union value that is read as a struct with one field per type."""
        steps: list[DecodeStep]
        chosen, steps = _place(branch, sink, others), []
        if chosen is None:
            self._append_skip(steps, branch)
        elif chosen >= 0:
            steps = [self._read(branch, sink.kids[chosen])]
        else:  # the first that it can become
            for n, kid in enumerate(sink.kids):
                try:
                    chosen, steps = n, [self._value(branch, kid, len(others) > 1)]
                    break
                except SchemaError:
                    continue
            else:
                raise SchemaError(
                    f"column {sink.path} is of Avro's type {branch.kind}, which is none of its union",
                    column=sink.path,
                )
        rest = [k for n, k in enumerate(sink.kids) if n != chosen]
        steps += [self._step("null_row", k.number, k.path) for k in rest]
        return self._step("record", sink.number, sink.path, kids=steps)

    def _value(self, writer: AvroType, sink: Sink, final: bool) -> DecodeStep:
        """Step for a type that is not a union.

        `final`: the step must give the wanted Arrow type by itself.
        """
        path = sink.path
        if writer.kind == "null":
            if sink.nullable:
                return self._step("null_row", sink.number, path)
            raise SchemaError(f"column {path} is null in the data, but must not be", column=path)
        refused: SchemaError | None = None
        for reader in sink.kinds:
            try:
                return self._match(writer, reader, sink, final)
            except SchemaError as e:
                refused = refused or e
        raise refused or SchemaError(f"column {path} cannot be read", column=path)

    def _match(self, writer: AvroType, reader: AvroType, sink: Sink, final: bool) -> DecodeStep:
        path = sink.path
        if reader.kind not in ("array", "map", "record"):
            return self._leaf(writer, reader, sink, final)
        if writer.kind != reader.kind:
            raise SchemaError(
                f"column {path} has Avro's type {writer.kind} and cannot become {reader.kind}", column=path
            )
        if reader.kind == "record":
            steps = self._fields(writer, reader.fields, sink.kids, path, None)
            return self._step("record", sink.number, path, kids=steps)
        item = self._read(writer.inside, sink.kids[-1])
        size = writer.inside.least
        if reader.kind == "array":
            return self._step("blocks", sink.number, path, kids=[item], size=size)
        sink.kids[0].filled = pa.string()
        key = self._step("text", sink.kids[0].number, f"{path}.key")
        return self._step("blocks", sink.number, path, kids=[key, item], size=size + 1)

    def _leaf(self, writer: AvroType, reader: AvroType, sink: Sink, final: bool) -> DecodeStep:
        path = sink.path
        target = reader.arrow(path)
        if writer.kind in ("array", "map", "record"):
            raise SchemaError(
                f"column {path} has Avro's type {writer.kind} and cannot become {target}", column=path
            )
        step = self._native(writer, reader, path)
        filled = target
        if step is None:
            filled = writer.arrow(path)
            if final or not promotes(filled, target):
                raise refusal(path, filled, target)
            step = self._native(writer, writer, path)
            if step is None:
                raise refusal(path, filled, target)
        # Another type of a union may fill the same sink, whose buffers have one form.
        if sink.filled is not None and sink.filled != filled:
            raise refusal(path, writer.arrow(path), target)
        sink.filled = filled
        step.sink = sink.number
        return step

    def _native(self, w: AvroType, r: AvroType, path: str) -> DecodeStep | None:
        """Step that decodes directly into the reader's Arrow type, or None."""
        if r.kind in _NUMBERS:
            if w.kind not in _NUMBERS or _NUMBERS[w.kind] > _NUMBERS[r.kind]:
                return None
            if w.annotated() and r.annotated() and w.arrow(path) != r.arrow(path):
                return None
            if pt.is_time(r.arrow(path)):  # Arrow's have to be within a day
                op = "time32" if r.kind == "int" else "time64"
                return self._step(op, path=path, size=_DAY[op])
            return self._step(_NUMBER_OPS[w.kind, r.kind], path=path, size=4 if w.kind == "int" else 8)
        target = r.arrow(path)
        if pt.is_decimal(target):
            return self._decimal(w, target, path)
        if r.kind == "boolean":
            return self._step("bool", path=path) if w.kind == "boolean" else None
        if r.kind == "enum":
            return self._enum(w, r, path) if w.kind == "enum" else None
        if r.kind == "fixed":
            same = w.kind == "fixed" and w.node["size"] == r.node["size"]
            return self._step("fixed", path=path, size=w.node["size"]) if same else None
        if w.kind in ("string", "bytes") and not (r.kind == "string" and w.annotated()):
            return self._step("text", path=path)
        if w.kind == "fixed" and not (r.kind == "string" and w.annotated()):
            return self._step("fixed_text", path=path, size=w.node["size"])
        if r.kind == "string" and w.kind == "enum":
            return self._enum(w, w, path)
        if r.kind == "string" and w.kind in ("int", "long") and not w.annotated():
            return self._step("int_text" if w.kind == "int" else "long_text", path=path)
        return None

    def _decimal(self, w: AvroType, target: pa.DataType, path: str) -> DecodeStep | None:
        if w.kind not in ("bytes", "fixed"):
            return None
        digits = target.precision
        if w.annotated():
            source = w.arrow(path)
            if source.scale != target.scale or source.precision > target.precision:
                return None
            digits = source.precision
        if w.kind == "bytes":
            return self._step("decimal", path=path, digits=digits)
        return self._step("fixed_decimal", path=path, digits=digits, size=w.node["size"])

    def _enum(self, w: AvroType, r: AvroType, path: str) -> DecodeStep:
        text, spans, wanted = bytearray(), [], set(r.symbols)
        for symbol in w.symbols:
            known = symbol if symbol in wanted else r.default
            raw = b"" if known is None else known.encode()
            spans += [-1 if known is None else len(text), len(raw)]
            text += raw
        return self._step("enum", path=path, size=len(w.symbols), text=bytes(text), spans=spans)

    # --- steps that pass over ---

    def _append_skip(self, steps: list[DecodeStep], kind: AvroType) -> None:
        """Append a skip of one value; adjacent skips of fixed size become one step."""
        if kind.exact is not None:
            if steps and steps[-1].op == "skip_fixed" and steps[-1].null_branch < 0:
                steps[-1] = self._step("skip_fixed", size=min(steps[-1].size + kind.exact, 1 << 40))
            elif kind.exact:
                steps.append(self._step("skip_fixed", size=kind.exact))
            return
        steps.append(self._skip(kind))

    def _skip(self, kind: AvroType) -> DecodeStep:
        """Step that skips one value; shared by all uses of a type, which may be recursive."""
        found = self._skips.get(id(kind))
        if found is not None:
            return found
        out = self._skips[id(kind)] = self._step("skip_fixed", path=str(kind.node.get("name", kind.kind)))
        if kind.exact is not None:
            out.size = kind.exact
        elif kind.kind in ("int", "long", "enum"):
            out.op = "skip_varint"
        elif kind.kind in ("bytes", "string"):
            out.op = "skip_bytes"
        elif kind.kind == "union":
            out.op = "skip_union"
            out.kids = [self._skip(b) for b in kind.branches]
        elif kind.kind == "record":
            out.op = "skip_record"
            for f in kind.fields:
                self._append_skip(out.kids, f.type)
        else:
            out.op = "skip_blocks"
            out.size = kind.inside.least
            out.kids = [self._skip(kind.inside)]
            if kind.kind == "map":
                out.size += 1
                out.kids.insert(0, self._step("skip_bytes"))
        return out
