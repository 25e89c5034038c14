"""Merge law checks of a table's merge, or of a proposed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_format.errors import SchemaError
from hudi_format.merge.laws import LawReport, check_laws
from hudi_format.merge.payloads import MergeRule, payload_rule
from hudi_format.merge.user_merger import MergeFunction, custom_rule, merge_text
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.registry import canonical
from hudi_timeline.options.table_options import PAYLOAD
from hudi_timeline.reading.scan import Scan


def check_merge(
    snapshot: TableSnapshot,
    scan: Scan | None,
    merge: str | Mapping[str, str] | MergeFunction | None = None,
    *,
    payload: str | None = None,
    deletes: bool = False,
    cases: int = 2000,
    seed: int = 0,
) -> LawReport:
    """Merge laws of a table.

    Args:
        scan: gives rows to try; None for records that are made up.
        merge, payload: another merge than the table's: a function, its `module:name` or expressions by column; or a
            payload class.

    Raises:
        InvalidOptionError, UnsupportedError, SchemaError: no such merge, or one that does not fit the table.
    """
    config = snapshot.config
    fixed = tuple(
        sorted({n.partition(".")[0] for n in (*config.record_key_fields, *config.partition_fields)})
    )
    rule: MergeRule
    text = None if merge is None else merge_text(merge)
    if text:
        rule = custom_rule(text, fixed)
    elif payload:
        rule = payload_rule(canonical({PAYLOAD: payload}).text[PAYLOAD])
    else:
        rule = slice_merge(snapshot).rule
    if not rule.custom:
        rule = replace(rule, fixed=fixed)
    if config.ordering_field and "." in config.ordering_field:
        raise SchemaError(
            f"laws are not checked with the nested ordering field {config.ordering_field!r}",
            remedy="use hudi_format.merge.laws.check_laws on records whose ordering field is a column.",
        )
    schema = snapshot.schema
    records = None
    if scan is not None:
        records = _first(scan, cases)
        for name in config.partition_fields:
            if (
                name in records.column_names
                and name in schema.names
                and records.schema.field(name).type != schema.field(name).type
            ):
                raise SchemaError(
                    f"laws are not checked with the table's rows where {name!r} comes from partition paths as "
                    f"{records.schema.field(name).type}, and is {schema.field(name).type} in the table",
                    column=name,
                    remedy="check on generated records: real=False, on the command line --made-up.",
                )
    return check_laws(
        rule, schema, ordering=config.ordering_field, records=records, deletes=deletes, cases=cases, seed=seed
    )


def _first(scan: Scan, rows: int) -> pa.Table:
    """About so many rows of a scan."""
    batches = []
    with scan.to_batches() as reader:
        for batch in reader:
            batches.append(batch)
            if sum(b.num_rows for b in batches) >= 4 * rows:
                break
    return pa.Table.from_batches(batches, scan.schema)
