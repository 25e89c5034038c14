"""Joda-Time's patterns, both ways; expected texts are those that Apache Hudi 0.15.0 wrote on Java 17."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_format.keygen.joda_format import DAY, Moment, parser, printer, tokens

EVERY_LETTER = "GG_C_Y_YY_yy_y_yyyyy_x_xxxx_w_ww_e_E_EEEE_D_DDD_M_MMM_MMMM_d_a_K_h_k_kk_S_SSSSSS_Z_ZZZ_'q''q'"
WRITTEN = {
    1709632800123: "AD_20_2024_24_24_2024_02024_2024_2024_10_10_2_Tue_Tuesday_65_065_3_Mar_March_5_AM_10_10_10_10_1_"
    "123000_+0000_Etc/UTC_q'q",
    -62198755200000: "BC_0_2_01_01_-1_-00001_-2_-0002_53_53_5_Fri_Friday_1_001_1_Jan_January_1_AM_0_12_24_24_0_000000_"
    "+0000_Etc/UTC_q'q",
    4102444800000000: "AD_1319_131971_71_71_131971_131971_131971_131971_16_16_3_Wed_Wednesday_111_111_4_Apr_April_21_"
    "AM_0_12_24_24_0_000000_+0000_Etc/UTC_q'q",
}


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("millis", WRITTEN)
def test_every_letter_is_written_as_joda_time_writes_it(millis):
    assert printer(EVERY_LETTER).text(Moment(millis, 0, "Etc/UTC")) == WRITTEN[millis]


def test_a_pattern_knows_how_much_of_an_instant_it_shows():
    assert printer("yyyy/MM/dd").step == DAY
    assert printer("yyyy-MM-dd'T'HH").step == DAY // 24
    assert printer("HHmmss").step == 1000
    assert printer("S").step == 1
    assert printer("ZZ").text(Moment(0, -19_800_000)) == "-05:30"


def ms(*parts):
    return (datetime(*parts, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("pattern", "text", "millis", "offset"),
    [
        ("yyyy-MM-dd", "2024-2-9", ms(2024, 2, 9), None),
        ("yyyyMMdd", "20240229", ms(2024, 2, 29), None),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2024-02-29t01:02:03.4567+0530", None, None),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
            "2024-02-29t01:02:03.45+0530",
            ms(2024, 2, 29, 1, 2, 3, 450000),
            19_800_000,
        ),
        ("yyyy-MM-dd HH:mm:ssZZ", "2024-02-29 01:02:03Z", ms(2024, 2, 29, 1, 2, 3), 0),
        ("yyyy-MM-dd HH:mm:ssZZ", "2024-02-29 01:02:03-08:00", ms(2024, 2, 29, 1, 2, 3), -28_800_000),
        ("MMM d, yyyy h a", "feb 29, 2024 12 pm", ms(2024, 2, 29, 12), None),
        ("EEEE, MMMM dd yyyy", "Thursday, February 29 2024", ms(2024, 2, 29), None),
        ("yyyy-DDD", "2024-060", ms(2024, 2, 29), None),
        ("Hmm", "123", ms(1970, 1, 1, 12, 3), None),
        ("Hmm", "12", None, None),
        ("MM-dd", "02-29", ms(2000, 2, 29), None),
        ("yy", "70", ms(1970, 1, 1), None),
        ("yyyy", "-0001", -62198755200000, None),
        ("yyyy-MM-dd", "2024-02-29 ", None, None),
        ("yyyy-MM-dd", "nonsense", None, None),
        ("kk", "24", ms(1970, 1, 1, 0), None),
    ],
)
def test_a_text_is_read_as_joda_time_reads_it(pattern, text, millis, offset):
    found = parser(pattern).parse(text)
    assert (found and (found.local_ms, found.offset_ms)) == (None if millis is None else (millis, offset))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2023-02-29"),
        ("yyyy-MM-dd", "2024-13-01"),
        ("HH", "24"),
        ("mm", "60"),
        ("yyyy-DDD", "2023-366"),
    ],
)
def test_a_date_that_there_is_not_is_an_error(pattern, text):
    with pytest.raises(ValueError, match=r"."):
        parser(pattern).parse(text)


@pytest.mark.parametrize("pattern", ["yyyyMMuu", "YYYY-LL", "b", ""])
def test_letters_that_mean_nothing_are_refused(pattern):
    with pytest.raises(InvalidOptionError) as e:
        printer(pattern, "the.option")
    assert e.value.details["option"] == "the.option"


@pytest.mark.parametrize("pattern", ["z", "yyyy GG", "xxxx-ww-e", "ZZZ", "C", "yyyy yyyy"])
def test_what_is_not_read_is_refused(pattern):
    with pytest.raises(UnsupportedError):
        parser(pattern)
    with pytest.raises(UnsupportedError):
        printer("zzzz")


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_what_is_written_is_read_again(millis):
    for pattern in (
        "yyyy-MM-dd'T'HH:mm:ss.SSS",
        "yyyyMMddHHmmssSSS",
        "MMMM d yyyy h:m:s.SSS a",
        "yyyy/DDD kk:mm:ss:SSS",
    ):
        assert parser(pattern).parse(printer(pattern).text(Moment(millis))).local_ms == millis


def test_text_between_quotes_stands_for_itself():
    assert [t.text for t in tokens("'a''b'--yyyy") if not t.letter] == ["a'b--"]
