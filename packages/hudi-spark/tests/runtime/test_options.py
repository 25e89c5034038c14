"""Options of a call over those of the session, in any case of their letters."""

import pytest

from hudi_format.errors import ConflictingOptionError
from hudi_spark.runtime.options import (
    add_option,
    is_hudi,
    merged,
    session_options,
    take_option,
    with_partition_by,
)

PARTITION_FIELD = "hoodie.datasource.write.partitionpath.field"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("hudi", True),
        (" HUDI ", True),
        ("org.apache.hudi", True),
        ("org.apache.hudi.DefaultSource", True),
        ("hudi2", False),
        ("", False),
        (None, False),
    ],
)
def test_the_format_has_three_names(name, known):
    assert is_hudi(name) is known


def test_what_the_call_says_counts_in_its_own_spelling():
    session = {"hoodie.A": "1", "hoodie.b": "2"}
    assert merged(session, {"hoodie.a": "9"}) == {"hoodie.b": "2", "hoodie.a": "9"}
    assert session == {"hoodie.A": "1", "hoodie.b": "2"}


def test_the_last_value_of_an_option_counts_and_none_is_none():
    options = {"Hoodie.A": "1"}
    add_option(options, "hoodie.a", True)
    add_option(options, "hoodie.b", 5)
    add_option(options, "hoodie.c", None)
    assert options == {"hoodie.a": "true", "hoodie.b": "5"}
    assert take_option(options, "hoodie.b") == "5"
    assert take_option(options, "hoodie.b") is None
    assert options == {"hoodie.a": "true"}


def test_columns_of_partition_by_are_the_partition_field():
    assert with_partition_by({"x": "1"}, ["a", "b"]) == {"x": "1", PARTITION_FIELD: "a,b"}
    assert with_partition_by({PARTITION_FIELD.upper(): " a , b "}, ["a", "b"]) == {PARTITION_FIELD: "a,b"}
    assert with_partition_by({PARTITION_FIELD: "a"}, []) == {PARTITION_FIELD: "a"}
    with pytest.raises(ConflictingOptionError, match="contradicts"):
        with_partition_by({PARTITION_FIELD: "b,a"}, ["a", "b"])


def test_settings_of_the_session_are_seen_however_they_are_made(spark):
    before = session_options(spark)
    spark.conf.set("hoodie.by.call", "1")
    spark.sql("SET hoodie.by.command=a b")
    spark.conf.set("hoodie.by.password", "not masked")
    spark.conf.set("spark.sql.not.ours", "1")
    names = ("hoodie.by.call", "hoodie.by.command", "hoodie.by.password", "spark.sql.not.ours")
    try:
        found = session_options(spark)
        assert {k: v for k, v in found.items() if k not in before} == {
            "hoodie.by.call": "1", "hoodie.by.command": "a b", "hoodie.by.password": "not masked",
        }  # fmt: skip
    finally:
        for name in names:
            spark.conf.unset(name)
    assert session_options(spark) == before
