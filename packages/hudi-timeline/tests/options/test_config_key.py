"""Declarations of options, and fields of configurations that are bound to one."""

import pickle
from dataclasses import dataclass

from hudi_timeline.options.config_key import (
    READ,
    WRITE,
    ConfigKey,
    class_other_than,
    given_value,
    is_false,
    is_given,
    is_true,
    keys_of,
    other_than,
    refused_if_given,
    refused_if_true,
    value_of,
)
from hudi_timeline.options.option_types import TEXT, WHOLE

RETRIES = ConfigKey("hoodie.retries", WHOLE, "3", doc="Times it is tried.", alternatives=("hoodie.tries",))
NAME = ConfigKey("hoodie.name", TEXT)


def test_an_option_is_its_name_with_its_default_parsed():
    assert {RETRIES: 1}["hoodie.retries"] == 1
    assert f"{RETRIES}=4" == "hoodie.retries=4"
    assert (RETRIES.value, NAME.value) == (3, None)
    assert (RETRIES.alternatives, RETRIES.doc) == (("hoodie.tries",), "Times it is tried.")


def test_in_another_process_it_is_its_name():
    again = pickle.loads(pickle.dumps(RETRIES))
    assert (type(again), again) == (str, "hoodie.retries")


def test_fields_have_the_default_of_their_option_or_none():
    @dataclass
    class Config:
        retries: int = value_of(RETRIES)
        given: int | None = given_value(RETRIES)
        name: str = value_of(NAME, otherwise="")
        own: int = 7

    assert Config() == Config(3, None, "", 7)
    assert keys_of(Config) == {"retries": RETRIES, "given": RETRIES, "name": NAME}


def test_values_ask_for_something_or_not():
    assert [is_true(v) for v in (True, False, "true", 1)] == [True, False, False, False]
    assert [is_false(v) for v in (False, True, None, 0)] == [True, False, False, False]
    assert [is_given(v) for v in ("a", "  ", "", (), None, 5)] == [True, False, False, False, False, True]
    assert [other_than("a", "b")(v) for v in ("a", "c", "", None)] == [False, True, False, False]
    assert [class_other_than("x.", "A")(v) for v in ("x.A", "y.A", "A")] == [False, True, True]


def test_what_is_refused_says_for_which_calls():
    switch = refused_if_true("hoodie.async", "a service", "run it", scopes=frozenset({READ, WRITE}))
    text = refused_if_given("hoodie.server", "a server", "leave it out")
    assert switch.unsupported.scopes == {READ, WRITE}
    assert (switch.value, switch.unsupported.asks(switch.value)) == (False, False)
    assert switch.unsupported.asks(switch.type.parse("true"))
    assert text.unsupported.asks("x")
    assert text.unsupported.scopes == {WRITE}
