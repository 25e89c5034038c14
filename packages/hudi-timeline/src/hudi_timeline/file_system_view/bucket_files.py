"""Buckets of a table: the settings that it says, and the file groups that a filter needs.

A filter that fixes the hashed key fields, or the record key, to some values needs only the file groups of their
buckets.  The values are taken out of the expression, and that no other value can pass it is left to Arrow to show, by
its simplification under a guarantee, as for row groups (`hudi_format.parquet.row_group_filter`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format.errors import CorruptFileError, HudiError, InvalidOptionError, MissingFileError
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.record_keys import EMPTY_PART, NULL_PART, record_keys
from hudi_format.parquet.row_group_filter import may_match
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_index.bucket import BucketIndex
from hudi_index.extendible_hashing import ExtendibleBucketIndex
from hudi_index.lookup import BUCKET
from hudi_timeline.file_system_view.bucket_settings import last_resize, recorded_settings, unsettled_resize
from hudi_timeline.file_system_view.hashing_rings import is_seen, with_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.file_options import HASH_FIELDS, NUM_BUCKETS
from hudi_timeline.table_config import BUCKET_RESIZES, BUCKET_RESIZING, INDEX, TableConfig, index_of, load

MOST_VALUES = 10_000
"""Keys above which a filter is not looked at: they are in most buckets."""
# What a resize of all buckets changes.
_RENUMBERED = (INDEX, str(NUM_BUCKETS), str(HASH_FIELDS), BUCKET_RESIZING, BUCKET_RESIZES)
# Ranges between so many values are shown to be empty.
_PROVED = 100


@dataclass(frozen=True, slots=True)
class BucketChoice:
    """Buckets that the rows of a filter may be in.

    Attributes:
        index: the table's.
        keys: record keys, or what is hashed of them.
        resized: instant of the last resize of all buckets; "" where there was none.
    """

    index: BucketIndex
    keys: pa.Array
    resized: str = ""

    def dropped(
        self, groups: Iterable[tuple[str, str]], snapshot: TableSnapshot
    ) -> frozenset[tuple[str, str]]:
        """File groups, as (partition path, file id), that need not be read.

        None of a partition whose file ids contradict the index: one that is no bucket of it, or two of one bucket; none
        where hashing metadata cannot be read, nor where the snapshot shows the file groups of before a resize.
        """
        if not is_seen(snapshot, self.resized) or not self._is_settled(snapshot):
            return frozenset()
        by_partition: dict[str, set[str]] = {}
        for partition, file_id in groups:
            by_partition.setdefault(partition, set()).add(file_id)
        try:
            index = with_rings(self.index, snapshot, by_partition)
        except (CorruptFileError, MissingFileError):  # a read needs no bucket
            return frozenset()
        out: set[tuple[str, str]] = set()
        for partition, ids in by_partition.items():
            if isinstance(index, ExtendibleBucketIndex) and not is_seen(
                snapshot, index.ring(partition).instant
            ):
                continue
            wanted = frozenset(index.of(self.keys, partition).tolist())
            numbers = {i: index.number(i, partition) for i in ids}
            counted = Counter(numbers.values())
            if None in counted or max(counted.values()) > 1:
                continue
            out.update((partition, i) for i, number in numbers.items() if number not in wanted)
        return frozenset(out)

    def _is_settled(self, snapshot: TableSnapshot) -> bool:
        """Whether the number of buckets is still that of the properties once the file groups are listed.

        Properties are read before the timeline: a resize in between gives file groups of another number.
        """
        if type(self.index) is not BucketIndex:  # others go by the snapshot's own hashing metadata
            return True
        try:
            now = load(snapshot.storage).properties
        except HudiError:  # for whoever reads the files to say
            return False
        return all(now.get(key) == snapshot.config.properties.get(key) for key in _RENUMBERED)


def bucket_choice(
    config: TableConfig, schema: pa.Schema, filters: Sequence[tuple[pc.Expression, tuple[str, ...]]]
) -> BucketChoice | None:
    """Buckets of the rows that pass all filters; None where that is not known.

    Args:
        schema: of the rows, with meta columns where they have some.
        filters: expressions, each with the top-level columns that it needs.
    """
    if index_of(config.properties) != BUCKET or not filters:
        return None
    try:
        if unsettled_resize(config.properties) is not None:  # both numbers may be the right one
            return None
        index, resize = recorded_settings(config.properties), last_resize(config.properties)
    except (CorruptFileError, InvalidOptionError):  # a read needs no bucket
        return None
    keys = None if index is None else _keys(config, index, schema, filters)
    # Apache Hudi 1.x splits a key with commas, 0.15 does so only where it names fields.
    if index is None or keys is None or any("," in k and ":" not in k for k in keys):
        return None
    return BucketChoice(index, pa.array(keys, pa.string()), "" if resize is None else resize.instant)


def _keys(
    config: TableConfig,
    index: BucketIndex,
    schema: pa.Schema,
    filters: Sequence[tuple[pc.Expression, tuple[str, ...]]],
) -> list[str] | None:
    """Record keys, or parts of them with equal hash, of all rows that pass; None where that is not known."""
    fixed = fixed_values(RECORD_KEY, schema, filters) if config.populate_meta_fields else None
    if fixed is not None:
        return [k for k in fixed.to_pylist() if k is not None]
    fields = config.record_key_fields
    hashed = tuple(f for f in fields if f in (index.fields or fields))
    if not hashed or any(f in config.partition_fields for f in hashed):
        return None  # a partition column may be read from the path
    values: dict[str, pa.Array] = {}
    for name in fields:
        found = fixed_values(name, schema, filters)
        if found is not None:
            values[name] = found
    try:
        if values.keys() == set(fields):
            return _whole_keys(config, values)
        if values.keys() >= set(hashed):
            return _parts(schema, {f: values[f] for f in hashed}, [f for f in fields if f not in hashed])
    except HudiError:  # values of which no key can be made
        return None
    return None


def _whole_keys(config: TableConfig, values: Mapping[str, pa.Array]) -> list[str] | None:
    rows = _product([v.to_pylist() for v in values.values()])
    if rows is None:
        return None
    rows = [r for r in rows if any(v is not None and v != "" for v in r)]  # no record has another key
    columns = [pa.array([r[n] for r in rows], v.type) for n, v in enumerate(values.values())]
    made: list[str] = record_keys(pa.table(columns, names=list(values)), config.record_key_spec()).to_pylist()
    return made


def _parts(schema: pa.Schema, values: Mapping[str, pa.Array], others: Sequence[str]) -> list[str] | None:
    """The hashed parts of keys: their hash is the whole key's where no comma can stand elsewhere in it."""
    for name in others:
        kind = schema.field(name).type if name in schema.names else pa.string()
        if not (pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date(kind)):
            return None
    texts = []
    for name, array in values.items():
        parts = [NULL_PART if v is None else v or EMPTY_PART for v in to_text(array).to_pylist()]
        if any("," in p for p in parts):
            return None
        texts.append([f"{name}:{p}" for p in parts])
    rows = _product(texts)
    return None if rows is None else [",".join(r) for r in rows]


def _product(columns: Sequence[Sequence[object]]) -> list[tuple[str, ...]] | None:
    count = 1
    for column in columns:
        count *= len(column)
    return None if count > MOST_VALUES else list(itertools.product(*columns))  # type: ignore[arg-type]


def fixed_values(
    name: str, schema: pa.Schema, filters: Sequence[tuple[pc.Expression, tuple[str, ...]]]
) -> pa.Array | None:
    """All values of a column in rows that pass all filters, null included; None if unknown."""
    if schema.names.count(name) != 1:
        return None
    kind = schema.field(name).type
    if not (pt.is_string(kind) or pt.is_integer(kind) or pt.is_date32(kind)):
        return None  # other types have several texts, or values that equal each other
    for expression, columns in filters:
        if name in columns:
            found = _values(expression, name, kind, schema)
            if found is not None:
                return found
    return None


def _values(expression: pc.Expression, name: str, kind: pa.DataType, schema: pa.Schema) -> pa.Array | None:
    """Values of a column that can pass an expression; None where others may pass as well."""
    literals, is_list = _literals(expression, name)
    is_list = is_list and all(_same_kind(v.type, kind) for v in literals)
    candidates = set()
    for value in literals:
        if pt.is_string(value.type) != pt.is_string(kind):
            continue  # of another column
        try:
            scalar = value.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue  # no value of the column
        if scalar.is_valid:
            candidates.add(scalar.as_py())
    ordered = pa.array(sorted(candidates), kind)
    if is_list:
        nulls = any(not v.is_valid for v in literals)
        return pa.concat_arrays([ordered, pa.nulls(1, kind)]) if nulls else ordered
    if not 0 < len(ordered) <= _PROVED:
        return None
    field = pc.field(name)
    others = [field < ordered[0], field > ordered[-1]]
    others += [(field > low) & (field < high) for low, high in itertools.pairwise(ordered)]
    *between, null = may_match(expression, [*others, field.is_null()], schema)
    if any(between):
        return None
    return pa.concat_arrays([ordered, pa.nulls(1, kind)]) if null else ordered


def _same_kind(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a value of one type equals a single value of the other."""
    if pt.is_integer(kind):
        return bool(pt.is_integer(given))
    return bool(given == kind)


def _literals(expression: pc.Expression, name: str) -> tuple[list[pa.Scalar], bool]:
    """Literals in an expression, and whether it is nothing but a test of the column against a list of them.

    Source: how Arrow serialises an expression, and so pickles it: a batch whose columns are its literals and options,
    and whose metadata name its calls; of equal names the first one is given.
    """
    _, (data, *_) = expression.__reduce__()
    batch = pa.ipc.open_file(data).get_batch(0)
    told = {k.decode(): v.decode() for k, v in (batch.schema.metadata or {}).items()}
    found: list[pa.Scalar] = []
    for column in batch.columns:
        scalar = column[0]
        if not pt.is_struct(scalar.type):
            found.append(scalar)
        elif "value_set" in (f.name for f in scalar.type):
            values = scalar["value_set"]
            found += list(values.values if values.is_valid else ())
    only = {"call": "is_in", "end": "is_in", "field_ref": name}
    plain = told.keys() <= {*only, "options"} and all(told.get(k) == v for k, v in only.items())
    return found, plain
