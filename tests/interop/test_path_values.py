"""Partition values that a folder's name does not give back: read as Apache Hudi reads them, of tables of either."""

import pyarrow as pa
import pytest

from hudi_timeline import write_hudi
from interop import ours
from interop.spark_process import SparkProcessError

WRITE = "hoodie.datasource.write."
VALUES = ["a%20b", "p=x", "a b", "50%", "%", "q%2Fz", "p=%41"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_they_are_read_as_apache_hudi_reads_them(tmp_path, apache, kind):
    rows = pa.table({"id": [str(n) for n in range(len(VALUES))], "p": VALUES, "v": list(range(len(VALUES)))})
    options = {
        "hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "p",
        WRITE + "precombine.field": "v", WRITE + "table.type": kind, "hoodie.metadata.enable": "false",
    }  # fmt: skip
    apache.write(tmp_path / "theirs", rows, options)
    write_hudi(tmp_path / "mine", rows, options=options)
    for path in (tmp_path / "theirs", tmp_path / "mine"):
        answers = [
            dict(zip(found["id"].to_pylist(), found["p"].to_pylist(), strict=True))
            for found in (apache.read(path), ours.read(path))
        ]
        assert answers[0] == answers[1]
        assert (sorted(answers[0].values()) == sorted(VALUES)) == (kind == "MERGE_ON_READ")


@pytest.mark.parametrize("version", ["0.15.0", pytest.param("1.0.2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("query", ["snapshot", "read_optimized"])
def test_empty_text_in_a_file_is_null_for_later_releases_only(tmp_path, pool, apache, query, version):
    """We read tables of version 6 as 0.15 does, which writes them."""
    rows = pa.table({"id": ["empty", "null", "text"], "p": ["", None, "x"], "v": [1, 2, 3]})
    options = {
        "hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "p",
        WRITE + "precombine.field": "v", WRITE + "table.type": "MERGE_ON_READ", "hoodie.metadata.enable": "false",
    }  # fmt: skip
    apache.write(tmp_path / "theirs", rows, options)
    write_hudi(tmp_path / "mine", rows, options={**options, "hudi.partition.null.texts": "write"})
    file_says = {"empty": "", "null": None, "text": "x"}
    path_says = {"empty": None, "null": None, "text": "x"}
    as_written = file_says if query == "snapshot" else path_says
    for path in (tmp_path / "theirs", tmp_path / "mine"):
        theirs = pool.get(version).read(path, **{"hoodie.datasource.query.type": query})
        assert values(theirs) == (as_written if version == "0.15.0" else path_says)
        assert values(ours.table(path).read(query=query).to_arrow()) == as_written


@pytest.mark.parametrize(
    "version", ["0.15.0", *(pytest.param(v, marks=pytest.mark.slow) for v in ("1.0.2", "1.2.0"))]
)
def test_a_filter_on_a_formatted_time_is_not_answered_by_apache_hudi(tmp_path, pool, version):
    """Where its releases fail, or give whole partitions, we give the rows that fulfil it."""
    times = ["2020-02-01T10:11", "2020-02-02T10:11", "2021-02-03T10:11"]
    rows = pa.table({"id": ["a", "b", "c"], "at": times, "v": [1, 2, 3]})
    options = {
        "hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "at",
        WRITE + "precombine.field": "v", WRITE + "table.type": "MERGE_ON_READ", "hoodie.metadata.enable": "false",
        WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm",
        "hoodie.keygen.timebased.output.dateformat": "yyyy", "hoodie.keygen.timebased.timezone": "UTC",
    }  # fmt: skip
    apache = pool.get(version)
    apache.write(tmp_path / "t", rows, options)
    assert sorted(values(apache.read(tmp_path / "t"), "at").values()) == times
    if version == "0.15.0":
        with pytest.raises(SparkProcessError, match="Illegal character in scheme name"):
            apache.read(tmp_path / "t", where=f"at = '{times[1]}'")
    else:
        # Also rows of that year that do not fulfil it.
        assert {"a", "b"} <= set(values(apache.read(tmp_path / "t", where=f"at = '{times[1]}'"), "at"))
    for q, wanted in (
        (f"at = '{times[1]}'", ["b"]),
        (f"at >= '{times[1]}'", ["b", "c"]),
        ("at = '2020'", []),
    ):
        assert sorted(values(ours.table(tmp_path / "t").read(filter=q).to_arrow(), "at")) == wanted


def values(table, name="p"):
    return dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))
