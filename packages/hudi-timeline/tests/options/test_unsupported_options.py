"""Options that ask for what is not provided: refused with a way round, and only where they ask for it."""

import pytest
from typer.testing import CliRunner

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.cli.main import app
from hudi_timeline.options import parse_read_options, parse_write_options
from hudi_timeline.options.config_key import WRITE
from hudi_timeline.options.option_types import BOOLEAN
from hudi_timeline.options.registry import declared_options

MODELS = "org.apache.hudi.common.model."
REFUSED = [
    ("hoodie.datasource.hive_sync.enable", "TRUE"),
    ("hoodie.datasource.meta.sync.enable", "true"),
    ("hoodie.index.class", "com.example.MyIndex"),
    ("hoodie.storage.layout.partitioner.class", "org.acme.Partitioner"),
    ("hoodie.index.type", "RECORD_LEVEL_INDEX"),
    ("hoodie.write.lock.provider", "org.apache.hudi.client.transaction.lock.NoopLockProvider"),
    ("hoodie.write.lock.provider", "org.acme.InProcessLockProvider"),
    ("hoodie.datasource.write.payload.class", MODELS + "HoodieJsonPayload"),
    ("hoodie.datasource.write.payload.class", "org.acme.DefaultHoodieRecordPayload"),
    ("hoodie.compaction.payload.class", "debezium.OracleDebeziumAvroPayload"),
    ("hoodie.datasource.write.record.merger.impls", "org.apache.hudi.HoodieSparkRecordMerger"),
    ("hoodie.record.merge.mode", "EVENT_TIME_ORDERING"),
    ("hoodie.datasource.write.keygenerator.class", "org.apache.spark.sql.hudi.command.UuidKeyGenerator"),
    ("hoodie.datasource.write.keygenerator.class", "com.acme.CustomKeyGenerator"),
    ("hoodie.schema.on.read.enable", "true"),
    ("hoodie.clustering.inline", "true"),
    ("hoodie.datasource.clustering.async.enable", "true"),
    ("hoodie.bulkinsert.user.defined.partitioner.class", "com.example.Mine"),
    ("hoodie.precommit.validators", "com.example.Mine"),
    ("write.ignore.failed", "true"),
    ("hoodie.metadata.index.bloom.filter.column.list", "city"),
    ("hoodie.metadata.record.level.index.enable", "true"),
    ("hoodie.metrics.on", "true"),
    ("hoodie.auto.commit", "false"),
    ("hoodie.write.table.version", "8"),
    ("hoodie.table.base.file.format", "ORC"),
    ("hoodie.datasource.write.operation", "bootstrap"),
    ("hoodie.parquet.compression.codec", "brotli"),
    ("hoodie.datasource.write.precombine.field", "ts,seq"),
]


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_an_effect_that_is_not_provided_is_refused_with_a_way_round(key, value):
    with pytest.raises(UnsupportedError) as e:
        parse_write_options({key: value})
    assert key in str(e.value) or "ordering fields" in str(e.value)
    assert e.value.remedy.endswith(".")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("service", ["clean", "archive"])
def test_the_remedy_of_an_asynchronous_service_runs_beside_the_writers(service, tmp_path):
    with pytest.raises(UnsupportedError) as e:
        parse_write_options({f"hoodie.{service}.async": "true"})
    inline = f"hoodie.{service}.automatic=false"
    for way in (inline, f"HudiTable.{service}()", f"`hudi {service} PATH`"):
        assert way in e.value.remedy
    write_hudi(tmp_path / "t", {"id": [1]}, key="id", options=dict([inline.split("=")]))
    assert getattr(HudiTable.open(tmp_path / "t"), service)() is not None
    ran = CliRunner().invoke(app, [service, str(tmp_path / "t")])
    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize(
    "option", [o for o in declared_options().values() if o.unsupported and WRITE in o.unsupported.scopes]
)
def test_only_a_value_that_asks_for_the_effect_is_refused(option):
    effect = option.unsupported
    if option.type is BOOLEAN:
        harmless = "false" if effect.asks(True) else "true"
    else:
        harmless = {
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.write.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.index.type": "SIMPLE",
            "hoodie.write.lock.provider": "InProcessLockProvider",
            "hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.write.concurrency.mode": "single_writer",
        }.get(option, option.default or "")
    if harmless or effect.asks("x"):
        try:
            parse_write_options({option: harmless})
        except InvalidOptionError:
            assert harmless == ""  # an enumeration without default: it cannot be given empty


def test_a_writers_effects_do_not_stop_a_read():
    options = {"hoodie.datasource.hive_sync.enable": "true", "hoodie.index.type": "HBASE"}
    assert parse_read_options(options).query_type == "snapshot"
