"""Index records as they are written: what reading gives back is what was put in."""

import base64
import datetime as dt
import math
import zlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.avro.decoder import Decoder
from hudi_format.hfile.reader import HFileReader
from hudi_format.hfile.records import decode_entries
from hudi_format.parquet.row_groups import ColumnChunk, RowGroup
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.encoding import hfile_of, stored_schema
from hudi_index.metadata_table.index_records import (
    ColumnRange,
    FooterFilter,
    bloom_filter_records,
    column_stats_records,
    lacks_bounds,
    location_records,
    ranges_of,
)
from hudi_index.record_index import located


def stored(partition, records):
    """Records after a way through an HFile."""
    file = HFileReader.from_buffer(memoryview(hfile_of(records)), path="x")
    decoder = Decoder(file.schema, arrow_schema=r.schema_of(partition))
    return pa.Table.from_batches([decode_entries(b, decoder) for b in file.batches()])


VALUES = [
    pa.scalar(True),
    pa.scalar(-3, pa.int32()),
    pa.scalar(2**62),
    pa.scalar("é"),
    pa.scalar(dt.date(1960, 1, 1)),
    pa.scalar(Decimal("-1.25"), pa.decimal128(10, 2)),
    pa.scalar(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", "UTC")),
]


@pytest.mark.req("MT-05")
@pytest.mark.parametrize("value", VALUES, ids=lambda v: str(v.type))
def test_bounds_come_back_in_the_columns_type(value):
    records = column_stats_records({("p", "f.parquet"): {"c": ColumnRange(value, value, 5, 1, 10, 20)}})
    (batch,) = stored(k.COLUMN_STATS, records).combine_chunks().to_batches()
    (found,) = batch.to_pylist()
    assert found["key"] == k.column_stats_key("c", "p", "f.parquet")
    assert r.bounds(batch.column(r.STATS), value.type) == (pa.array([value]), pa.array([value]))
    names = ("fileName", "columnName", "valueCount", "nullCount", "isDeleted")
    assert [found[r.STATS][n] for n in names] == ["f.parquet", "c", 5, 1, False]


def bounds_of(low, high):
    """Bounds as records have them, and as they are read."""
    records = column_stats_records({("", "f.parquet"): {"c": ColumnRange(low, high, 2, 0)}})
    (batch,) = stored(k.COLUMN_STATS, records).combine_chunks().to_batches()
    found = tuple(side[0].as_py() for side in r.bounds(batch.column(r.STATS), low.type))
    (said,) = records.column(2).to_pylist()
    members = [{n: m["value"] for n, m in said[side].items() if m} for side in ("minValue", "maxValue")]
    return members, found


@pytest.mark.req("MT-05")
@pytest.mark.parametrize(
    "value",
    [Decimal(10**27) + Decimal("1E-10"), Decimal(1 - 10**28), Decimal("1234567890123456"), Decimal("-1E15")],
)
def test_decimals_of_more_digits_than_the_records_type_are_bytes(value):
    """Apache Hudi's own compaction makes bytes of all."""
    value = pa.scalar(value, pa.decimal128(38, 10))
    members, found = bounds_of(value, value)
    assert found == (value.as_py(), value.as_py())
    assert {n for of in members for n in of} == {"member5"}
    assert int.from_bytes(members[0]["member5"], signed=True) == int(value.as_py().scaleb(15))


def test_decimals_of_more_digits_behind_the_point_have_wider_bounds():
    kind = pa.decimal128(38, 20)
    low, high = pa.scalar(Decimal("-1E-20"), kind), pa.scalar(Decimal("1E-20"), kind)
    _, found = bounds_of(low, high)
    assert found == (Decimal("-1E-15"), Decimal("1E-15"))
    most = pa.scalar(Decimal(10**20 - 1).scaleb(-20), pa.decimal128(20, 20))
    for one in (
        ColumnRange(most, most, 1, 0),
        ColumnRange(low, pa.scalar(None, kind), 1, 0),
        ColumnRange(values=1),
    ):
        assert lacks_bounds(one)  # rounded up, it is no value of its type
    never = pa.scalar(2**63 - 1, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    assert lacks_bounds(ColumnRange(never, never, 1, 0))  # records have microseconds of 64 bits
    assert not lacks_bounds(ColumnRange(values=3, nulls=3))
    assert not lacks_bounds(ColumnRange(low, high, 1, 0))


@pytest.mark.parametrize(
    ("value", "member", "said"),
    [
        (pa.scalar(dt.datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("ms", "UTC")), 2, (10**6, 10**6)),
        (pa.scalar(-1, pa.int64()).cast(pa.timestamp("ns")), 2, (-1, 0)),
        (pa.scalar(dt.time(0, 0, 1), pa.time32("ms")), 1, (1000, 1000)),
        (pa.scalar(dt.time(0, 0, 1), pa.time64("us")), 2, (10**6, 10**6)),
        (pa.scalar(b"abc", pa.binary(3)), 5, (b"abc", b"abc")),
        (pa.scalar("a", pa.large_string()), 6, ("a", "a")),
    ],
    ids=lambda v: str(getattr(v, "type", "")),
)
def test_bounds_are_what_apache_hudi_takes_them_for(value, member, said):
    """It takes all times for microseconds."""
    records = column_stats_records({("", "f.parquet"): {"c": ColumnRange(value, value, 1, 0)}})
    (found,) = records.column(2).to_pylist()
    assert tuple(found[side][f"member{member}"]["value"] for side in ("minValue", "maxValue")) == said


def test_struck_out_statistics_say_so():
    records = column_stats_records({}, {("p", "f.parquet"): ["a", "b"]})
    table = stored(k.COLUMN_STATS, records)
    assert table.num_rows == 2
    assert all(row["ColumnStatsMetadata"]["isDeleted"] for row in table.to_pylist())


def chunk(low, high, values=4, nulls=0):
    return ColumnChunk("c", "SNAPPY", values, 20, 10, False, nulls, low, high)


def test_ranges_cover_all_row_groups():
    groups = [RowGroup(4, {"c": chunk(5, 9)}), RowGroup(4, {"c": chunk(-2, 3, nulls=1)})]
    found = ranges_of(groups, {"c": pa.int64(), "other": pa.int64()})
    assert found.keys() == {"c"}
    assert (found["c"].low.as_py(), found["c"].high.as_py()) == (-2, 9)
    assert (found["c"].values, found["c"].nulls, found["c"].packed, found["c"].unpacked) == (8, 1, 20, 40)


def test_a_row_group_of_nulls_does_not_hide_the_bounds_of_others_and_one_without_statistics_does():
    nulls = RowGroup(4, {"c": chunk(None, None, nulls=4)})
    known, unknown = RowGroup(4, {"c": chunk(1, 2)}), RowGroup(4, {"c": chunk(None, None)})
    assert ranges_of([nulls, known], {"c": pa.int64()})["c"].high.as_py() == 2
    assert ranges_of([nulls], {"c": pa.int64()})["c"].high is None
    # Apache Hudi leaves files out whose bounds are null.
    for kind, low, high in (
        (pa.int32(), -(1 << 31), (1 << 31) - 1),
        (pa.int64(), -(1 << 63), (1 << 63) - 1),
        (pa.bool_(), False, True),
        (pa.float32(), -math.inf, math.inf),
        (pa.string(), "", "\U0010ffff" * 64),
        (pa.binary(), b"", b"\xff" * 64),
        (pa.binary(2), b"\x00\x00", b"\xff\xff"),
        (pa.decimal128(5, 2), Decimal("-999.99"), Decimal("999.99")),
        (pa.date32(), -(10**7), 10**7),
        (pa.timestamp("us", "UTC"), -(10**18), 10**18),
        (pa.timestamp("ms"), -(10**15), 10**15),
        (pa.time64("us"), 0, 86_400_000_000 - 1),
    ):
        found = ranges_of([unknown], {"c": kind})["c"]
        assert not lacks_bounds(found)
        told = (b.value if pa.types.is_temporal(kind) else b.as_py() for b in (found.low, found.high))
        assert tuple(told) == (low, high)
    for kind in (pa.decimal128(20, 20), pa.month_day_nano_interval()):
        assert lacks_bounds(ranges_of([unknown], {"c": kind})["c"])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_bounds_of_floats_end_in_infinity_as_parquets_leave_nan_out(kind):
    found = ranges_of([RowGroup(4, {"c": chunk(1.0, 2.0)})], {"c": kind})
    assert (found["c"].low.as_py(), found["c"].high.as_py(), found["c"].values) == (1.0, math.inf, 4)
    (record,) = column_stats_records({("", "f.parquet"): found}).column(2).to_pylist()
    member = 3 if kind == pa.float32() else 4
    assert record["minValue"][f"member{member}"] == {"value": 1.0}
    assert record["maxValue"][f"member{member}"] == {"value": math.inf}


@pytest.mark.req("MT-04")
@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ("a", "b\ud7ff", ("a", "b\ud7ff")),
        ("a", "b😀", ("a", "c")),
        ("\ue000", "😀", ("\ue000", "😀")),  # as Apache Hudi's own: no text is behind all
        ("a\uffff", "b", ("a", "b")),
    ],
)
def test_bounds_of_record_keys_hold_in_the_order_of_java_too(low, high, said):
    """Apache Hudi's index compares a key with them by UTF-16 units, and Parquet took them by bytes."""
    given = chunk(low.encode(), high.encode())
    found = ranges_of(
        [RowGroup(4, {"_hoodie_record_key": given, "v": given})],
        dict.fromkeys(("_hoodie_record_key", "v"), pa.string()),
    )
    assert (found["_hoodie_record_key"].low.as_py(), found["_hoodie_record_key"].high.as_py()) == said
    assert found["_hoodie_record_key"].values == found["v"].values
    assert (found["v"].low.as_py(), found["v"].high.as_py()) == (low, high)  # which filters compare by bytes


def test_bloom_filters_are_packed_by_their_runs_alone():
    """Repetitions in random bits are by chance: what looks for them takes three times as long, for more bytes."""
    bits = np.random.default_rng(1).random(800_000) < 0.1
    text = base64.b64encode(np.packbits(bits))
    size = len(hfile_of(bloom_filter_records({("p", "a.parquet"): FooterFilter("SIMPLE", text, "1")})))
    assert size - len(stored_schema()) < 0.95 * len(zlib.compress(text, 6))


def test_bloom_filters_come_back():
    records = bloom_filter_records(
        {("p", "a.parquet"): FooterFilter("DYNAMIC_V0", b"QUJD", "20260101000000000")},
        {("p", "b.parquet"): "20260101000000001"},
    )
    (batch,) = stored(k.BLOOM_FILTERS, records).combine_chunks().to_batches()
    found = {f.key: f for f in r.bloom_filters(batch)}
    live = found[k.bloom_filter_key("p", "a.parquet")]
    assert (live.type_code, live.text, live.instant, live.is_deleted) == (
        "DYNAMIC_V0", b"QUJD", "20260101000000000", False,
    )  # fmt: skip
    assert found[k.bloom_filter_key("p", "b.parquet")].is_deleted


@pytest.mark.req("MT-08", "MT-09")
@pytest.mark.parametrize(
    "file_id",
    [
        "030081e8-85e2-4846-b52c-d6052c9ca539-0",
        "ffffffff-ffff-ffff-ffff-ffffffffffff-12",
        "030081e8-85e2-4846-b52c-d6052c9ca539",
        "030081E8-85E2-4846-B52C-D6052C9CA539-0",
        "00000003-0a3e-4a1f-a6c5-e7e1b5f2ab33-00",
        "00000000-0000-0000-0000-000000000000-99999999999",
        "some-name",
        "",
    ],
)
def test_every_file_id_comes_back_as_it_is(file_id):
    records = location_records(pa.array(["k"]), np.array([0]), [("p", file_id)], 7)
    if not file_id:
        assert records.column(2).to_pylist()[0]["fileIdEncoding"] == 1
        return
    found = stored(k.RECORD_INDEX, records)
    assert located(found).by_key() == {"k": ("p", file_id)}
    assert found.to_pylist()[0][r.LOCATION]["instantTime"] == 7
