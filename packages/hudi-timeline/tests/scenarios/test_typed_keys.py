"""Keys, partitions and columns of dates, times, numbers and UUIDs, as Python's programs have them."""

import uuid

import pandas as pd
import pyarrow as pa
import pytest
from typed_tables import DAY, MOMENT, NULLS, SCHEMA, UTC, create, stored

from hudi_format.errors import SchemaError
from hudi_timeline import HudiTable, write_hudi


@pytest.fixture
def table(tmp_path):
    return create(tmp_path / "t")


KEYS = [
    [1],
    [1.0],
    pa.array([1], pa.int64()),
    pa.array([1], pa.uint8()),
    ["1"],
    [{"id": 1}],
    pa.table({"id": [1]}),
    pa.table({"id": ["1"]}),
]


@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_keys_of_other_types_find_the_same_rows(table, keys):
    table.insert([{"id": 1}, {"id": 2}], options=NULLS)
    assert table.get(keys, meta_columns=True)["id"].to_pylist() == [1]
    if not isinstance(keys, (pa.Array, list)) or isinstance(keys[0], dict):
        rows = keys if isinstance(keys, list) else keys.set_column(0, "id", pa.array([1.0]))
        assert table.delete(rows).deleted == 1


def test_keys_that_the_column_does_not_hold_are_refused(table):
    table.insert([{"id": 1}], options=NULLS)
    for keys in ([1.5], [True], [2**40], pa.array([1.5]), [{"id": 1.5}]):
        with pytest.raises(SchemaError, match="column id has type"):
            table.get(keys)
    for key in (1.5, True, 2**40, "1"):
        with pytest.raises(SchemaError, match="column id has type"):
            table.delete([{"id": key}])
    with pytest.raises(TypeError):
        table.get([1, "2"])
    with pytest.raises(TypeError):
        table.get(b"1")
    assert table.get([], meta_columns=True).num_rows == 0


# --- dates, times and UUIDs as Python's programs have them ---------------------------------------------------

ID = uuid.UUID(int=5)


def test_texts_of_times_without_a_zone_are_told_and_those_with_one_are_not(table):
    assert not table.upsert([{"id": 1, "at": "2024-02-29T12:30Z"}], options=NULLS).warnings
    told = table.upsert([{"id": 2, "at": "2024-02-29T12:30"}], options=NULLS).warnings
    assert [w for w in told if w.startswith("at: texts of times without a zone")] == list(told)
    assert stored(table, "at", 1) == stored(table, "at", 2) == MOMENT.replace(tzinfo=UTC)


@pytest.mark.parametrize("strict", [False, True])
def test_text_is_no_change_of_the_schema(table, strict):
    mode = {"schema_mode": "strict"} if strict else {}
    changes = table.schema_changes([{"id": 1, "day": "2024-02-29"}], options=NULLS)
    assert [str(c) for c in changes if c.kind != "filled"] == [
        "id converted from int64 to int32",
        "day converted from string to date32[day]",
    ]
    table.upsert([{"id": 1, "day": "2024-02-29"}], options=NULLS, **mode)
    assert table.schema.equals(SCHEMA)


def test_keys_and_partitions_of_dates_and_times_are_given_as_text(tmp_path):
    schema = pa.schema([("k", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("n", pa.int64())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, record_keys="k", partition_fields=["day"],
        options={"hoodie.datasource.write.hive_style_partitioning": "true"},
    )  # fmt: skip
    at, day = "2024-02-29T12:30:00Z", "2024-02-29"
    typed = {"k": MOMENT.replace(tzinfo=UTC), "day": DAY, "n": 1}
    table.upsert([typed])
    assert table.upsert([{"k": at, "day": day, "n": 2}]).updated == 1
    assert table.read().to_arrow().to_pylist() == [{**typed, "n": 2}]
    assert set(table.inspect.files().column("partition").to_pylist()) == {"day=2024-02-29"}
    for asked in (
        [at],
        at,
        pa.array([at, None]),
        {"k": [at]},
        [{"k": "2024-02-29 13:30+01:00"}],
        ["1709209800000000", "x"],
    ):
        assert table.get(asked).column("n").to_pylist() == [2], asked
    assert table.get(["2024-02-29", "2024-02-29T12:31Z"]).num_rows == 0
    assert table.delete([{"k": at, "day": day}]).deleted == 1
    assert table.read().to_arrow().num_rows == 0


def test_keys_of_dates_are_given_as_text_beside_other_keys(tmp_path):
    schema = pa.schema([("day", pa.date32()), ("city", pa.string()), ("n", pa.int64())])
    table = HudiTable.create(str(tmp_path / "t"), schema, record_keys=["day", "city"])
    table.upsert([{"day": "2024-02-29", "city": "oslo", "n": 1}])
    for asked in ({"day": ["2024-02-29", "soon"], "city": ["oslo", "oslo"]}, ["day:2024-02-29,city:oslo"]):
        assert table.get(asked).column("n").to_pylist() == [1]
    assert table.update({"n": 2}, "day = '2024-02-29'").updated == 1
    given = [{"day": "2024-02-29", "city": "oslo", "n": 7}]
    assert table.merge(given).when_matched_update().execute().updated == 1
    assert table.read().to_arrow().to_pylist() == [{"day": DAY, "city": "oslo", "n": 7}]


def test_uuids_make_a_table_whose_keys_and_columns_are_text(tmp_path):
    rows = [{"id": ID, "other": [ID]}]
    write_hudi(str(tmp_path / "t"), rows, key="id")
    write_hudi(str(tmp_path / "t"), pd.DataFrame(rows), key="id")
    table = HudiTable.open(str(tmp_path / "t"))
    assert table.read().to_arrow().to_pylist() == [{"id": str(ID), "other": [str(ID)]}]
    assert table.get([ID]).num_rows == 1
    assert table.delete([{"id": ID}]).deleted == 1
