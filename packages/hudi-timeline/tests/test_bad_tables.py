"""Tables in a state that a write would damage or cannot trust: a typed error, and every byte as it was."""

import json
import shutil
import socket
from datetime import UTC, datetime

import pytest
from bad_input import FIRST, Bad, assert_same, content, make, rows

from hudi_format.errors import HudiError
from hudi_format.storage import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.engine.local import LocalEngine
from hudi_timeline.heartbeat import start
from hudi_timeline.locks.select import lock_for
from hudi_timeline.write.operation import execute

LATER = "20991231235959999"


def upsert(table):
    return execute(LocalEngine(), open_storage(str(table)), rows("a"), {})


def set_to(**properties):
    def arrange(path):
        table_config.update(open_storage(str(path)), {k.replace("__", "."): v for k, v in properties.items()})

    return arrange


def version(number, layout="1"):
    return set_to(hoodie__table__version=number, hoodie__timeline__layout__version=layout)


def write(name, data=b""):
    def arrange(path):
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    return arrange


def newest(path, pattern):
    return sorted(path.glob(pattern))[-1]


def on_newest(pattern, change):
    def arrange(path):
        change(newest(path, pattern))

    return arrange


def commit_names_a_missing_file(path):
    file = newest(path, ".hoodie/*.commit")
    found = json.loads(file.read_bytes())
    for stats in found["partitionToWriteStats"].values():
        for stat in stats:
            stat["path"] = stat["path"].replace("-0_", "-9_")
            stat["fileId"] = stat["fileId"][:-1] + "9"
    file.write_bytes(json.dumps(found).encode())


def latest_file(path):
    return path / HudiTable.open(str(path)).read(filter="id = 'a'").plan_files()[0].path


def on_latest_file(change):
    def arrange(path):
        change(latest_file(path))

    return arrange


def cut(file):
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def no_table(path):
    shutil.rmtree(path)
    path.mkdir()


def foreign(path):
    no_table(path)
    (path / "notes.txt").write_text("mine")


STATES = [
    Bad("a folder without a table", "HUDI-E0101", lambda p: HudiTable.open(str(p)), no_table),
    Bad("a folder with something else", "HUDI-E0101", upsert, foreign),
    Bad("no properties", "HUDI-E0101", upsert, on_newest(".hoodie/hoodie.properties", lambda f: f.unlink())),
    Bad("empty properties", "HUDI-E0401", upsert, write(".hoodie/hoodie.properties")),
    Bad("properties of another table", "HUDI-E0401", upsert, on_newest(
        ".hoodie/hoodie.properties",
        lambda f: f.write_bytes(f.read_bytes().replace(b"hoodie.table.name=trips", b"hoodie.table.name=other")))),
    Bad("properties that are no text", "HUDI-E0401", upsert, write(".hoodie/hoodie.properties", b"\xff\xfe\x00")),
    Bad("table version 4", "HUDI-E0201", upsert, version("4")),
    Bad("table version 5", "HUDI-E0201", upsert, version("5")),
    Bad("table version 7", "HUDI-E0201", upsert, version("7")),
    Bad("table version 10", "HUDI-E0201", upsert, version("10")),
    Bad("a table version that is no number", "HUDI-E0401", upsert, on_newest(
        ".hoodie/hoodie.properties",
        lambda f: f.write_bytes(f.read_bytes().replace(b"table.version=6", b"table.version=six")))),
    Bad("timeline layout 0", "HUDI-E0201", upsert, version("6", "0")),
    Bad("an unknown table type", "HUDI-E0201", upsert, set_to(hoodie__table__type="SHREDDED")),
    Bad("ORC base files", "HUDI-E0201", upsert, set_to(hoodie__table__base__file__format="ORC")),
    Bad("a key generator of the user's", "HUDI-E0201", upsert,
        set_to(hoodie__table__keygenerator__class="com.example.Keys")),
    Bad("a schema-on-read history", "HUDI-E0201", upsert, write(f".hoodie/.schema/{LATER}.schemacommit", b"{}")),
    Bad("a restore that is not finished", "HUDI-E0201", upsert, write(f".hoodie/{LATER}.restore.inflight")),
    Bad("a bootstrap whose data lie elsewhere", "HUDI-E0201", upsert,
        write(".hoodie/00000000000001.commit", b'{"partitionToWriteStats":{}}')),
    Bad("an empty completed commit", "HUDI-E0401", upsert,
        on_newest(".hoodie/*.commit", lambda f: f.write_bytes(b""))),
    Bad("a commit that is no JSON", "HUDI-E0401", upsert,
        on_newest(".hoodie/*.commit", lambda f: f.write_bytes(b"{"))),
    Bad("a commit of another shape", "HUDI-E0401", upsert,
        on_newest(".hoodie/*.commit", lambda f: f.write_bytes(b"[1]"))),
    Bad("a commit with a schema that cannot be parsed", "HUDI-E0401", upsert, on_newest(
        ".hoodie/*.commit",
        lambda f: f.write_bytes(f.read_bytes().replace(b'\\"type\\":\\"record\\"', b'\\"type\\":\\"rekord\\"')))),
    Bad("a commit in the far future", "HUDI-E0604", upsert,
        write(f".hoodie/{LATER}.commit", b'{"partitionToWriteStats":{},"extraMetadata":{}}')),
    Bad("a base file that is gone", "HUDI-E0402", upsert, on_latest_file(lambda f: f.unlink()), begun=True),
    Bad("a base file cut short", "HUDI-E0401", upsert, on_latest_file(cut), begun=True),
    Bad("a base file of zeros", "HUDI-E0401", upsert,
        on_latest_file(lambda f: f.write_bytes(bytes(f.stat().st_size))), begun=True),
    Bad("a commit that names files which are not there", "HUDI-E0402", upsert, commit_names_a_missing_file,
        begun=True),
]  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "table"
    make(path)
    return path


@pytest.mark.req("NEW-36", "CF-01")
@pytest.mark.parametrize("bad", STATES, ids=str)
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
    lock = lock_for(open_storage(str(path)), provider)
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
