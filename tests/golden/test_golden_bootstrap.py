"""A metadata-only bootstrap: skeleton files joined with their source files, row for row."""

import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from golden_tables import AS_OF, INCREMENTAL, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.file_slice.bootstrap import INSTANT
from hudi_timeline.table import HudiTable

(TABLE,) = golden("v6", "bootstrap_metadata_only")
QUESTIONS = TABLE.questions(SNAPSHOT, AS_OF, INCREMENTAL)


@pytest.fixture
def folder(tmp_path):
    """The table; its properties say where its source is now."""
    path = TABLE.unpack(tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("hoodie.bootstrap.base.path=")]
    properties.write_text(
        "\n".join([*kept, f"hoodie.bootstrap.base.path={tmp_path / TABLE.name}_source"]) + "\n"
    )
    return path


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_an_answer_is_the_one_that_apache_hudi_gives(folder, question):
    read = HudiTable.open(str(folder))
    if question.kind == AS_OF:
        scan = read.read(as_of=question.instant, meta_columns=True)
    elif question.kind == INCREMENTAL:
        scan = read.read_incremental(question.begin, question.end, meta_columns=True)
    else:
        scan = read.read(meta_columns=True)
    assert_same_answer(scan.to_arrow(), question.expected())


def source_rows(folder):
    parts = []
    for file in sorted((folder.parent / f"{TABLE.name}_source").rglob("*.parquet")):
        rows = pq.ParquetFile(file).read()
        parts.append(rows.append_column("city", pa.repeat(file.parent.name.partition("=")[2], len(rows))))
    return pa.concat_tables(parts)


@pytest.mark.parametrize("batch_rows", [3, 100_000])
def test_the_skeletons_have_the_rows_of_their_source(folder, batch_rows):
    read = HudiTable.open(str(folder))
    want = source_rows(folder)
    scan = read.read(as_of=INSTANT, meta_columns=True)
    rows = scan.to_batches(batch_rows=batch_rows).read_all()
    assert len(rows) == len(want) == 40
    assert scan.count() == 40
    assert rows["_hoodie_record_key"].to_pylist() == rows["uuid"].to_pylist()
    assert rows["_hoodie_partition_path"].to_pylist() == [f"city={c}" for c in rows["city"].to_pylist()]
    assert set(rows["_hoodie_commit_time"].to_pylist()) == {INSTANT}
    by = [("uuid", "ascending")]
    assert rows.select(want.column_names).sort_by(by).to_pylist() == want.sort_by(by).to_pylist()
    some = read.read(["ts"], pc.field("qty") > 500, as_of=INSTANT).to_arrow()
    assert sorted(some["ts"].to_pylist()) == sorted(want.filter(pc.field("qty") > 500)["ts"].to_pylist())


def test_a_source_that_is_gone_or_another_is_an_error(folder):
    read = HudiTable.open(str(folder))
    source = folder.parent / f"{TABLE.name}_source"
    file = min(source.rglob("*.parquet"))
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.slice(1), file)
    with pytest.raises(CorruptFileError, match="rows"):
        read.read(as_of=INSTANT).to_arrow()
    shutil.rmtree(source)
    with pytest.raises(MissingFileError) as e:
        read.read(as_of=INSTANT).to_arrow()
    assert "hoodie.bootstrap.base.path" in e.value.remedy


def test_an_index_that_is_gone_is_an_error(folder):
    shutil.rmtree(folder / ".hoodie" / ".aux" / ".bootstrap" / ".fileids")
    with pytest.raises(CorruptFileError, match="index"):
        HudiTable.open(str(folder)).read(as_of=INSTANT).to_arrow()
