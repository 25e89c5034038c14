"""The meta columns put before the data columns, and taken off again."""

from __future__ import annotations

import pyarrow as pa

from hudi_format.schema.meta_fields import META_COLUMNS, META_SCHEMA, with_meta, without_meta


def test_meta_columns_go_first_and_come_off_again() -> None:
    data = pa.schema([pa.field("a", pa.int32())])
    assert with_meta(data).names == [*META_COLUMNS, "a"]
    assert with_meta(with_meta(data)) == with_meta(data)
    assert without_meta(with_meta(data)) == data
    assert all(f.nullable and f.type == pa.string() for f in META_SCHEMA)
