"""What a reader finds is never a reason to undo data, and a library that fails is not called damage."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_format.arrow import arrays
from hudi_format.errors import CorruptFileError, LibraryError
from hudi_format.parquet.reader import read_table
from hudi_timeline import HudiTable

PACKAGES = Path(__file__).parents[3]
UNDOES = re.compile(r"roll(ing)? the table back|roll back the instant|restore the table|to a savepoint")


@pytest.fixture
def table(tmp_path):
    schema = pa.schema([("id", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], ordering_fields=["ts"]
    )
    table.upsert([{"id": str(n), "v": n, "ts": 1} for n in range(50)])
    return table


def _raise(error):
    raise error


def fails_once(monkeypatch, method, error):
    """pyarrow refuses the first call, as 19.0.0 did some sound files; what is asked for afterwards it gives."""
    works = getattr(pq.ParquetFile, method)
    calls = []

    def call(self, *args, **kwargs):
        calls.append(method)
        if len(calls) > 1:
            return works(self, *args, **kwargs)
        if method == "iter_batches":  # which fails where its first batch is asked for
            return (_raise(error) for _ in range(1))
        raise error

    monkeypatch.setattr(pq.ParquetFile, method, call)


@pytest.mark.parametrize(
    "error", [OSError("histogram size mismatch"), pa.ArrowInvalid("histogram size mismatch")]
)
def test_a_library_that_fails_on_a_sound_file_is_not_damage(table, monkeypatch, error):
    fails_once(monkeypatch, "iter_batches", error)
    with pytest.raises(LibraryError, match="histogram size mismatch") as caught:
        list(table.read(filter="v > 10").to_batches())
    assert pa.__version__ in caught.value.message
    assert caught.value.file.endswith(".parquet")
    assert "not damaged" in caught.value.remedy
    assert table.read(filter="v > 10").to_arrow().num_rows == 39


def test_the_same_of_a_file_that_is_read_for_a_write(table, monkeypatch):
    (file,) = (p.name for p in Path(table.uri).glob("*.parquet"))
    fails_once(monkeypatch, "read", OSError("histogram size mismatch"))
    with pytest.raises(LibraryError):
        read_table(table.storage, file)


def test_a_filter_that_cannot_be_evaluated_is_not_damage(table, monkeypatch):
    def refuses(rows, expression):
        raise pa.ArrowNotImplementedError("no kernel")

    (planned,) = table.read(filter="v > 10").plan_files()
    monkeypatch.setattr(arrays, "filtered", refuses)
    with pytest.raises(LibraryError, match="could not evaluate the filter: no kernel"):
        list(planned.to_batches())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (pc.divide(pc.field("v"), 0) > 1, "divide by zero"),
        (pc.field("id").cast(pa.int64()) > 1, "Failed to parse"),
        (pc.field("v").cast(pa.int8()) > 1, "not in range"),
        (pc.add_checked(pc.field("v"), 2**63 - 1) > 1, "overflow"),
    ],
)
def test_a_filter_that_fails_for_a_value_is_one_error_on_all_kinds_of_tables(tmp_path, kind, condition, why):
    schema = pa.schema([("id", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys="id", ordering_fields="ts", table_type=kind
    )
    table.upsert([{"id": "x", "v": 300, "ts": 1}, {"id": "2", "v": 2, "ts": 1}])
    table.upsert([{"id": "2", "v": 3, "ts": 2}])
    for read in (table.read(filter=condition).to_arrow, table.read(filter=condition).count):
        with pytest.raises(LibraryError, match=f"could not evaluate the filter: .*{why}") as e:
            read()
        assert e.value.table == table.uri


def test_damage_is_damage_and_the_remedy_is_to_look(table):
    (file,) = Path(table.uri).glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[100:400] = bytes(300)
    file.write_bytes(data)
    with pytest.raises(CorruptFileError) as caught:
        table.read(meta_columns=True).to_arrow()
    assert "hudi verify" in caught.value.remedy
    assert not UNDOES.search(caught.value.remedy)


def test_no_error_of_a_reader_advises_to_undo_data():
    readers = [*PACKAGES.glob("hudi-format/src/**/*.py"), *PACKAGES.glob("hudi-index/src/**/*.py")]
    timeline = PACKAGES / "hudi-timeline/src/hudi_timeline"
    for room in ("reading", "timeline", "file_system_view"):
        readers += timeline.glob(f"{room}/*.py")
    readers.append(timeline / "table.py")
    assert len(readers) > 100
    found = [
        f"{path.name}: {line.strip()}"
        for path in readers
        for line in path.read_text().splitlines()
        if '"' in line and UNDOES.search(line.partition('"')[2]) and '"""' not in line
    ]
    assert not found
