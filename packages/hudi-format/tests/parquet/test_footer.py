"""Footer entries read quickly are those that Arrow reads, and damage is an error."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_strategies import stored_types
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.parquet import _entries
from hudi_format.parquet.footer import read_entries, read_footer, schema_part
from hudi_format.storage.open import open_storage


def write(folder, table, entries=None, name="f.parquet", **options):
    with pq.ParquetWriter(folder / name, table.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(entries or {})
        writer.write_table(table, **options)
    return open_storage(str(folder)), name


def footer_bytes(path):
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


@pytest.mark.req("IX-04", "IX-19")
@pytest.mark.parametrize("first_read", [8, 100, 1 << 20])
def test_the_entries_are_those_that_arrow_reads(tmp_path, monkeypatch, first_read):
    entries = {"a": "1", "long": "x" * 500_000, "empty": "", "text": "é中\U00010000"}
    columns = {f"c{i}": list(range(1000)) for i in range(30)}
    storage, name = write(tmp_path, pa.table(columns), entries, row_group_size=100)
    monkeypatch.setattr("hudi_format.parquet.footer.FIRST_READ", first_read)
    found = read_entries(storage, name)
    assert {k: found.text(k) for k in found.values} == read_footer(storage, name).entries == entries
    assert found.num_rows == 1000
    assert found.text("none") is None


@settings(max_examples=30, deadline=None)
@given(kinds=st.lists(stored_types, min_size=1, max_size=5), groups=st.integers(0, 3))
def test_any_schema_is_passed_over(tmp_path_factory, kinds, groups):
    folder = tmp_path_factory.mktemp("f")
    schema = pa.schema([(f"c{i}", k) for i, k in enumerate(kinds)])
    with pq.ParquetWriter(folder / "f.parquet", schema, store_schema=False) as writer:
        writer.add_key_value_metadata({"key": "value"})
        for _ in range(groups):
            writer.write_table(pa.Table.from_pylist([{}, {}], schema=schema))
    found = read_entries(open_storage(str(folder)), "f.parquet")
    assert (found.num_rows, found.text("key")) == (2 * groups, "value")


def test_a_footer_that_is_cut_off_anywhere_is_an_error(tmp_path):
    write(tmp_path, pa.table({"a": [1], "b": ["x"]}), {"key": "value"})
    whole = footer_bytes(tmp_path / "f.parquet")
    for n in range(len(whole)):
        with pytest.raises(ValueError, match="the footer"):
            _entries.key_value_spans(whole[:n])


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_other_bytes_are_an_error_or_spans_within(data):
    try:
        _, spans = _entries.key_value_spans(data)
    except ValueError:
        return
    assert all(at + length <= len(data) for a, b, c, d in spans for at, length in ((a, b), (c, d)))


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0), byte=st.integers(0, 255))
def test_a_changed_byte_never_leads_outside(tmp_path_factory, at, byte):
    folder = tmp_path_factory.mktemp("f")
    write(folder, pa.table({"a": [1]}), {"key": "value"})
    data = bytearray(footer_bytes(folder / "f.parquet"))
    data[at % len(data)] = byte
    test_other_bytes_are_an_error_or_spans_within.hypothesis.inner_test(bytes(data))


def test_nesting_has_an_end():
    with pytest.raises(ValueError, match="not Thrift"):
        _entries.key_value_spans(b"\x1c" * 1000)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda d: d[:-1], CorruptFileError, "PAR1"),
        (lambda d: b"", CorruptFileError, "cut off"),
        (lambda d: d[-7:], CorruptFileError, "cut off"),
        (lambda d: d[:-8] + b"\xff\xff\xff\x7fPAR1", CorruptFileError, "a footer of"),
        (lambda d: d[:-8] + b"\0\0\0\0PAR1", CorruptFileError, "a footer of 0"),
        (lambda d: d[:-4] + b"PARE", UnsupportedError, "encrypted"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, change, error, says):
    storage, name = write(tmp_path, pa.table({"a": [1]}))
    path = tmp_path / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(error, match=says) as e:
        read_entries(storage, name)
    assert name in str(e.value)


def test_a_missing_file_is_an_error(tmp_path):
    for size in (-1, 100):
        with pytest.raises(MissingFileError):
            read_entries(open_storage(str(tmp_path)), "none.parquet", size=size)


def test_a_file_shorter_than_listed_is_an_error(tmp_path):
    storage, name = write(tmp_path, pa.table({"a": [1]}))
    with pytest.raises(CorruptFileError):
        read_entries(storage, name, size=1_000_000)


def test_an_entry_that_is_no_text_is_an_error_when_it_is_asked_for(tmp_path):
    storage, name = write(tmp_path, pa.table({"a": [1]}), {b"bad": b"\xff\xfe", b"good": b"x"})
    found = read_entries(storage, name)
    assert found.text("good") == "x"
    with pytest.raises(CorruptFileError, match="bad"):
        found.text("bad")


def test_footers_of_the_same_columns_begin_with_the_same_bytes(tmp_path):
    tables = {
        "a": pa.table({"x": [1, 2], "y": ["a", None]}),
        "b": pa.table({"x": [3], "y": ["b"]}),
        "c": pa.table({"x": [1], "y": [1]}),
        "d": pa.table({"x": [1], "y": ["a"], "z": [{"v": [1]}]}),
    }
    footers = {n: memoryview(footer_bytes(_file(tmp_path, t, n))) for n, t in tables.items()}
    parts = {n: schema_part(f) for n, f in footers.items()}
    assert parts["a"] == parts["b"]
    assert len(set(parts.values())) == 3
    for name, footer in footers.items():
        assert [n for n in parts if footer[: len(parts[n])] == parts[n]] == [
            n for n in parts if parts[n] == parts[name]
        ]
        for cut in range(len(parts[name])):
            with pytest.raises(CorruptFileError):
                schema_part(footer[:cut])


def _file(folder, table, name):
    write(folder, table, name=name)
    return folder / name
