"""Options by properties file mean what they mean one by one."""

import pytest
from bad_input import make, rows

from hudi_format.errors import ConflictingOptionError, CorruptFileError, MissingFileError, UnknownOptionError
from hudi_timeline import HudiTable
from hudi_timeline.options import parse_write_options
from hudi_timeline.options.user_options import options_from

pytestmark = pytest.mark.req("WR-21")
BASE = "# of all jobs\nhoodie.table.name=trips\nhoodie.parquet.small.file.limit : 0\n"
JOB = "include=all/base.properties\nhoodie.datasource.write.operation=insert\nhoodie.parquet.small.file.limit=7\n"


@pytest.fixture
def job(tmp_path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all/base.properties").write_text(BASE)
    (tmp_path / "job.properties").write_text(JOB)
    return str(tmp_path / "job.properties")


def test_a_file_gives_the_config_that_single_options_give(job, monkeypatch, tmp_path):
    single = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.parquet.small.file.limit": "7",
    }
    assert options_from(job) == single
    monkeypatch.chdir(tmp_path)
    assert parse_write_options(options_from("job.properties")) == parse_write_options(single)
    assert options_from(job, options={"hoodie.table.name": "x"}) == {**single, "hoodie.table.name": "x"}


def test_a_write_takes_them_and_refuses_slips_in_them(job, tmp_path):
    make(tmp_path / "t")
    table = HudiTable.open(str(tmp_path / "t"))
    more = {k: v for k, v in options_from(job).items() if not k.endswith("operation")}
    assert table.upsert(rows("a"), options=more).updated == 1
    with open(job, "a") as f:
        f.write("hoodie.upsert.shufle.parallelism=2\n")
    with pytest.raises(UnknownOptionError, match="shufle"):
        table.insert(rows("z"), options=options_from(job))


def test_files_that_cannot_be_read_are_named(job, tmp_path):
    with pytest.raises(MissingFileError, match="the properties file does not exist"):
        options_from(str(tmp_path / "none.properties"))
    (tmp_path / "all/base.properties").write_text("include=../job.properties\n")
    with pytest.raises(ConflictingOptionError, match="includes itself"):
        options_from(job.replace("job.properties", "all/../job.properties"))
    (tmp_path / "all/base.properties").write_bytes(b"a=\x00")
    with pytest.raises(CorruptFileError, match=r"base\.properties"):
        options_from(job)
