"""Key ranges and bloom filters of files by a metadata table, in place of their footers."""

import pickle

import pytest

from hudi_format.log.scanner import BlockScope
from hudi_format.model import BaseFile
from hudi_format.parquet.footer import MAX_KEY, MIN_KEY
from hudi_format.storage.open import open_storage
from hudi_index.metadata_footers import MetadataFooters, OpenedFooters

FILE = BaseFile("p", "f_1-0-1_1.parquet", "f", "1")


@pytest.mark.req("IX-20")
def test_a_range_is_told_as_a_footer_has_it(tmp_path):
    made = MetadataFooters({FILE.path: ("a", "中")}, open_storage(str(tmp_path)), (), BlockScope())
    opened = OpenedFooters(made)
    told = opened.range(FILE)
    assert {n: bytes(v).decode() for n, v in told.values.items()} == {MIN_KEY: "a", MAX_KEY: "中"}
    other = BaseFile("q", FILE.name, "f", "1")
    assert opened.range(other) is None
    assert opened.filter(FILE) is None  # there is no partition of them
    assert pickle.loads(pickle.dumps(made)).ranges == made.ranges
