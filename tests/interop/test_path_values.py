"""Partition values that a folder's name does not give back: read as Apache Hudi reads them, of tables of either."""

import pyarrow as pa
import pytest

from hudi_timeline import write_hudi
from interop import ours

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
