"""Tables in a state that a write would damage or cannot trust: a typed error, and every byte as it was."""

import shutil
import socket
from datetime import UTC, datetime

import pytest
from bad_input import FIRST, assert_same, content, make
from bad_table_states import STATES, upsert

from hudi_format.errors import HudiError
from hudi_format.storage.open import open_storage
from hudi_timeline.concurrency.heartbeat import start
from hudi_timeline.concurrency.locks.select import lock_for
from hudi_timeline.options.transaction_config import LockConfig
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "table"
    make(path)
    return path


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize("bad", STATES, ids=str)
@pytest.mark.sampled(8)
def test_a_table_in_a_bad_state_is_refused_and_left_as_it_is(template, tmp_path, bad):
    path = tmp_path / "table"
    shutil.copytree(template, path)
    bad.arrange(path)
    before = content(path)
    with pytest.raises(HudiError) as e:
        bad.act(path)
    assert e.value.code == bad.code, f"{type(e.value).__name__}: {e.value}"
    assert "\n" not in str(e.value)
    assert e.value.table or e.value.file, str(e.value)
    assert_same(before, content(path), begun=bad.begun)


@pytest.mark.req("NEW-36")
def test_a_live_writer_is_not_disturbed(template, tmp_path):
    path = tmp_path / "table"
    shutil.copytree(template, path)
    now = datetime.now(UTC).strftime("%Y%m%d%H%M%S") + "000"
    (path / f".hoodie/{now}.commit.requested").touch()
    beat = start(open_storage(str(path)), now, 60_000, 2)
    try:
        before = content(path)
        with pytest.raises(
            HudiError, match=f"another write is running by process .* on {socket.gethostname()}"
        ) as e:
            upsert(path)
        assert e.value.code == "HUDI-E0601"
        assert_same(before, content(path), begun=False)
    finally:
        beat.stop()


@pytest.mark.req("NEW-36")
def test_a_lock_that_another_holds_is_waited_for_and_then_an_error(template, tmp_path):
    path = tmp_path / "table"
    shutil.copytree(template, path)
    provider = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    lock = lock_for(open_storage(str(path)), LockConfig(provider))
    assert lock.try_acquire()
    try:
        before = content(path)
        given = {"hoodie.write.lock.provider": provider, "hoodie.write.lock.wait_time_ms": "50"}
        with pytest.raises(HudiError) as e:
            execute(LocalEngine(), open_storage(str(path)), FIRST, given)
        assert e.value.code == "HUDI-E0603"
        assert_same(before, content(path), begun=False)
    finally:
        lock.release()
