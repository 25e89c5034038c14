"""Which lock the option of the provider chooses."""

import sys

import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    UnknownOptionError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency.locks import select
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, hold
from hudi_timeline.concurrency.locks.select import lock_for, lock_of
from hudi_timeline.options.transaction_config import LockConfig, parse_transaction_options
from hudi_timeline.options.transaction_options import FILE_SYSTEM, IN_PROCESS, LOCK_PROVIDERS, ZOOKEEPER

pytestmark = pytest.mark.req("CC-09")

PROVIDER = "hoodie.write.lock.provider"
IN_ZOOKEEPER = {
    PROVIDER: ZOOKEEPER,
    "hoodie.write.lock.zookeeper.url": "127.0.0.1",
    "hoodie.write.lock.zookeeper.base_path": "/hudi",
    "hoodie.write.lock.zookeeper.lock_key": "t",
}
IN_DYNAMODB = {
    PROVIDER: "DynamoDBBasedImplicitPartitionKeyLockProvider",
    "hoodie.write.lock.dynamodb.table": "t",
}
IN_METASTORE = {
    PROVIDER: "HiveMetastoreBasedLockProvider",
    "hoodie.write.lock.hivemetastore.uris": "thrift://127.0.0.1:9083",
    "hoodie.write.lock.hivemetastore.database": "d",
    "hoodie.write.lock.hivemetastore.table": "t",
}
OF_SERVERS = {
    "ZooKeeper": (IN_ZOOKEEPER, "kazoo.client", "hudi-timeline[zookeeper]"),
    "DynamoDB": (IN_DYNAMODB, "botocore.session", "hudi-timeline[dynamodb]"),
}


def test_each_provider_that_the_option_takes_makes_a_lock_and_no_other_does():
    assert set(select._PROVIDERS) == set(LOCK_PROVIDERS.values())


def test_the_provider_chooses_the_lock(storage, tmp_path):
    assert isinstance(lock_for(storage), LocalLock)
    assert isinstance(lock_for(open_storage("memory://locks/t")), InProcessLock)
    assert isinstance(lock_for(storage, LockConfig(IN_PROCESS)), InProcessLock)
    lock = lock_for(storage, LockConfig(FILE_SYSTEM, path=str(tmp_path / "locks")))
    with hold(lock):
        assert (tmp_path / "locks/lock").exists()
    assert isinstance(lock_for(storage, LockConfig(FILE_SYSTEM)), FileSystemLock)
    with pytest.raises(UnsupportedError, match="OfAnother"):
        lock_for(storage, LockConfig("org.acme.OfAnother"))


@pytest.mark.parametrize("kind", OF_SERVERS)
def test_a_missing_client_library_is_an_error_that_names_the_extra(storage, monkeypatch, kind):
    options, module, extra = OF_SERVERS[kind]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnsupportedError) as e:
        lock_of(storage, parse_transaction_options(options))
    assert extra in e.value.remedy


@pytest.mark.parametrize("name", ["ZookeeperBasedLockProvider", ZOOKEEPER])
def test_a_provider_is_named_with_its_package_or_without(name):
    assert parse_transaction_options({**IN_ZOOKEEPER, PROVIDER: name}).lock.provider == ZOOKEEPER


@pytest.mark.parametrize("missing", [k for k in IN_ZOOKEEPER if k != PROVIDER])
def test_an_option_that_a_provider_needs_is_asked_for(missing):
    with pytest.raises(InvalidOptionError, match=missing) as e:
        parse_transaction_options({k: v for k, v in IN_ZOOKEEPER.items() if k != missing})
    assert missing in e.value.remedy


@pytest.mark.parametrize("provider", [{}, {PROVIDER: FILE_SYSTEM}])
def test_options_of_a_provider_that_is_not_chosen_are_no_lock_of_their_own(provider):
    given = {**IN_ZOOKEEPER, PROVIDER: ""}
    given.pop(PROVIDER)
    with pytest.raises(ConflictingOptionError, match="zookeeper") as e:
        parse_transaction_options({**given, **provider})
    assert ZOOKEEPER in e.value.remedy


def test_implicit_locks_are_named_by_apache_hudis_hash_of_the_base_path():
    store = open_storage("memory://locks/t")
    given = {**IN_DYNAMODB, "hoodie.write.lock.dynamodb.region": "eu-west-1"}
    assert "'59EE6FCF91CD8066'" in lock_of(store, parse_transaction_options(given)).lock.name


def test_a_slip_of_the_pen_names_the_nearest_option():
    given = {**IN_ZOOKEEPER, "hoodie.write.lock.zookeeper.session_timeout": "1000"}
    with pytest.raises(UnknownOptionError) as e:
        parse_transaction_options(given)
    assert e.value.details["nearest"] == "hoodie.write.lock.zookeeper.session_timeout_ms"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hoodie.write.lock.zookeeper.url": ","}, "names no host"),
        ({"hoodie.write.lock.zookeeper.base_path": "/a/../b"}, "no path"),
        *(
            ({**IN_METASTORE, "hoodie.write.lock.hivemetastore.uris": uri}, "no address of a metastore")
            for uri in ("h:1", "thrift://h", "thrift://h:99999", "thrift://h:1,", "thrift://a b:1")
        ),
    ],
)
def test_addresses_that_are_none_are_refused_before_anything_is_asked(storage, change, message):
    given = {**(IN_ZOOKEEPER if PROVIDER not in change else {}), **change}
    with pytest.raises(InvalidOptionError, match=message):
        lock_of(storage, parse_transaction_options(given))


def test_a_metastores_lock_may_have_the_address_of_a_zookeeper_as_apache_hudis_guide_gives_it(storage):
    given = {**IN_METASTORE, "hoodie.write.lock.zookeeper.url": "z", "hoodie.write.lock.zookeeper.port": "1"}
    assert "d.t" in lock_of(storage, parse_transaction_options(given)).lock.name
