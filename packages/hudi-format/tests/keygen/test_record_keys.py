"""Record keys and partition paths: against Apache Hudi's tables, and case by case."""

import math
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow import arrays
from hudi_format.errors import MissingColumnError, PartitionPathError, RecordKeyError, SchemaError
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.partition_path import HIVE_DEFAULT, segment, split_values
from hudi_format.keygen.record_keys import partition_paths, record_keys

DATA = Path(__file__).parent.parent / "data"


def spec(keys, partitions="", class_name=None, **style):
    return KeySpec.from_class(
        class_name, key_fields=keys.split(","), partition_fields=partitions.split(","), **style
    )


@pytest.mark.req("KG-02", "KG-03", "TL-08", "TL-09", "TL-15", "TL-21")
def test_keys_and_paths_of_every_golden_table_come_out_alike():
    groups = {}
    for row in pq.read_table(DATA / "golden_keys.parquet").to_pylist():
        settings = (
            row["table"], row["generator"], tuple(row["key_fields"]), tuple(row["partition_fields"]),
            row["hive_style"], row["url_encode"],
        )  # fmt: skip
        groups.setdefault(settings, []).append(row)
    kinds = set()
    for (_, generator, keys, partitions, hive_style, url_encode), rows in groups.items():
        made = KeySpec.from_class(
            generator,
            key_fields=keys,
            partition_fields=partitions,
            hive_style=hive_style,
            url_encode=url_encode,
        )
        batch = pa.RecordBatch.from_pylist([dict(r["values"]) for r in rows])
        assert record_keys(batch, made).to_pylist() == [r["record_key"] for r in rows]
        assert partition_paths(batch, made).to_pylist() == [r["partition_path"] for r in rows]
        assert made.class_name == generator
        kinds.add((made.kind, len(keys), len(partitions), hive_style))
    assert {k[0] for k in kinds} == {"SIMPLE", "COMPLEX", "NON_PARTITION"}
    assert len(groups) >= 50


# One upsert by Apache Hudi 0.15.0 on Java 17, five rows keyed by all these columns.
LIVE_SCHEMA = pa.schema(
    [
        ("i", pa.int32()), ("l", pa.int64()), ("s", pa.string()), ("b", pa.bool_()), ("f", pa.float32()),
        ("d", pa.float64()), ("dec", pa.decimal128(20, 9)), ("dec2", pa.decimal128(10, 2)),
        ("day", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("bin", pa.binary()),
        ("n", pa.struct([("x", pa.string()), ("y", pa.int32())])), ("sh", pa.int16()),
    ]
)  # fmt: skip
LIVE_ROWS = [
    (1, 2, "a:b,c", True, 1.5, 2.0**-44, Decimal("0.000000001"), Decimal("1.50"), date(2024, 3, 5),
     datetime(2024, 3, 5, 10, 0, 0, 123456), b"\x00\xab\xff", ("x", 1), 3),
    (-7, 2**62, "é 中😀", False, 3.0e-5, 1e23, Decimal("-12.5"), Decimal("0.00"), date(1, 1, 1),
     datetime(1969, 12, 31, 23, 59, 59, 999999), b"\x01", None, -3),
    (None, 1, "", None, None, None, None, None, None, None, None, None, None),
    (0, 0, None, True, -0.0, 0.0, Decimal("0"), Decimal("99999999.99"), date(9999, 12, 31),
     datetime(1970, 1, 1), b"\x7f", (None, None), 0),
    (5, 5, "z", True, 1e10, 12345678.9, Decimal("0.000001"), Decimal("-0.01"), date(1969, 7, 20),
     datetime(2262, 4, 11), b"", ("", 0), 0),
]  # fmt: skip
LIVE_KEYS = [
    "i:1,l:2,s:a:b,c,b:true,f:1.5,d:5.6843418860808015E-14,dec:1E-9,dec2:1.50,day:2024-03-05,"
    "ts:1709632800123456,bin:00abff,n.x:x,n.y:1,sh:3",
    "i:-7,l:4611686018427387904,s:é 中😀,b:false,f:3.0E-5,d:9.999999999999999E22,dec:-12.500000000,dec2:0.00,"
    "day:0001-01-01,ts:-1,bin:01,n.x:__null__,n.y:__null__,sh:-3",
    "i:__null__,l:1,s:__empty__,b:__null__,f:__null__,d:__null__,dec:__null__,dec2:__null__,day:__null__,"
    "ts:__null__,bin:__null__,n.x:__null__,n.y:__null__,sh:__null__",
    "i:0,l:0,s:__null__,b:true,f:-0.0,d:0.0,dec:0E-9,dec2:99999999.99,day:9999-12-31,ts:0,bin:7f,n.x:__null__,"
    "n.y:__null__,sh:0",
    "i:5,l:5,s:z,b:true,f:1.0E10,d:1.23456789E7,dec:0.000001000,dec2:-0.01,day:1969-07-20,ts:9223286400000000,"
    "bin:__empty__,n.x:__empty__,n.y:0,sh:0",
]
LIVE_PATHS = [
    "day=2024-03-05/dec=1E-9/ts=1709632800123456/b=true/f=1.5/n.x=x",
    f"day=0001-01-01/dec=-12.500000000/ts=-1/b=false/f=3.0E-5/n.x={HIVE_DEFAULT}",
    "/".join(f"{f}={HIVE_DEFAULT}" for f in ("day", "dec", "ts", "b", "f", "n.x")),
    f"day=9999-12-31/dec=0E-9/ts=0/b=true/f=-0.0/n.x={HIVE_DEFAULT}",
    f"day=1969-07-20/dec=0.000001000/ts=9223286400000000/b=true/f=1.0E10/n.x={HIVE_DEFAULT}",
]


def live_table():
    rows = []
    for row in LIVE_ROWS:
        values = dict(zip(LIVE_SCHEMA.names, row, strict=True))
        values["n"] = None if values["n"] is None else dict(zip("xy", values["n"], strict=True))
        rows.append(values)
    return pa.Table.from_pylist(rows, LIVE_SCHEMA)


@pytest.mark.req("KG-03", "TL-15", "TL-27")
def test_values_of_every_type_become_the_text_that_apache_hudi_writes():
    made = spec(
        "i,l,s,b,f,d,dec,dec2,day,ts,bin,n.x,n.y,sh", "day,dec,ts,b,f,n.x", hive_style=True, url_encode=True
    )
    table = live_table()
    assert record_keys(table, made).to_pylist() == LIVE_KEYS
    assert partition_paths(table, made).to_pylist() == LIVE_PATHS
    # In pieces, and from within larger arrays.
    pieces = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert record_keys(pieces, made).to_pylist() == LIVE_KEYS
    assert partition_paths(pieces, made).to_pylist() == LIVE_PATHS
    assert record_keys(table.slice(1, 3), made).to_pylist() == LIVE_KEYS[1:4]
    assert partition_paths(table.slice(1, 3).to_batches()[0], made).to_pylist() == LIVE_PATHS[1:4]


@pytest.mark.parametrize(
    ("array", "want"),
    [
        (pa.array([1, None], pa.timestamp("s")), ["1000000", None]),
        (pa.array([1, -1], pa.timestamp("ms", "UTC")), ["1000", "-1000"]),
        (pa.array([1999, -1, None], pa.timestamp("ns")), ["1", "-1", None]),
        (pa.array([date(2024, 3, 5)], pa.date64()), ["2024-03-05"]),
        (pa.array([2932897, -719529, 0], pa.date32()), ["+10000-01-01", "-0001-12-31", "1970-01-01"]),
        (pa.array([-719528, 2932896], pa.date32()), ["0000-01-01", "9999-12-31"]),
        (pa.array([Decimal("1.50"), Decimal("0.00")]), ["1.50", "0.00"]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array([1, None, 1]).dictionary_encode(), ["1", None, "1"]),
        (pa.array([b"\x0a", None], pa.large_binary()), ["0a", None]),
        (pa.array([b"ab"], pa.binary(2)), ["6162"]),
        (pa.nulls(2), [None, None]),
        (pa.array(["x"], pa.string_view()), ["x"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([0.0, -0.0, None, math.nan], pa.float64()), ["0.0", "-0.0", None, "NaN"]),
    ],
)
def test_to_text_of_further_layouts(array, want):
    assert to_text(array).to_pylist() == want
    assert to_text(pa.chunked_array([array, array[:0]])).to_pylist() == want
    assert to_text(array.slice(1)).to_pylist() == want[1:]


@given(st.lists(st.integers(-(10**37), 10**37), max_size=20))
def test_decimals_have_the_text_of_javas_bigdecimal(unscaled):
    # Python's decimal text follows the same rule as BigDecimal.toString: an exponent below 1E-6.
    values = [Decimal((int(u < 0), tuple(map(int, str(abs(u)))), -9)) for u in unscaled]
    assert to_text(pa.array(values, pa.decimal128(38, 9))).to_pylist() == [str(v) for v in values]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.time32("s"), pa.duration("s")]
)
def test_types_without_a_text_are_refused(kind):
    with pytest.raises(SchemaError, match="cannot be part of a record key"):
        to_text(pa.nulls(1, kind))


@pytest.mark.req("TL-15")
def test_one_field_gives_its_plain_text_whatever_the_generator():
    batch = pa.record_batch({"id": ["a", "b"], "p": ["x", "y"], "q": [1, 2]})
    for made in (spec("id", "p"), spec("id", "p,q"), spec("id"), spec("id", "p", "ComplexKeyGenerator")):
        assert record_keys(batch, made).to_pylist() == ["a", "b"]
    assert record_keys(batch, spec("q")).to_pylist() == ["1", "2"]
    assert record_keys(batch, spec("id,q", "p")).to_pylist() == ["id:a,q:1", "id:b,q:2"]


@pytest.mark.req("KG-02", "TL-16")
def test_a_table_without_partition_field_has_the_empty_path():
    batch = pa.record_batch({"id": ["a", "b"]})
    for made in (
        spec("id"),
        spec("id", class_name="ComplexKeyGenerator"),
        spec("id", "p", "NonpartitionedKeyGenerator"),
    ):
        assert partition_paths(batch, made).to_pylist() == ["", ""]
        assert made.partition_fields == ()


def test_missing_values_in_keys_are_refused_with_field_count_and_first_rows():
    batch = pa.record_batch({"id": ["a", None, "", "b", None, None], "n": [1, None, 2, None, None, 3]})
    with pytest.raises(
        RecordKeyError, match=r"field 'id' is null or empty in 4 of 6 rows, first in row 1, 2, 4"
    ) as e:
        record_keys(batch, spec("id"))
    assert e.value.details["column"] == "id"
    assert e.value.details["first_rows"] == [1, 2, 4]
    with pytest.raises(
        RecordKeyError, match=r"fields id, n are all null or empty in 2 of 6 rows, first in row 1, 4"
    ):
        record_keys(batch, spec("id,n"))
    some = record_keys(batch.take(pa.array([0, 2, 3, 5])), spec("id,n")).to_pylist()
    assert some == ["id:a,n:1", "id:__empty__,n:2", "id:b,n:__null__", "id:__null__,n:3"]


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("ID", "use 'id'"),
        ("nothing", "add the column"),
        ("s.z", "'s.z' is not in the data"),
        ("id.x", "'id.x' is not in the data"),
    ],
)
def test_missing_columns_are_named(name, match):
    batch = pa.record_batch({"id": ["a"], "s": pa.array([{"x": 1}])})
    for call in (lambda: record_keys(batch, spec(name)), lambda: partition_paths(batch, spec("id", name))):
        with pytest.raises(MissingColumnError, match=match) as e:
            call()
        assert e.value.details["column"] == name


def test_a_key_column_that_stands_twice_is_refused():
    batch = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["id", "id"])
    with pytest.raises(MissingColumnError, match="duplicated"):
        record_keys(batch, spec("id"))


values = st.one_of(st.none(), st.text(st.characters(exclude_characters="/\x00", codec="utf-8"), max_size=6))


@pytest.mark.req("TL-05", "TL-08", "TL-09")
@given(
    st.lists(st.tuples(values, values, st.one_of(st.none(), st.integers(-3, 3))), max_size=25), st.booleans()
)
def test_paths_are_made_of_segments_row_by_row(rows, hive):
    table = pa.table(
        {
            "k": pa.array(["k"] * len(rows), pa.string()),
            "a": pa.array([r[0] for r in rows], pa.string()),
            "b": pa.array([r[1] for r in rows], pa.string()).dictionary_encode(),
            "c": pa.array([r[2] for r in rows], pa.int64()),
        }
    )
    want = [
        "/".join(
            segment(f, None if v is None else str(v), hive_style=hive, url_encode=True)
            for f, v in zip("abc", row, strict=True)
        )
        for row in rows
    ]
    bad = any(s in (".", "..") for w in want for s in w.split("/")) or any(
        w.startswith(".hoodie/") for w in want
    )
    made = spec("k", "a,b,c", hive_style=hive, url_encode=True)
    if bad:
        with pytest.raises(PartitionPathError):
            partition_paths(table, made)
        return
    got = partition_paths(table, made)
    assert got.type == pa.dictionary(pa.int32(), pa.string())
    assert got.to_pylist() == want
    assert sorted(got.dictionary.to_pylist()) == sorted(set(want))
    assert got.null_count == 0


@pytest.mark.req("TL-08", "TL-09")
def test_null_empty_and_the_default_name_share_one_partition():
    batch = pa.record_batch({"id": list("abcd"), "p": [None, "", HIVE_DEFAULT, "x"]})
    got = partition_paths(batch, spec("id", "p"))
    assert got.dictionary.to_pylist() == [HIVE_DEFAULT, "x"]
    assert partition_paths(batch, spec("id", "p", hive_style=True)).to_pylist()[0] == f"p={HIVE_DEFAULT}"


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("hive", [False, True])
def test_what_would_be_read_back_as_null_is_refused_where_that_is_asked_for(hive, encode):
    texts = ["", HIVE_DEFAULT, f"p={HIVE_DEFAULT}", f"p=p={HIVE_DEFAULT}", f"q={HIVE_DEFAULT}", f"{HIVE_DEFAULT}/a",
             f"a/{HIVE_DEFAULT}", f"{HIVE_DEFAULT} ", "p=", " ", "null", "default"]  # fmt: skip
    made = replace(spec("id", "p", hive_style=hive, url_encode=encode), refuses_null_texts=True)
    nulls = 0
    for text in texts:
        batch = pa.record_batch({"id": list("abc"), "p": ["x", text, None]})
        path = segment("p", text, hive_style=hive, url_encode=encode)
        if split_values(path, ["p"]) == [None]:
            nulls += 1
            with pytest.raises(PartitionPathError, match=r"'p' .* in 1 of 3 rows") as e:
                partition_paths(batch, made)
            assert (e.value.details["column"], e.value.details["rows"]) == ("p", 1)
        else:
            assert partition_paths(batch, made)[1].as_py() == path
    assert nulls == (2 if hive or encode else 3)


def test_url_encoding_is_apache_hudis():
    batch = pa.record_batch({"id": list("abc"), "p": ["é=?", "x/y", "1 2"]})
    assert partition_paths(batch, spec("id", "p", url_encode=True)).to_pylist() == ["é%3D%3F", "x%2Fy", "1 2"]
    assert partition_paths(batch, spec("id", "p")).to_pylist() == ["é=?", "x/y", "1 2"]


@pytest.mark.parametrize("value", ["../x", "/etc", "a//b", ".hoodie", ".hoodie/x", "a/..", ".", "a\x00b"])
def test_paths_that_leave_the_table_are_refused(value):
    batch = pa.record_batch({"id": ["a", "b"], "p": ["fine", value]})
    with pytest.raises(PartitionPathError, match="it comes from p") as e:
        partition_paths(batch, spec("id", "p"))
    assert e.value.details["column"] == "p"


def test_values_of_a_dictionary_that_do_not_occur_are_not_looked_at():
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int32()), pa.array(["../bad", "ok"]))
    batch = pa.record_batch({"id": ["a", "b"], "p": column})
    assert partition_paths(batch, spec("id", "p")).dictionary.to_pylist() == ["ok"]


def test_many_combinations_of_values_are_numbered_too():
    n = 3000
    batch = pa.record_batch({"id": [str(i) for i in range(n)], "a": list(range(n)), "b": list(range(n))})
    got = partition_paths(batch, spec("id", "a,b"))
    assert got.to_pylist() == [f"{i}/{i}" for i in range(n)]


def test_batches_without_rows_give_no_keys_and_no_paths():
    batch = pa.record_batch({"id": pa.array([], pa.string()), "p": pa.array([], pa.int64())})
    for made in (spec("id", "p"), spec("id"), spec("id,p", "p")):
        assert record_keys(batch, made).to_pylist() == []
        got = partition_paths(batch, made)
        assert got.to_pylist() == []
        assert got.type == pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_columns_of_more_bytes_than_one_array_has_make_keys_and_paths_as_others(kind, monkeypatch):
    piece = pa.table({"a": pa.array(["x", "yy"], pa.string()).cast(kind), "b": ["1", "2"], "p": ["p", "q"]})
    rows = pa.concat_tables([piece, piece])
    wanted = [spec("a", "p"), spec("a,b", "p,b")]
    keys = [record_keys(rows, s).to_pylist() for s in wanted]
    paths = [partition_paths(rows, s).to_pylist() for s in wanted]
    monkeypatch.setattr(arrays, "_MOST_BYTES", 4)  # of 2 GiB
    assert [record_keys(rows, s).to_pylist() for s in wanted] == keys
    assert [partition_paths(rows, s).to_pylist() for s in wanted] == paths
