"""Payload classes and merge modes: their rules by name, and what they fill from the record that loses."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.merge import record_merger
from hudi_format.merge.payloads import (
    COMMIT_TIME,
    EVENT_TIME,
    MODELS,
    PAYLOADS,
    Default,
    Order,
    Unavailable,
    check_compared,
    mode_rule,
    payload_class,
    payload_rule,
)
from hudi_format.merge.record_merger import kept

CASES = [
    (pa.int32(), [1, None, 7], None, [True, False, True]),
    (pa.int32(), [1, 7, 7], None, None),
    (pa.string(), ["x", "?", None], Unavailable("?"), [True, False, True]),
    (pa.binary(), [b"x", b"?", None], Unavailable("?"), [True, False, True]),
    (pa.int64(), [1, None], Unavailable("1"), None),
    (pa.int32(), [7, 8, None], Default(7), [False, True, True]),
    (pa.bool_(), [True, False, None], Default(False), [True, False, True]),
    (pa.date32(), [0, 1, None], Default(0), [False, True, True]),
    (pa.timestamp("us", "UTC"), [5, 6, None], Default(5), [False, True, True]),
    (pa.float64(), [0.0, -0.0, math.nan, None], Default(0.0), [False, True, True, True]),
    (pa.float32(), [0.5, math.nan, None], Default(math.nan), [True, False, True]),
    (pa.list_(pa.int32()), [[], [1], None], Default(()), [False, True, True]),
    (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], None], Default(()), [False, True, True]),
    (pa.string(), ["", None], Default(None), None),
]


@pytest.mark.req("PM-09")
@pytest.mark.parametrize(("kind", "values", "gap", "want"), CASES, ids=lambda v: str(v)[:40])
def test_values_that_count(kind, values, gap, want):
    whole = pa.array(values, kind)
    chunked = pa.chunked_array([whole[:1], whole[1:]])
    for column in (whole, chunked, pa.concat_arrays([whole, whole])[len(whole) :]):
        found = kept(column, gap)
        assert (None if found is None else found.tolist()) == want


@pytest.mark.req("PM-09")
def test_a_column_without_values_has_none_to_fill():
    for kind, _, gap, _ in CASES:
        found = kept(pa.chunked_array([], kind), gap)
        assert found is None or not len(found)


@pytest.mark.req("PM-08", "PM-09")
def test_a_record_that_comes_late_does_not_fill_the_stored_row_of_postgres():
    rule = payload_rule("debezium.PostgresDebeziumAvroPayload")
    met = record_merger.decide(
        np.array([0, 1]), rule,
        stored_ordering=pa.array([100, 100]), ordering=pa.array([50, 150]),
    )  # fmt: skip
    assert met.take.tolist() == [-1, 1]
    assert met.stored_wins is None


OVERWRITE = PAYLOADS["OverwriteWithLatestAvroPayload"]
EVENT = PAYLOADS["EventTimeAvroPayload"]
PARTIAL = PAYLOADS["PartialUpdateAvroPayload"]


@pytest.mark.req("PM-13")
def test_rules_by_the_name_of_the_payload():
    assert payload_rule(None) is OVERWRITE
    assert payload_rule("org.apache.hudi.common.model.PartialUpdateAvroPayload") is PARTIAL
    assert payload_rule("EventTimeAvroPayload") is EVENT
    for unknown in ("org.example.OwnPayload", "org.example.DefaultHoodieRecordPayload", "HoodieJsonPayload"):
        with pytest.raises(UnsupportedError) as e:
            payload_rule(unknown)
        assert "AWSDmsAvroPayload" in e.value.remedy
    for name in ("PostgresDebeziumAvroPayload", "MySqlDebeziumAvroPayload"):
        rule = payload_rule(f"org.apache.hudi.common.model.debezium.{name}")
        assert rule.name == name
        check_compared(rule, (rule.compared,))
        for other in ((), ("ts",), (rule.compared, "ts")):
            with pytest.raises(UnsupportedError, match=rule.compared):
                check_compared(rule, other)
    check_compared(payload_rule(None), ("ts",))


@pytest.mark.req("PM-13")
def test_rules_by_merge_mode():
    assert mode_rule("COMMIT_TIME_ORDERING", payload="DefaultHoodieRecordPayload") is COMMIT_TIME
    assert mode_rule("EVENT_TIME_ORDERING") is EVENT_TIME
    custom = mode_rule("CUSTOM", payload="org.apache.hudi.common.model.PartialUpdateAvroPayload")
    assert custom == replace(PARTIAL, tombstones_compare=True)
    # The records of a log are combined as with stored rows there.
    of_log = mode_rule("CUSTOM", payload="OverwriteNonDefaultsWithLatestAvroPayload")
    assert (of_log.within, of_log.fill_within) == (Order.LATER_DATA, True)
    assert mode_rule(None, payload="org.apache.hudi.common.model.EventTimeAvroPayload") is EVENT_TIME
    assert mode_rule("", payload="OverwriteWithLatestAvroPayload") is COMMIT_TIME
    assert mode_rule(None) is EVENT_TIME
    assert mode_rule(None, has_ordering=False) is COMMIT_TIME
    filled = mode_rule("EVENT_TIME_ORDERING", partial_update="IGNORE_DEFAULTS")
    assert filled.fill_within
    assert filled.fill_stored
    for arguments in (("CUSTOM",), ("SOMETHING",)):
        with pytest.raises(UnsupportedError):
            mode_rule(*arguments)
    with pytest.raises(UnsupportedError):
        mode_rule("EVENT_TIME_ORDERING", partial_update="FILL_UNAVAILABLE")


def test_marks_of_deletion_that_the_table_is_configured_with():
    rule = mode_rule(
        "COMMIT_TIME_ORDERING",
        properties={"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "D"},
    )
    rows = pa.table({"v": ["D", "d", None, "x"]})
    assert record_merger.deleted_kinds(rows, rule).tolist() == [1, 0, 0, 0]
    numbers = pa.table({"v": [1, 2]})
    rule = mode_rule(
        "COMMIT_TIME_ORDERING",
        properties={"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "2"},
    )
    assert record_merger.deleted_kinds(numbers, rule).tolist() == [0, 1]
    # One without the other means nothing.
    assert mode_rule("COMMIT_TIME_ORDERING", properties={"hoodie.payload.delete.field": "v"}) == COMMIT_TIME


@pytest.mark.parametrize(
    ("mode", "more"),
    [("CUSTOM", {}), ("CUSTOM", {"payload": "com.acme.Payload"}), ("BY_MOOD", {}),
     ("EVENT_TIME_ORDERING", {"partial_update": "KEEP_VALUES"}),
     ("EVENT_TIME_ORDERING", {"partial_update": "FILL_UNAVAILABLE"})],
)  # fmt: skip
def test_a_merge_that_is_not_built_is_refused_with_a_remedy(mode, more):
    with pytest.raises(UnsupportedError) as e:
        mode_rule(mode, **more)
    assert e.value.remedy


@pytest.mark.parametrize("package", ["", "org.apache.hudi.common.model.", "com.uber.hoodie.common.model."])
def test_a_payload_is_known_by_its_names_of_each_release(package):
    for name, rule in PAYLOADS.items():
        place = "debezium." if "Debezium" in name else ""
        full = f"org.apache.hudi.common.model.{place}{name}"
        for given in (package + name, full):
            assert payload_class(given) == full
            assert payload_rule(given) is rule
    assert payload_class("org.apache.hudi.payload.AWSDmsAvroPayload") == f"{MODELS}AWSDmsAvroPayload"


@pytest.mark.parametrize(
    "name",
    ["Mine", "my.own.AWSDmsAvroPayload", "org.apache.hudi.payload.Mine", "debezium.Mine"],
)
def test_a_class_of_another_package_keeps_its_name_and_has_no_rule(name):
    assert payload_class(name) == name
    with pytest.raises(UnsupportedError, match=name):
        payload_rule(name)
