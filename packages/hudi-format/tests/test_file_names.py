import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format import file_names


@pytest.mark.req("FS-03")
def test_base_file_names_come_apart():
    name = "c47f89a8-f67f-4b6f-8765-67b53082e352-0_1-119-181_20261121052026709.parquet"
    file = file_names.parse_base_file("p/q", name, 7)
    assert (file.file_id, file.write_token) == ("c47f89a8-f67f-4b6f-8765-67b53082e352-0", "1-119-181")
    assert (file.instant, file.path, file.size) == ("20261121052026709", f"p/q/{name}", 7)
    assert file_names.base_file_name(file.file_id, file.write_token, file.instant) == name


@pytest.mark.req("FS-03")
@pytest.mark.parametrize(
    "name",
    [
        ".hidden_0-0-0_1.parquet",
        "a_b.parquet",
        "a_0-0-0_x.parquet",
        "a_0-0-0_1.txt",
        "a_0-0-0_1.parquet\n",
        "a_0-0-0_\u0661\u0662.parquet",
        "",
    ],
)
def test_other_names_are_no_base_files(name):
    assert file_names.parse_base_file("", name) is None
    assert not file_names.is_base_file_name(name)
    assert pc.extract_regex(pa.array([name]), f"^{file_names.BASE_NAME}$").null_count == 1


def test_digits_of_other_scripts_are_none_in_names_of_log_files():
    assert file_names.parse_log_file("", ".a_1.log.1_1-0-1") is not None
    for name in (".a_\u0661.log.1", ".a_1.log.\u0661", ".a_1.log.1_\u0661-0-1"):
        assert file_names.parse_data_file("", name) is None


@pytest.mark.req("FS-04")
def test_log_file_names_come_apart():
    file = file_names.parse_log_file("p", ".abc-0_20240101000000000.log.12_1-2-3")
    assert (file.file_id, file.instant, file.version, file.write_token) == (
        "abc-0",
        "20240101000000000",
        12,
        "1-2-3",
    )
    assert file_names.parse_log_file("p", ".abc-0_1.log.1").write_token == ""
    assert file_names.parse_log_file("p", ".abc-0_1.log.1_1-0-1.cdc") is None


def test_bucket_ids_are_told_from_uuids():
    assert file_names.looks_bucketed(
        ["00000000-5724-4d7b-89a7-01b6b3b68831-0", "00000007-5724-4d7b-89a7-01b6b3b68831-0"]
    )
    mixed = ["00000000-5724-4d7b-89a7-01b6b3b68831-0", "0000000a-5724-4d7b-89a7-01b6b3b68831-0"]
    assert not file_names.looks_bucketed(mixed)
    assert not file_names.looks_bucketed(["91234567-5724-4d7b-89a7-01b6b3b68831-0"])
    assert not file_names.looks_bucketed([])


def test_a_data_file_of_any_kind_is_parsed_by_one_call():
    of = {
        "f_1-0-1_20260101000000000.parquet": file_names.parse_base_file,
        ".f_20260101000000000.log.1_1-0-1": file_names.parse_log_file,
        ".f_20260101000000000.log.1_1-0-1.cdc": file_names.parse_cdc_file,
    }
    for name, parse in of.items():
        file = file_names.parse_data_file("p", name, 7)
        assert file == parse("p", name, 7)
        assert (file.instant, file.size) == ("20260101000000000", 7)
    others = (".hoodie_partition_metadata", "f.parquet", "")
    assert [file_names.parse_data_file("p", n) for n in others] == [None] * 3
