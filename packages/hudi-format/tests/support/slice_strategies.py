"""Random file slices: rules, base rows and blocks of logs, with keys that meet often."""

import pyarrow as pa
from hypothesis import strategies as st
from slices import SCHEMA, rows_of

from hudi_format.merge.payloads import COMMIT_TIME, EVENT_TIME, PAYLOADS, mode_rule
from hudi_format.merge.user_merger import custom_rule

RULES = [
    *PAYLOADS.values(),
    COMMIT_TIME,
    EVENT_TIME,
    mode_rule("EVENT_TIME_ORDERING", partial_update="IGNORE_DEFAULTS"),
    custom_rule('{"ts": "max", "text": "non_null", "list": "append"}'),
]
KEYS = [f"k{n}" for n in range(12)]

values = st.fixed_dictionaries(
    {
        "ts": st.one_of(st.none(), st.integers(-2, 2)),
        "text": st.one_of(st.none(), st.text(max_size=2)),
        "list": st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=2)),
        "_hoodie_is_deleted": st.sampled_from([None, False, False, True]),
    }
)
records = st.lists(st.tuples(st.sampled_from(KEYS), values), max_size=8)
deletes = st.lists(st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.integers(-2, 2))), max_size=3)
blocks = st.lists(st.one_of(records, records, deletes.map(tuple)), min_size=1, max_size=6)


PLACES = SCHEMA.set(SCHEMA.get_field_index("ts"), pa.field("ts", pa.string()))


def as_place(number):
    """The text of a place in a log of changes."""
    return None if number is None else f"1.{number + 2}"


def with_places(given):
    """Records, or keys to delete, with places in a log of changes for ordering values."""
    if isinstance(given, tuple):
        return tuple((key, as_place(at)) for key, at in given)
    return [(key, {**values, "ts": as_place(values["ts"])}) for key, values in given]


def log_parts(given_blocks, schema=SCHEMA):
    out = []
    for number, block in enumerate(given_blocks):
        if not block:
            continue
        if isinstance(block, tuple):
            keys, ordering = zip(*block, strict=True)
            out.append((pa.array(keys, pa.string()), pa.array(ordering, schema.field("ts").type)))
        else:
            out.append(rows_of(block, str(100 + number), schema))
    return out
