import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format import errors, file_names
from hudi_format.errors import CorruptFileError, HudiError, PartitionPathError
from hudi_format.keygen.partition_path import check_safe, escape, segment, split_values
from hudi_format.model import VisibleInstants
from hudi_format.properties import parse, render


@pytest.mark.req("FS-03")
def test_base_file_names_come_apart():
    name = "c47f89a8-f67f-4b6f-8765-67b53082e352-0_1-119-181_20261121052026709.parquet"
    file = file_names.parse_base_file("p/q", name, 7)
    assert (file.file_id, file.write_token) == ("c47f89a8-f67f-4b6f-8765-67b53082e352-0", "1-119-181")
    assert (file.instant, file.path, file.size) == ("20261121052026709", f"p/q/{name}", 7)
    assert file_names.base_file_name(file.file_id, file.write_token, file.instant) == name


@pytest.mark.req("FS-03")
@pytest.mark.parametrize(
    "name", [".hidden_0-0-0_1.parquet", "a_b.parquet", "a_0-0-0_x.parquet", "a_0-0-0_1.txt", ""]
)
def test_other_names_are_no_base_files(name):
    assert file_names.parse_base_file("", name) is None


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


def test_visible_instants_include_what_was_archived():
    visible = VisibleInstants(frozenset({"5", "7"}), "5")
    assert "5" in visible
    assert "3" in visible
    assert "6" not in visible
    assert "9" not in visible


@pytest.mark.req("KG-03")
def test_partition_values_are_escaped_as_apache_hudi_does():
    assert escape("é=?") == "é%3D%3F"
    assert escape("x/y") == "x%2Fy"
    assert escape("1 2}") == "1 2}"
    assert segment("f", None, hive_style=True, url_encode=True) == "f=__HIVE_DEFAULT_PARTITION__"
    assert segment("f", "", hive_style=False, url_encode=False) == "__HIVE_DEFAULT_PARTITION__"


@given(st.lists(st.one_of(st.none(), st.text(min_size=1)), min_size=1, max_size=3), st.booleans())
def test_encoded_partition_values_come_back(values, hive):
    values = [v if v != "__HIVE_DEFAULT_PARTITION__" else "x" for v in values]
    fields = [f"f{i}" for i in range(len(values))]
    path = "/".join(
        segment(f, v, hive_style=hive, url_encode=True) for f, v in zip(fields, values, strict=True)
    )
    assert split_values(path, fields) == values


def test_slashes_in_values_are_put_together_where_that_is_possible():
    assert split_values("2024/03/05", ["day"]) == ["2024/03/05"]
    assert split_values("day=2024/03/05", ["day"]) == ["2024/03/05"]
    assert split_values("a=1/2/b=3", ["a", "b"]) == ["1/2", "3"]
    assert split_values("1/2/3", ["a", "b"]) is None


@pytest.mark.req("TL-01")
@pytest.mark.parametrize("path", ["/abs", "a/../b", "..", "a//b", ".hoodie/x", "a/.", "a\x00b"])
def test_paths_that_leave_the_table_are_refused(path):
    with pytest.raises(PartitionPathError):
        check_safe(path)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_properties_round_trip(properties):
    assert parse(render(properties, ["comment"])) == properties


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_properties_or_an_error(data):
    try:
        parse(data)
    except CorruptFileError:
        return


def test_properties_of_java_in_all_their_forms():
    text = b"# c\n! d\n\na=1\nb : 2\n  c 3\nd\\ e=f\\\n   g\nu=\\u00e9\\t\nempty\nx==y\n"
    assert parse(text) == {"a": "1", "b": "2", "c": "3", "d e": "fg", "u": "é\t", "empty": "", "x": "=y"}


@pytest.mark.req("TL-02")
@pytest.mark.parametrize("digits", ["1_23", "0x1f", "+123", " 123", "12", "12g4", ""])
def test_an_escape_without_four_hexadecimal_digits_is_corrupt(digits):
    """Java says so too; Python's int() takes most of them."""
    with pytest.raises(CorruptFileError, match="escape"):
        parse(f"a=\\u{digits}".encode())


@pytest.mark.req("NEW-36")
def test_every_error_has_its_own_code_one_line_and_survives_pickling():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, HudiError)]
    assert len({c.code for c in classes}) == len(classes)
    for cls in classes:
        error = cls("what", table="t", instant="1", file="f", remedy="do this.", column="c")
        copy = pickle.loads(pickle.dumps(error))
        assert str(copy) == str(error) == f"[{cls.code}] what (table t, instant 1, file f) Remedy: do this."
        assert copy.details == {"column": "c"}


@pytest.mark.req("NEW-36")
def test_damage_of_a_file_always_says_what_to_do():
    error = CorruptFileError("what")
    assert error.remedy == ""
    placed = pickle.loads(pickle.dumps(error.at(file="f")))
    assert placed.remedy == CorruptFileError.usual_remedy
    assert str(placed).endswith(f"(file f) Remedy: {CorruptFileError.usual_remedy}")
    placed.advise("do this.")
    placed.advise("do that.")
    assert placed.remedy == "do this."
    assert HudiError("what", file="f").remedy == ""
