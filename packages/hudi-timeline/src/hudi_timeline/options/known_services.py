# ruff: noqa: E501 -- a line is an option
"""Options of table services, locks, validators, callbacks and memory.

A line is: name, default of Apache Hudi 0.15 (- for none), other names of the same option.
Source: the configuration classes of Apache Hudi 0.15.0, compared with 1.1.1.
"""

TEXT = """\
# Metadata table
_hoodie.metadata.ignore.spurious.deletes true
hoodie.assume.date.partitioning false
hoodie.file.listing.parallelism 200
hoodie.metadata.auto.initialize true
hoodie.metadata.compact.max.delta.commits 10
hoodie.metadata.dir.filter.regex -
hoodie.metadata.enable true
hoodie.metadata.index.async false
hoodie.metadata.index.bloom.filter.column.list -
hoodie.metadata.index.bloom.filter.enable false
hoodie.metadata.index.bloom.filter.file.group.count 4
hoodie.metadata.index.bloom.filter.parallelism 200
hoodie.metadata.index.check.timeout.seconds 900
hoodie.metadata.index.column.stats.column.list -
hoodie.metadata.index.column.stats.enable false
hoodie.metadata.index.column.stats.file.group.count 2
hoodie.metadata.index.column.stats.inMemory.projection.threshold 100000
hoodie.metadata.index.column.stats.parallelism 200
hoodie.metadata.index.column.stats.processing.mode.override -
hoodie.metadata.log.compaction.blocks.threshold 5
hoodie.metadata.log.compaction.enable false
hoodie.metadata.max.deltacommits.when_pending 1000
hoodie.metadata.max.init.parallelism 100000
hoodie.metadata.max.logfile.size 2147483648
hoodie.metadata.max.reader.buffer.size 10485760
hoodie.metadata.max.reader.memory 1073741824
hoodie.metadata.metrics.enable false
hoodie.metadata.optimized.log.blocks.scan.enable false
hoodie.metadata.record.index.enable false hoodie.metadata.global.record.level.index.enable
hoodie.metadata.record.index.growth.factor 2.0
hoodie.metadata.record.index.max.filegroup.count 10000 hoodie.metadata.global.record.level.index.max.filegroup.count
hoodie.metadata.record.index.max.filegroup.size 1073741824
hoodie.metadata.record.index.min.filegroup.count 10 hoodie.metadata.global.record.level.index.min.filegroup.count
hoodie.metadata.spillable.map.path -
# Clean
hoodie.clean.allow.multiple false hoodie.clean.multiple.enabled
hoodie.clean.async false hoodie.clean.async.enabled
hoodie.clean.automatic true
hoodie.clean.max.commits 1 hoodie.clean.trigger.max.commits
hoodie.clean.trigger.strategy NUM_COMMITS
hoodie.cleaner.commits.retained 10 hoodie.clean.commits.retained
hoodie.cleaner.delete.bootstrap.base.file false hoodie.clean.delete.bootstrap.base.file
hoodie.cleaner.fileversions.retained 3 hoodie.clean.fileversions.retained
hoodie.cleaner.hours.retained 24 hoodie.clean.hours.retained
hoodie.cleaner.incremental.mode true hoodie.clean.incremental.enabled
hoodie.cleaner.parallelism 200 hoodie.clean.parallelism
hoodie.cleaner.policy KEEP_LATEST_COMMITS hoodie.clean.policy
hoodie.cleaner.policy.failed.writes EAGER hoodie.clean.failed.writes.policy
# Archival
hoodie.archive.async false
hoodie.archive.automatic true
hoodie.archive.beyond.savepoint false
hoodie.archive.delete.parallelism 100
hoodie.archive.merge.enable false
hoodie.archive.merge.files.batch.size 10
hoodie.archive.merge.small.file.limit.bytes 20971520
hoodie.commits.archival.batch 10
hoodie.keep.max.commits 30
hoodie.keep.min.commits 20
# Compaction
hoodie.compact.inline false
hoodie.compact.inline.max.delta.commits 5
hoodie.compact.inline.max.delta.seconds 3600
hoodie.compact.inline.trigger.strategy NUM_COMMITS
hoodie.compact.schedule.inline false
hoodie.compaction.daybased.target.partitions 10
hoodie.compaction.lazy.block.read true
hoodie.compaction.logfile.num.threshold 0
hoodie.compaction.logfile.size.threshold 0
hoodie.compaction.reverse.log.read false
hoodie.compaction.strategy org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy
hoodie.compaction.target.io 512000
hoodie.copyonwrite.insert.auto.split true
hoodie.copyonwrite.insert.split.size 500000
hoodie.copyonwrite.record.size.estimate 1024
hoodie.log.compaction.blocks.threshold 5
hoodie.log.compaction.enable false
hoodie.log.compaction.inline false
hoodie.optimized.log.blocks.scan.enable false
hoodie.parquet.small.file.limit 104857600
hoodie.record.size.estimation.threshold 1.0
# Clustering
hoodie.clustering.async.max.commits 4
hoodie.clustering.execution.strategy.class org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy
hoodie.clustering.inline.max.commits 4
hoodie.clustering.max.parallelism 15
hoodie.clustering.plan.partition.filter.mode NONE
hoodie.clustering.plan.strategy.class org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy
hoodie.clustering.plan.strategy.cluster.begin.partition -
hoodie.clustering.plan.strategy.cluster.end.partition -
hoodie.clustering.plan.strategy.daybased.lookback.partitions 2
hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions 0
hoodie.clustering.plan.strategy.max.bytes.per.group 2147483648
hoodie.clustering.plan.strategy.max.num.groups 30
hoodie.clustering.plan.strategy.partition.regex.pattern -
hoodie.clustering.plan.strategy.partition.selected -
hoodie.clustering.plan.strategy.single.group.clustering.enabled true
hoodie.clustering.plan.strategy.small.file.limit 314572800
hoodie.clustering.plan.strategy.sort.columns -
hoodie.clustering.plan.strategy.target.file.max.bytes 1073741824
hoodie.clustering.rollback.pending.replacecommit.on.conflict false
hoodie.clustering.schedule.inline false
hoodie.clustering.updates.strategy org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy
hoodie.layout.optimize.build.curve.sample.size 200000
hoodie.layout.optimize.curve.build.method DIRECT
hoodie.layout.optimize.data.skipping.enable true
hoodie.layout.optimize.enable false
hoodie.layout.optimize.strategy LINEAR
# Locks
hoodie.write.lock.client.num_retries 50
hoodie.write.lock.client.wait_time_ms_between_retry 5000
hoodie.write.lock.conflict.resolution.strategy org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy
hoodie.write.lock.filesystem.expire 0
hoodie.write.lock.filesystem.path -
hoodie.write.lock.heartbeat_interval_ms 60000
hoodie.write.lock.hivemetastore.database -
hoodie.write.lock.hivemetastore.table -
hoodie.write.lock.hivemetastore.uris -
hoodie.write.lock.max_wait_time_ms_between_retry 16000
hoodie.write.lock.num_retries 15
hoodie.write.lock.provider org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider
hoodie.write.lock.wait_time_ms 60000
hoodie.write.lock.wait_time_ms_between_retry 1000
hoodie.write.lock.zookeeper.base_path -
hoodie.write.lock.zookeeper.connection_timeout_ms 15000
hoodie.write.lock.zookeeper.lock_key -
hoodie.write.lock.zookeeper.port -
hoodie.write.lock.zookeeper.session_timeout_ms 60000
hoodie.write.lock.zookeeper.url -
# Payload
hoodie.payload.event.time.field ts
hoodie.payload.ordering.field ts
# Pre-commit validators
hoodie.precommit.validators -
hoodie.precommit.validators.equality.sql.queries -
hoodie.precommit.validators.inequality.sql.queries -
hoodie.precommit.validators.single.value.sql.queries -
# Commit callback
hoodie.write.commit.callback.class org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback
hoodie.write.commit.callback.http.api.key hudi_write_commit_http_callback
hoodie.write.commit.callback.http.custom.headers -
hoodie.write.commit.callback.http.timeout.seconds 30
hoodie.write.commit.callback.http.url -
hoodie.write.commit.callback.on false
# Bootstrap
hoodie.bootstrap.data.queries.only false
hoodie.bootstrap.full.input.provider org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider
hoodie.bootstrap.mode.selector org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector
hoodie.bootstrap.mode.selector.regex .*
hoodie.bootstrap.mode.selector.regex.mode METADATA_ONLY
hoodie.bootstrap.parallelism 1500
hoodie.bootstrap.partitionpath.translator.class org.apache.hudi.client.bootstrap.translator.IdentityBootstrapPartitionPathTranslator
# Memory
hoodie.memory.compaction.fraction 0.6
hoodie.memory.merge.fraction 0.6
hoodie.memory.merge.max.size 1073741824
hoodie.memory.spillable.map.path -
hoodie.memory.writestatus.failure.fraction 0.1
# File-system view
hoodie.filesystem.remote.backup.view.enable true
hoodie.filesystem.view.incr.timeline.sync.enable false
hoodie.filesystem.view.remote.host localhost
hoodie.filesystem.view.remote.port 26754
hoodie.filesystem.view.remote.retry.enable false
hoodie.filesystem.view.remote.retry.exceptions -
hoodie.filesystem.view.remote.retry.initial_interval_ms 100
hoodie.filesystem.view.remote.retry.max_interval_ms 2000
hoodie.filesystem.view.remote.retry.max_numbers 3
hoodie.filesystem.view.remote.timeout.secs 300
hoodie.filesystem.view.rocksdb.base.path /tmp/hoodie_timeline_rocksdb
hoodie.filesystem.view.secondary.type MEMORY
hoodie.filesystem.view.spillable.bootstrap.base.file.mem.fraction 0.05
hoodie.filesystem.view.spillable.clustering.mem.fraction 0.01
hoodie.filesystem.view.spillable.compaction.mem.fraction 0.8
hoodie.filesystem.view.spillable.dir /tmp/
hoodie.filesystem.view.spillable.log.compaction.mem.fraction 0.8
hoodie.filesystem.view.spillable.mem 104857600
hoodie.filesystem.view.spillable.replaced.mem.fraction 0.01
hoodie.filesystem.view.type MEMORY
# Consistency guard
_hoodie.optimistic.consistency.guard.enable false
hoodie.consistency.check.enabled false
hoodie.optimistic.consistency.guard.sleep_time_ms 500
# FS retry
hoodie.filesystem.operation.retry.enable false
hoodie.filesystem.operation.retry.exceptions -
hoodie.filesystem.operation.retry.initial_interval_ms 100
hoodie.filesystem.operation.retry.max_interval_ms 2000
hoodie.filesystem.operation.retry.max_numbers 4
# Internal
hoodie.bulkinsert.overwrite.operation.type -
hoodie.bulkinsert.schema.ddl -
hoodie.static.overwrite.partition.paths -
# Error table
hoodie.errortable.base.path -
hoodie.errortable.enable false
hoodie.errortable.insert.shuffle.parallelism 200
hoodie.errortable.target.table.name -
hoodie.errortable.upsert.shuffle.parallelism 200
hoodie.errortable.validate.recordcreation.enable true
hoodie.errortable.validate.targetschema.enable false
hoodie.errortable.write.class -
hoodie.errortable.write.failure.strategy ROLLBACK_COMMIT
# Table service manager
hoodie.table.service.manager.actions -
hoodie.table.service.manager.connection.retries 3
hoodie.table.service.manager.connection.retry.delay.sec 1
hoodie.table.service.manager.connection.timeout.sec 300
hoodie.table.service.manager.deploy.extra.params -
hoodie.table.service.manager.deploy.parallelism 100
hoodie.table.service.manager.deploy.queue default
hoodie.table.service.manager.deploy.resources spark:4g,4g
hoodie.table.service.manager.deploy.username default
hoodie.table.service.manager.enabled false
hoodie.table.service.manager.execution.engine spark
hoodie.table.service.manager.uris http://localhost:9091
# Metaserver
hoodie.metaserver.connect.retries 3
hoodie.metaserver.connect.retry.delay 1
hoodie.metaserver.enabled false
hoodie.metaserver.uris thrift://localhost:9090
# HBase index
hoodie.hbase.index.update.partition.path false
hoodie.index.hbase.bucket.number 8
hoodie.index.hbase.desired_puts_time_in_secs 600
hoodie.index.hbase.dynamic_qps false
hoodie.index.hbase.get.batch.size 100
hoodie.index.hbase.kerberos.user.keytab -
hoodie.index.hbase.kerberos.user.principal -
hoodie.index.hbase.master.kerberos.principal -
hoodie.index.hbase.max.qps.fraction -
hoodie.index.hbase.max.qps.per.region.server 1000
hoodie.index.hbase.min.qps.fraction -
hoodie.index.hbase.put.batch.size 100
hoodie.index.hbase.put.batch.size.autocompute false
hoodie.index.hbase.qps.allocator.class org.apache.hudi.index.hbase.DefaultHBaseQPSResourceAllocator
hoodie.index.hbase.qps.fraction 0.5
hoodie.index.hbase.regionserver.kerberos.principal -
hoodie.index.hbase.rollback.sync false
hoodie.index.hbase.security.authentication simple
hoodie.index.hbase.sleep.ms.for.get.batch -
hoodie.index.hbase.sleep.ms.for.put.batch -
hoodie.index.hbase.table -
hoodie.index.hbase.zk.connection_timeout_ms 15000
hoodie.index.hbase.zk.session_timeout_ms 60000
hoodie.index.hbase.zknode.path -
hoodie.index.hbase.zkpath.qps_root /QPS_ROOT
hoodie.index.hbase.zkport -
hoodie.index.hbase.zkquorum -
# DynamoDB lock
hoodie.write.lock.dynamodb.table -
hoodie.write.lock.dynamodb.partition_key -
hoodie.write.lock.dynamodb.region us-east-1
hoodie.write.lock.dynamodb.billing_mode PAY_PER_REQUEST
hoodie.write.lock.dynamodb.read_capacity 20
hoodie.write.lock.dynamodb.write_capacity 10
hoodie.write.lock.dynamodb.table_creation_timeout 120000
hoodie.write.lock.dynamodb.endpoint_url -
# Storage lock
hoodie.write.lock.storage.heartbeat.poll.secs 30
"""
