"""Which lock the option of the provider chooses."""

import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.provider import InProcessLock, hold
from hudi_timeline.concurrency.locks.select import FILE_SYSTEM, IN_PROCESS, lock_for

pytestmark = pytest.mark.req("CC-09")


def test_the_provider_chooses_the_lock(storage, tmp_path):
    assert isinstance(lock_for(storage), LocalLock)
    assert isinstance(lock_for(open_storage("memory://locks/t")), InProcessLock)
    assert isinstance(lock_for(storage, IN_PROCESS), InProcessLock)
    lock = lock_for(storage, FILE_SYSTEM, path=str(tmp_path / "locks"))
    with hold(lock):
        assert (tmp_path / "locks/lock").exists()
    assert isinstance(lock_for(storage, FILE_SYSTEM), FileSystemLock)
    with pytest.raises(UnsupportedError, match="Zookeeper"):
        lock_for(storage, "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider")
