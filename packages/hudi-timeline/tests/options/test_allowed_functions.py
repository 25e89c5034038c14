"""Functions that a table may name: which names allow which, for how long."""

import pytest

from hudi_format.errors import FunctionNotAllowedError, InvalidOptionError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.options.allowed_functions import ENVIRONMENT, allow_functions, check_allowed


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    storage = LocalStorage(str(tmp_path))
    return lambda text, given=None: check_allowed(text, given=given, storage=storage)


def test_nothing_is_allowed_by_the_table_alone(check):
    with pytest.raises(FunctionNotAllowedError, match="which nothing has allowed") as e:
        check("json:loads")
    assert e.value.details["function"] == "json:loads"
    assert ENVIRONMENT in str(e.value)


def test_the_call_allows_what_it_names_itself(check):
    check("json:loads", given="json:loads")
    with pytest.raises(FunctionNotAllowedError):
        check("json:loads", given="json:dumps")


def test_an_allowance_holds_until_its_block_ends_and_counts_twice_where_it_is_given_twice(check):
    with allow_functions("json:loads"):
        with allow_functions(" json:loads "):
            check("json:loads")
        check("json:loads")
        with pytest.raises(FunctionNotAllowedError):
            check("json:dumps")
    with pytest.raises(FunctionNotAllowedError):
        check("json:loads")


def test_the_environment_allows_by_names_with_commas(check, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, " , json:dumps,json:loads ")
    check("json:loads")
    monkeypatch.setenv(ENVIRONMENT, "json:loads()")
    with pytest.raises(InvalidOptionError):
        check("json:loads")


def test_a_package_allows_what_it_defines_itself_and_nothing_that_it_imported(check):
    with allow_functions("json.*"):
        check("json:loads")
        check("json:dumps")
        with pytest.raises(FunctionNotAllowedError, match="which json does not define itself"):
            check("json:codecs.lookup")
        with pytest.raises(FunctionNotAllowedError, match="which nothing has allowed"):
            check("jsonx:loads")


def test_a_module_in_the_tables_own_folder_is_refused_whoever_allows_it(check, tmp_path, monkeypatch):
    (tmp_path / "planted_by_a_stranger.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("planted_by_a_stranger:merge", "planted_by_a_stranger.*"):
        with allow_functions(name), pytest.raises(FunctionNotAllowedError, match="own folder"):
            check("planted_by_a_stranger:merge")


@pytest.mark.parametrize("name", ["json", "json:", ":loads", "json.*.x", "js on:loads", "*", "", 7])
def test_a_name_of_neither_form_is_refused(name):
    with pytest.raises(InvalidOptionError, match="names no function"):
        allow_functions(name)
