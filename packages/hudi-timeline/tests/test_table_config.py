"""hoodie.properties: typed values, checksum, backup, creation, update protocol."""

from functools import partial

import pyarrow as pa
import pytest

from hudi_format import properties as props
from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    LockError,
    NotAHudiTableError,
    TableExistsError,
)
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config, write_hudi
from hudi_timeline.concurrency.locks.provider import InProcessLock, hold
from hudi_timeline.table_config import (
    BACKUP_FILE,
    METADATA_PARTITIONS,
    PROPERTIES_FILE,
    TableConfig,
    load,
    update,
)
from hudi_timeline.testing import CHANGES, CRASH, STALL, Fault, Faults, MemoryStorage
from hudi_timeline.verify.findings import Severity

pytestmark = pytest.mark.req("TL-02")


def no_pause(seconds):
    """Tests do not wait for another process."""


@pytest.mark.parametrize(
    ("database", "table", "crc"),
    [("", "cow", "121430431"), ("", "mor", "2110273562"), ("default", "sor", "142400695")],
)
def test_the_checksum_is_that_of_apache_hudi(database, table, crc):
    assert table_config.checksum({"hoodie.database.name": database, "hoodie.table.name": table}) == crc


def test_every_golden_configuration_loads_and_keeps_its_keys(golden_timelines):
    tables = sorted(golden_timelines.glob("v?/*"))
    assert len(tables) == 56
    for folder in tables:
        config = load(LocalStorage(str(folder)), pause=no_pause)
        assert config.version == int(folder.parent.name[1:])
        assert config.name
        assert config.version.layout == 1
        text = (folder / PROPERTIES_FILE).read_bytes()
        assert dict(config.properties) == props.parse(text)


def test_typed_values_of_a_golden_table(golden_timelines):
    config = load(LocalStorage(str(golden_timelines / "v6/cow_complex_keys_hive_style_urlencoded")))
    assert config.table_type == "COPY_ON_WRITE"
    assert config.record_key_fields == ("uuid", "rider")
    assert config.partition_fields == ("city", "kind")
    assert config.ordering_field == "ts"
    assert config.hive_style
    assert config.url_encode
    assert config.populate_meta_fields
    assert config.timezone == "LOCAL"
    assert config.base_file_format == "PARQUET"
    assert not config.cdc_enabled
    assert config.create_schema is None
    assert config.metadata_partitions == ("files",)
    assert config.metadata_partitions_inflight == ()


def test_missing_keys_have_apache_hudis_defaults():
    config = TableConfig({"hoodie.table.name": "t"})
    assert (config.version, config.version.layout, config.table_type) == (0, 0, "COPY_ON_WRITE")
    assert config.populate_meta_fields
    assert config.archive_folder == "archived"
    assert config.partition_fields == ()
    assert config.ordering_field is None


def test_types_of_custom_partition_fields_are_left_out():
    config = TableConfig({"hoodie.table.name": "t", "hoodie.table.partition.fields": "a:SIMPLE, b:TIMESTAMP"})
    assert config.partition_fields == ("a", "b")


def test_the_old_package_name_of_payloads_is_renamed():
    config = TableConfig({"hoodie.table.name": "t", "hoodie.compaction.payload.class": "com.uber.hoodie.X"})
    assert config.payload_class == "org.apache.hudi.X"


@pytest.mark.req("PM-07")
@pytest.mark.parametrize(
    ("more", "payload"),
    [
        ({}, "org.apache.hudi.common.model.DefaultHoodieRecordPayload"),
        ({"hoodie.compaction.payload.class": "a.Own"}, "a.Own"),
        ({"hoodie.table.type": "COPY_ON_WRITE"}, None),
        ({"hoodie.table.version": "8"}, None),
        ({"hoodie.compaction.record.merger.strategy": "ce9acb64-bde0-424c-9b91-f6ebba25356d"}, None),
    ],
)
def test_a_table_that_was_taken_down_from_version_9_merges_by_its_strategy(more, payload):
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    }
    assert TableConfig({**properties, **more}).payload_class == payload


def test_the_key_spec_follows_the_table(storage):
    spec = load(storage).key_spec()
    assert spec.key_fields == ("id",)
    assert spec.partition_fields == ("p",)
    assert spec.kind == "SIMPLE"


def test_an_empty_folder_is_no_table_and_is_told_at_once(tmp_path):
    def fail(seconds):
        raise AssertionError("nothing to wait for")

    with pytest.raises(NotAHudiTableError, match=r"hoodie\.properties"):
        load(LocalStorage(str(tmp_path)), pause=fail)


def test_a_meta_folder_without_properties_is_waited_for_then_no_table(tmp_path):
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie/.temp").mkdir()
    pauses = []
    with pytest.raises(NotAHudiTableError):
        load(LocalStorage(str(tmp_path)), pause=pauses.append)
    assert len(pauses) == table_config.READ_TRIES - 1


@pytest.mark.req("TL-03")
def test_a_wrong_checksum_names_both_values_and_the_remedy(storage):
    text = storage.read(PROPERTIES_FILE)
    storage.publish(PROPERTIES_FILE, text.replace(b"hoodie.table.name=t", b"hoodie.table.name=other"))
    with pytest.raises(CorruptFileError, match="checksum mismatch") as e:
        load(storage, pause=no_pause)
    assert e.value.file == PROPERTIES_FILE
    assert e.value.table == storage.uri
    assert "backup" in e.value.remedy


@pytest.mark.req("TL-03")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"hive_style_partitioning=false", b"hive_style_partitioning=true"),
        (b"hoodie.table.type=COPY_ON_WRITE", b"hoodie.table.type=MERGE_ON_READ"),
        (b"hoodie.table.version=6", b"hoodie.table.version=5"),
        (b"hoodie.archivelog.folder=archived\n", b""),
        (b"hoodie.table.version=6", b"hoodie.table.version=6\nhoodie.index.type=BUCKET"),
    ],
)
@pytest.mark.sampled(3)
def test_entries_changed_by_hand_are_refused_until_repair_accepts_them(storage, old, new):
    text = storage.read(PROPERTIES_FILE)
    assert old in text
    edited = text.replace(old, new)
    storage.publish(PROPERTIES_FILE, edited)
    table = HudiTable._of(storage)
    for use in (
        lambda: load(storage, pause=no_pause),
        lambda: table_config.update(storage, {"a": "1"}),
        lambda: HudiTable.open(storage),
        lambda: table.upsert([{"id": "a"}]),
        lambda: table.read(),
        lambda: table.clean(),
    ):
        with pytest.raises(CorruptFileError, match="checksum mismatch: entries were changed by hand") as e:
            use()
        assert e.value.file == PROPERTIES_FILE
        assert "hudi repair" in e.value.remedy
    assert storage.read(PROPERTIES_FILE) == edited
    (found,) = (f for f in table.verify() if f.code == "properties-content")
    assert found.severity is Severity.ERROR
    assert table.repair(only=["properties-content"]).steps == 1
    wanted = props.parse(edited, path="")
    assert load(storage, pause=no_pause).properties == wanted
    assert HudiTable.open(storage).config.properties == wanted


@pytest.mark.req("TL-03")
def test_what_another_program_writes_has_no_checksum_of_the_entries_and_is_read(storage):
    text = storage.read(PROPERTIES_FILE).replace(
        b"hive_style_partitioning=false", b"hive_style_partitioning=true"
    )
    lines = [line for line in text.splitlines(True) if not line.startswith(b"#content checksum")]
    storage.publish(PROPERTIES_FILE, b"".join(lines))
    assert load(storage, pause=no_pause).hive_style
    without = [line for line in lines if b"hoodie.table.checksum" not in line]
    storage.publish(PROPERTIES_FILE, b"".join(without))
    assert load(storage, pause=no_pause).hive_style
    table_config.update(storage, {"a": "1"})
    assert table_config.stored_content_checksum(storage.read(PROPERTIES_FILE))
    assert load(storage, pause=no_pause).properties["a"] == "1"


@pytest.mark.req("TL-03")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x00",
        b"#only a comment\n",
        b"hoodie.table.name=t\\u12",
        b"hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=six\n",
        b"hoodie.table.name=t\nhoodie.table.version=6\n",
        b"hoodie.table.name=t\nhoodie.table.version=6\nhoodie.table.type=\n",
        b"\xef\xbb\xbfhoodie.table.type=MERGE_ON_READ\nhoodie.table.name=t\nhoodie.table.version=6\n",
    ],
)
def test_damaged_files_are_typed_errors(storage, content):
    storage.publish(PROPERTIES_FILE, content)
    with pytest.raises(CorruptFileError) as e:
        load(storage, pause=no_pause)
    assert e.value.remedy


def test_a_table_whose_type_is_lost_is_not_read_without_its_log_files(tmp_path):
    rows = pa.table({"k": ["a"], "ts": [1]})
    write_hudi(str(tmp_path / "t"), rows, key="k", name="t", table_type="MERGE_ON_READ")
    HudiTable.open(tmp_path / "t").upsert([{"k": "a", "ts": 2}])
    file = tmp_path / "t" / PROPERTIES_FILE
    lines = [line for line in file.read_bytes().splitlines(keepends=True) if not line.startswith(b"#")]
    marked = b"\xef\xbb\xbf" + b"".join(sorted(lines, key=lambda line: b"table.type" not in line))
    for text in (b"".join(line for line in lines if b"table.type" not in line), marked):
        file.write_bytes(text)
        with pytest.raises(CorruptFileError, match=r"hoodie\.table\.type"):
            HudiTable.open(tmp_path / "t")
    file.write_bytes(b"".join(lines))
    assert HudiTable.open(tmp_path / "t").read(["ts"]).to_arrow().to_pylist() == [{"ts": 2}]


def test_a_damaged_file_with_a_whole_backup_is_read_from_the_backup(storage):
    storage.publish(BACKUP_FILE, storage.read(PROPERTIES_FILE))
    storage.publish(PROPERTIES_FILE, b"")
    assert load(storage, pause=no_pause).name == "t"


def test_a_file_that_comes_back_during_the_tries_is_read(storage):
    text = storage.read(PROPERTIES_FILE)
    storage.delete(PROPERTIES_FILE)
    assert load(storage, pause=lambda s: storage.publish(PROPERTIES_FILE, text)).name == "t"


def test_creation_makes_the_folders_and_a_valid_file(storage):
    assert {e.name for e in storage.list(".hoodie")} == {
        ".schema", ".temp", ".aux", "archived", "hoodie.properties"
    }  # fmt: skip
    config = load(storage)
    assert (config.version, config.version.layout, config.table_type) == (6, 1, "COPY_ON_WRITE")
    assert config.properties["hoodie.table.checksum"] == table_config.checksum(config.properties)
    first = storage.read(PROPERTIES_FILE).decode().splitlines()[:2]
    assert first[0].startswith("#Properties saved on 2")
    assert first[1].endswith(first[0][21:25])  # Java's date line ends with the year


def test_a_second_creation_is_refused_and_changes_nothing(storage):
    before = storage.read(PROPERTIES_FILE)
    with pytest.raises(TableExistsError):
        table_config.create(storage, {"hoodie.table.name": "u"})
    assert storage.read(PROPERTIES_FILE) == before


def test_an_update_sets_and_removes_keys_and_leaves_no_backup(storage):
    config = update(storage, {"hoodie.table.metadata.partitions": "files"}, ["hoodie.table.precombine.field"])
    assert config == load(storage)
    assert config.metadata_partitions == ("files",)
    assert config.ordering_field is None
    assert storage.info(BACKUP_FILE) is None
    assert storage.read(PROPERTIES_FILE).startswith(b"#Updated at ")


def test_an_update_that_changes_nothing_writes_nothing(storage):
    before = storage.read(PROPERTIES_FILE)
    update(storage, {"hoodie.table.name": "t"}, ["not.there"])
    assert storage.read(PROPERTIES_FILE) == before


def test_an_update_that_stops_while_another_process_updates_keeps_what_that_one_did():
    """The lock was lost meanwhile.  Between the last look and the call that deletes no storage can prevent it."""
    made = MemoryStorage()
    table_config.create(made, {"hoodie.table.name": "t"})
    refused = set()
    for number in range(1, 20):
        storage = made.copy_of()
        stop = Fault(STALL, number=number, after=True)
        faults = Faults(stop, stall=partial(update, storage, {"x": "other", "y": "other"}))
        try:
            update(faults.wrap(storage), {"x": "mine"})
        except ConcurrentWriterError:
            refused.add(number)
        if not faults.struck:
            break
        last_look = faults.log[number : number + 1] and faults.log[number].operation == "delete"
        if last_look and faults.log[number].path == PROPERTIES_FILE:
            continue
        found = load(storage, pause=no_pause).properties
        assert found["y"] == "other"
        assert found["x"] == "other" or number not in refused
        assert load(storage, pause=no_pause) == update(storage, {}), "the backup does not count"
    assert len(refused) >= 5


def test_an_update_that_lost_its_lock_changes_nothing():
    """Although nobody has changed the file: what the new entries name may be gone."""
    made = MemoryStorage()
    table_config.create(made, {"hoodie.table.name": "t"})
    before, lost = made.read(PROPERTIES_FILE), set()
    for number in range(1, 20):
        storage = made.copy_of()
        lock = InProcessLock(storage.uri)
        faults = Faults(Fault(STALL, number=number, after=True), stall=lock.release)
        try:
            with hold(lock):
                update(faults.wrap(storage), {METADATA_PARTITIONS: "files"})
        except LockError:
            lost.add(number)
            assert storage.read(PROPERTIES_FILE) == before
        if not faults.struck:
            break
        begun = any((c.operation, c.path) == ("delete", PROPERTIES_FILE) for c in faults.log[:number])
        assert begun == (number not in lost), "what was begun is ended"
        assert load(storage, pause=no_pause) == update(storage, {}), "the backup does not count"
    assert len(lost) >= 5


@pytest.mark.parametrize("steps", range(5))
def test_an_update_cut_off_at_any_step_leaves_the_old_or_the_new_configuration(storage, steps):
    faults = Faults(Fault(CRASH, operation=CHANGES, nth=steps + 1))
    with faults.process():
        update(faults.wrap(storage), {"x": "new"})
    assert faults.dead == (steps < 4)
    assert load(storage, pause=no_pause).properties.get("x") in (None, "new")
    update(storage, {"y": "later"})
    assert load(storage, pause=no_pause).properties["y"] == "later"
    assert storage.info(BACKUP_FILE) is None
