# ruff: noqa: E501 -- a line is an option
"""Options of writers, readers, tables, key generators, files and indexes.

A line is: name, default of Apache Hudi 0.15 (- for none), other names of the same option.
Source: the configuration classes of Apache Hudi 0.15.0, compared with 1.1.1.
"""

TEXT = """\
# Spark datasource write
hoodie.clustering.async.enabled false hoodie.datasource.clustering.async.enable
hoodie.clustering.inline false hoodie.datasource.clustering.inline.enable
hoodie.datasource.compaction.async.enable true
hoodie.datasource.hive_sync.assume_date_partitioning false
hoodie.datasource.hive_sync.auto_create_database true
hoodie.datasource.hive_sync.base_file_format PARQUET
hoodie.datasource.hive_sync.batch_num 1000
hoodie.datasource.hive_sync.bucket_sync false
hoodie.datasource.hive_sync.create_managed_table false
hoodie.datasource.hive_sync.database default
hoodie.datasource.hive_sync.enable false
hoodie.datasource.hive_sync.ignore_exceptions false
hoodie.datasource.hive_sync.jdbcurl jdbc:hive2://localhost:10000
hoodie.datasource.hive_sync.metastore.uris thrift://localhost:9083
hoodie.datasource.hive_sync.mode -
hoodie.datasource.hive_sync.partition_extractor_class org.apache.hudi.hive.MultiPartKeysValueExtractor
hoodie.datasource.hive_sync.partition_fields -
hoodie.datasource.hive_sync.password hive
hoodie.datasource.hive_sync.serde_properties -
hoodie.datasource.hive_sync.skip_ro_suffix false
hoodie.datasource.hive_sync.support_timestamp false
hoodie.datasource.hive_sync.sync_as_datasource true
hoodie.datasource.hive_sync.sync_comment false
hoodie.datasource.hive_sync.table unknown
hoodie.datasource.hive_sync.table_properties -
hoodie.datasource.hive_sync.use_jdbc true
hoodie.datasource.hive_sync.use_pre_apache_input_format false
hoodie.datasource.hive_sync.username hive
hoodie.datasource.insert.dup.policy none
hoodie.datasource.meta.sync.enable false
hoodie.datasource.meta_sync.condition.sync false
hoodie.datasource.overwrite.mode -
hoodie.datasource.write.commitmeta.key.prefix _
hoodie.datasource.write.drop.partition.columns false
hoodie.datasource.write.hive_style_partitioning false
hoodie.datasource.write.insert.drop.duplicates false
hoodie.datasource.write.keygenerator.class org.apache.hudi.keygen.SimpleKeyGenerator
hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled false
hoodie.datasource.write.operation upsert
hoodie.datasource.write.partitionpath.field -
hoodie.datasource.write.partitionpath.urlencode false
hoodie.datasource.write.partitions.to.delete -
hoodie.datasource.write.payload.class org.apache.hudi.common.model.OverwriteWithLatestAvroPayload
hoodie.datasource.write.precombine.field ts
hoodie.datasource.write.reconcile.schema false
hoodie.datasource.write.record.merger.impls org.apache.hudi.common.model.HoodieAvroRecordMerger hoodie.write.record.merge.custom.implementation.classes
hoodie.datasource.write.record.merger.strategy eeb8d96f-b1e4-49fd-bbf8-28ac514178e5 hoodie.write.record.merge.strategy.id
hoodie.datasource.write.recordkey.field -
hoodie.datasource.write.row.writer.enable true
hoodie.datasource.write.streaming.checkpoint.identifier default_single_writer
hoodie.datasource.write.streaming.disable.compaction false
hoodie.datasource.write.streaming.ignore.failed.batch false
hoodie.datasource.write.streaming.retry.count 3
hoodie.datasource.write.streaming.retry.interval.ms 2000
hoodie.datasource.write.table.name -
hoodie.datasource.write.table.type COPY_ON_WRITE hoodie.datasource.write.storage.type
hoodie.meta.sync.client.tool.class org.apache.hudi.hive.HiveSyncTool
hoodie.spark.sql.insert.into.operation insert
hoodie.spark.sql.optimized.writes.enable true
hoodie.sql.bulk.insert.enable false
hoodie.sql.insert.mode upsert
hoodie.streamer.source.kafka.value.deserializer.class io.confluent.kafka.serializers.KafkaAvroDeserializer hoodie.deltastreamer.source.kafka.value.deserializer.class
hoodie.write.set.null.for.missing.columns false
# Spark datasource read
as.of.instant -
hoodie.datasource.merge.type payload_combine
hoodie.datasource.query.incremental.format latest_state
hoodie.datasource.query.type snapshot hoodie.datasource.view.type
hoodie.datasource.read.begin.instanttime -
hoodie.datasource.read.end.instanttime -
hoodie.datasource.read.extract.partition.values.from.path false
hoodie.datasource.read.file.index.listing.mode lazy
hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled true
hoodie.datasource.read.incr.fallback.fulltablescan.enable false
hoodie.datasource.read.incr.filters -
hoodie.datasource.read.incr.path.glob -
hoodie.datasource.read.paths -
hoodie.datasource.read.schema.use.end.instanttime false
hoodie.datasource.read.use.new.parquet.file.format false
hoodie.datasource.streaming.startOffset earliest
hoodie.enable.data.skipping false
hoodie.file.index.enable true
hoodie.read.timeline.holes.resolution.policy FAIL
hoodie.schema.on.read.enable false
# Write client
_.hoodie.allow.multi.write.on.same.instant false
hoodie.allow.empty.commit true
hoodie.allow.operation.metadata.field false
hoodie.auto.adjust.lock.configs false
hoodie.auto.commit true
hoodie.avro.schema -
hoodie.avro.schema.external.transformation false hoodie.avro.schema.externalTransformation
hoodie.avro.schema.validate false
hoodie.base.path -
hoodie.bulkinsert.shuffle.parallelism 0
hoodie.bulkinsert.sort.mode NONE
hoodie.bulkinsert.user.defined.partitioner.class -
hoodie.bulkinsert.user.defined.partitioner.sort.columns -
hoodie.client.heartbeat.interval_in_ms 60000
hoodie.client.heartbeat.tolerable.misses 2
hoodie.client.init.callback.classes -
hoodie.combine.before.delete true
hoodie.combine.before.insert false
hoodie.combine.before.upsert true
hoodie.consistency.check.initial_interval_ms 2000
hoodie.consistency.check.max_checks 7
hoodie.consistency.check.max_interval_ms 300000
hoodie.datasource.write.keygenerator.type SIMPLE
hoodie.datasource.write.schema.allow.auto.evolution.column.drop false
hoodie.delete.shuffle.parallelism 0
hoodie.embed.timeline.server true
hoodie.embed.timeline.server.async false
hoodie.embed.timeline.server.gzip true
hoodie.embed.timeline.server.port 0
hoodie.embed.timeline.server.reuse.enabled false
hoodie.embed.timeline.server.threads -1
hoodie.fail.on.timeline.archiving true
hoodie.fail.writes.on.inline.table.service.exception true
hoodie.fileid.prefix.provider.class org.apache.hudi.table.RandomFileIdPrefixProvider
hoodie.finalize.write.parallelism 200
hoodie.insert.shuffle.parallelism 0
hoodie.internal.schema -
hoodie.markers.delete.parallelism 100
hoodie.markers.timeline_server_based.batch.interval_ms 50
hoodie.markers.timeline_server_based.batch.num_threads 20
hoodie.merge.allow.duplicate.on.inserts true
hoodie.merge.data.validation.enabled false
hoodie.merge.small.file.group.candidates.limit 1
hoodie.release.resource.on.completion.enable true
hoodie.rollback.instant.backup.dir .rollback_backup
hoodie.rollback.instant.backup.enabled false
hoodie.rollback.parallelism 100
hoodie.rollback.using.markers true
hoodie.schema.cache.enable false
hoodie.sensitive.config.keys ssl,tls,sasl,auth,credentials
hoodie.skip.default.partition.validation false
hoodie.table.base.file.format PARQUET hoodie.table.ro.file.format
hoodie.table.name -
hoodie.table.services.enabled true
hoodie.timeline.layout.version 1
hoodie.upsert.shuffle.parallelism 0
hoodie.write.buffer.limit.bytes 4194304
hoodie.write.buffer.record.cache.limit 131072
hoodie.write.buffer.record.sampling.rate 64
hoodie.write.concurrency.async.conflict.detector.initial_delay_ms 0
hoodie.write.concurrency.async.conflict.detector.period_ms 30000
hoodie.write.concurrency.early.conflict.check.commit.conflict false
hoodie.write.concurrency.early.conflict.detection.enable false
hoodie.write.concurrency.early.conflict.detection.strategy -
hoodie.write.concurrency.mode SINGLE_WRITER
hoodie.write.executor.disruptor.buffer.limit.bytes 1024
hoodie.write.executor.disruptor.wait.strategy BLOCKING_WAIT
hoodie.write.executor.type SIMPLE
hoodie.write.markers.type TIMELINE_SERVER_BASED
hoodie.write.num.retries.on.conflict.failures 0
hoodie.write.schema -
hoodie.write.status.storage.level MEMORY_AND_DISK_SER
hoodie.write.tagged.record.storage.level MEMORY_AND_DISK_SER
hoodie.writestatus.class org.apache.hudi.client.WriteStatus
# Common
hoodie.common.diskmap.compression.enabled true
hoodie.common.spillable.diskmap.type BITCASK
hoodie.fs.atomic_creation.support -
hoodie.memory.compaction.max.size -
hoodie.memory.dfs.buffer.max.size 16777216
# Reader
_hoodie.hfile.use.native.reader false
# Table (hoodie.properties)
hoodie.archivelog.folder archived
hoodie.bootstrap.base.path -
hoodie.bootstrap.index.class org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex
hoodie.bootstrap.index.enable true
hoodie.compaction.payload.class org.apache.hudi.common.model.OverwriteWithLatestAvroPayload
hoodie.compaction.record.merger.strategy eeb8d96f-b1e4-49fd-bbf8-28ac514178e5 hoodie.record.merge.strategy.id
hoodie.database.name -
hoodie.partition.metafile.use.base.format false
hoodie.populate.meta.fields true
hoodie.table.cdc.enabled false
hoodie.table.cdc.supplemental.logging.mode DATA_BEFORE_AFTER
hoodie.table.checksum -
hoodie.table.create.schema -
hoodie.table.keygenerator.class -
hoodie.table.log.file.format HOODIE_LOG hoodie.table.rt.file.format
hoodie.table.metadata.partitions -
hoodie.table.metadata.partitions.inflight -
hoodie.table.partition.fields -
hoodie.table.precombine.field -
hoodie.table.recordkey.fields -
hoodie.table.secondary.indexes.metadata -
hoodie.table.timeline.timezone LOCAL
hoodie.table.type COPY_ON_WRITE
hoodie.table.version ZERO
# Timestamp key generator
hoodie.keygen.datetime.parser.class org.apache.hudi.keygen.parser.HoodieDateTimeParser hoodie.deltastreamer.keygen.datetime.parser.class
hoodie.keygen.timebased.input.dateformat - hoodie.deltastreamer.keygen.timebased.input.dateformat
hoodie.keygen.timebased.input.dateformat.list.delimiter.regex , hoodie.deltastreamer.keygen.timebased.input.dateformat.list.delimiter.regex
hoodie.keygen.timebased.input.timezone UTC hoodie.deltastreamer.keygen.timebased.input.timezone
hoodie.keygen.timebased.output.dateformat - hoodie.deltastreamer.keygen.timebased.output.dateformat
hoodie.keygen.timebased.output.timezone UTC hoodie.deltastreamer.keygen.timebased.output.timezone
hoodie.keygen.timebased.timestamp.scalar.time.unit SECONDS hoodie.deltastreamer.keygen.timebased.timestamp.scalar.time.unit
hoodie.keygen.timebased.timestamp.type - hoodie.deltastreamer.keygen.timebased.timestamp.type
hoodie.keygen.timebased.timezone UTC hoodie.deltastreamer.keygen.timebased.timezone
# Storage / files
hoodie.avro.write.support.class org.apache.hudi.avro.HoodieAvroWriteSupport
hoodie.bloom.index.filter.dynamic.max.entries 100000
hoodie.bloom.index.filter.type DYNAMIC_V0
hoodie.hfile.block.size 1048576
hoodie.hfile.compression.algorithm GZ
hoodie.hfile.max.file.size 125829120
hoodie.index.bloom.fpp 0.000000001
hoodie.index.bloom.num_entries 60000
hoodie.io.factory.class org.apache.hudi.io.hadoop.HoodieHadoopIOFactory
hoodie.logfile.data.block.format -
hoodie.logfile.data.block.max.size 268435456
hoodie.logfile.max.size 1073741824
hoodie.logfile.to.parquet.compression.ratio 0.35
hoodie.orc.block.size 125829120
hoodie.orc.compression.codec ZLIB
hoodie.orc.max.file.size 125829120
hoodie.orc.stripe.size 67108864
hoodie.parquet.block.size 125829120
hoodie.parquet.bloom.filter.enabled true
hoodie.parquet.compression.codec gzip
hoodie.parquet.compression.ratio 0.1
hoodie.parquet.dictionary.enabled true
hoodie.parquet.field_id.write.enabled true
hoodie.parquet.max.file.size 125829120
hoodie.parquet.outputtimestamptype TIMESTAMP_MICROS
hoodie.parquet.page.size 1048576
hoodie.parquet.spark.row.write.support.class org.apache.hudi.io.storage.row.HoodieRowParquetWriteSupport
hoodie.parquet.writelegacyformat.enabled false
hoodie.storage.class org.apache.hudi.storage.hadoop.HoodieHadoopStorage
# Index
hoodie.bloom.index.bucketized.checking true
hoodie.bloom.index.input.storage.level MEMORY_AND_DISK_SER
hoodie.bloom.index.keys.per.bucket 10000000
hoodie.bloom.index.parallelism 0
hoodie.bloom.index.prune.by.ranges true
hoodie.bloom.index.update.partition.path true
hoodie.bloom.index.use.caching true
hoodie.bloom.index.use.metadata false
hoodie.bloom.index.use.treebased.filter true
hoodie.bucket.index.hash.field -
hoodie.bucket.index.max.num.buckets -
hoodie.bucket.index.merge.threshold 0.2
hoodie.bucket.index.min.num.buckets -
hoodie.bucket.index.num.buckets 256
hoodie.bucket.index.split.threshold 2.0
hoodie.global.index.reconcile.parallelism 60
hoodie.global.simple.index.parallelism 100
hoodie.index.bucket.engine SIMPLE
hoodie.index.class -
hoodie.index.type -
hoodie.record.index.input.storage.level MEMORY_AND_DISK_SER
hoodie.record.index.update.partition.path false
hoodie.record.index.use.caching true
hoodie.simple.index.input.storage.level MEMORY_AND_DISK_SER
hoodie.simple.index.parallelism 0
hoodie.simple.index.update.partition.path true
hoodie.simple.index.use.caching true
# Layout
hoodie.storage.layout.partitioner.class -
hoodie.storage.layout.type DEFAULT
"""
