"""The registry of options: names, alternatives, kinds, and slips of the pen."""

import pickle
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_format
import hudi_index
from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    OptionError,
    UnknownOptionError,
    UnsupportedError,
)
from hudi_timeline import table_config
from hudi_timeline.options import (
    describe,
    parse_read_options,
    parse_write_options,
    registry,
    unsupported_options,
)
from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.registry import canonical, declared_options, known_options, main_name, nearest

OPTIONS = sorted(known_options())


def test_every_default_is_a_value_that_its_option_takes():
    for option in known_options().values():
        if option.default is not None:
            option.type.parse(option.default)


def test_every_name_leads_to_one_option():
    for option in known_options().values():
        for name in (option, *option.alternatives):
            assert main_name(name) == option


RELEASE = re.compile(r"(0|1)\.\d+\.\d+|")


def test_a_declaration_says_what_an_option_does_here_or_why_it_is_refused():
    for key, option in declared_options().items():
        assert key == option
        assert option.doc or option.unsupported is not None, key
        assert option.doc.endswith((".", "")), key
        assert RELEASE.fullmatch(option.since), key
        assert option.since or not key.startswith("hudi."), key


def test_no_name_stands_for_two_options():
    lines = registry.DATA_FILE.read_text().splitlines()
    names = [line.split("\t")[0] for line in lines if not line.startswith("#")]
    names += [
        str(key)
        for module in registry.DECLARED
        for key in vars(module).values()
        if isinstance(key, ConfigKey)
    ]
    names += unsupported_options.UNSUPPORTED
    names += [name for option in known_options().values() for name in option.alternatives]
    assert [name for name, times in Counter(names).items() if times > 1] == []


def test_names_of_options_in_the_packages_below_are_names_of_options():
    found = set()
    for package in (hudi_format, hudi_index):
        for file in Path(package.__file__).parent.rglob("*.py"):
            found |= set(re.findall(r"""["']((?:hoodie|hudi)\.[a-z][\w.]*)["']""", file.read_text()))
    # A payload's argument below `hoodie.record.merge.property.`, which any name may follow.
    known = {*known_options(), "hoodie.write.partial.update.unavailable.value"}
    known |= {value for value in vars(table_config).values() if isinstance(value, str)}
    # The metadata of Arrow fields has what else a column is (hudi_format.schema.schema_versions).
    known |= {"hudi.column_id", "hudi.column_kind", "hudi.column_doc"}
    assert "hoodie.datasource.write.recordkey.field" in found
    prefixes = {name for name in found if name.endswith(".") and any(k.startswith(name) for k in known)}
    assert found - prefixes - known == set()


def test_an_option_is_its_name_wherever_it_goes():
    key = declared_options()["hoodie.parquet.max.file.size"]
    assert {key: 1}["hoodie.parquet.max.file.size"] == 1
    assert f"{key}=1" == "hoodie.parquet.max.file.size=1"
    assert type(pickle.loads(pickle.dumps(key))) is str
    assert key.value == 125829120


@pytest.mark.req("NEW-15")
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.datasource.hive_sync.enabled", "hoodie.datasource.hive_sync.enable"),
        ("hoodie.datasource.meta.sync.enabled", "hoodie.datasource.meta.sync.enable"),
        ("datasource.write.operation", "hoodie.datasource.write.operation"),
        ("hudi.datasource.write.operation", "hoodie.datasource.write.operation"),
        ("hoodie.write.precombine.field", "hoodie.datasource.write.precombine.field"),
        ("operation", "hoodie.datasource.write.operation"),
        ("recordkey.field", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.upsert.parallelism", "hoodie.upsert.shuffle.parallelism"),
        ("hoodie.cleaner.commit.retained", "hoodie.cleaner.commits.retained"),
        ("hoodie.aws.acess.key", "hoodie.aws.access.key"),
        ("hoodie.datasource.hive_sync.tabel", "hoodie.datasource.hive_sync.table"),
        (
            "hoodie.datasource.meta.sync.glue.metadata_file_list",
            "hoodie.datasource.meta.sync.glue.metadata_file_listing",
        ),
        ("hoodie.write.commit.callback.kafka.topics", "hoodie.write.commit.callback.kafka.topic"),
        ("hoodie.metrics.graphite.hosts", "hoodie.metrics.graphite.host"),
        ("hoodie.write.lock.zookeeper.uri", "hoodie.write.lock.zookeeper.url"),
        ("parquet.compression.codec.zstd.levle", "parquet.compression.codec.zstd.level"),
        ("hoodie.payload.odering.field", "hoodie.payload.ordering.field"),
        ("primaryKey", "hoodie.datasource.write.recordkey.field"),
        ("preCombineField", "hoodie.datasource.write.precombine.field"),
        ("timestampAsOf", "as.of.instant"),
        ("_hoodie.metadata.ignore.spurious.delete", "_hoodie.metadata.ignore.spurious.deletes"),
        ("hoodie.streamer.source.kafka.topics", "hoodie.streamer.source.kafka.topic"),
        ("hoodie.deltastreamer.source.dfs.rot", "hoodie.deltastreamer.source.dfs.root"),
        ("hoodie.deltastreamer.source.kinesis.stream.name", "hoodie.streamer.source.kinesis.stream.name"),
        ("hoodie.streamer.ingestion.tableToBeIngested", "hoodie.streamer.ingestion.tablesToBeIngested"),
        ("hoodie.streamer.csv.seperator", "hoodie.streamer.csv.sep"),
        ("hoodie.streamer.transformer.sql.files", "hoodie.streamer.transformer.sql.file"),
        ("hoodie.gcp.bigquery.sync.dataset", "hoodie.gcp.bigquery.sync.dataset_name"),
        ("hoodie.meta.sync.datahub.emitter.servers", "hoodie.meta.sync.datahub.emitter.server"),
        ("hoodie.datasource.meta.sync.glue.catalog_id", "hoodie.datasource.meta.sync.glue.catalogId"),
        ("hoodie.write.commit.callback.pulsar.topics", "hoodie.write.commit.callback.pulsar.topic"),
    ],
)
def test_an_unknown_option_is_refused_with_the_name_that_was_meant(wrong, meant):
    for parse in (parse_write_options, parse_read_options):
        with pytest.raises(UnknownOptionError) as e:
            parse({wrong: "x"})
        assert e.value.details["nearest"] == meant
        assert meant in str(e.value)
        assert wrong in str(e.value)
        assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(UnknownOptionError) as e:
        parse_write_options({"qqqqqqqq": "1"})
    assert e.value.remedy == "remove it."


@pytest.mark.req("NEW-15")
@pytest.mark.parametrize(
    "prefix",
    [
        "hoodie.streamer.",
        "hoodie.streamer.source.",
        "hoodie.streamer.schemaprovider.",
        "hoodie.streamer.transformer.",
        "hoodie.streamer.ingestion.",
        "hoodie.streamer.jdbc.",
        "hoodie.streamer.csv.",
        "hoodie.deltastreamer.",
        "hoodie.deltastreamer.source.",
        "hoodie.multitable.",
        "hoodie.gcp.",
        "hoodie.gcp.bigquery.sync.",
        "hoodie.datahub.",
        "hoodie.meta.sync.datahub.",
        "hoodie.datasource.meta.sync.glue.",
        "hoodie.snapshot.",
        "hoodie.write.commit.callback.pulsar.",
    ],
)
def test_a_name_that_is_made_up_is_refused_below_any_prefix_of_apache_hudi(prefix):
    for name in (f"{prefix}zap", f"{prefix}ours.of.tables"):
        for parse in (parse_write_options, parse_read_options):
            with pytest.raises(UnknownOptionError, match="no release of Apache Hudi knows") as e:
                parse({name: "1"})
            assert e.value.details["option"] == name


TOOLS = ("Hudi Streamer", "BigQuery sync", "DataHub sync", "AWS", "Commit callback")


def test_each_name_of_the_streamer_and_of_catalogs_is_taken_by_writes_and_reads():
    options = [option for option in known_options().values() if option.group in TOOLS]
    assert {option.group for option in options} == set(TOOLS)
    for option in options:
        value = option.default or "x"
        for name in (str(option), *option.alternatives):
            assert parse_write_options({name: value}).raw == {str(option): value}
            assert parse_read_options({name: value}).raw == {str(option): value}


@pytest.mark.parametrize(
    "key",
    [
        "fs.s3a.endpoint",
        "hadoop.tmp.dir",
        "spark.sql.x",
        "parquet.page.size",
        "path",
        "hoodie.streamer.ingestion.sales.orders.configFile",
        "hoodie.deltastreamer.ingestion.default.orders.configFile",
        "hoodie.streamer.jdbc.extra.options.fetchsize",
        "hoodie.deltastreamer.jdbc.extra.options.upperBound",
        "hoodie.streamer.transformer.sql.tr1",
        "hoodie.deltastreamer.transformer.sql.cleaned",
        "hoodie.streamer.transformer.sql.file.tr1",
        "hoodie.deltastreamer.transformer.sql.file.cleaned",
    ],
)
def test_names_that_users_and_other_tools_make_up_pass(key):
    assert known_options().get(key) is None
    assert canonical({key: "x"}).text == {key: "x"}


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.streamer.ingestion.orders.configFile",
        "hoodie.streamer.ingestion.sales.orders.configfile",
        "hoodie.streamer.ingestion.sales.orders.configFiles",
        "hoodie.streamer.jdbc.extra.option.fetchsize",
        "hoodie.streamer.transformer.sqls.tr1",
    ],
)
def test_a_name_that_only_begins_like_one_that_users_make_up_is_refused(key):
    with pytest.raises(UnknownOptionError):
        canonical({key: "x"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.meta.sync.glue.catalogId", "123456789012"),
        ("hoodie.datasource.meta.sync.glue.database_name", "sales"),
        ("hoodie.datasource.meta.sync.glue.recreate_table_on_error", "true"),
        ("hoodie.datasource.meta.sync.glue.resource_tags", "team:sales"),
        ("hoodie.datasource.meta.sync.glue.table_name", "orders"),
        ("hoodie.gcp.bigquery.sync.big_lake_connection_id", "x"),
        ("hoodie.gcp.bigquery.sync.billing.project.id", "x"),
        ("hoodie.gcp.bigquery.sync.project_id", "x"),
        ("hoodie.meta.sync.datahub.dataset.identifier.class", "org.example.Identifier"),
        ("hoodie.meta.sync.datahub.domain.name", "urn:li:domain:sales"),
        ("hoodie.meta.sync.datahub.emitter.server", "http://datahub:8080"),
        ("hoodie.meta.sync.datahub.emitter.token", "x"),
        ("hoodie.meta.sync.datahub.table.properties", "a=1"),
        ("hoodie.meta.sync.datahub.tls.keystore.path", "/k"),
        ("hoodie.deltastreamer.checkpoint.provider.path", "/c"),
        ("hoodie.deltastreamer.csv.inferSchema", "true"),
        ("hoodie.deltastreamer.ingestion.tablesToBeIngested", "sales.orders"),
        ("hoodie.deltastreamer.jdbc.password.file", "/p"),
        ("hoodie.deltastreamer.multiwriter.source.checkpoint.id", "w1"),
        ("hoodie.deltastreamer.schemaprovider.registry.baseUrl", "http://registry/"),
        ("hoodie.deltastreamer.schemaprovider.registry.urlSuffix", "-value/versions/latest"),
        ("hoodie.deltastreamer.snapshotload.query.splitter.class.name", "org.example.Splitter"),
        ("hoodie.deltastreamer.source.s3incr.key.prefix", "in/"),
        ("hoodie.streamer.csv.sep", ";"),
        ("hoodie.streamer.schemaconverter.json_to_avro.convert_default_value_type", "false"),
        ("hoodie.streamer.schemaprovider.class", "org.example.Provider"),
        ("hoodie.streamer.schemaprovider.proto.class.name", "org.example.Order"),
        ("hoodie.streamer.schemaprovider.registry.sourceUrlSuffix", "-value/versions/latest"),
        ("hoodie.streamer.schemaprovider.schema_post_processor.add.column.name", "c"),
        ("hoodie.streamer.schemaprovider.source.schema.hive.table", "orders"),
        ("hoodie.streamer.schemaprovider.source.schema.jdbc.dbtable", "orders"),
        ("hoodie.streamer.schemaprovider.target.schema.hive.database", "sales"),
        ("hoodie.streamer.schemaprovider.target.schema.hive.table", "orders"),
        ("hoodie.streamer.source.cloud.data.select.relative.path.regex", ".*"),
        ("hoodie.streamer.source.dfs.root", "/in"),
        ("hoodie.streamer.source.json.kafka.post.processor.maxwell.precombine.field.type", "DATE_STRING"),
        ("hoodie.streamer.source.kafka.proto.value.deserializer.class", "org.example.Deserializer"),
        ("hoodie.streamer.source.kafka.retry.max_count", "3"),
        ("hoodie.streamer.source.kafka.value.deserializer.schema", "{}"),
        ("hoodie.streamer.source.kinesis.stream.name", "orders"),
        ("hoodie.streamer.source.parquet.dfs.merge_schema.enable", "true"),
        ("hoodie.streamer.source.parquet.dfs.merge.schema.enable", "true"),
        ("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>"),
        ("hoodie.write.commit.callback.pulsar.producer.send-timeout", "30s"),
    ],
)
def test_options_of_catalogs_and_of_the_streamer_are_taken_by_writes_and_reads(key, value):
    main = main_name(key)
    assert main in known_options()
    assert parse_write_options({key: value}).raw[main] == value
    assert parse_read_options({key: value}).raw[main] == value


def test_a_name_that_others_make_up_is_compared_with_known_ones_once(monkeypatch):
    key = "hoodie.streamer.transformer.sql.once"
    assert main_name(key) == key
    monkeypatch.setattr("difflib.get_close_matches", lambda *_, **__: pytest.fail("compared again"))
    assert parse_read_options({key: "x"}).raw == {key: "x"}


def test_upper_and_lower_case_are_the_same_as_in_sparks_option_maps():
    assert parse_write_options({"HOODIE.TABLE.NAME": "t"}).table_name == "t"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hoodie.datasource.write.storage.type", "hoodie.datasource.write.table.type"),
        ("hoodie.datasource.view.type", "hoodie.datasource.query.type"),
        ("hoodie.hash.index.bucket.num", "hoodie.bucket.index.num.buckets"),
        ("hoodie.datasource.write.indexkey.field", "hoodie.bucket.index.hash.field"),
        ("hoodie.clean.policy", "hoodie.cleaner.policy"),
        ("hoodie.deltastreamer.keygen.timebased.timezone", "hoodie.keygen.timebased.timezone"),
        ("hoodie.table.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.index.enable"),
    ],
)
def test_older_and_newer_names_are_taken(old, new):
    assert main_name(old) == new


def test_two_names_of_one_option_may_agree_but_not_differ():
    both = {"hoodie.clean.async": "false", "hoodie.clean.async.enabled": "FALSE"}
    assert canonical(both).parsed == {"hoodie.clean.async": False}
    with pytest.raises(ConflictingOptionError) as e:
        canonical({"hoodie.datasource.write.table.name": "a", "hoodie.table.name": "b"})
    assert "hoodie.datasource.write.table.name=a and hoodie.table.name=b" in str(e.value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hoodie.combine.before.insert", "yes", "true or false"),
        ("hoodie.combine.before.insert", "", "true or false"),
        ("hoodie.datasource.hive_sync.enable", "1", "true or false"),
        ("hoodie.parquet.max.file.size", "120MB", "a whole number of bytes from 1"),
        ("hoodie.parquet.max.file.size", "0", "from 1"),
        ("hoodie.parquet.max.file.size", "9223372036854775808", "from 1"),
        ("hoodie.parquet.max.file.size", "1_000", "from 1"),
        ("hoodie.parquet.max.file.size", "\u0661", "from 1"),
        ("hoodie.index.bloom.fpp", "1", "below 1"),
        ("hoodie.index.bloom.fpp", "nan", "a number"),
        ("hoodie.parquet.compression.codec", "gzip2", "one of gzip, snappy"),
        ("hoodie.datasource.write.operation", "merge", "one of upsert, insert"),
        ("hoodie.cleaner.policy", "KEEP_ALL", "KEEP_LATEST_COMMITS"),
        ("hoodie.keep.max.commits", "many", "a whole number"),
        ("hoodie.datasource.write.payload.class", "not a class", "Java class"),
        ("hoodie.table.name", "  ", "not empty"),
        ("hoodie.datasource.write.recordkey.field", "a,b,a", "each once"),
        ("parquet.compression.codec.zstd.level", "23", "from -7 to 22"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_refused_with_what_it_takes(key, value, says):
    with pytest.raises(InvalidOptionError) as e:
        parse_write_options({key: value})
    assert key in str(e.value)
    assert says in str(e.value)


def test_values_that_are_not_text_are_refused():
    with pytest.raises(InvalidOptionError, match="is a bool, not text"):
        parse_write_options({"hoodie.combine.before.insert": True})


def test_secrets_do_not_stand_in_errors():
    fact = describe("hoodie.datasource.hive_sync.password", "hunter2")
    assert fact.value == "***"
    with pytest.raises(ConflictingOptionError) as e:
        canonical(
            {"hoodie.datasource.hive_sync.password": "a1b2", "HOODIE.DATASOURCE.HIVE_SYNC.PASSWORD": "c3d4"}
        )
    assert "a1b2" not in str(e.value)


@given(st.dictionaries(st.sampled_from(OPTIONS) | st.text(max_size=12), st.text(max_size=8), max_size=4))
def test_any_map_is_parsed_or_refused_by_a_typed_error(options):
    for parse in (parse_write_options, parse_read_options):
        with suppress(OptionError, UnsupportedError):
            parse(options)


@given(st.sampled_from(OPTIONS), st.integers(0, 200), st.sampled_from("abcxyz._"))
def test_a_slip_of_one_letter_is_answered_with_a_name(key, at, letter):
    at %= len(key)
    slipped = key[:at] + letter + key[at + 1 :]
    if main_name(slipped) is None:
        assert nearest(slipped) is not None


def test_a_name_that_is_like_no_other_has_no_nearest():
    assert nearest("hoodie.zap") is None
    assert nearest("hoodie.tabel.nam") == "hoodie.table.name"
