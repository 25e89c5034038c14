"""Tables whose files name places outside of the table: nothing there is read, made, changed or deleted."""

import json
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError, HudiError, StorageError, UnsupportedError
from hudi_format.storage import local
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.bug_capsule import make_capsule
from hudi_timeline.reading.bootstrap import source_storage
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline import avro_files

UP = ".." + "/.." * 3
# 40 ways to say a place that is not the table's; {out} is a folder beside the table, {link} a link in the table to it.
NAMES = [
    "..", "../out", "../../out", f"{UP}{{out}}", "p0/../../out", "p0/../../../out", "./../out", "p0/./../../out",
    "..//out", ".//..//out", "p0//..//..//out", "../out/p0", "../out/.hoodie", "../t/../out", ".hoodie/../../out",
    ".hoodie/.temp/../../../out", "{out}", "/{out}", "file://{out}", "file:{out}", "s3://bucket/out",
    "http://127.0.0.1:9/out", "memory://out", "\\\\127.0.0.1\\out", "..\\out", "p0\\..\\..\\out", "C:\\..\\out",
    "%2e%2e/out",
    "%2E%2E/%2e%2e/out", "..%2fout", "~/out", "~", "../out\0", "\ud83d/../out", "..\u2044out", "\uff0e\uff0e/out",
    "{link}", "{link}/p0", "p0/{link}", "{link}/../out",
]  # fmt: skip
assert len(NAMES) == 40

_watched: list[str] | None = None


def _audit(event, arguments):
    if _watched is not None and event in ("open", "os.scandir", "os.listdir") and arguments[0] is not None:
        with suppress(TypeError, ValueError):
            path = os.fsdecode(arguments[0])
            if event == "open" and arguments[2] & os.O_NOFOLLOW:  # fails where the last part is a link
                path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            else:
                path = os.path.realpath(path)
            _watched.append(path)


sys.addaudithook(_audit)


class _Opened:
    """pyarrow as the local storage has it: what it opens is not audited by Python."""

    def __getattr__(self, name):
        return getattr(pa, name)

    def _note(self, path):
        if _watched is not None:
            _watched.append(os.path.realpath(path))

    def memory_map(self, path, mode):
        self._note(path)
        return pa.memory_map(path, mode)

    def OSFile(self, path, mode):
        self._note(path)
        return pa.OSFile(path, mode)


@pytest.fixture(autouse=True)
def _noted(monkeypatch):
    monkeypatch.setattr(local, "pa", _Opened())
    monkeypatch.setattr(table_config, "READ_PAUSE_S", 0.001)  # nobody mends these properties


class Place:
    """A table, and beside it a folder that is nobody's business."""

    def __init__(self, root, template):
        self.root, self.out, self.path = root, root / "out", root / "t"
        shutil.copytree(template, root, symlinks=True, dirs_exist_ok=True)
        self.hoodie = self.path / ".hoodie"

    def without_links(self):
        (self.path / "link_out").unlink()
        (self.path / "p0" / "link_out").unlink()

    def text(self, name):
        return name.replace("{out}", str(self.out)).replace("{link}", "link_out")

    def state(self):
        """Everything beside the table, and what lies in it that was there before."""
        found = {}
        for top, folders, files in os.walk(self.root):
            if Path(top) == self.root:
                folders[:] = [f for f in folders if f != "t"]
            for name in (*folders, *files):
                full = Path(top, name)
                stat = full.lstat()
                content = full.read_bytes() if full.is_file() else None
                found[str(full)] = (stat.st_mode, stat.st_ino, content, stat.st_mtime_ns)
        return found

    @contextmanager
    def untouched(self):
        """Nothing outside of the table is opened, listed, made, changed or deleted meanwhile."""
        global _watched
        before = self.state()
        _watched = []
        try:
            yield
        finally:
            seen, _watched = _watched, None
        assert self.state() == before
        real = os.path.realpath(self.out)
        assert [p for p in seen if p == real or p.startswith(real + "/")] == []

    def properties(self, **entries):
        storage = LocalStorage(str(self.path))
        found = table_config.read_file(storage, table_config.PROPERTIES_FILE)
        data = table_config.render({**found, **{k.replace("__", "."): v for k, v in entries.items()}})
        (self.hoodie / "hoodie.properties").write_bytes(data)

    def commit(self, change, name="20260101000002000.commit"):
        file = self.hoodie / name
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))

    def avro(self, file, kind, record):
        (self.hoodie / file).write_bytes(avro_files.render(kind, record))

    def table(self):
        return HudiTable.open(str(self.path))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A sound table of two commits beside a folder with a table's files; a link in the table leads to that."""
    root = tmp_path_factory.mktemp("template")
    for folder in ("t", "out"):
        built = TableBuilder(LocalStorage(str(root / folder)))
        built.commit("first", built.base("first", {"k1": 1, "k2": 2}))
        built.commit("second", built.base("second", {"k3": 3}, group=2, prev="null"))
    (root / "out" / "canary").write_text("nobody's business")
    (root / "t" / "link_out").symlink_to("../out")
    (root / "t" / "p0" / "link_out").symlink_to("../../out")
    return root


LATER = "20260101000009000"
BASE = "f0000001-0000-4000-8000-000000000000-0_9-0-1_{}.parquet"
ROWS = [{"id": "k9", "v": 9, "ts": 0, "p": "p0"}]


def read(place):
    place.table().read().to_arrow()


def old(place):
    place.table().read(as_of=LATER).to_arrow()


def incremental(place):
    place.table().read_incremental("000").to_arrow()


def verify(place):
    place.table().verify(deep=True)


def repair(place):
    place.table().repair(dry_run=False)


def write(place):
    place.table().upsert(ROWS)


def clean(place):
    place.table().clean(options={"hoodie.cleaner.commits.retained": "1"})


def archive(place):
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    place.table().archive(options=options)


def rollback(place):
    place.table().rollback(LATER)


def restore(place):
    place.table().restore("20260101000001000")


def capsule(place):
    make_capsule(LocalStorage(str(place.path)), place.root.parent / f"{place.root.name}.zip")


def inspect(place):
    place.table().inspect.file_slices()


def planted_archive(place, text):
    place.properties(hoodie__archivelog__folder=text)
    return archive, write, verify, capsule


def planted_timeline(place, text):
    place.properties(
        hoodie__timeline__path=text, hoodie__timeline__history__path=text,
        hoodie__timeline__layout__version="2", hoodie__table__version="8",
    )  # fmt: skip
    return read, verify, archive


def planted_metadata(place, text):
    place.properties(hoodie__table__metadata__partitions=f"files,{text}")
    return read, write, verify


def planted_file(place, text):
    def change(content):
        (stat,) = content["partitionToWriteStats"]["p0"]
        stat["path"] = f"{text}/{stat['path'].rpartition('/')[2]}"

    place.commit(change)
    return read, incremental, verify, clean, capsule, write


def planted_partition(place, text):
    def change(content):
        (stats,) = content["partitionToWriteStats"].values()
        stats[0].update(partitionPath=text, path=f"{text}/{stats[0]['path'].rpartition('/')[2]}")
        content["partitionToWriteStats"] = {text: stats}

    place.commit(change)
    return read, old, verify, repair, inspect, restore


def planted_replaced(place, text):
    def change(content):
        content["partitionToReplaceFileIds"] = {text: ["f0000001-0000-4000-8000-000000000000-0", text]}

    place.commit(change)
    (place.hoodie / "20260101000002000.commit").rename(place.hoodie / "20260101000002000.replacecommit")
    return read, verify, clean


def planted_clean(place, text):
    path = f"{text}/{BASE.format('20260101000001000')}"
    plan = {
        "earliestInstantToRetain": None, "lastCompletedCommitTimestamp": "", "policy": "KEEP_LATEST_COMMITS",
        "filePathsToBeDeletedPerPartition": {text: [{"filePath": path, "isBootstrapBaseFile": False}]},
        "filesToBeDeletedPerPartition": {}, "version": 2, "partitionsToBeDeleted": [text], "extraMetadata": {},
    }  # fmt: skip
    place.avro(f"{LATER}.clean.requested", "HoodieCleanerPlan", plan)
    return clean, write, verify


def planted_rollback(place, text):
    (place.hoodie / f"{LATER}.commit.requested").touch()
    (place.hoodie / f"{LATER}.inflight").touch()
    plan = {
        "instantToRollback": {"commitTime": LATER, "action": "commit"},
        "RollbackRequests": [
            {
                "partitionPath": text, "fileId": "f", "latestBaseInstant": LATER, "logBlocksToBeDeleted": {},
                "filesToBeDeleted": [f"{text}/{BASE.format(LATER)}", f"{place.out}/canary"],
            }
        ],
        "version": 1,
    }  # fmt: skip
    place.avro("20260101000010000.rollback.requested", "HoodieRollbackPlan", plan)
    return write, rollback, verify


def planted_target(place, text):
    """The instant that a rollback names becomes the name of files and of a folder of markers."""
    plan = {
        "instantToRollback": {"commitTime": text, "action": "commit"},
        "RollbackRequests": [],
        "version": 1,
    }
    place.avro(f"{LATER}.rollback.requested", "HoodieRollbackPlan", plan)
    return write, rollback, verify


def planted_savepoint(place, text):
    saved = {text: {"partitionPath": text, "savepointDataFile": [f"{text}/{BASE.format(LATER)}", text]}}
    record = {
        "savepointedBy": "",
        "savepointedAt": 0,
        "comments": "",
        "partitionMetadata": saved,
        "version": 1,
    }
    place.avro("20260101000001000.savepoint", "HoodieSavepointMetadata", record)
    return restore, clean, verify, archive


def planted_restore(place, text):
    plan = {
        "instantsToRollback": [{"commitTime": text, "action": "commit"}], "version": 2,
        "savepointToRestoreTimestamp": "20260101000001000",
    }  # fmt: skip
    place.avro(f"{LATER}.restore.requested", "HoodieRestorePlan", plan)
    return write, restore, verify


def planted_markers(place, text):
    (place.hoodie / f"{LATER}.commit.requested").touch()
    (place.hoodie / f"{LATER}.inflight").touch()
    folder = place.hoodie / ".temp" / LATER
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    line = f"{text}/{BASE.format(LATER)}.marker.CREATE\n{text}.marker.MERGE\n"
    (folder / "MARKERS0").write_bytes(line.encode("utf-8", "replace"))
    return write, rollback, verify


def planted_bootstrap(place, text):
    place.properties(hoodie__bootstrap__base__path=text)
    return read, write, verify


def planted_partition_metadata(place, text):
    """A folder's own file, and a link with the name where the name can be that of one."""
    (place.path / "p0" / ".hoodie_partition_metadata").write_text(
        f"commitTime={text}\npartitionDepth={text}\n"
    )
    return read, verify, repair


PLANTED = [f for name, f in sorted(globals().items()) if name.startswith("planted_")]


def try_names(root, template, plant, names):
    """The actions of a plant on a table with each name, one after the other."""
    outcomes = set()
    for number, name in enumerate(names):
        place = Place(root / str(number), template)
        if "{link}" not in name:
            place.without_links()  # a listing that meets them is an error before anything else is
        try:
            actions = plant(place, place.text(name))
        except (UnicodeEncodeError, ValueError):  # a name that this kind of file cannot hold
            continue
        for action in actions:
            with place.untouched():
                try:
                    action(place)
                    outcomes.add("done")
                except HudiError:
                    outcomes.add("refused")
    assert outcomes


@pytest.mark.parametrize("plant", PLANTED, ids=lambda f: f.__name__.removeprefix("planted_"))
@pytest.mark.sampled(6)
def test_nothing_outside_of_the_table_is_touched(tmp_path, template, plant):
    try_names(tmp_path, template, plant, NAMES[PLANTED.index(plant) % 5 :: 5])


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTED, ids=lambda f: f.__name__.removeprefix("planted_"))
def test_nothing_outside_of_the_table_is_touched_by_any_name(tmp_path, template, plant):
    try_names(tmp_path, template, plant, NAMES)


@pytest.mark.parametrize("text", ["../../../out", "", "x", "20260101000001000/.."])
def test_a_rollback_of_what_is_no_instant_is_withdrawn(tmp_path, template, text):
    place = Place(tmp_path / "one", template)
    place.without_links()
    planted_target(place, text)
    with place.untouched():
        write(place)
    assert place.table().read().to_arrow().num_rows == 4
    assert not list(place.hoodie.glob(f"{LATER}.rollback*"))


def test_the_watch_tells_of_a_read_and_of_a_change(tmp_path, template):
    place = Place(tmp_path / "one", template)
    for action in (
        lambda: HudiTable.open(str(place.out)).read().to_arrow(),
        lambda: (place.out / "canary").unlink(),
        lambda: (place.root / "new").touch(),
        lambda: os.listdir(place.out),
    ):
        with pytest.raises(AssertionError), place.untouched():
            action()


CALLS = {
    "list": lambda s, p: s.list(p), "info": lambda s, p: s.info(p), "read": lambda s, p: s.read(p),
    "read_range": lambda s, p: s.read_range(p, 0, 1), "open_input": lambda s, p: s.open_input(p).close(),
    "open_output": lambda s, p: s.open_output(p).close(), "create": lambda s, p: s.create(p, b"x"),
    "publish": lambda s, p: s.publish(p, b"x"), "touch": lambda s, p: s.touch(p, b"x"),
    "delete": lambda s, p: s.delete(p),
    "delete_dir": lambda s, p: s.delete_dir(p), "make_dir": lambda s, p: s.make_dir(p),
    "copy from": lambda s, p: s.copy(p, "p9/x"), "copy to": lambda s, p: s.copy("p0", p),
    "rename from": lambda s, p: s.rename(p, "p9"), "rename to": lambda s, p: s.rename("p0", p),
}  # fmt: skip
OF_LINKS = ("delete", "delete_dir", "rename from", "rename to", "create", "publish")
LOOKS = ("list", "info", "read", "read_range", "open_input", "copy from")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.sampled(6)
def test_a_storage_touches_nothing_outside_of_its_root(tmp_path, template, call):
    place = Place(tmp_path / "one", template)
    for name in NAMES:
        with place.untouched(), suppress(HudiError, OSError):
            CALLS[call](LocalStorage(str(place.path)), place.text(name))
        if ".." in name.replace("\\", "/").split("/"):
            with pytest.raises(CorruptFileError, match="below the table"):
                CALLS[call](LocalStorage(str(place.path)), place.text(name))
    for number, name in enumerate(("link_out/canary", "link_out/new", "p0/link_out/p0", "link_out")):
        if name == "link_out" and call in OF_LINKS:
            continue  # about the link itself, below
        place = Place(tmp_path / f"linked-{number}", template)
        with place.untouched(), pytest.raises(StorageError, match="leads out"):
            CALLS[call](LocalStorage(str(place.path)), name)


@pytest.mark.parametrize("uri", ["memory://escaping/t", "local://{}/t"])
@pytest.mark.parametrize("call", CALLS)
def test_every_other_storage_refuses_the_same_names(tmp_path, uri, call):
    (tmp_path / "t" / "p0").mkdir(parents=True)
    storage = open_storage(uri.format(tmp_path))
    storage.touch("p0/x", b"x")
    for name in ("..", "../x", "p0/../../x", "..\\x", "%2e%2e/x", "p0/\0", "\ud83d"):
        with pytest.raises(CorruptFileError, match="below the table"):
            CALLS[call](storage, name)
    if call not in LOOKS:
        for name in ("/x", "p0//x", ".", "./x", "p0/"):
            with pytest.raises(CorruptFileError, match="below the table"):
                CALLS[call](storage, name)


def test_a_link_is_deleted_and_replaced_itself_and_what_it_leads_to_stays(tmp_path, template):
    place = Place(tmp_path / "one", template)
    storage = LocalStorage(str(place.path))
    (place.path / "p0" / "file").symlink_to("../../out/canary")
    with place.untouched():
        storage.delete("p0/file")
        storage.delete_dir("link_out")
        (place.path / "file").symlink_to("../out/canary")
        storage.publish("file", b"ours")
        assert storage.read("file") == b"ours"
        (place.path / "late").symlink_to("../out/nothing")  # leads to what is not there yet
        with pytest.raises(FileExistsError):
            storage.create("late", b"x")
        with pytest.raises(StorageError, match="leads out"):
            storage.touch("late", b"x")
    assert not (place.path / "link_out").is_symlink()
    assert not (place.path / "p0" / "file").exists()


def test_links_within_the_table_and_to_the_table_are_followed(tmp_path, template, monkeypatch):
    place = Place(tmp_path / "one", template)
    place.without_links()
    (place.root / "elsewhere").symlink_to("t")
    (place.path / ".kept").mkdir()
    for file in list((place.path / "p0").glob("*.parquet")):
        file.rename(place.path / ".kept" / file.name)
        file.symlink_to(f"../.kept/{file.name}")
    table = HudiTable.open(str(place.root / "elsewhere"))
    assert table.read().to_arrow().num_rows == 3
    table.upsert(ROWS)
    assert table.read().to_arrow().num_rows == 4


@pytest.mark.parametrize("what", ["folder", "file"])
def test_rows_behind_a_link_that_leads_out_are_refused_and_never_left_out(
    tmp_path, template, monkeypatch, what
):
    place = Place(tmp_path / "one", template)
    place.without_links()
    moved = place.path / "p0" if what == "folder" else next((place.path / "p0").glob("*.parquet"))
    moved.rename(place.root / "kept")
    moved.symlink_to(place.root / "kept")
    with pytest.raises(StorageError, match="HUDI_FOLLOW_LINKS"):
        place.table().read().to_arrow()
    monkeypatch.setenv("HUDI_FOLLOW_LINKS", "read")
    assert place.table().read().to_arrow().num_rows == 3
    if what == "folder":
        with pytest.raises(StorageError, match="remove the link"):
            place.table().upsert(ROWS)


@pytest.mark.parametrize(
    ("uri", "base"),
    [
        ("{}", "http://127.0.0.1:9/x"), ("{}", "s3://bucket/x"), ("{}", "memory://x"),
        ("memory://t", "{}"), ("memory://t", "file://{}"), ("memory://t", "http://127.0.0.1:9/x"),
    ],
)  # fmt: skip
def test_a_bootstraps_sources_are_in_the_tables_own_kind_of_store(tmp_path, uri, base):
    storage = open_storage(uri.format(tmp_path))
    with pytest.raises(UnsupportedError, match="another kind of store"):
        source_storage(storage, base.format(tmp_path))
    assert (
        source_storage(LocalStorage(str(tmp_path)), f"file://{tmp_path}/source").uri == f"{tmp_path}/source"
    )
