"""Options beside the table's own properties."""

import pytest

from hudi_format.errors import ConflictingOptionError
from hudi_timeline.options import check_against_table

TABLE = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.table.recordkey.fields": "uuid,day",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.database.name": "",
    "hoodie.table.timeline.timezone": "UTC",
}
SAME = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "copy_on_write",
    "hoodie.datasource.write.recordkey.field": "uuid, day",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "ComplexAvroKeyGenerator",
    "hoodie.datasource.write.keygenerator.type": "complex",
    "hoodie.datasource.write.hive_style_partitioning": "TRUE",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.table.timeline.timezone": "utc",
    "hoodie.database.name": "default",
    "hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload",
    "_x": "1",
    "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
}


def test_options_that_say_the_same_in_other_words_agree():
    check_against_table(SAME, TABLE)
    check_against_table({}, TABLE)


@pytest.mark.req("KG-01")
@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("hoodie.table.name", "rides", "trips"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "COPY_ON_WRITE"),
        ("hoodie.datasource.write.recordkey.field", "uuid", "uuid,day"),
        ("hoodie.datasource.write.recordkey.field", "day,uuid", "uuid,day"),
        ("hoodie.datasource.write.partitionpath.field", "", "city"),
        ("hoodie.datasource.write.precombine.field", "seq", "ts"),
        ("hoodie.payload.ordering.field", "seq", "ts"),
        ("hoodie.datasource.write.keygenerator.class", "SimpleKeyGenerator", "ComplexKeyGenerator"),
        ("hoodie.datasource.write.keygenerator.type", "SIMPLE", "ComplexKeyGenerator"),
        ("hoodie.datasource.write.hive_style_partitioning", "false", "true"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true", "false"),
        ("hoodie.table.timeline.timezone", "LOCAL", "UTC"),
    ],
)
def test_an_option_that_contradicts_the_table_is_refused_with_both_values(key, value, stored):
    with pytest.raises(ConflictingOptionError) as e:
        check_against_table({key: value}, TABLE)
    assert e.value.message.startswith("Config conflict")
    assert key in str(e.value)
    assert f"{value}'" in str(e.value)
    assert stored in str(e.value)


@pytest.mark.req("NEW-15")
def test_one_error_names_every_option_that_contradicts():
    with pytest.raises(ConflictingOptionError) as e:
        check_against_table({"hoodie.table.name": "x", "hoodie.table.precombine.field": "y"}, TABLE)
    assert e.value.details["options"] == ["hoodie.table.name", "hoodie.table.precombine.field"]


def test_what_a_table_does_not_store_contradicts_nothing_where_it_may_vary():
    bare = {"hoodie.table.name": "trips", "hoodie.table.recordkey.fields": "uuid,day"}
    check_against_table({"hoodie.datasource.write.precombine.field": "ts"}, bare)
    check_against_table({"hoodie.datasource.write.keygenerator.class": "ComplexKeyGenerator"}, bare)


def test_keys_and_partitions_that_a_table_does_not_store_are_contradicted_by_any():
    bare = {"hoodie.table.name": "trips"}
    for key in ("hoodie.datasource.write.recordkey.field", "hoodie.datasource.write.partitionpath.field"):
        with pytest.raises(ConflictingOptionError):
            check_against_table({key: "a"}, bare)
    check_against_table({"hoodie.datasource.write.partitionpath.field": ""}, bare)


def test_partition_fields_with_types_and_names_of_1x_are_compared_by_name():
    newer = {
        "hoodie.table.partition.fields": "city:SIMPLE",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.table.keygenerator.type": "COMPLEX",
    }
    check_against_table(
        {
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        },
        newer,
    )
    with pytest.raises(ConflictingOptionError):
        check_against_table({"hoodie.table.ordering.fields": "seq"}, newer)
