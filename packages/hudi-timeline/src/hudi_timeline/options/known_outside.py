"""Options of catalog sync and metrics.

A line is: name, default of Apache Hudi 0.15 (- for none), other names of the same option.
Source: the configuration classes of Apache Hudi 0.15.0, compared with 1.1.1.
"""

TEXT = """\
# Meta sync
hoodie.datasource.meta.sync.base.path -
hoodie.meta.sync.decode_partition false
hoodie.meta.sync.incremental true
hoodie.meta.sync.metadata_file_listing false
hoodie.meta.sync.sync_snapshot_with_table_name true
hoodie.meta_sync.spark.version -
# Hive sync
hoodie.datasource.hive_sync.bucket_sync_spec -
hoodie.datasource.hive_sync.omit_metadata_fields false
hoodie.datasource.hive_sync.schema_string_length_thresh 4000
hoodie.datasource.hive_sync.table.strategy ALL
# Global hive sync
hoodie.meta_sync.global.replicate.timestamp -
# Metrics
hoodie.metrics.configs.properties -
hoodie.metrics.executor.enable -
hoodie.metrics.lock.enable false
hoodie.metrics.on false
hoodie.metrics.reporter.class -
hoodie.metrics.reporter.metricsname.prefix -
hoodie.metrics.reporter.type GRAPHITE
hoodie.metricscompaction.log.blocks.on false
# Metrics Graphite
hoodie.metrics.graphite.host localhost
hoodie.metrics.graphite.metric.prefix -
hoodie.metrics.graphite.port 4756
hoodie.metrics.graphite.report.period.seconds 30
# Metrics JMX
hoodie.metrics.jmx.host localhost
hoodie.metrics.jmx.port 9889
# Metrics Datadog
hoodie.metrics.datadog.api.key -
hoodie.metrics.datadog.api.key.skip.validation false
hoodie.metrics.datadog.api.key.supplier -
hoodie.metrics.datadog.api.site -
hoodie.metrics.datadog.api.timeout.seconds 3
hoodie.metrics.datadog.metric.host -
hoodie.metrics.datadog.metric.prefix -
hoodie.metrics.datadog.metric.tags -
hoodie.metrics.datadog.report.period.seconds 30
# Metrics Prometheus
hoodie.metrics.prometheus.port 9090
hoodie.metrics.pushgateway.delete.on.shutdown true
hoodie.metrics.pushgateway.host localhost
hoodie.metrics.pushgateway.job.name -
hoodie.metrics.pushgateway.port 9091
hoodie.metrics.pushgateway.random.job.name.suffix true
hoodie.metrics.pushgateway.report.labels -
hoodie.metrics.pushgateway.report.period.seconds 30
# Metrics CloudWatch
hoodie.metrics.cloudwatch.maxDatumsPerRequest 20
hoodie.metrics.cloudwatch.metric.prefix -
hoodie.metrics.cloudwatch.namespace Hudi
hoodie.metrics.cloudwatch.report.period.seconds 60
# Metrics M3
hoodie.metrics.m3.env production
hoodie.metrics.m3.host localhost
hoodie.metrics.m3.port 9052
hoodie.metrics.m3.service hoodie
hoodie.metrics.m3.tags -
"""
