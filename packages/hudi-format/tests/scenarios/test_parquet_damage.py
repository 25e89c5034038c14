"""A base file whose footer is damaged is an error or has all its rows; it never has fewer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.file_slice.base_file import open_other
from hudi_format.parquet.footer import AVRO_SCHEMA, check_columns, read_footer
from hudi_format.parquet.reader import iter_batches, iter_row_groups, read_table
from hudi_format.schema.avro import to_avro
from hudi_format.storage.local import LocalStorage

ROWS = 300


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, bytes, int]:
    path = tmp_path / "f.parquet"
    rows = pa.table({"k": [f"key-{i}" for i in range(ROWS)], "v": list(range(ROWS))})
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False)
    data = path.read_bytes()
    return path, data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("mask", [0x01, 0x02, 0x80])
@pytest.mark.sampled(3)
def test_a_changed_footer_loses_no_rows_in_silence(damaged: tuple[Path, bytes, int], mask: int) -> None:
    path, data, footer = damaged
    storage = LocalStorage(str(path.parent))
    ways = (
        lambda: read_table(storage, path.name, use_threads=False).num_rows,
        lambda: sum(t.num_rows for t in iter_row_groups(storage, path.name)),
        lambda: sum(b.num_rows for b in iter_batches(storage, path.name, batch_rows=64)),
    )
    errors = 0
    for at in range(footer, len(data) - 8):
        path.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
        for count in ways:
            try:
                found = count()
            except HudiError:
                errors += 1
            else:
                assert found == ROWS, f"byte {at - footer} of the footer"
    assert errors > 0


def test_row_groups_that_do_not_add_up_are_named(damaged: tuple[Path, bytes, int]) -> None:
    path, data, footer = damaged
    storage = LocalStorage(str(path.parent))
    # 300 and 100 as Thrift's zig-zag varints; the first is the file's own count.
    at = data.index(b"\xd8\x04", footer)
    path.write_bytes(data[:at] + b"\xda\x04" + data[at + 2 :])
    with pytest.raises(CorruptFileError, match="says 301 rows, but it has 300"):
        read_table(storage, path.name)


@pytest.mark.req("NEW-37")
def test_columns_without_values_are_no_columns_of_nulls() -> None:
    """What a damaged footer may say (fuzz/regressions/parquet): Arrow reads such a file without the column."""
    empty = pa.struct([])
    for kind in (
        empty,
        pa.list_(empty),
        pa.map_(pa.string(), empty),
        pa.struct([("x", empty), ("y", pa.int8())]),
    ):
        with pytest.raises(ValueError, match=r"column b has type .* which has no values"):
            check_columns(pa.schema([("a", pa.int32()), ("b", kind)]))
    whole = pa.struct([("x", pa.map_(pa.string(), pa.list_(pa.int32())))])
    check_columns(pa.schema([("a", pa.int32()), ("b", whole)]))


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("within", [False, True])
def test_a_name_that_comes_twice_is_damage(tmp_path: Path, within: bool) -> None:
    """One changed byte makes `c1` out of `c2` (fuzz/regressions/parquet)."""
    columns = [pa.field("c1", pa.int64()), pa.field("c2", pa.int64())]
    if within:
        columns = [pa.field("k", pa.string()), pa.field("s", pa.map_(pa.string(), pa.struct(columns)))]
    path = tmp_path / "f.parquet"
    with pq.ParquetWriter(path, pa.schema(columns), store_schema=False) as writer:
        writer.write_table(pa.Table.from_pylist([], pa.schema(columns)))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\x02c2", b"\x02c1"))
    says = "field c1 within column s is duplicated" if within else "column c1 is duplicated"
    storage = LocalStorage(str(tmp_path))
    for read in (
        lambda: read_table(storage, path.name),
        lambda: read_table(storage, path.name, columns=["s" if within else "c1"]),
        lambda: list(iter_batches(storage, path.name)),
        lambda: read_footer(storage, path.name),
    ):
        with pytest.raises(CorruptFileError, match=says):
            read()


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        (b"amount", b"amounu", "amount"),
        (b"street", b"ctreet", "home.street"),
        (b"weight", b"weighu", "parts.weight"),
        (b"colour", b"bolour", "sizes.colour"),
    ],
)
def test_a_name_that_the_footers_avro_schema_has_and_parquets_has_not_is_damage(
    tmp_path: Path, name: bytes, changed: bytes, says: str
) -> None:
    """One changed byte makes a column of nulls, for whoever asks for it by its name."""
    schema = pa.schema([
        pa.field("amount", pa.int64()),
        pa.field("home", pa.struct([("street", pa.string())])),
        pa.field("parts", pa.list_(pa.field("element", pa.struct([("weight", pa.float64())])))),
        pa.field("sizes", pa.map_(pa.string(), pa.struct([("colour", pa.string())]))),
    ])  # fmt: skip
    row = {
        "amount": 1,
        "home": {"street": "s"},
        "parts": [{"weight": 2.5}],
        "sizes": [("x", {"colour": "red"})],
    }
    path = tmp_path / "f.parquet"
    entries = {AVRO_SCHEMA: to_avro(schema, "r")}
    pq.write_table(pa.Table.from_pylist([row], schema).replace_schema_metadata(entries), path)
    data = path.read_bytes()
    storage = LocalStorage(str(tmp_path))
    assert read_table(storage, path.name, schema=schema).to_pylist() == [row]
    at = data.index(b"\x06" + name, len(data) - 8 - int.from_bytes(data[-8:-4], "little")) + 1
    path.write_bytes(data[:at] + changed + data[at + len(name) :])
    for read in (
        lambda: read_table(storage, path.name, schema=schema),
        lambda: read_table(storage, path.name),
        lambda: list(iter_batches(storage, path.name, schema=schema)),
        lambda: read_footer(storage, path.name),
    ):
        with pytest.raises(CorruptFileError, match=f"lacks column {says}, which its own Avro schema has"):
            read()


def test_an_avro_schema_that_is_none_hinders_no_read(tmp_path: Path) -> None:
    nulls = b'{"type": "record", "name": "r", "fields": [{"name": "n", "type": "null"}]}'
    for n, text in enumerate((b"{", b"\xff", nulls)):
        path = tmp_path / f"{n}.parquet"
        pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({AVRO_SCHEMA: text}), path)
        assert read_table(LocalStorage(str(tmp_path)), path.name).to_pydict() == {"a": [1]}


@pytest.mark.req("NEW-37")
def test_a_name_that_comes_twice_in_orc_is_damage(tmp_path: Path) -> None:
    schema = pa.schema([("c1", pa.int64()), ("c2", pa.int64())])
    orc.write_table(pa.Table.from_pylist([{"c1": 1, "c2": 2}], schema), tmp_path / "f_0-1-2_1.orc")
    path = tmp_path / "f_0-1-2_1.orc"
    path.write_bytes(path.read_bytes().replace(b"c2", b"c1"))
    with pytest.raises(CorruptFileError, match="column c1 is duplicated"):
        open_other(LocalStorage(str(tmp_path)), path.name, schema)
