"""Delete blocks of versions 1 and 2: lists that Apache Hudi's own classes serialised in a JVM."""

import struct
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_bytes import block

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.log.delete_block import OrderingType, read_deletes
from hudi_format.log.kryo import KryoError, read_kryo
from hudi_format.log.reader import LogFileReader

DATA = Path(__file__).parent.parent / "data" / "kryo_deletes.txt"
LISTS = {name: bytes.fromhex(text) for name, text in map(str.split, DATA.read_text().splitlines())}


def read(name, data=None):
    data = LISTS[name] if data is None else data
    content = struct.pack(">ii", int(name[1]), len(data)) + data
    log = LogFileReader(block(1, {0: "1"}, content), file="f")
    (only,) = log.blocks
    return read_deletes(only, log.content(only))


def rows(deletes):
    return list(zip(deletes.keys.to_pylist(), deletes.partitions.to_pylist(), strict=True))


@pytest.mark.req("LF-13")
def test_keys_of_version_1_are_read():
    deletes = read("v1_keys")
    assert rows(deletes) == [("k000", "p/1"), ("schlüssel", "p/1"), ("x", ""), ("", "p"), ("😀 z", "€")]
    assert (deletes.ordering, deletes.version, deletes.is_default.all()) == ((), 1, True)
    assert rows(read("v1_same_object")) == [("abc", "abc"), ("abc", "abc"), ("d", "abc")]
    assert rows(read("v1_no_partition")) == [("a", None)]
    assert rows(read("v1_none")) == rows(read("v2_none")) == []
    assert rows(read("v1_many")) == [(f"key-{'x' * (i % 9)}{i}", f"part-{i % 7}") for i in range(150)]


@pytest.mark.req("LF-13", "LF-11")
def test_ordering_values_of_version_2_keep_their_types():
    deletes = read("v2_mixed")
    assert rows(deletes) == [("k0", "p"), ("k1", "p"), ("k2", "q"), ("k3", "p"), ("k4", "p")]
    got = {p.type: dict(zip(p.rows.tolist(), p.values.to_pylist(), strict=True)) for p in deletes.ordering}
    assert got == {
        OrderingType.INT: {1: -7, 3: 0},
        OrderingType.LONG: {0: 5, 4: -(2**63)},
        OrderingType.STRING: {2: "text"},
    }
    assert deletes.is_default.tolist() == [False, False, False, True, False]


@pytest.mark.req("LF-13", "LF-11")
@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("v2_double", OrderingType.DOUBLE, 1.5),
        ("v2_float", OrderingType.FLOAT, 2.5),
        ("v2_decimal", OrderingType.DECIMAL, Decimal("-12.345")),
        ("v2_decimal_zero", OrderingType.DECIMAL, Decimal(0)),
        ("v2_boolean", OrderingType.BOOLEAN, True),
        ("v2_date", OrderingType.DATE, date(2024, 1, 2)),
        ("v2_timestamp", OrderingType.TIMESTAMP_MICROS, datetime(2024, 1, 2, 3, 4, 5, 678000, UTC)),
        ("v2_local_date", OrderingType.DATE, date(2024, 1, 2)),
        ("v2_instant", OrderingType.TIMESTAMP_MICROS, datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)),
        ("v2_utf8", OrderingType.STRING, "utf ä"),
        ("v2_utf8_by_fields", OrderingType.STRING, "utf ä"),
        ("v2_utf8_empty_by_fields", OrderingType.STRING, ""),
    ],
)
def test_every_class_of_ordering_value_is_read(name, kind, value):
    """The second record refers to the first one's value where Kryo counts it as an object."""
    deletes = read(name)
    assert rows(deletes) == [("k", "p"), ("l", "p")]
    (part,) = deletes.ordering
    assert (part.type, part.values.to_pylist()) == (kind, [value, value])


@pytest.mark.req("LF-13")
def test_lists_of_releases_without_registered_classes_are_read():
    deletes = read("v2_by_0_12")
    assert {p.type.name: p.values.to_pylist() for p in deletes.ordering} == {"LONG": [5], "STRING": ["5"]}


def test_a_utf8_of_older_avro_has_no_hash():
    data = LISTS["v2_utf8_by_fields"]
    older = data.replace(b"\xc3\xa4\x00\x0c", b"\xc3\xa4\x0c")
    assert len(older) == len(data) - 1
    assert read("v2_utf8", older).ordering[0].values.to_pylist() == ["utf ä", "utf ä"]


def test_a_class_that_is_not_known_is_named():
    with pytest.raises(UnsupportedError, match=r"java\.lang\.StringBuilder") as caught:
        read("v2_unknown")
    assert (caught.value.file, caught.value.instant) == ("f", "1")
    assert caught.value.remedy


@pytest.mark.req("LF-13")
@pytest.mark.parametrize("name", sorted(LISTS))
def test_every_truncation_is_an_error(name):
    for cut in range(0, len(LISTS[name]), 1 if len(LISTS[name]) < 1000 else 7):
        with pytest.raises((KryoError, UnsupportedError)):
            read_kryo(LISTS[name][:cut], int(name[1]))


@settings(max_examples=300)
@given(st.sampled_from(sorted(LISTS)), st.data())
def test_changed_bytes_are_other_values_or_an_error(name, data):
    bad = bytearray(LISTS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptFileError, UnsupportedError):
        assert len(read(name, bytes(bad))) <= len(bad)


@given(st.binary(max_size=40), st.sampled_from([1, 2]))
def test_any_bytes_after_the_list_begin_are_deletes_or_an_error(data, version):
    start = LISTS[f"v{version}_none"][:-1]
    with suppress(KryoError, UnsupportedError):
        assert len(read_kryo(start + data, version)) <= len(data)
