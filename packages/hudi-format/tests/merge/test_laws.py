"""Laws of merges: which ones the merges of Apache Hudi keep, and that counterexamples are true and small."""

import pyarrow as pa
import pytest

from hudi_format.errors import MergeFunctionError, MissingColumnError, SchemaError, UnsupportedError
from hudi_format.merge.laws import ASSOCIATIVE, COMMUTATIVE, IDEMPOTENT, LAWS, TIES, check_laws
from hudi_format.merge.payloads import COMMIT_TIME, EVENT_TIME, PAYLOADS
from hudi_format.merge.user_merger import custom_rule

SCHEMA = pa.schema([("ts", pa.int64()), ("n", pa.int64()), ("t", pa.string())])
# What is known of Apache Hudi's own merges, without deletes among the records and with.  The payloads that overwrite
# choose by ordering value within a log, and not against the stored row.  Once a delete met the stored row nothing is
# left to compare late records with.
KNOWN = {
    "OverwriteWithLatestAvroPayload": ({COMMUTATIVE, TIES, ASSOCIATIVE}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "DefaultHoodieRecordPayload": ({TIES}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "EventTimeAvroPayload": ({TIES}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "FirstValueAvroPayload": ({TIES}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "OverwriteNonDefaultsWithLatestAvroPayload": (
        {COMMUTATIVE, TIES, ASSOCIATIVE}, {COMMUTATIVE, TIES, ASSOCIATIVE},
    ),
    "PartialUpdateAvroPayload": ({TIES, ASSOCIATIVE}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "AWSDmsAvroPayload": ({COMMUTATIVE, TIES, ASSOCIATIVE}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "PostgresDebeziumAvroPayload": ({TIES}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    # Within a log the later one of two with one place wins, against the stored row the stored one.
    "MySqlDebeziumAvroPayload": ({TIES, ASSOCIATIVE}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
    "COMMIT_TIME_ORDERING": ({COMMUTATIVE, TIES}, {COMMUTATIVE, TIES}),
    "EVENT_TIME_ORDERING": ({TIES}, {COMMUTATIVE, TIES, ASSOCIATIVE}),
}  # fmt: skip


@pytest.mark.req("NEW-05", "PM-11")
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("rule", [*PAYLOADS.values(), COMMIT_TIME, EVENT_TIME], ids=lambda r: r.name)
@pytest.mark.sampled(4, values=False)
def test_the_merges_of_apache_hudi_break_the_laws_that_are_known(rule, deletes):
    report = check_laws(rule, SCHEMA, ordering="ts", deletes=deletes)
    assert set(report.broken) == KNOWN[rule.name][deletes]


@pytest.mark.req("NEW-05", "NEW-04", "PM-11")
@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ('{"ts": "max", "n": "max", "t": "min"}', set()),
        ('{"n": "sum", "t": "max"}', {IDEMPOTENT}),
        ('{"n": "max", "t": "latest"}', {TIES}),
        ('{"n": "last", "t": "max"}', {COMMUTATIVE, TIES}),
        ('{"n": "first", "t": "max"}', {COMMUTATIVE, TIES}),
        ("merge_functions:newest", {TIES}),
        ("merge_functions:average", {COMMUTATIVE, TIES, ASSOCIATIVE, IDEMPOTENT}),
    ],
)
def test_merges_of_the_users_break_what_they_must(text, broken):
    assert set(check_laws(custom_rule(text), SCHEMA, ordering="ts").broken) == broken


@pytest.mark.req("NEW-05")
def test_a_counterexample_is_small_and_readable():
    report = check_laws(custom_rule('{"n": "sum", "t": "max"}'), SCHEMA, ordering="ts")
    (found,) = [f for f in report.findings if not f.holds]
    assert found.records is not None
    shown = [{k: v for k, v in r.items() if v is not None and k != "ts"} for r in found.records]
    assert sum(len(r) for r in shown) == 1  # one number that is added twice
    assert found.one["n"] != found.other["n"]
    lines = str(report).splitlines()
    assert lines[0] == '{"n": "sum", "t": "max"}'
    assert any(line.startswith("  a, then b, then b again gives {") for line in lines)
    assert f"{TIES}: holds" in str(report)


@pytest.mark.req("NEW-05")
def test_laws_are_tried_on_real_records():
    rows = pa.Table.from_pylist([{"ts": 1, "n": 1, "t": "x"}, {"ts": 2, "n": 1, "t": "x"}], SCHEMA)
    rule = PAYLOADS["OverwriteWithLatestAvroPayload"]
    assert COMMUTATIVE in check_laws(rule, SCHEMA, ordering="ts", records=rows).broken
    # Where all records are the same, nothing shows.
    assert not check_laws(rule, SCHEMA, ordering="ts", records=rows.slice(0, 1)).broken
    with pytest.raises(SchemaError, match="no records"):
        check_laws(rule, SCHEMA, records=rows.slice(0, 0))


@pytest.mark.req("NEW-05")
def test_every_type_of_column_can_be_made_up():
    kinds = [
        pa.bool_(), pa.int32(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.date32(), pa.string(),
        pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.time64("us"), pa.time32("ms"), pa.binary(),
        pa.binary(3), pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()),
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
    ]  # fmt: skip
    schema = pa.schema([("ts", pa.int64()), *((f"c{i}", k) for i, k in enumerate(kinds))])
    report = check_laws(PAYLOADS["DefaultHoodieRecordPayload"], schema, ordering="ts", cases=300)
    assert set(report.broken) == {TIES}
    assert [f.law for f in report.findings] == list(LAWS)
    with pytest.raises(UnsupportedError, match="month_day_nano"):
        check_laws(COMMIT_TIME, pa.schema([("x", pa.month_day_nano_interval())]))


def test_a_function_that_fails_on_some_records_is_named():
    with pytest.raises(MergeFunctionError, match="on purpose"):
        check_laws(custom_rule("merge_functions:fail"), SCHEMA)


@pytest.mark.req("NEW-05", "NEW-04")
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_fractions_are_tried_with_what_rounds_and_with_nan(kind):
    schema = pa.schema([("ts", pa.int64()), ("f", kind)])
    found = check_laws(custom_rule('{"ts": "max", "f": "sum"}'), schema, ordering="ts")
    assert set(found.broken) == {ASSOCIATIVE, IDEMPOTENT}
    for name in ("max", "min"):
        assert not check_laws(custom_rule(f'{{"ts": "max", "f": "{name}"}}'), schema, ordering="ts").broken


def test_what_cannot_be_tried_is_refused_by_name():
    with pytest.raises(MissingColumnError, match="nope"):
        check_laws(EVENT_TIME, SCHEMA, ordering="nope")
    with pytest.raises(SchemaError, match="no columns"):
        check_laws(EVENT_TIME, pa.schema([]))
    with pytest.raises(ValueError, match="one case"):
        check_laws(EVENT_TIME, SCHEMA, cases=0)


def test_times_that_python_does_not_have_are_tried_and_shown():
    far = pa.array([2**62, -(2**62), None, 0], pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": [1, 1, 2, 2], "t": far, "l": pa.array([[t] for t in far], pa.list_(far.type))})
    report = check_laws(COMMIT_TIME, rows.schema, ordering="ts", records=rows)
    assert TIES in report.broken
    assert all(str(finding) for finding in report.findings)
