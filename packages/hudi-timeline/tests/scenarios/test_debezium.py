"""Upserts with the payloads of Debezium; tests/interop/test_payloads.py makes the same writes with Apache Hudi."""

import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import table_config
from hudi_timeline.table import HudiTable

GONE = "__debezium_unavailable_value"
PAYLOAD = "hoodie.datasource.write.payload.class"
MODELS = "org.apache.hudi.common.model.debezium."


def table_of(tmp_path, payload, ordering, first):
    made = HudiTable.create(
        str(tmp_path / "t"), first.schema, name="t", record_keys=["id"], ordering_fields=[ordering],
        options={PAYLOAD: MODELS + payload},
    )  # fmt: skip
    made.upsert(first, options={PAYLOAD: MODELS + payload})
    return HudiTable.open(str(tmp_path / "t"))


def values(table, *names):
    rows = table.read(["id", *names]).to_arrow().to_pylist()
    return {r["id"]: tuple(r[n] for n in names) for r in rows}


def postgres(*rows):
    names = ["id", "_event_lsn", "v", "b", "_change_operation_type"]
    kinds = [pa.string(), pa.int64(), pa.string(), pa.binary(), pa.string()]
    columns = [pa.array([r[n] for r in rows], kind) for n, kind in enumerate(kinds)]
    return pa.table(columns, names=names)


@pytest.mark.req("PM-08", "PM-10")
def test_what_postgres_did_not_send_stays_as_it_was(tmp_path):
    first = postgres(*((f"k{n}", 100, f"v{n}", b"b", "c") for n in range(8)))
    table = table_of(tmp_path, "PostgresDebeziumAvroPayload", "_event_lsn", first)
    table.upsert(
        postgres(
            ("k0", 150, GONE, b"new", "u"),
            ("k1", 150, "new", GONE.encode(), "u"),
            ("k2", 50, "late", b"late", "u"),
            ("k3", 150, None, b"new", "u"),  # null is a value
            ("k4", 150, GONE, b"b", "d"),
            ("k5", 50, "late", b"late", "d"),  # a late delete loses
            ("k6", 100, "same", GONE.encode(), "u"),
            ("k9", 1, GONE, b"b", "c"),  # there is nothing that it could stay as
            ("k7", 200, "first", b"b", "u"),
            ("k7", 300, GONE, b"b", "u"),  # of one write only the greatest one meets the stored row
        )
    )
    assert values(table, "v", "b") == {
        "k0": ("v0", b"new"), "k1": ("new", b"b"), "k2": ("v2", b"b"), "k3": (None, b"new"), "k5": ("v5", b"b"),
        "k6": ("same", b"b"), "k7": ("v7", b"b"), "k9": (GONE, b"b"),
    }  # fmt: skip


@pytest.mark.req("PM-08", "PM-10")
def test_places_in_mysqls_log_are_compared_as_numbers(tmp_path):
    def rows(*given):
        names = ["id", "_event_seq", "v", "_change_operation_type"]
        return pa.table([pa.array(c, pa.string()) for c in zip(*given, strict=True)], names=names)

    first = rows(*((f"k{n}", "2.100", "v1", "c") for n in range(7)))
    table = table_of(tmp_path, "MySqlDebeziumAvroPayload", "_event_seq", first)
    table.upsert(
        rows(
            ("k0", "10.5", "new", "u"), ("k1", "2.99", "late", "u"), ("k2", "2.1000", "new", "u"),
            ("k3", "2.100", "same", "u"), ("k4", "10.1", "gone", "d"), ("k5", "1.500", "late", "d"),
            ("k6", "2.999", "older", "u"), ("k6", "10.1", "newer", "u"),
        )
    )  # fmt: skip
    assert values(table, "v") == {
        "k0": ("new",), "k1": ("v1",), "k2": ("new",), "k3": ("v1",), "k5": ("v1",), "k6": ("newer",),
    }  # fmt: skip


@pytest.mark.req("PM-13")
def test_another_ordering_field_or_a_global_index_is_refused(tmp_path):
    first = postgres(("k0", 1, "v", b"b", "c"))
    options = {PAYLOAD: MODELS + "PostgresDebeziumAvroPayload"}
    made = HudiTable.create(
        str(tmp_path / "a"),
        first.schema,
        name="t",
        record_keys=["id"],
        ordering_fields=["v"],
        options=options,
    )
    with pytest.raises(UnsupportedError, match="_event_lsn, but the table orders them by v"):
        made.upsert(first, options=options)
    table = table_of(tmp_path, "PostgresDebeziumAvroPayload", "_event_lsn", first)
    with pytest.raises(UnsupportedError, match="PostgresDebeziumAvroPayload is not supported with GLOBAL"):
        table.upsert(first, options={"hoodie.index.type": "GLOBAL_SIMPLE"})


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
@pytest.mark.parametrize(
    "merge", [{PAYLOAD: MODELS + "PostgresDebeziumAvroPayload"}, {"hudi.merge": {"_event_lsn": "max"}}]
)
def test_a_merge_on_read_table_with_such_a_merge_takes_no_index_over_all_partitions(tmp_path, index, merge):
    """Nor for a delete: the table would remember the index, and refuse every upsert from then on."""
    first = postgres(("k0", 1, "v", b"b", "c"))
    given = {
        "name": "t", "table_type": "MERGE_ON_READ", "record_keys": ["id"], "partition_fields": ["v"],
        "ordering_fields": ["_event_lsn"],
    }  # fmt: skip
    chosen = {"hoodie.index.type": index}
    if index == "RECORD_INDEX":
        chosen["hoodie.metadata.record.index.enable"] = "true"
    with pytest.raises(UnsupportedError, match=f"is not supported with {index}"):
        HudiTable.create(str(tmp_path / "t"), first.schema, **given, options=merge | chosen)
    assert not (tmp_path / "t").exists()
    table = HudiTable.create(str(tmp_path / "t"), first.schema, **given, options=merge)
    table.upsert(first)
    before = sorted(tmp_path.rglob("*"))
    for operation in (table.insert, table.upsert, table.delete, table.bulk_insert):
        with pytest.raises(UnsupportedError, match=f"is not supported with {index}"):
            operation(first, options=chosen)
    with pytest.raises(UnsupportedError, match=f"is not supported with {index}"):
        table.delete_partitions(["v"], options=chosen)
    assert sorted(tmp_path.rglob("*")) == before
    table.upsert(first)


def test_a_table_that_remembers_such_an_index_is_deleted_from_and_leaves_it(tmp_path):
    """As earlier versions left it after a delete with the index."""
    first = postgres(("k0", 1, "v", b"b", "c"), ("k1", 1, "v", b"b", "c"))
    table = table_of(tmp_path, "PostgresDebeziumAvroPayload", "_event_lsn", first)
    table_config.update(table.storage, {"hudi.index.type": "GLOBAL_SIMPLE"})
    table = HudiTable.open(str(tmp_path / "t"))
    table.delete(first.slice(0, 1))
    with pytest.raises(UnsupportedError, match=r"hudi\.index\.allow\.switch=true"):
        table.upsert(first)
    table.upsert(first, options={"hoodie.index.type": "SIMPLE", "hudi.index.allow.switch": "true"})
    table.upsert(first.slice(1))
    assert values(table, "v") == {"k0": ("v",), "k1": ("v",)}
