"""Golden tables on a real S3 server: the same answers."""

import warnings

import pytest
from golden_tables import AS_OF, INCREMENTAL, SNAPSHOT, assert_same_answer, golden

from hudi_timeline.table import HudiTable

TABLES = golden("v6", "cow_complex_keys_hive_style_urlencoded", "cow_insert_overwrite", "cow_archived")
TABLES += golden("v9", "cow_archived", "upgraded_from_6")


@pytest.mark.req("SS-02")
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(3)
def test_answers_from_s3(s3_server, tmp_path, table):
    path, bucket = table.unpack(tmp_path), s3_server.new_bucket()
    for file in path.rglob("*"):
        if file.is_file():
            s3_server.client.upload_file(str(file), bucket, f"w/{file.relative_to(path)}")
    read = HudiTable.open(f"s3a://{bucket}/w", storage_options=s3_server.storage_options)
    for question in table.questions(SNAPSHOT, AS_OF, INCREMENTAL):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # instants of cow_archived are archived
            if question.kind == INCREMENTAL:
                scan = read.read_incremental(question.begin, question.end, meta_columns=True)
            else:
                scan = read.read(as_of=question.instant, meta_columns=True)
            assert_same_answer(scan.to_arrow(), question.expected())
