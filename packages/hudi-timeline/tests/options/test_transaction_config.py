"""Options of transactions, with the names and defaults of Apache Hudi."""

import pytest

from hudi_format.errors import InvalidOptionError
from hudi_timeline.options.transaction_config import TransactionConfig, parse_transaction_options
from hudi_timeline.options.transaction_options import FILE_SYSTEM


def test_options_are_read_with_apache_hudis_names_and_defaults():
    assert parse_transaction_options({}) == TransactionConfig()
    options = parse_transaction_options(
        {
            "hoodie.client.heartbeat.interval_in_ms": "5000",
            "hoodie.client.heartbeat.tolerable.misses": "3",
            "hoodie.cleaner.policy.failed.writes": "never",
            "hoodie.write.lock.wait_time_ms": "0",
            "hoodie.write.lock.provider": FILE_SYSTEM,
            "hoodie.write.lock.filesystem.expire": "5",
            "hoodie.allow.empty.commit": "false",
        }
    )
    assert (options.heartbeat_interval_ms, options.heartbeat_misses, options.failed_writes) == (
        5000,
        3,
        "NEVER",
    )
    assert (options.lock.wait_ms, options.lock.provider, options.lock.expire_minutes) == (0, FILE_SYSTEM, 5)
    assert not options.allow_empty
    occ = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    assert parse_transaction_options(occ).failed_writes == "LAZY"


@pytest.mark.parametrize(
    ("key", "value"),
    [("hoodie.client.heartbeat.interval_in_ms", "0"), ("hoodie.client.heartbeat.interval_in_ms", "x"),
     ("hoodie.write.lock.filesystem.expire", "-1"), ("hoodie.write.lock.storage.validity.timeout.secs", "0"),
     ("hoodie.cleaner.policy.failed.writes", "SOMETIMES")],
)  # fmt: skip
def test_options_that_cannot_be_read_are_named(key, value):
    with pytest.raises(InvalidOptionError) as e:
        parse_transaction_options({key: value})
    assert e.value.details["option"] == key
