from __future__ import annotations

import datetime as dt
import decimal
import io
import zipfile
from pathlib import Path

import golden_tables
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    MissingColumnError,
    MissingFileError,
    SchemaError,
    StorageError,
)
from hudi_format.parquet.footer import BLOOM_FILTER, MAX_KEY, MIN_KEY, read_footer
from hudi_format.parquet.reader import Pieces, iter_batches, iter_row_groups, read_keys, read_table
from hudi_format.schema.avro import from_avro
from hudi_format.schema.meta_fields import FILE_NAME, META_COLUMNS, RECORD_KEY, with_meta
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage

DATA = Path(__file__).parent.parent / "data"
GOLDEN = golden_tables.ROOT / "v6"


@pytest.fixture(scope="module")
def all_types(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    """Apache Hudi's table of all types, unpacked."""
    folder = tmp_path_factory.mktemp("all_types")
    with zipfile.ZipFile(GOLDEN / "all_types_cow.zip") as archive:
        archive.extractall(folder)
    return LocalStorage(str(folder / "all_types_cow"))


def base_files(storage: LocalStorage) -> list[str]:
    folders = [f.name for f in storage.list("") if f.is_dir and f.name != ".hoodie"]
    return [f"{d}/{f.name}" for d in folders for f in storage.list(d) if f.name.endswith(".parquet")]


def test_every_column_of_apache_hudis_files_reads_as_apache_hudi_answers(all_types: LocalStorage) -> None:
    expected = pq.read_table(GOLDEN / "all_types_cow.expected" / "snapshot.parquet")
    named = {name: path for path in base_files(all_types) for name in [path.rpartition("/")[2]]}
    found = []
    for name in expected.column(FILE_NAME).unique().to_pylist():
        footer = read_footer(all_types, named[name])
        assert footer.avro_schema is not None
        schema = from_avro(footer.avro_schema)
        assert schema.names[:5] == list(META_COLUMNS)
        found.append(read_table(all_types, named[name], schema=schema))
    rows = pa.concat_tables(found).select(expected.column_names).sort_by(RECORD_KEY)
    assert rows.to_pylist() == expected.sort_by(RECORD_KEY).to_pylist()
    assert rows.num_rows


def test_footers_of_apache_hudi_are_read(all_types: LocalStorage) -> None:
    for path in base_files(all_types):
        footer = read_footer(all_types, path)
        keys = sorted(read_keys(all_types, path).to_pylist())
        assert footer.num_rows == len(keys)
        assert (footer.entries[MIN_KEY], footer.entries[MAX_KEY]) == (keys[0], keys[-1])
        assert footer.entries[BLOOM_FILTER]
        info = all_types.info(path)
        assert info is not None
        assert footer.size == info.size


AT = dt.datetime(2024, 3, 5, 12, 30, 1, 123456, tzinfo=dt.UTC)
UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize("name", ["legacy", "int96"])
def test_files_of_sparks_row_writer_read_in_the_tables_schema(name: str) -> None:
    path = f"row_writer_{name}.parquet"
    storage = LocalStorage(str(DATA))
    decimals = {"price": pa.decimal128(9, 2), "total": pa.decimal128(18, 4)}
    kinds = {"id": pa.string(), "ts": pa.int64(), "tiny": pa.int32(), "small": pa.int32()}
    kinds |= decimals if name == "legacy" else {"big": pa.decimal128(20, 4)}
    kinds |= {"at": UTC, "many": pa.list_(pa.field("element", pa.int64()))}
    kinds |= {"named": pa.list_(pa.field("element", pa.struct([("x", pa.int32()), ("at", UTC)])))}
    kinds |= {"counts": pa.map_(pa.string(), pa.int64())}
    kinds |= {"inner": pa.struct([("a", pa.int32()), ("tags", pa.list_(pa.field("element", pa.string())))])}
    schema = with_meta(pa.schema(list(kinds.items())))
    assert read_footer(storage, path).avro_schema is None
    found = read_table(storage, path, schema=schema)
    assert found.schema == schema
    first, second = found.sort_by("id").to_pylist()
    numbers = {"price": decimal.Decimal("1.25"), "total": decimal.Decimal("-3.5")}
    wanted = {"id": "k1", "ts": 1, "tiny": 1, "small": -2}
    wanted |= numbers if name == "legacy" else {"big": decimal.Decimal("-3.5")}
    wanted |= {"at": AT, "many": [1, None, 3], "named": [{"x": 1, "at": AT}, None]}
    wanted |= {"counts": [("a", 1), ("b", None)], "inner": {"a": 7, "tags": ["x", None]}}
    assert {n: first[n] for n in kinds} == wanted
    assert {n: second[n] for n in kinds} == dict.fromkeys(kinds) | {"id": "k2", "ts": 2}


def put(tmp_path: Path, table: pa.Table, **options: object) -> LocalStorage:
    pq.write_table(table, tmp_path / "f.parquet", **options)
    return LocalStorage(str(tmp_path))


ROWS = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", None], RECORD_KEY: ["k1", "k2", "k3"]})


@pytest.mark.req("SE-02")
def test_columns_are_chosen_ordered_promoted_and_filled_with_null(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS)
    schema = pa.schema([pa.field("new", pa.date32()), pa.field("b", pa.string()), pa.field("a", pa.int64())])
    found = read_table(storage, "f.parquet", schema=schema)
    assert found.schema == schema
    assert found.to_pylist()[0] == {"new": None, "b": "x", "a": 1}
    assert read_table(storage, "f.parquet", schema=schema, columns=["a", "new"]).schema.names == ["a", "new"]
    assert read_table(storage, "f.parquet", columns=["b", "a"]).schema.names == ["b", "a"]
    assert read_table(storage, "f.parquet", columns=[]).num_rows == 3
    only_new = read_table(storage, "f.parquet", schema=schema, columns=["new"])
    assert (only_new.num_rows, only_new.column(0).null_count) == (3, 3)
    assert [b.num_rows for b in iter_batches(storage, "f.parquet", schema=schema, columns=["new"])] == [3]


def test_a_filter_looks_at_the_tables_columns_and_types(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS)
    schema = pa.schema([pa.field("b", pa.string()), pa.field("a", pa.float64()), pa.field("new", pa.int32())])
    found = read_table(storage, "f.parquet", schema=schema, columns=["b"], filter=pc.field("a") > 1.5)
    assert found.to_pylist() == [{"b": "y"}, {"b": None}]
    assert read_table(storage, "f.parquet", schema=schema, filter=pc.field("new").is_valid()).num_rows == 0
    assert read_table(storage, "f.parquet", columns=["b"], filter=pc.field("a") == 1).num_rows == 1


def test_a_column_that_is_nowhere_is_named(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS)
    for wrong in ({"columns": ["c"]}, {"filter": pc.field("c") == 1}):
        with pytest.raises(MissingColumnError, match="c") as e:
            read_table(storage, "f.parquet", **wrong)
        assert e.value.file == "f.parquet"


def test_a_file_whose_types_do_not_fit_is_named(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS)
    with pytest.raises(SchemaError, match="b has type string") as e:
        read_table(storage, "f.parquet", schema=pa.schema([pa.field("b", pa.int32())]))
    assert e.value.file == "f.parquet"
    assert e.value.table == storage.uri


def test_dictionary_columns_are_not_decoded(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS, row_group_size=2)
    kind = pa.dictionary(pa.int32(), pa.string())
    for schema in (None, ROWS.schema):
        groups = list(iter_row_groups(storage, "f.parquet", schema=schema, dictionary_columns=("b",)))
        assert [g.schema.field("b").type for g in groups] == [kind, kind]
        assert [v for g in groups for v in g.column("b").to_pylist()] == ["x", "y", None]
    whole = read_table(storage, "f.parquet", dictionary_columns=["b"])
    assert whole.schema.field("b").type == kind


def test_row_groups_and_batches_can_be_chosen(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS, row_group_size=1)
    picked = list(iter_batches(storage, "f.parquet", columns=["a"], row_groups=[2, 0]))
    assert [b.to_pydict() for b in picked] == [{"a": [3]}, {"a": [1]}]
    assert [g.num_rows for g in iter_row_groups(storage, "f.parquet")] == [1, 1, 1]


def test_keys_are_read_alone(tmp_path: Path) -> None:
    storage = put(tmp_path, ROWS)
    assert read_keys(storage, "f.parquet").to_pylist() == ["k1", "k2", "k3"]
    other = put(tmp_path, pa.table({"a": [1]}))
    with pytest.raises(CorruptFileError, match=RECORD_KEY):
        read_keys(other, "f.parquet")


def test_a_remote_store_reads_the_same() -> None:
    storage = open_storage("memory://reader-test")
    sink = io.BytesIO()
    pq.write_table(ROWS, sink)
    storage.publish("f.parquet", sink.getvalue())
    assert read_table(storage, "f.parquet").equals(ROWS)
    assert read_footer(storage, "f.parquet").size == len(sink.getvalue())
    with pytest.raises(MissingFileError):
        read_table(storage, "g.parquet")


def test_arrows_own_schema_in_a_footer_is_no_entry(tmp_path: Path) -> None:
    assert read_footer(put(tmp_path, ROWS), "f.parquet").entries == {}


def test_a_file_that_is_not_there_is_missing(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    for read in (read_footer, read_table, read_keys, lambda s, p: list(iter_batches(s, p))):
        with pytest.raises(MissingFileError) as e:
            read(storage, "none.parquet")
        assert (e.value.file, e.value.table) == ("none.parquet", storage.uri)


def test_a_refusal_of_the_storage_is_not_taken_for_damage(tmp_path: Path) -> None:
    (tmp_path / "f.parquet").mkdir()
    with pytest.raises(StorageError):
        read_table(LocalStorage(str(tmp_path)), "f.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"{}" * 100], ids=len)
def test_a_file_that_is_no_parquet_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.parquet").write_bytes(content)
    storage = LocalStorage(str(tmp_path))
    for read in (read_footer, read_table, read_keys):
        with pytest.raises(CorruptFileError) as e:
            read(storage, "f.parquet")
        assert e.value.file == "f.parquet"


@pytest.fixture(scope="module")
def sound() -> bytes:
    sink = io.BytesIO()
    table = pa.table({RECORD_KEY: [f"k{i}" for i in range(50)], "l": [[i] for i in range(50)]})
    pq.write_table(table, sink, compression="zstd", row_group_size=20)
    return sink.getvalue()


@settings(max_examples=60)
@given(cut=st.integers(0, 10_000))
def test_every_truncation_is_corrupt(
    sound: bytes, tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / "f.parquet").write_bytes(sound[: cut % len(sound)])
    with pytest.raises(CorruptFileError):
        read_table(LocalStorage(str(folder)), "f.parquet")


@settings(max_examples=100)
@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_changed_byte_gives_rows_or_a_typed_error(
    sound: bytes, tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    # Parquet without page checksums cannot tell every change; it must not crash, hang or raise anything else.
    data = bytearray(sound)
    data[place % len(data)] = value
    folder = tmp_path_factory.mktemp("byte")
    (folder / "f.parquet").write_bytes(data)
    error = None
    try:
        read_table(LocalStorage(str(folder)), "f.parquet")
    except HudiError as e:
        error = e
    assert error is None or error.file == "f.parquet"


def test_large_row_groups_come_in_pieces(tmp_path: Path) -> None:
    rows = pa.table({"run": [f"r{i // 300}" for i in range(1000)], "n": range(1000)})
    pq.write_table(rows, tmp_path / "f.parquet", row_group_size=400, compression="none")
    storage = open_storage(str(tmp_path))
    size = pq.read_metadata(tmp_path / "f.parquet").row_group(0).total_byte_size
    with Pieces(storage, "f.parquet", dictionary_columns=("run",), most_bytes=size // 3) as file:
        assert file.num_rows == 1000
        pieces = list(file)
    assert max(p.num_rows for p in pieces) < 200
    assert len({id(p) for p in pieces}) >= 8
    assert pa.types.is_dictionary(pieces[0].schema.field("run").type)
    assert pa.concat_tables([p.cast(rows.schema) for p in pieces]).equals(rows)
    with Pieces(storage, "f.parquet", most_bytes=size) as whole:
        assert [p.num_rows for p in whole] == [400, 400, 200]


def test_files_that_others_may_change_are_read_and_not_mapped(tmp_path: Path) -> None:
    rows = pa.table({"n": range(1000), "text": [str(i) * 9 for i in range(1000)]})
    pq.write_table(rows, tmp_path / "f.parquet", row_group_size=400)
    storage = open_storage(str(tmp_path))
    with storage.open_input("f.parquet") as file:
        assert isinstance(file, pa.OSFile)
    assert read_table(storage, "f.parquet").equals(rows)
    assert pa.Table.from_batches(iter_batches(storage, "f.parquet", batch_rows=70)).equals(rows)
