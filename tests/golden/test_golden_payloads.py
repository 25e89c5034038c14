"""The payloads of Debezium, as Apache Hudi 0.15.0, 1.0.2 and 1.2.0 read what they wrote.

Made by tools/golden/make_payload_tables.py.
"""

import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import UnsupportedError
from hudi_timeline.table import HudiTable

POSTGRES = [
    t for v in ("v6", "v8", "v9") for t in golden(f"payloads_{v}", "payload_PostgresDebeziumAvroPayload")
]
MYSQL = [t for v in ("v6", "v8") for t in golden(f"payloads_{v}", "payload_MySqlDebeziumAvroPayload")]
TIES = [t for v in ("v6", "v8") for t in golden(f"payloads_{v}", "payload_MySqlDebezium_ties")]
BOTH = [*MYSQL, *TIES, *golden("payloads_v9", "payload_MySqlDebezium_ordered"), *POSTGRES]


def by_key(rows):
    return {r["id"]: r for r in rows.to_pylist()}


@pytest.mark.req("PM-08", "PM-10", "PM-12")
@pytest.mark.parametrize("memory", [None, "1"])
@pytest.mark.parametrize("table", POSTGRES, ids=str)
def test_values_that_postgres_did_not_send_are_those_that_were_stored(opened, table, memory):
    options = {} if memory is None else {"hoodie.memory.merge.max.size": memory}
    found = opened(table).read(options=options, meta_columns=True).to_arrow()
    expected = table.question(SNAPSHOT).expected()
    if "v9" in table.version:
        # Apache Hudi 1.2.0 means to fill bytes too, and compares them with text; 0.15.0 and 1.0.2 fill them.
        column = expected.schema.get_field_index("b")
        marker = b"__debezium_unavailable_value"
        values = expected.column("b").to_pylist()
        assert values.count(marker) == 1
        filled = [b"b" if v == marker else v for v in values]
        expected = expected.set_column(column, expected.schema.field("b"), [filled])
    assert_same_answer(found, expected)


# Sequences are texts, `file.position`.  Apache Hudi 0.15.0 and 1.0.2 compare them as numbers with the stored row, and
# as texts within a log: there 2.999 is after 10.1, and a delete at 8.1 after a change at 10.5.  1.2.0 compares numbers.
WRONG = {
    "payloads_v6": {"k02": ("v3", "v4")},
    "payloads_v8": {"k00": (None, "v2"), "k04": ("v3", None), "k06": (None, "v3")},
}


@pytest.mark.req("PM-08", "PM-10", "PM-12")
@pytest.mark.parametrize("table", MYSQL, ids=str)
def test_places_in_the_log_of_mysql_are_compared_as_numbers(opened, table):
    found, theirs = (
        by_key(opened(table).read(meta_columns=True).to_arrow()),
        by_key(table.question(SNAPSHOT).expected()),
    )
    wrong = WRONG[table.version]
    for key in sorted({*found, *theirs}):
        if key in wrong:
            values = tuple(rows[key]["v"] if key in rows else None for rows in (theirs, found))
            assert values == wrong[key], key
        else:
            assert found.get(key) == theirs.get(key), key


@pytest.mark.req("PM-08", "PM-10", "PM-12")
@pytest.mark.parametrize("table", TIES, ids=str)
def test_changes_and_deletes_at_the_same_place_in_the_log_of_mysql(opened, table):
    assert_same_answer(opened(table).read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())


@pytest.mark.req("PM-08", "PM-12")
def test_mysql_with_two_ordering_fields(opened):
    (table,) = golden("payloads_v9", "payload_MySqlDebezium_ordered")
    assert_same_answer(opened(table).read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())


@pytest.mark.parametrize("table", BOTH, ids=str)
def test_base_files_alone(opened, table):
    found = opened(table).read(query=READ_OPTIMIZED, meta_columns=True).to_arrow()
    assert_same_answer(found, table.question(READ_OPTIMIZED).expected())


@pytest.mark.parametrize("table", [*POSTGRES, *MYSQL], ids=str)
def test_one_column_of_a_table_whose_payload_looks_at_others(opened, table):
    whole = opened(table).read(meta_columns=True).to_arrow().sort_by("id")
    alone = opened(table).read(["id", "v"]).to_arrow().sort_by("id")
    assert alone.equals(whole.select(["id", "v"]))


@pytest.mark.req("PM-13")
def test_an_ordering_field_that_is_not_the_payloads_own_is_refused(tmp_path):
    (table,) = golden("payloads_v6", "payload_PostgresDebeziumAvroPayload")
    path = table.unpack(tmp_path)
    file = path / ".hoodie" / "hoodie.properties"
    text = file.read_text()
    assert "hoodie.table.precombine.field=_event_lsn" in text
    file.write_text(text.replace("precombine.field=_event_lsn", "precombine.field=seq"))
    with pytest.raises(UnsupportedError, match=r"by _event_lsn, but the table orders them by seq"):
        HudiTable.open(str(path)).read().to_arrow()


@pytest.mark.req("PM-09", "PM-12")
@pytest.mark.parametrize("name", ["custom_OverwriteNonDefaultsWithLatest", "custom_PartialUpdate"])
def test_deletes_among_records_of_custom_payloads_of_version_8(opened, name):
    (table,) = golden("payloads_v8", name)
    assert_same_answer(opened(table).read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())


def test_deletes_that_are_ordered_otherwise_than_the_payloads_records_are_refused(opened):
    """Apache Hudi 1.0.2 lets a delete win over an equal record where the payload lets the first record win."""
    (table,) = golden("payloads_v8", "custom_FirstValue")
    with pytest.raises(
        UnsupportedError, match="deletes with ordering values are not supported among records of"
    ) as e:
        opened(table).read().to_arrow()
    assert e.value.remedy
