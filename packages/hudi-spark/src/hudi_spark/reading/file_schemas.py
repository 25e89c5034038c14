"""Files of a scan whose column types differ from the table's current ones.

A column may have been widened since (int to long and the like).  Spark's vectorised reader takes no wider type than
the file's, so such files are read in their own types and cast.

Source: a file has the schema of the commit that wrote it (spec "Timeline", section 4.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from hudi_format.keygen.partition_path import lacks_column
from hudi_format.parquet.footer import read_footer
from hudi_format.schema.avro import from_avro
from hudi_spark.types import to_spark_type
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.reading.plan import ScanPlan

THREADS = 8


def files_by_schema(
    snapshot: TableSnapshot, plan: ScanPlan, wanted: pa.Schema, held: Sequence[str] = ()
) -> list[tuple[pa.Schema, list[str]]]:
    """The plan's files in groups of equal types, each with its types of `wanted`.

    Args:
        snapshot: the state of the table that the plan is of.
        wanted: columns that come from the files, in the scan's types.
        held: those that each file has to hold.

    Raises:
        PartitionPathError: a file lacks one of them.
    """
    files = plan.files.select(["path", "instant"]).to_pydict()
    paths: dict[str, list[str]] = {}
    for path, instant in zip(files["path"], files["instant"], strict=True):
        paths.setdefault(instant, []).append(path)
    sets: list[tuple[pa.Schema, list[str]]] = []
    schemas = _schemas(snapshot, {instant: of[0] for instant, of in paths.items()})
    for instant, of in paths.items():
        lacking = next((n for n in held if n not in schemas[instant].names), None)
        if lacking is not None:
            raise lacks_column(lacking).at(table=plan.uri, instant=instant, file=of[0])
        types = _types(wanted, schemas[instant])
        for known, members in sets:
            if known.equals(types):
                members += of
                break
        else:
            sets.append((types, list(of)))
    return sets


def _schemas(snapshot: TableSnapshot, sample: dict[str, str]) -> dict[str, pa.Schema]:
    """Schema written by each instant: from its commit or, if archived, from one of its files."""
    completed = {i.time: i for i in snapshot.timeline.completed_writes()}
    parsed: dict[str, pa.Schema] = {}
    out: dict[str, pa.Schema] = {}
    unknown: list[str] = []
    for instant in sample:
        text = snapshot.commits.get(completed[instant]).schema_text if instant in completed else None
        if text:
            if text not in parsed:
                parsed[text] = from_avro(text)
            out[instant] = parsed[text]
        else:
            unknown.append(instant)
    if unknown:
        with ThreadPoolExecutor(THREADS, thread_name_prefix="hudi-footers") as pool:
            footers = pool.map(lambda i: read_footer(snapshot.storage, sample[i]).schema, unknown)
            out.update(zip(unknown, footers, strict=True))
    return out


def files_of_types(snapshot: TableSnapshot, files: Mapping[str, str], wanted: pa.Schema) -> set[str]:
    """Files whose columns have just the wanted types in Spark, inside of others too.

    Columns may be missing.

    Args:
        files: the instant of each path.
    """
    sample = {instant: path for path, instant in files.items()}
    schemas = _schemas(snapshot, sample)
    alike = {i for i, stored in schemas.items() if _is_of(wanted, stored)}
    return {path for path, instant in files.items() if instant in alike}


def _is_of(wanted: pa.Schema, stored: pa.Schema) -> bool:
    names = {n.lower() for n in stored.names}
    for field in wanted:
        place = stored.get_field_index(field.name)
        if place < 0:
            # Spark finds a column by its name in any case, or not at all where two have it.
            if field.name.lower() in names:
                return False
        elif to_spark_type(stored.field(place).type) != to_spark_type(field.type):
            return False
    return len(names) == len(stored)


def _types(wanted: pa.Schema, stored: pa.Schema) -> pa.Schema:
    names = set(stored.names)
    return pa.schema([pa.field(f.name, _type(f, stored)) if f.name in names else f for f in wanted])


def _type(wanted: pa.Field, stored: pa.Schema) -> pa.DataType:
    return read_type(wanted.type, stored.field(wanted.name).type)


def read_type(wanted: pa.DataType, stored: pa.DataType) -> pa.DataType:
    """`wanted` with the stored type wherever Spark's differs; nested fields stay."""
    if pa.types.is_struct(wanted) and pa.types.is_struct(stored):
        return pa.struct([_nested(f, stored) for f in wanted])
    if pa.types.is_list(wanted) and pa.types.is_list(stored):
        return pa.list_(wanted.value_field.with_type(read_type(wanted.value_type, stored.value_type)))
    if pa.types.is_map(wanted) and pa.types.is_map(stored):
        return pa.map_(
            read_type(wanted.key_type, stored.key_type),
            wanted.item_field.with_type(read_type(wanted.item_type, stored.item_type)),
        )
    return wanted if to_spark_type(wanted) == to_spark_type(stored) else stored


def _nested(field: pa.Field, stored: pa.StructType) -> pa.Field:
    index = stored.get_field_index(field.name)
    return field if index < 0 else field.with_type(read_type(field.type, stored.field(index).type))
