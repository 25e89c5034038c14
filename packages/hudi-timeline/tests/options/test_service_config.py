"""Options of cleaning, archival and callbacks: Apache Hudi's defaults, and what cannot be."""

import pytest

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_timeline.options.registry import canonical
from hudi_timeline.options.service_config import (
    HTTP,
    KEEP_COMMITS,
    KEEP_HOURS,
    CallbackConfig,
    ServiceConfig,
    callback_config,
    parse_service_options,
)

ON = "hoodie.write.commit.callback.on"
PREFIX = "hoodie.write.commit.callback."


@pytest.mark.req("TS-20")
def test_the_defaults_are_apache_hudis():
    config = parse_service_options({})
    assert config == ServiceConfig()
    assert (config.clean_policy, config.clean_commits_retained) == (KEEP_COMMITS, 10)
    assert (config.archive_min_commits, config.archive_max_commits) == (20, 30)
    assert (config.enabled, config.clean_automatic, config.archive_automatic) == (True, True, True)


def test_options_are_parsed_by_any_of_their_names():
    config = parse_service_options(
        {"hoodie.cleaner.policy": "keep_latest_by_hours", "hoodie.cleaner.hours.retained": "5",
         "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.table.services.enabled": "false"}
    )  # fmt: skip
    assert (config.clean_policy, config.clean_hours_retained, config.enabled) == (KEEP_HOURS, 5, False)
    assert (config.archive_min_commits, config.archive_max_commits) == (2, 3)


@pytest.mark.parametrize(("least", "most"), [("5", "5"), ("6", "5"), ("30", None)])
def test_archival_that_would_leave_what_makes_it_begin_is_refused(least, most):
    options = {"hoodie.keep.min.commits": least} | ({} if most is None else {"hoodie.keep.max.commits": most})
    with pytest.raises(InvalidOptionError, match="is not above"):
        parse_service_options(options)


def callback(**options):
    return callback_config(
        canonical({ON: "true", **{PREFIX + k.replace("_", "."): v for k, v in options.items()}})
    )


def test_a_callback_is_a_function_or_an_address():
    assert callback_config(canonical({PREFIX + "http.url": "http://x"})) is None
    assert callback(**{"class": "my.mod:told"}) == CallbackConfig(function="my.mod:told")
    made = callback(http_url=" https://x:1/y ", http_timeout_seconds="7", http_custom_headers="A: b;;C:d ")
    assert (made.url, made.timeout_s, made.headers) == ("https://x:1/y", 7, (("A", "b"), ("C", "d")))
    assert callback(**{"class": HTTP, "http_url": "http://x"}).function == ""


def test_secrets_of_a_callback_are_not_shown():
    made = callback(http_url="http://x", http_api_key="hush", http_custom_headers="Authorization: hush")
    assert made.api_key == "hush"
    assert "hush" not in repr(made)


@pytest.mark.parametrize("url", ["", "x.y/z", "ftp://x", "http://"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidOptionError, match="posts commits to"):
        callback(http_url=url)


def test_a_class_of_the_jvm_is_refused_with_the_way_round():
    with pytest.raises(UnsupportedError, match=r"com\.x\.Mine") as e:
        callback(**{"class": "com.x.Mine"})
    assert "module:function" in str(e.value)
