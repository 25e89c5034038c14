"""Trailers and file infos of HFiles: written and read again, and what is none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.hfile.compression import Codec
from hudi_format.hfile.trailer import (
    COMPARATOR,
    TRAILER_SIZE,
    Trailer,
    TrailerError,
    format_file_info,
    format_trailer,
    parse_file_info,
    parse_trailer,
)

SIZES = st.integers(0, 2**63 - 1)
TRAILER = Trailer(10, 20, 30, 40, 1, 2, 1000, 2, 0, 900, COMPARATOR, Codec.GZ)


@given(
    st.lists(SIZES, min_size=8, max_size=8),
    st.integers(-1, 2**40),
    st.sampled_from(list(Codec)),
    st.booleans(),
)
def test_a_trailer_comes_back(numbers, block, codec, named):
    made = Trailer(*numbers, block, block, COMPARATOR if named else "", codec)
    data = format_trailer(made)
    assert len(data) == TRAILER_SIZE
    assert parse_trailer(data) == made


def test_a_file_without_data_blocks_has_no_place_of_them():
    made = replace(TRAILER, first_data_block_offset=-1, last_data_block_offset=-1)
    assert parse_trailer(format_trailer(made)) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:-1], "no trailer"),
        (lambda d: b"X" + d[1:], "no trailer"),
        (lambda d: d[:-1] + b"\x02", "version 2"),
        (lambda d: d[:8] + b"\xff\xff\x03" + d[11:], "exceeds the trailer"),
        (lambda d: d[:8] + b"\x00" + d[9:], "has no file info offset"),
        (lambda d: d[:8] + b"\xff" * 11 + d[19:], "64 bits"),
        (lambda d: d[:8] + b"\x02\x0b\x00" + d[11:], "wire type 3"),
        (lambda d: d[:8] + b"\x02\x6a\x00" + d[11:], "encrypted"),
    ],
)
def test_what_is_no_trailer_is_told(change, message):
    with pytest.raises(TrailerError, match=message):
        parse_trailer(change(format_trailer(TRAILER)))


def test_a_compression_that_there_is_not_is_told():
    data = format_trailer(replace(TRAILER, codec=Codec.NONE))
    at = data.index(b"\x60" + bytes([Codec.NONE]))  # field 12, a number
    with pytest.raises(TrailerError, match="compression 99"):
        parse_trailer(data[: at + 1] + b"\x63" + data[at + 2 :])


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=300)))
def test_a_file_info_comes_back_in_the_order_of_its_keys(entries):
    data = format_file_info(entries)
    assert list(parse_file_info(data).items()) == sorted(entries.items())


def test_every_cut_of_a_file_info_is_an_error():
    data = format_file_info({b"a": b"1", b"hfile.LASTKEY": b"k" * 200})
    for end in range(len(data)):
        with pytest.raises(TrailerError):
            parse_file_info(data[:end])
