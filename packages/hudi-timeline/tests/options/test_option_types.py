"""Kinds of option values: which texts they take, and what these mean."""

import pytest

from hudi_timeline.options.option_types import (
    BOOLEAN,
    BYTES,
    FIELDS,
    NAME,
    NUMBER,
    PATTERN_LIST,
    STORAGE_LEVELS,
    STRIPPED,
    TEXT,
    WHOLE,
    choice,
    class_or_function,
    has_wildcard,
    java_class,
    number,
    type_of_default,
    whole,
)

PACKAGE = "org.apache.hudi.index."


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (WHOLE, " -07 ", -7),
        (WHOLE, str(2**63 - 1), 2**63 - 1),
        (BYTES, "1", 1),
        (NUMBER, "-.5e1", -5.0),
        (number(0, below=1), "0", 0.0),
        (TEXT, " a ", " a "),
        (STRIPPED, " a ", "a"),
        (NAME, " a ", "a"),
        (FIELDS, " a, ,b ,", ("a", "b")),
        (PATTERN_LIST, "/t/{a,{b,c}}/*, /t/d,", ("/t/{a,{b,c}}/*", "/t/d")),
        (PATTERN_LIST, "/t/{a,/t/b}},/t/c", ("/t/{a,/t/b}}", "/t/c")),
        (PATTERN_LIST, "/t/{a,/t/b", ("/t/{a", "/t/b")),
        (choice("Upsert", "insert"), " UPSERT", "Upsert"),
        (STORAGE_LEVELS, "memory_and_disk_ser", "MEMORY_AND_DISK_SER"),
        (java_class(PACKAGE), "Mine", PACKAGE + "Mine"),
        (java_class(PACKAGE), "a.b$C", "a.b$C"),
        (java_class(PACKAGE), "com.uber.hoodie.x.Y", "org.apache.hudi.x.Y"),
        (class_or_function(PACKAGE), " my.mod:Class.method ", "my.mod:Class.method"),
        (class_or_function(PACKAGE), "Mine", PACKAGE + "Mine"),
    ],
)
def test_a_text_is_the_value_that_it_says(kind, text, value):
    found = kind.parse(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOLEAN, "yes"),
        (BOOLEAN, ""),
        (WHOLE, "1.0"),
        (WHOLE, "١"),
        (WHOLE, "1_000"),
        (WHOLE, str(2**63)),
        (BYTES, "0"),
        (whole(0, 9), "10"),
        (NUMBER, "nan"),
        (NUMBER, "0x1"),
        (number(0, below=1), "1"),
        (number(above=0), "0"),
        (NAME, "  "),
        (FIELDS, "a,b,a"),
        (choice("a"), "b"),
        (java_class(PACKAGE), "a-b"),
        (java_class(PACKAGE), "mod:function"),
        (class_or_function(PACKAGE), "mod:"),
    ],
)
def test_another_text_is_refused(kind, text):
    with pytest.raises(ValueError):
        kind.parse(text)


def test_wildcards_of_a_path():
    assert all(map(has_wildcard, ("a{b", "t/*", "a?", "[ab]", "a\\*")))
    assert not has_wildcard("a b/c%20}")


def test_what_it_takes_is_said_with_its_bounds():
    assert whole(1, 9, "rows").allowed == "a whole number of rows from 1 to 9"
    assert number(0, below=1).allowed == "a number from 0 and below 1"
    assert choice("a", "").allowed == 'one of a, ""'


@pytest.mark.parametrize(
    ("default", "kind"),
    [
        (None, TEXT),
        ("true", BOOLEAN),
        ("10", WHOLE),
        ("-1", WHOLE),
        ("0.5", NUMBER),
        ("10 days", TEXT),
        ("", TEXT),
    ],
)
def test_a_default_shows_the_kind(default, kind):
    assert type_of_default(default) is kind
