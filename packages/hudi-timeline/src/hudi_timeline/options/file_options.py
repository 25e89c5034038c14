"""Options of base files, their sizes and bloom filters, of log files, and of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudi_timeline.options.config_key import (
    ConfigKey,
    Unsupported,
    given_value,
    given_values,
    other_than,
    value_of,
)
from hudi_timeline.options.option_types import BOOLEAN, BYTES, FIELDS, STRIPPED, choice, number, whole

if TYPE_CHECKING:
    from hudi_format.parquet.layout import ParquetConfig
    from hudi_index.bloom.key_observer import BloomSettings

# The classes behind `hoodie.index.type`, which `hoodie.index.class` may name instead.
INDEX_CLASSES = {
    "org.apache.hudi.index.simple.HoodieSimpleIndex": "SIMPLE",
    "org.apache.hudi.index.simple.HoodieGlobalSimpleIndex": "GLOBAL_SIMPLE",
    "org.apache.hudi.index.bloom.HoodieBloomIndex": "BLOOM",
    "org.apache.hudi.index.bloom.HoodieGlobalBloomIndex": "GLOBAL_BLOOM",
    "org.apache.hudi.index.bucket.HoodieSimpleBucketIndex": "BUCKET",
    "org.apache.hudi.index.SparkMetadataTableRecordIndex": "RECORD_INDEX",
    "org.apache.hudi.index.inmemory.HoodieInMemoryHashIndex": "INMEMORY",
}
# Apache Hudi 1.1's name of RECORD_INDEX.
RECORD_INDEX, GLOBAL_RECORD_LEVEL_INDEX = "RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"
# RFC-29's name of BUCKET.
BUCKET_HASH_INDEX = "BUCKET_HASH_INDEX"
SIMPLE_BUCKETS, CONSISTENT_HASHING, EXTENDIBLE_HASHING = "SIMPLE", "CONSISTENT_HASHING", "EXTENDIBLE_HASHING"
BUCKET_PARTITIONER = "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner"


def is_unknown_java_class(value: object) -> bool:
    """Whether a value names a class of Java that is none of the known ones."""
    text = str(value or "")
    return text not in INDEX_CLASSES and ":" not in text and "." in text


# What belongs together of a declaration stands in one line.
# fmt: off
INDEX_TYPE = ConfigKey(
    "hoodie.index.type",
    choice(
        "SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET", RECORD_INDEX, GLOBAL_RECORD_LEVEL_INDEX,
        "RECORD_LEVEL_INDEX", "INMEMORY", "HBASE", "FLINK_STATE", BUCKET_HASH_INDEX,
        same_as={BUCKET_HASH_INDEX: "BUCKET", GLOBAL_RECORD_LEVEL_INDEX: RECORD_INDEX},
    ),
    doc=(
        "How the file of an incoming key is found: by reading keys (SIMPLE), or after a look at key ranges and bloom "
        "filters (BLOOM); within partitions, or in all of them (GLOBAL_...); by the metadata table's record index "
        "(RECORD_INDEX, over all partitions; also GLOBAL_RECORD_LEVEL_INDEX); as SIMPLE, with keys of files that were "
        "read before kept in the process (INMEMORY); or by a hash of the key (BUCKET, also "
        "BUCKET_HASH_INDEX). SIMPLE if not given, or the global or bucket index that the table remembers."
    ),
    unsupported=Unsupported(
        other_than(*INDEX_CLASSES.values()), "another index",
        f"set it to one of {', '.join(INDEX_CLASSES.values())}, or leave it out; instead of HBASE, a store of keys "
        "outside of the table is hoodie.index.class=sqlite, or a class of your own"
    )
)
INDEX_CLASS = ConfigKey(
    "hoodie.index.class", STRIPPED,
    doc=(
        "The index by its class: Apache Hudi's name of one of those above; or an index of one's own, by the entry "
        "point of an installed package (`sqlite` comes with hudi-index) or as module:Class, a subclass of "
        "hudi_index.CustomIndex. Its arguments are the options below `hudi.index.argument.`. A table remembers that "
        "it has one, and each writer names it."
    ),
    unsupported=Unsupported(
        is_unknown_java_class, "an index class of Apache Hudi",
        f"set hoodie.index.type to one of {', '.join(INDEX_CLASSES.values())}; for a store of keys outside of the "
        "table, as HBase is, set hoodie.index.class=sqlite or a class of your own"
    )
)
INDEX_ARGUMENTS = "hudi.index.argument."
INDEX_SWITCH = ConfigKey(
    "hudi.index.allow.switch", BOOLEAN, "false", since="0.1.0",
    doc="An index within partitions may follow a global one."
)
BUCKET_ENGINE = ConfigKey(
    "hoodie.index.bucket.engine", choice(SIMPLE_BUCKETS, CONSISTENT_HASHING, EXTENDIBLE_HASHING), SIMPLE_BUCKETS,
    since="0.11.0",
    doc=(
        "Kind of BUCKET: the same number of buckets in each partition (SIMPLE); a ring of buckets of each, of which "
        "full ones are split (CONSISTENT_HASHING, merge-on-read tables only); or SIMPLE whose full buckets are split "
        "(EXTENDIBLE_HASHING, which Apache Hudi reads and does not write). The table keeps that of its first write, "
        "until a resize."
    )
)
NUM_BUCKETS = ConfigKey(
    "hoodie.bucket.index.num.buckets", whole(1, 99_999_999, unit="buckets"), "256",
    doc=(
        "Buckets, and so file groups, of each partition with BUCKET; the table keeps the number of its first write, "
        "and another one is refused. With CONSISTENT_HASHING that of a new partition. The default counts for new "
        "tables only."
    ),
    alternatives=("hoodie.hash.index.bucket.num",)
)
HASH_FIELDS = ConfigKey(
    "hoodie.bucket.index.hash.field", FIELDS,
    doc="Record key fields that BUCKET hashes, all of them if not given; the table keeps them.",
    alternatives=("hoodie.datasource.write.indexkey.field",)
)
LAYOUT_TYPE = ConfigKey(
    "hoodie.storage.layout.type", choice("DEFAULT", "BUCKET"),
    doc="BUCKET goes with the index BUCKET, and follows from it."
)
LAYOUT_PARTITIONER = ConfigKey(
    "hoodie.storage.layout.partitioner.class", STRIPPED, doc="Apache Hudi's class goes with the layout BUCKET.",
    unsupported=Unsupported(other_than(BUCKET_PARTITIONER), "a layout partitioner", "leave it out")
)
BLOOM_PRUNE_BY_RANGES = ConfigKey(
    "hoodie.bloom.index.prune.by.ranges", BOOLEAN, "true",
    doc="BLOOM leaves out files whose key range does not hold a key."
)
BLOOM_USE_METADATA = ConfigKey(
    "hoodie.bloom.index.use.metadata", BOOLEAN, "false", since="0.11.0",
    doc=(
        "BLOOM takes key ranges and bloom filters from the metadata table's column_stats and bloom_filters, where it "
        "has them, not from the files."
    )
)
BLOOM_UPDATE_PARTITION = ConfigKey(
    "hoodie.bloom.index.update.partition.path", BOOLEAN, "true",
    doc="GLOBAL_BLOOM moves a record whose partition changed; else it is updated where it is."
)
SIMPLE_UPDATE_PARTITION = ConfigKey(
    "hoodie.simple.index.update.partition.path", BOOLEAN, "true",
    doc="GLOBAL_SIMPLE moves a record whose partition changed; else it is updated where it is."
)
RECORD_UPDATE_PARTITION = ConfigKey(
    "hoodie.record.index.update.partition.path", BOOLEAN, "false", since="0.14.0",
    doc="RECORD_INDEX, or an index of one's own, moves a record whose partition changed; else it stays where it is."
)
CODEC = ConfigKey(
    "hoodie.parquet.compression.codec",
    choice(
        "gzip", "snappy", "zstd", "lz4", "lz4_raw", "brotli", "lzo", "uncompressed", "none", "",
        same_as={"none": "uncompressed", "": "uncompressed"},
    ),
    "zstd",
    doc="Compression of base files. zstd here, gzip in Apache Hudi.",
    unsupported=Unsupported(
        lambda v: v in ("brotli", "lzo"), "a Parquet codec", "use zstd, gzip, snappy, lz4 or uncompressed"
    )
)
ZSTD_LEVEL = ConfigKey("parquet.compression.codec.zstd.level", whole(-7, 22), doc="Compression level of zstd.")
PARQUET_BLOCK_BYTES = ConfigKey("hoodie.parquet.block.size", BYTES, "125829120", doc="Size of a row group.")
PARQUET_PAGE_BYTES = ConfigKey("hoodie.parquet.page.size", BYTES, "1048576", doc="Size of a page.")
PARQUET_MAX_FILE_BYTES = ConfigKey(
    "hoodie.parquet.max.file.size", BYTES, "125829120", doc="Size at which a base file ends and the next begins."
)
PARQUET_DICTIONARY = ConfigKey(
    "hoodie.parquet.dictionary.enabled", BOOLEAN, "true", doc="Columns are dictionary-encoded while that pays."
)
SMALL_FILE_LIMIT_BYTES = ConfigKey(
    "hoodie.parquet.small.file.limit", whole(unit="bytes (0 or less: no file takes new records)"), "104857600",
    doc="Base files below it take new records; 0: new records go to new files."
)
RECORD_SIZE_ESTIMATE = ConfigKey(
    "hoodie.copyonwrite.record.size.estimate", whole(1, unit="bytes"), "1024",
    doc="Size of a record until a commit tells a better one."
)
RECORD_SIZE_THRESHOLD = ConfigKey(
    "hoodie.record.size.estimation.threshold", number(0), "1.0",
    doc="Share of the small-file limit that a commit must have written for its record size to count."
)
INSERT_SPLIT_SIZE = ConfigKey(
    "hoodie.copyonwrite.insert.split.size", whole(1, unit="records"), "500000",
    doc="New records of a file group when auto split is off."
)
INSERT_AUTO_SPLIT = ConfigKey(
    "hoodie.copyonwrite.insert.auto.split", BOOLEAN, "true",
    doc="New records of a file group follow from the record size."
)
BLOOM_ENABLED = ConfigKey(
    "hoodie.parquet.bloom.filter.enabled", BOOLEAN, "true", since="0.15.0",
    doc="Base files carry a bloom filter of their keys."
)
BLOOM_TYPE = ConfigKey(
    "hoodie.bloom.index.filter.type", choice("SIMPLE", "DYNAMIC_V0"), "DYNAMIC_V0",
    doc="Bloom filter of one size, or one that grows."
)
BLOOM_ENTRIES = ConfigKey(
    "hoodie.index.bloom.num_entries", whole(1, 2**31 - 1, unit="keys"), "60000",
    doc=(
        "Keys that a bloom filter is made for, at first. Not given: 60000, and in a file of fewer keys their number, "
        "so that small files stay small."
    )
)
BLOOM_FPP = ConfigKey(
    "hoodie.index.bloom.fpp", number(above=0, below=1), "0.000000001", doc="False positive rate of a bloom filter."
)
BLOOM_MAX_ENTRIES = ConfigKey(
    "hoodie.bloom.index.filter.dynamic.max.entries", whole(1, 2**31 - 1, unit="keys"), "100000",
    doc="Keys up to which a dynamic bloom filter grows."
)
LOG_BLOCK_FORMAT = ConfigKey(
    "hoodie.logfile.data.block.format", choice("avro", "parquet", "hfile", ""),
    doc="Type of the data blocks of log files; Avro if not given."
)
LOG_BLOCK_BYTES = ConfigKey(
    "hoodie.logfile.data.block.max.size", BYTES, "268435456", doc="Size at which a data block ends and the next begins."
)
LOG_FILE_BYTES = ConfigKey(
    "hoodie.logfile.max.size", BYTES, "1073741824",
    doc="Size at which a log file ends and one of the next version begins."
)
LOG_SHARE = ConfigKey(
    "hoodie.logfile.to.parquet.compression.ratio", number(0), "0.35",
    doc=(
        "What a byte of log files counts for where new rows fill file groups that have some. They fill none here, nor "
        "in Apache Hudi with any index that this project has: only HBase's and Flink's look keys up in logs. So it "
        "changes nothing in either."
    )
)
SMALL_GROUP_CANDIDATES = ConfigKey(
    "hoodie.merge.small.file.group.candidates.limit", whole(0, unit="file groups"), "1",
    doc="File groups of a partition that a write to a merge-on-read table rewrites to put new records into them."
)


@dataclass(frozen=True)
class FileConfig:
    """Options of the files that are written: base files, their bloom filters, log blocks.

    Attributes:
        codec_level: of zstd only.
    """

    codec: str = value_of(CODEC)
    codec_level: int | None = None
    row_group_bytes: int = value_of(PARQUET_BLOCK_BYTES)
    page_bytes: int = value_of(PARQUET_PAGE_BYTES)
    max_file_bytes: int = value_of(PARQUET_MAX_FILE_BYTES)
    dictionary: bool = value_of(PARQUET_DICTIONARY)
    log_block_format: str | None = given_value(LOG_BLOCK_FORMAT)
    log_block_bytes: int = value_of(LOG_BLOCK_BYTES)
    bloom_enabled: bool = value_of(BLOOM_ENABLED)
    bloom_type: str = value_of(BLOOM_TYPE)
    bloom_entries: int | None = given_value(BLOOM_ENTRIES)
    bloom_fpp: float = value_of(BLOOM_FPP)
    bloom_max_entries: int = value_of(BLOOM_MAX_ENTRIES)

    @property
    def parquet(self) -> ParquetConfig:
        """Layout of new base files."""
        from hudi_format.parquet.layout import ParquetConfig

        return ParquetConfig(
            codec=self.codec,
            level=self.codec_level,
            row_group_bytes=self.row_group_bytes,
            page_bytes=self.page_bytes,
            max_file_bytes=self.max_file_bytes,
            dictionary=self.dictionary,
        )

    @property
    def bloom(self) -> BloomSettings:
        """Settings of their bloom filters, for where they have some."""
        from hudi_index.bloom.key_observer import BloomSettings

        return BloomSettings.of(self.bloom_type, self.bloom_entries, self.bloom_fpp, self.bloom_max_entries)


def given_file_values(config: type[FileConfig], parsed: Mapping[str, object]) -> dict[str, Any]:
    """Values of `given_values`, with the level of zstd, which other codecs do not have."""
    values = given_values(config, parsed)
    if values.get("codec", CODEC.value) == "zstd":
        values["codec_level"] = parsed.get(ZSTD_LEVEL)
    return values
