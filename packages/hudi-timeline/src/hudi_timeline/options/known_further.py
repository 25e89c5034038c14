"""Options that stand in no configuration class of the 0.15 bundle: of payloads, callbacks, sessions, older releases.

A line is: name, default of Apache Hudi (- for none), other names of the same option.
Source: Apache Hudi's documentation of payloads, commit callbacks and of releases 0.7 to 0.14.
"""

TEXT = """\
# Payload
hoodie.payload.delete.field -
hoodie.payload.delete.marker -
# Spark datasource read
hoodie.fileIndex.dataSkippingFailureMode fallback
hoodie.datasource.read.handle.hollow.commit -
hoodie.query.as.ro.table false
# Commit callback
hoodie.write.commit.callback.kafka.bootstrap.servers -
hoodie.write.commit.callback.kafka.topic -
hoodie.write.commit.callback.kafka.partition -
hoodie.write.commit.callback.kafka.retries 3
hoodie.write.commit.callback.kafka.acks all
hoodie.write.commit.callback.pulsar.broker.service.url -
hoodie.write.commit.callback.pulsar.topic -
# Streamer schema provider
hoodie.streamer.schemaprovider.source.schema.file - hoodie.deltastreamer.schemaprovider.source.schema.file
hoodie.streamer.schemaprovider.target.schema.file - hoodie.deltastreamer.schemaprovider.target.schema.file
hoodie.streamer.schemaprovider.registry.url - hoodie.deltastreamer.schemaprovider.registry.url
hoodie.streamer.schemaprovider.registry.targetUrl - hoodie.deltastreamer.schemaprovider.registry.targetUrl
# Bootstrap
hoodie.bootstrap.keygen.class -
# Table (hoodie.properties)
hoodie.table.partition_extractor_class -
# Metadata table
hoodie.metadata.validate false
hoodie.metadata.clean.async false
hoodie.metadata.cleaner.commits.retained 3
hoodie.metadata.insert.parallelism 1
hoodie.metadata.keep.max.commits 30
hoodie.metadata.keep.min.commits 20
hoodie.metadata.populate.meta.fields false
hoodie.metadata.enable.full.scan.log.files true
# Key generators
hoodie.sql.origin.keygen.class -
# Clustering
hoodie.clustering.preserve.commit.metadata true
# Storage / files
hoodie.parquet.avro.write-old-list-structure false
parquet.compression.codec.zstd.level -
# Of this project
hudi.read.columns -
hudi.read.filter -
hudi.read.incremental.on.missing -
hudi.read.incremental.order -
hudi.streaming.start.order -
hudi.write.staging.limit.bytes -
hudi.index.allow.switch false
hudi.merge -
hudi.write.rules -
hudi.write.types -
hudi.partition.null.texts refuse
hudi.quarantine.path -
hudi.quarantine.max.rows -
hudi.progress auto
hudi.durability flush
# Flink
write.ignore.failed false
"""
