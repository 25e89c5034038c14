"""Options of writes: what they become, what is refused, what contradicts."""

import pickle

import pytest

from hudi_format.errors import ConflictingOptionError, InvalidOptionError
from hudi_timeline.options import WriteConfig, parse_write_options
from hudi_timeline.options.config_key import keys_of
from hudi_timeline.options.registry import declared_options, known_options
from hudi_timeline.options.unsupported import is_tuning

DEFAULTS = WriteConfig()
MODELS = "org.apache.hudi.common.model."


def test_no_options_give_apache_hudis_defaults_except_the_codec():
    config = parse_write_options({})
    assert config == DEFAULTS
    for attribute, key in keys_of(WriteConfig).items():
        option = known_options()[key]
        if getattr(DEFAULTS, attribute) not in (None, ()) and option.default is not None:
            assert option.type.parse(option.default) == getattr(DEFAULTS, attribute), attribute
    assert config.codec == "zstd"


def test_an_ordinary_script_is_understood():
    given = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "uuid, day",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "Bulk_Insert",
        "hoodie.datasource.write.table.type": "copy_on_write",
        "hoodie.datasource.write.hive_style_partitioning": "True",
        "hoodie.datasource.write.keygenerator.class": "ComplexKeyGenerator",
        "hoodie.datasource.write.payload.class": "com.uber.hoodie.common.model.DefaultHoodieRecordPayload",
        "hoodie.datasource.hive_sync.enable": "false",
        "hoodie.datasource.hive_sync.database": "default",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.bulkinsert.shuffle.parallelism": "4",
        "hoodie.parquet.compression.codec": "ZSTD",
        "parquet.compression.codec.zstd.level": "9",
        "_source": "kafka:7",
        "path": "/tmp/trips",
    }
    config = parse_write_options(given)
    assert config.table_name == "trips"
    assert config.record_key_fields == ("uuid", "day")
    assert config.partition_fields == ("city",)
    assert (config.ordering_field, config.ordering_given) == ("ts", True)
    assert (config.operation, config.operation_given) == ("bulk_insert", True)
    assert config.table_type == "COPY_ON_WRITE"
    assert config.hive_style is True
    assert config.url_encode is None
    assert config.keygen_class == "org.apache.hudi.keygen.ComplexKeyGenerator"
    assert config.payload_class == "org.apache.hudi" + ".common.model.DefaultHoodieRecordPayload"
    assert config.shuffle_parallelism == 4
    assert (config.codec, config.codec_level) == ("zstd", 9)
    assert config.extra_metadata == {"_source": "kafka:7"}
    assert (
        config.raw["hoodie.datasource.write.keygenerator.class"]
        == "org.apache.hudi.keygen.ComplexKeyGenerator"
    )
    assert pickle.loads(pickle.dumps(config)) == config


def test_sizes_rules_and_filters_are_numbers():
    config = parse_write_options({
        "hoodie.parquet.max.file.size": "1000",
        "hoodie.parquet.small.file.limit": "-1",
        "hoodie.record.size.estimation.threshold": "0.5",
        "hoodie.index.bloom.fpp": "1e-3",
        "hoodie.bloom.index.filter.type": "simple",
        "hoodie.client.heartbeat.interval_in_ms": "500",
        "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
        "hoodie.clean.failed.writes.policy": "lazy",
        "hoodie.write.tagged.record.storage.level": "MEMORY_AND_DISK_SER",
    })  # fmt: skip
    assert (config.max_file_bytes, config.small_file_limit_bytes) == (1000, -1)
    assert (config.record_size_threshold, config.bloom_fpp, config.bloom_type) == (0.5, 0.001, "SIMPLE")
    assert (config.transaction.heartbeat_interval_ms, config.transaction.failed_writes) == (500, "LAZY")
    assert (
        config.transaction.lock.provider
        == "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    )
    assert config.storage_level == "MEMORY_AND_DISK"


def test_given_empty_is_not_the_same_as_not_given():
    config = parse_write_options(
        {"hoodie.datasource.write.partitionpath.field": "", "hoodie.datasource.write.precombine.field": ""}
    )
    assert config.partition_fields == ()
    assert (config.ordering_field, config.ordering_given) == (None, True)
    assert (DEFAULTS.partition_fields, DEFAULTS.ordering_given) == (None, False)


def test_the_level_of_zstd_is_not_a_level_of_another_codec():
    config = parse_write_options(
        {"parquet.compression.codec.zstd.level": "19", "hoodie.parquet.compression.codec": "gzip"}
    )
    assert (config.codec, config.codec_level) == ("gzip", None)


@pytest.mark.parametrize("text", ["", "none", "UNCOMPRESSED"])
def test_no_compression_has_three_names(text):
    assert parse_write_options({"hoodie.parquet.compression.codec": text}).codec == "uncompressed"


def test_the_prefix_of_commit_metadata_can_be_chosen():
    config = parse_write_options({"hoodie.datasource.write.commitmeta.key.prefix": "job.", "job.run": "7"})
    assert config.extra_metadata == {"job.run": "7"}


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.partitions.to.delete": "a"},
        {"hoodie.static.overwrite.partition.paths": "a", "hoodie.datasource.write.operation": "upsert"},
        {
            "hoodie.datasource.write.insert.drop.duplicates": "true",
            "hoodie.datasource.write.operation": "bulk_insert",
        },
        {
            "hoodie.datasource.write.insert.drop.duplicates": "true",
            "hoodie.datasource.insert.dup.policy": "fail",
        },
        {"hoodie.bulkinsert.user.defined.partitioner.class": "RowCustomColumnsSortPartitioner"},
        {"hoodie.payload.delete.field": "op"},
        {"hoodie.payload.delete.marker": "D"},
        {
            "hoodie.payload.delete.field": "op",
            "hoodie.payload.delete.marker": "D",
            "hoodie.datasource.write.payload.class": MODELS + "OverwriteWithLatestAvroPayload",
        },
        {"hoodie.payload.ordering.field": "a", "hoodie.datasource.write.precombine.field": "b"},
        {
            "hoodie.datasource.write.keygenerator.class": "SimpleKeyGenerator",
            "hoodie.datasource.write.keygenerator.type": "COMPLEX",
        },
        {"hoodie.table.recordkey.fields": "a", "hoodie.datasource.write.recordkey.field": "b"},
    ],
)
def test_options_that_contradict_each_other_are_refused(options):
    with pytest.raises(ConflictingOptionError) as e:
        parse_write_options(options)
    assert "hoodie." in str(e.value)


def test_options_that_go_together_are_taken():
    config = parse_write_options({
        "hoodie.payload.delete.field": "op",
        "hoodie.payload.delete.marker": "D",
        "hoodie.payload.ordering.field": "ts",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "NonpartitionedKeyGenerator",
        "hoodie.datasource.write.keygenerator.type": "NON_PARTITION",
    })  # fmt: skip
    assert (config.delete_field, config.delete_marker) == ("op", "D")


def test_the_overwrite_mode_of_sql_changes_no_operation():
    options = {
        "hoodie.datasource.overwrite.mode": "static",
        "hoodie.datasource.write.operation": "insert_overwrite",
    }
    assert parse_write_options(options).operation == "insert_overwrite"


@pytest.mark.req("WR-07")
def test_dropping_duplicates_makes_an_upsert_an_insert():
    config = parse_write_options({"hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert (config.operation, config.duplicate_policy) == ("insert", "drop")


def test_partitions_to_delete_are_a_list():
    config = parse_write_options(
        {
            "hoodie.datasource.write.operation": "delete_partition",
            "hoodie.datasource.write.partitions.to.delete": "2024/01/*, 2024/02/01",
        }
    )
    assert config.partitions_to_delete == ("2024/01/*", "2024/02/01")


def test_an_empty_record_key_is_refused():
    with pytest.raises(InvalidOptionError, match="record key"):
        parse_write_options({"hoodie.datasource.write.recordkey.field": " , "})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, None),
        ({"hoodie.index.type": "bloom"}, "BLOOM"),
        ({"hoodie.index.class": "org.apache.hudi.index.bloom.HoodieGlobalBloomIndex"}, "GLOBAL_BLOOM"),
        (
            {
                "hoodie.index.class": "org.apache.hudi.index.simple.HoodieGlobalSimpleIndex",
                "hoodie.index.type": "GLOBAL_SIMPLE",
            },
            "GLOBAL_SIMPLE",
        ),
    ],
)
def test_the_index_is_named_by_type_or_class(given, kind):
    assert parse_write_options(given).index_type == kind


def test_two_indexes_contradict_each_other():
    with pytest.raises(ConflictingOptionError, match=r"hoodie\.index\.class"):
        parse_write_options(
            {
                "hoodie.index.type": "BLOOM",
                "hoodie.index.class": "org.apache.hudi.index.simple.HoodieSimpleIndex",
            }
        )


HEEDED_OF_INDEXES = {
    "hoodie.bloom.index.prune.by.ranges": ("bloom_prune_by_ranges", "false", False),
    "hoodie.bloom.index.update.partition.path": ("bloom_update_partition", "false", False),
    "hoodie.simple.index.update.partition.path": ("simple_update_partition", "false", False),
    "hoodie.bloom.index.filter.type": ("bloom_type", "SIMPLE", "SIMPLE"),
    "hoodie.bloom.index.filter.dynamic.max.entries": ("bloom_max_entries", "7", 7),
    "hudi.index.allow.switch": ("index_switch", "true", True),
    "hoodie.bucket.index.num.buckets": ("num_buckets", "8", 8),
    "hoodie.bucket.index.hash.field": ("hash_fields", "a, b", ("a", "b")),
}
# They say how Apache Hudi spreads and keeps the work of a look-up; the answer is the same.
TUNING_OF_INDEXES = {
    "hoodie.bloom.index.parallelism": "8",
    "hoodie.bloom.index.use.caching": "false",
    "hoodie.bloom.index.use.treebased.filter": "false",
    "hoodie.bloom.index.bucketized.checking": "false",
    "hoodie.bloom.index.keys.per.bucket": "100",
    "hoodie.bloom.index.input.storage.level": "DISK_ONLY",
    "hoodie.bloom.index.fileid.key.sorting.enable": "true",
    "hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism": "true",
    "hoodie.simple.index.parallelism": "8",
    "hoodie.simple.index.use.caching": "false",
    "hoodie.simple.index.input.storage.level": "DISK_ONLY",
    "hoodie.global.simple.index.parallelism": "8",
    "hoodie.global.index.reconcile.parallelism": "8",
}


@pytest.mark.req("IX-16", "IX-18")
@pytest.mark.parametrize("key", HEEDED_OF_INDEXES)
def test_options_of_the_indexes_are_heeded(key):
    name, text, value = HEEDED_OF_INDEXES[key]
    assert declared_options()[key].doc
    assert getattr(parse_write_options({key: text}), name) == value


BUCKET = {"hoodie.index.type": "BUCKET"}
LAYOUT = {
    "hoodie.storage.layout.type": "BUCKET",
    "hoodie.storage.layout.partitioner.class": "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner",
}


@pytest.mark.req("IX-25")
@pytest.mark.parametrize(
    "options",
    [
        {**BUCKET, **LAYOUT, "hoodie.bucket.index.num.buckets": "8", "hoodie.index.bucket.engine": "simple"},
        {"hoodie.index.type": "BUCKET_HASH_INDEX", "hoodie.hash.index.bucket.num": "8"},
        {
            "hoodie.index.class": "org.apache.hudi.index.bucket.HoodieSimpleBucketIndex",
            "hoodie.bucket.index.num.buckets": "8",
        },
    ],
)
def test_the_bucket_index_is_known_by_all_its_names(options):
    config = parse_write_options({**options, "hoodie.datasource.write.indexkey.field": "id"})
    assert (config.index_type, config.num_buckets, config.hash_fields) == ("BUCKET", 8, ("id",))


@pytest.mark.parametrize(
    "options",
    [
        {**BUCKET, "hoodie.storage.layout.type": "DEFAULT"},
        {"hoodie.storage.layout.type": "BUCKET"},
        {"hoodie.index.type": "SIMPLE", **LAYOUT},
        {"hoodie.storage.layout.partitioner.class": LAYOUT["hoodie.storage.layout.partitioner.class"]},
        {"hoodie.index.type": "BLOOM", "hoodie.bucket.index.num.buckets": "8"},
        {"hoodie.index.type": "SIMPLE", "hoodie.bucket.index.hash.field": "id"},
        {**BUCKET, "hoodie.index.class": "org.apache.hudi.index.simple.HoodieSimpleIndex"},
        {
            **BUCKET,
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "a",
            "hoodie.bulkinsert.user.defined.partitioner.class": "org.apache.hudi.execution.bulkinsert."
            "RowCustomColumnsSortPartitioner",
        },
    ],
)
def test_options_that_contradict_the_bucket_index_are_refused(options):
    with pytest.raises(ConflictingOptionError):
        parse_write_options(options)


@pytest.mark.parametrize("number", ["0", "-1", "100000000", "4.5", ""])
def test_a_number_of_buckets_that_file_ids_cannot_hold_is_refused(number):
    with pytest.raises(InvalidOptionError):
        parse_write_options({**BUCKET, "hoodie.bucket.index.num.buckets": number})


@pytest.mark.parametrize("key", TUNING_OF_INDEXES)
def test_tuning_of_the_indexes_is_accepted_without_effect(key):
    assert is_tuning(key)
    parse_write_options({key: TUNING_OF_INDEXES[key]})
