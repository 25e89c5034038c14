"""Creation of tables: which options the table says, and which stay with the object that `create` returns."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import ConflictingOptionError, LockError, MissingColumnError
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.concurrency.locks.file_system import FileSystemLock

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
ROWS = [{"id": f"k{n}", "p": "a", "ts": 1, "n": n} for n in range(4)]
WRITE = "hoodie.datasource.write."
NUMBER, INDEX = "hoodie.bucket.index.num.buckets", "hoodie.index.type"
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "1",
    "hoodie.write.lock.num_retries": "0",
    "hoodie.write.lock.client.num_retries": "0",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}


def create(path, options=None, **more):
    how = {"record_keys": ["id"], "partition_fields": ["p"], **more}
    return HudiTable.create(str(path), SCHEMA, options=options, **how)


def create_again(path, options=None, **more):
    create(path, **more)
    return create(path, options, exist_ok=True, **more)


both = pytest.mark.parametrize("made", [create, create_again])


def commits(table):
    return HudiTable.open(table.uri).timeline.completed_writes()


@pytest.mark.req("CC-09")
@both
@pytest.mark.parametrize("write", ["insert", "upsert", "bulk_insert", "delete"])
def test_the_lock_that_create_was_given_is_taken_by_each_write(tmp_path, made, write):
    table = made(tmp_path / "t", OCC)
    table.insert(ROWS)
    rival = FileSystemLock(table.storage)
    assert rival.try_acquire()
    with pytest.raises(LockError):
        getattr(table, write)(ROWS)
    assert len(commits(table)) == 1
    rival.release()
    getattr(table, write)(ROWS)
    assert len(commits(table)) == 2


def codecs(table):
    files = [f["path"] for f in table.inspect.files().to_pylist() if f["path"].endswith(".parquet")]
    return {pq.read_metadata(table.storage.uri + "/" + f).row_group(0).column(0).compression for f in files}


def extra(table, key):
    newest = table.timeline.completed_writes()[-1]
    return table._commits.get(newest).extra.get(key)


EFFECTS = {
    "a metadata table": (
        {"hoodie.metadata.enable": "true"},
        lambda t: t.storage.info(".hoodie/metadata/.hoodie/hoodie.properties") is not None,
    ),
    "a codec": ({"hoodie.parquet.compression.codec": "gzip"}, lambda t: codecs(t) == {"GZIP"}),
    "a commit's own entries": ({"_why": "a test"}, lambda t: extra(t, "_why") == "a test"),
    "small files": (
        {"hoodie.parquet.small.file.limit": "0"},
        lambda t: t.insert([{**ROWS[0], "id": "x"}]).write_stats[0].prev_commit == "null",
    ),
}


@both
@pytest.mark.parametrize("effect", EFFECTS)
def test_options_that_the_table_does_not_say_hold_for_the_calls_of_the_object(tmp_path, made, effect):
    options, seen = EFFECTS[effect]
    for given, wanted in ((options, True), ({}, False)):
        table = made(tmp_path / str(wanted), given)
        table.insert(ROWS)
        assert seen(table) is wanted
        assert table._options == given  # as `open(options=)` has them


STORED = {
    "names": {"hoodie.table.name": "t", "hoodie.database.name": "d"},
    "a type by another name": {"hoodie.table.type": "merge_on_read"},
    "keys": {WRITE + "recordkey.field": "id", WRITE + "precombine.field": "ts"},
    "keys by other names": {"hoodie.table.recordkey.fields": "id", "hoodie.table.ordering.fields": "ts"},
    "an ordering field of the payload": {"hoodie.payload.ordering.field": "ts"},
    "a key generator by its type": {WRITE + "keygenerator.type": "complex"},
    "paths": {WRITE + "hive_style_partitioning": "TRUE", WRITE + "partitionpath.urlencode": "false"},
    "a payload": {WRITE + "payload.class": "DefaultHoodieRecordPayload"},
    "expressions": {"hudi.merge": '{"n": "sum"}'},
    "change data capture": {"hoodie.table.cdc.enabled": "true"},
    "virtual keys": {"hoodie.populate.meta.fields": "false"},
    "a version": {"hoodie.table.version": "6"},
    "a global index": {INDEX: "GLOBAL_RECORD_LEVEL_INDEX"},
    "a global index by its class": {
        "hoodie.index.class": "org.apache.hudi.index.bloom.HoodieGlobalBloomIndex"
    },
    "buckets": {
        INDEX: "BUCKET_HASH_INDEX", NUMBER: "2", "hoodie.index.bucket.engine": "simple",
        "hoodie.bucket.index.hash.field": "id",
    },
}  # fmt: skip


@pytest.mark.parametrize("what", STORED)
def test_what_the_table_says_is_read_from_it(tmp_path, what):
    lasting = {"hoodie.parquet.small.file.limit": "7"}
    table = create(tmp_path / "t", {**STORED[what], **lasting})
    assert table._options == lasting
    opened = HudiTable.create(
        table.uri, SCHEMA, record_keys=["id"], partition_fields=["p"], exist_ok=True,
        options={**STORED[what], **lasting},
    )  # fmt: skip
    assert opened._options == lasting
    for each in (table, opened):
        each.upsert(ROWS)
    assert HudiTable.open(table.uri).read().to_arrow().num_rows == len(ROWS)


@pytest.mark.parametrize("opened", [False, True])
def test_a_number_of_buckets_that_changed_since_is_the_table_s_and_another_one_is_refused(tmp_path, opened):
    buckets = {INDEX: "BUCKET", NUMBER: "2"}
    table = create(tmp_path / "t", buckets)
    if opened:
        table = create(tmp_path / "t", buckets, exist_ok=True)
    table.insert(ROWS)
    table.resize_buckets(4)
    table.upsert(ROWS)
    assert table.config.properties[NUMBER] == "4"
    late = create(tmp_path / "t", buckets, exist_ok=True)
    with pytest.raises(ConflictingOptionError, match=f"{NUMBER} is 2"):
        late.upsert(ROWS)


@pytest.mark.req("KG-03")
def test_options_of_keys_that_are_to_be_given_with_every_write_are(tmp_path):
    custom = {
        WRITE + "keygenerator.class": "CustomKeyGenerator", WRITE + "partitionpath.field": "ts:TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }  # fmt: skip
    table = create(tmp_path / "t", custom, partition_fields="ts")
    table.insert(ROWS)
    assert table.inspect.partitions().column("partition").to_pylist() == ["1970"]


ORDERED = ({WRITE + "precombine.field": "ts"}, {"hoodie.payload.ordering.field": "ts"}, None)


@pytest.mark.parametrize("options", ORDERED)
def test_an_ordering_field_among_the_options_is_the_table_s(tmp_path, options):
    more = {} if options else {"ordering_fields": "ts"}
    table = create(tmp_path / "t", options, **more)
    assert table.config.ordering_field == "ts"
    table.upsert([{**ROWS[0], "ts": 5, "n": 50}, {**ROWS[0], "ts": 4, "n": 40}])
    assert table.read(["n"]).to_arrow().to_pylist() == [{"n": 50}]
    with pytest.raises(MissingColumnError, match="nowhere"):
        create(tmp_path / "u", {WRITE + "precombine.field": "nowhere"})


TWICE = [
    ({"record_keys": ["id"]}, {WRITE + "recordkey.field": "n"}),
    ({"record_keys": ["id"]}, {"hoodie.table.recordkey.fields": "id,n"}),
    ({"partition_fields": ["p"]}, {WRITE + "partitionpath.field": ""}),
    ({"partition_fields": ["p"]}, {"hoodie.table.partition.fields": "n"}),
    ({"ordering_fields": "ts"}, {WRITE + "precombine.field": "n"}),
    ({"name": "t"}, {"hoodie.table.name": "u"}),
    ({"name": "t"}, {WRITE + "table.name": "u"}),
    ({"table_type": "MERGE_ON_READ"}, {"hoodie.table.type": "COPY_ON_WRITE"}),
]
OF_ONE_CALL = {"record_keys": "key", "partition_fields": "partition_by", "ordering_fields": "ordering"}


@pytest.mark.parametrize(("arguments", "options"), TWICE)
def test_what_is_given_twice_is_the_same_or_refused(tmp_path, arguments, options):
    option = next(iter(options))
    with pytest.raises(ConflictingOptionError, match=f"{option} is given as an argument") as e:
        create(tmp_path / "t", options, **arguments)
    assert e.value.details["option"] == option
    named = {OF_ONE_CALL.get(k, k): v for k, v in arguments.items()}
    with pytest.raises(ConflictingOptionError, match=f"{option} is given as an argument"):
        write_hudi(tmp_path / "t", ROWS, options=options, **{"key": "id", **named})
    assert list(tmp_path.iterdir()) == []
    same = {k: ",".join(v) if isinstance(v, list) else v for k, v in arguments.items()}
    create(tmp_path / "t", {option: next(iter(same.values()))}, **arguments)


def test_the_operation_is_given_once(tmp_path):
    operation = {WRITE + "operation": "upsert"}
    with pytest.raises(ConflictingOptionError, match="operation"):
        write_hudi(tmp_path / "t", ROWS, key="id", operation="insert", options=operation)
    write_hudi(tmp_path / "t", ROWS, key="id", options={k.upper(): v for k, v in operation.items()})
    assert write_hudi(tmp_path / "t", ROWS, options=operation).updated == len(ROWS)


def test_options_of_a_new_table_count_by_each_of_their_names(tmp_path):
    keys, name = {"hoodie.table.recordkey.fields": "id"}, {WRITE + "table.name": "mine"}
    write_hudi(tmp_path / "t", ROWS, options={**keys, **name})
    assert write_hudi(tmp_path / "t", ROWS, options=keys).updated == len(ROWS)
    assert HudiTable.open(tmp_path / "t").name == "mine"
    assert create(tmp_path / "u", name).name == "mine"
    with pytest.raises(ConflictingOptionError, match="mine"):
        create(tmp_path / "u", {"hoodie.table.name": "yours"}, exist_ok=True)
