"""Pruning never drops what a filter keeps."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_timeline.file_system_view.partition_values import partition_columns
from hudi_timeline.reading.filters import make_predicate
from hudi_timeline.reading.partition_pruning import PartitionPruner
from hudi_timeline.table_config import TableConfig

SCHEMA = pa.schema([("v", pa.int64()), ("city", pa.string()), ("n", pa.int32())])


def pruner(filter, *, fields="city,n", told=True, **properties):
    config = TableConfig(
        {"hoodie.table.partition.fields": fields, **{k.replace("_", "."): v for k, v in properties.items()}}
    )
    columns = partition_columns(config, SCHEMA, from_path=True)
    predicate = make_predicate(filter, SCHEMA)
    parts = (predicate.parts or (predicate,)) if told else ()
    return PartitionPruner(predicate.expression, SCHEMA, config, columns, parts)


@pytest.mark.req("QR-11")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        ("city = 'sf'", ["sf/1", "sf/2"]),
        ("city = 'sf' and n = 2", ["sf/2"]),
        ("n in (2, 3)", ["sf/2", "oslo/2"]),
        ("city like 'o%' or n = 1", ["sf/1", "oslo/2"]),
        ("city is null", ["__HIVE_DEFAULT_PARTITION__/7"]),
        ("not city = 'sf'", ["oslo/2"]),
        ("v > 5", ["sf/1", "sf/2", "oslo/2", "__HIVE_DEFAULT_PARTITION__/7"]),
        ("v > 5 and city = 'oslo'", ["oslo/2"]),
        ("v > 5 or city = 'oslo'", ["sf/1", "sf/2", "oslo/2", "__HIVE_DEFAULT_PARTITION__/7"]),
        ("city = 'nowhere'", []),
        ("v > 5 and city = 'sf' and n > 1", ["sf/2"]),
        ("city = 'sf' and (n = 2 or v > 5)", ["sf/1", "sf/2"]),
        ("(city = 'sf' and n = 2) and v > 5", ["sf/2"]),
        ("city = 'sf' and n = 2 or city = 'oslo'", ["sf/2", "oslo/2"]),
    ],
)
def test_partitions_whose_values_cannot_match_are_dropped(filter, kept):
    paths = ["sf/1", "sf/2", "oslo/2", "__HIVE_DEFAULT_PARTITION__/7"]
    for told in (True, False):  # by the values of all paths at once, and path by path
        keep = pruner(filter, told=told).keep(paths)
        assert [p for p, k in zip(paths, keep, strict=True) if k] == kept


@pytest.mark.req("QR-11")
@pytest.mark.parametrize("told", [True, False])
def test_a_value_of_which_the_filter_cannot_be_computed_drops_nothing(told):
    filter = pc.field("city").cast(pa.int64()) > 3
    kept = pruner(filter, told=told).keep(["sf/1", "5/1", "2/1"])
    assert kept[:2] == [True, True]
    assert pruner(filter, told=told).keep(["5/1", "2/1"]) == [True, False]


def test_a_path_that_says_no_values_is_kept():
    assert pruner("city = 'sf'").keep(["oslo", "a/b/c", "oslo/x", "sf/1"]) == [True] * 4
    assert pruner("city = 'sf'").keep(["oslo/x", "oslo/1"]) == [True, False]


@pytest.mark.parametrize("told", [True, False])
def test_a_leading_value_prunes_the_folders_above_partitions(told):
    assert pruner("city = 'sf'", told=told).keep_below(["sf", "oslo"]) == [True, False]
    for filter in ("city = 'sf' and n = 2 and v > 5", "city = 'sf' and (n = 2 or v > 5)"):
        assert pruner(filter, told=told).keep_below(["sf", "oslo"]) == [True, False]
    for filter in ("n = 2", "v > 5", "city = 'sf' or n = 2"):
        assert pruner(filter, told=told).keep_below(["sf", "oslo"]) == [True, True]
    assert pruner("n = 2").keep_below(["sf", "oslo"]) == [True, True]


def test_a_hive_style_value_may_go_on_in_the_next_folder():
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    config = TableConfig({"hoodie.table.partition.fields": "city,n", **hive})
    encoded = TableConfig({**config.properties, "hoodie.datasource.write.partitionpath.urlencode": "true"})
    columns = partition_columns(config, SCHEMA, from_path=True)
    filter = make_predicate("city = 'a/b'", SCHEMA).expression
    assert PartitionPruner(filter, SCHEMA, config, columns).keep_below(["city=a"]) == [True]
    assert PartitionPruner(filter, SCHEMA, encoded, columns).keep_below(["city=a", "other"]) == [False, True]


def test_a_path_of_formatted_values_prunes_by_what_it_says_alone():
    custom = {"hoodie_table_keygenerator_class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    paths = ["sf/1", "sf/2024-01-01", "oslo/2024-01-01", "sf/2024/01", "oslo/2"]
    for told in (True, False):
        by_city = pruner("city = 'sf'", told=told, **custom)
        assert by_city.keep(paths) == [True, True, False, True, False]
        assert pruner("n = 2", told=told, **custom).keep(paths) == [False, True, True, True, True]
        assert pruner("n = 2 and city = 'sf'", told=told, **custom).keep(paths) == [
            False,
            True,
            False,
            True,
            False,
        ]
        # `oslo` may be half of a value, and a partition inside of another one have another form.
        assert by_city.keep_below(["sf", "oslo"]) == [True, True]
        assert pruner("n = 2", fields="n", told=told, **custom).keep_inside(["2024"]) == [True]
        assert pruner("n = 2", fields="n", told=told).keep_inside(["2024"]) == [False]


def test_one_field_does_not_prune_folders_above_partitions():
    assert pruner("city = '2024/03/05'", fields="city").keep_below(["2024"]) == [True]


def _inside(filter, paths, **properties):
    keep = pruner(filter, **properties).keep_inside(paths)
    return [p for p, k in zip(paths, keep, strict=True) if k]


@pytest.mark.req("QR-11")
def test_a_partition_may_hold_wanted_ones_only_where_values_begin_with_its_own():
    folders = ["2023", "2024", "2024/01", "2024!", "20240", "__HIVE_DEFAULT_PARTITION__"]
    assert _inside("city = '2024/01/05'", folders, fields="city") == ["2024", "2024/01"]
    assert _inside("city = '2025'", folders, fields="city") == []
    assert _inside("city in ('2023/1', '20240/7')", folders, fields="city") == ["2023", "20240"]
    assert _inside("city like '%x'", folders, fields="city") == folders
    assert _inside("v > 5", folders, fields="city") == folders
    assert _inside("n = 2", ["1", "2"], fields="n") == []  # the text of a number has no slash


@pytest.mark.req("QR-11")
def test_levels_of_several_fields_hold_no_partitions_unless_values_may_go_on():
    assert _inside("city = 'sf'", ["oslo/1", "sf/1"], fields="city,n") == []
    config = {
        "hoodie.table.partition.fields": "n,city",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    columns = partition_columns(TableConfig(config), SCHEMA, from_path=True)
    paths = ["n=1/city=a", "n=2/city=a", "n=2/city=b", "n=2/x/city=a"]
    hive = PartitionPruner(
        make_predicate("city = 'a/b' and n = 2", SCHEMA).expression, SCHEMA, TableConfig(config), columns
    )
    assert list(hive.keep_inside(paths)) == [False, True, False, True]
    encoded = {**config, "hoodie.datasource.write.partitionpath.urlencode": "true"}
    hive = PartitionPruner(
        make_predicate("city = 'a/b'", SCHEMA).expression, SCHEMA, TableConfig(encoded), columns
    )
    assert list(hive.keep_inside(paths)) == [False] * 4


@given(
    folders=st.lists(st.text("ab/0!%é", min_size=1, max_size=4), min_size=1, max_size=12, unique=True),
    inner=st.text("ab/0", min_size=1, max_size=2),
    wanted=st.text("ab/0!é", max_size=5),
    operator=st.sampled_from(["=", ">=", "<", ">"]),
)
@settings(max_examples=100)
def test_no_wanted_value_inside_of_a_partition_is_lost(folders, inner, wanted, operator):
    from hudi_format.keygen.partition_path import split_values

    keep = pruner(f"city {operator} '{wanted}'", fields="city").keep_inside(folders)
    for folder, kept in zip(folders, keep, strict=True):
        value = split_values(f"{folder}/{inner}", ["city"])[0]
        passes = {"=": value == wanted, ">=": value >= wanted, "<": value < wanted, ">": value > wanted}
        assert kept or not passes[operator]


def test_many_partitions_are_decided_at_once():
    paths = [f"c{n % 100}/{n}" for n in range(5000)]
    assert sum(pruner("city = 'c7' and n < 2000").keep(paths)) == 20
