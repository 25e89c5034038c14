"""Upserts with the payloads of Debezium; tests/interop/test_payloads.py makes the same writes with Apache Hudi."""

import pyarrow as pa
import pytest

from hudi_format.errors import ConflictingOptionError, SchemaError, UnsupportedError
from hudi_timeline import table_config, write_hudi
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
def test_another_ordering_field_is_refused_with_a_way_round(tmp_path):
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
    with pytest.raises(UnsupportedError, match="_event_lsn, but the table orders them by v") as refused:
        made.upsert(first, options=options)
    assert refused.value.remedy == "make _event_lsn the table's ordering field, or use Apache Hudi."
    assert made.read().count() == 0


@pytest.mark.sampled(6)
@pytest.mark.req("IX-06", "IX-08", "IX-12", "PM-10")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_postgres_did_not_send_goes_along_to_another_partition(tmp_path, kind, index):
    chosen = {
        "hoodie.index.type": index, PAYLOAD: MODELS + "PostgresDebeziumAvroPayload",
        "hoodie.record.index.update.partition.path": "true", "hoodie.compact.inline": "false",
    }  # fmt: skip
    if index == "RECORD_INDEX":
        chosen["hoodie.metadata.record.index.enable"] = "true"

    def changes(*given):
        rows = [(key, lsn, v, b, op) for key, _, lsn, v, b, op in given]
        return postgres(*rows).append_column("p", pa.array([p for _, p, *_ in given]))

    table = HudiTable.create(
        str(tmp_path), changes(("k", "a", 1, "", b"", "c")).schema, name="t", table_type=kind, record_keys=["id"],
        partition_fields=["p"], ordering_fields=["_event_lsn"], options=chosen,
    )  # fmt: skip

    def held():
        found = table.read(["id", "_hoodie_partition_path", "v", "b"]).to_arrow().to_pylist()
        return {r["id"]: (r["_hoodie_partition_path"], r["v"], r["b"]) for r in found}

    table.upsert(changes(*((f"k{n}", "a", 100, f"v{n}", b"b", "c") for n in range(7))), options=chosen)
    table.upsert(
        changes(
            ("k0", "b", 150, GONE, b"new", "u"), ("k1", "b", 50, "late", b"late", "u"),
            ("k2", "b", 150, "new", GONE.encode(), "u"), ("k3", "b", 150, GONE, b"b", "d"),
            ("k4", "b", 100, "same", GONE.encode(), "u"), ("k5", "a", 150, GONE, GONE.encode(), "u"),
            ("k6", "b", 150, "x", b"x", "u"), ("k6", "c", 200, GONE, b"y", "u"), ("n", "b", 1, GONE, b"n", "c"),
        ),
        options=chosen,
    )  # fmt: skip
    now = {
        "k0": ("b", "v0", b"new"), "k1": ("a", "v1", b"b"), "k2": ("b", "new", b"b"), "k4": ("b", "same", b"b"),
        "k5": ("a", "v5", b"b"), "k6": ("c", "v6", b"y"), "n": ("b", GONE, b"n"),
    }  # fmt: skip
    assert held() == now
    table.upsert(changes(("k0", "a", 160, GONE, GONE.encode(), "u")), options=chosen)
    table.delete(changes(("k5", "c", 0, "", b"", "")), options=chosen)
    assert held() == {k: v for k, v in now.items() if k != "k5"} | {"k0": ("a", "v0", b"new")}
    assert table.verify(deep=True) == []


def test_a_table_that_remembers_an_index_over_all_partitions_goes_on_with_it(tmp_path):
    """As earlier versions left it after a delete with the index, and refused its upserts."""
    first = postgres(("k0", 1, "v", b"b", "c"), ("k1", 1, "v", b"b", "c"))
    table = table_of(tmp_path, "PostgresDebeziumAvroPayload", "_event_lsn", first)
    table_config.update(table.storage, {"hudi.index.type": "GLOBAL_SIMPLE"})
    table = HudiTable.open(str(tmp_path / "t"))
    table.delete(first.slice(0, 1))
    table.upsert(first)
    assert values(table, "v") == {"k0": ("v",), "k1": ("v",)}
    with pytest.raises(ConflictingOptionError, match="unique over all partitions"):
        table.upsert(first, options={"hoodie.index.type": "SIMPLE"})


MYSQL = MODELS + "MySqlDebeziumAvroPayload"


def named(tmp_path, payload, ordering, kind="COPY_ON_WRITE"):
    return {
        "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", PAYLOAD: payload,
        "hoodie.datasource.write.precombine.field": ordering, "hoodie.datasource.write.table.type": kind,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "upsert"])
def test_a_position_that_no_later_write_could_compare_is_not_written_at_all(tmp_path, operation, kind):
    """It was inserted; then each upsert of the key failed, and of merge-on-read tables each read."""
    path, options = str(tmp_path / "t"), named(tmp_path, MYSQL, "_event_seq", kind)

    def rows(*given):
        return pa.table({"id": ["a", "b"], "_event_seq": given, "_change_operation_type": ["c", "c"]})

    write_hudi(path, rows("2.1", "2.2"), options=options)
    given = options | {"hoodie.datasource.write.operation": operation}
    for wrong in ("mysql-bin.000003.154", "3", "99999999999999999999.1"):
        with pytest.raises(SchemaError, match="log position") as refused:
            write_hudi(path, rows("2.9", wrong), options=given)
        assert "'_event_seq'" in str(refused.value)
        assert "3.154 for mysql-bin.000003" in refused.value.remedy
    write_hudi(path, rows("2.3", "2.3"), options=options)
    assert HudiTable.open(path).read(["_event_seq"]).to_arrow()["_event_seq"].to_pylist() == ["2.3", "2.3"]


@pytest.mark.parametrize(
    ("payload", "ordering", "values", "wanted"),
    [
        ("PostgresDebeziumAvroPayload", "_event_lsn", ["9", "10"], "a number"),
        ("PostgresDebeziumAvroPayload", "_event_lsn", [b"9", b"10"], "a number"),
        ("MySqlDebeziumAvroPayload", "_event_seq", [9, 10], "text such as 10.254"),
    ],
)
def test_a_column_of_another_type_than_the_payload_compares_is_refused(
    tmp_path, payload, ordering, values, wanted
):
    """Texts have another order than numbers: 9 would win over 10."""
    rows = pa.table({"id": ["a", "b"], ordering: values})
    for operation in ("insert", "upsert"):
        options = named(tmp_path, MODELS + payload, ordering) | {
            "hoodie.datasource.write.operation": operation
        }
        with pytest.raises(SchemaError, match=f"{payload} takes {wanted}.* in column {ordering}") as refused:
            write_hudi(str(tmp_path / "t"), rows, options=options)
        assert "cast the column" in refused.value.remedy


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("PostgresDebeziumAvroPayload", MODELS + "PostgresDebeziumAvroPayload"),
        ("debezium.PostgresDebeziumAvroPayload", MODELS + "PostgresDebeziumAvroPayload"),
        ("org.apache.hudi.common.model.PostgresDebeziumAvroPayload", MODELS + "PostgresDebeziumAvroPayload"),
        ("MySqlDebeziumAvroPayload", MYSQL),
        # Amazon's guides name it so, and Apache Hudi has it in both places.
        ("org.apache.hudi.payload.AWSDmsAvroPayload", "org.apache.hudi.common.model.AWSDmsAvroPayload"),
    ],
)
def test_a_payload_is_kept_by_the_name_that_each_release_of_apache_hudi_knows(tmp_path, given, kept):
    """Without its package, a payload of Debezium was stored by a name that no class has."""
    ordering = "_event_seq" if "MySql" in given else "_event_lsn"
    rows = pa.table({"id": ["a"], ordering: ["1.2"] if "MySql" in given else [1], "Op": ["I"]})
    path, options = str(tmp_path / "t"), named(tmp_path, given, ordering)
    write_hudi(path, rows, options=options)
    write_hudi(path, rows, options={**options, PAYLOAD: kept})
    write_hudi(path, rows, options=options)
    assert HudiTable.open(path).config.properties["hoodie.compaction.payload.class"] == kept
