"""Columns that are Avro unions of several types.

Made by tools/golden/make_union_tables.py.  Apache Hudi 0.15.0 reads them as structs with a member for each type.  Two
numbers it calls one column of the wider type, and then fails to read base files, where they are a struct all the
same.  1.0.2 and 1.2.0 write such tables too, and read no column of them.
"""

import re

import pyarrow as pa
import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import UnsupportedError
from hudi_timeline.table import HudiTable

ANSWERED = [
    (t, q)
    for t in golden("unions_v6", "union_mor", "union_parquet_logs")
    for q in t.questions(SNAPSHOT, READ_OPTIMIZED)
]
NEWER = [*golden("unions_v8", "union_mor"), *golden("unions_v9", "union_mor")]
NUMBERS = golden("unions_v6", "union_numbers")
UNANSWERED = [(t, kind) for t in (*NEWER, *NUMBERS) for kind in (SNAPSHOT, READ_OPTIMIZED)]


@pytest.mark.req("SE-01")
@pytest.mark.parametrize(("table", "question"), ANSWERED, ids=str)
def test_unions_are_structs_of_members(opened, table, question):
    found = opened(table).read(query=question.kind).to_arrow()
    found.validate(full=True)
    assert pa.types.is_struct(found.schema.field("u").type)
    assert_same_answer(found, question.expected())
    some = opened(table).read(["w", "u"], query=question.kind).to_arrow()
    assert some.sort_by("w").equals(found.select(["w", "u"]).sort_by("w"))


@pytest.mark.parametrize("table", NEWER, ids=str)
@pytest.mark.parametrize("kind", [SNAPSHOT, READ_OPTIMIZED])
def test_tables_that_later_releases_wrote_and_cannot_read(opened, table, kind):
    """The same rows were written to all of them."""
    assert set(table.unanswered()) == {SNAPSHOT, READ_OPTIMIZED}
    (answered,) = golden("unions_v6", "union_mor")
    there = answered.question(kind).expected().column_names
    names = [
        "_hoodie_record_key",
        "_hoodie_partition_path",
        *(n for n in there if not n.startswith("_hoodie_")),
    ]
    found = opened(table).read(names, query=kind).to_arrow()
    assert_same_answer(found, answered.question(kind).expected().select(names))


@pytest.mark.parametrize("kind", [SNAPSHOT, READ_OPTIMIZED])
def test_two_numbers_are_one_column(opened, kind):
    (table,) = NUMBERS
    assert set(table.unanswered()) == {SNAPSHOT, READ_OPTIMIZED}
    found = opened(table).read(["id", "il", "fd"], query=kind).to_arrow()
    assert found.schema.types == [pa.string(), pa.int64(), pa.float64()]
    near = 0.10000000149011612  # the float 0.1
    old = {"k00": (None, None), "k01": (1, near), "k02": (1 << 40, 0.1), "k03": (-7, 1.5)}
    new = old | {"k00": (-(1 << 40), near), "k03": (8, 0.1)}
    rows = {r["id"]: (r["il"], r["fd"]) for r in found.to_pylist()}
    assert rows == (new if kind == SNAPSHOT else old)


def test_they_are_not_written(tmp_path):
    """Apache Hudi fails to rewrite base files with them."""
    rows = pa.table({"id": ["a"], "v": [1], "w": pa.array([2], pa.int64())})
    made = HudiTable.create(
        str(tmp_path / "t"), rows.schema, name="t", record_keys=["id"], partition_fields=[]
    )
    made.upsert(rows)
    (commit,) = (tmp_path / "t" / ".hoodie").glob("*.commit")
    text = commit.read_text()
    (plain,) = set(re.findall(r'\["null",\s*"long"\]'.replace('"', r'\\"'), text))
    commit.write_text(text.replace(plain, '[\\"null\\",\\"string\\",\\"long\\"]'))
    opened = HudiTable.open(str(tmp_path / "t"))
    with pytest.raises(UnsupportedError, match="unions") as e:
        opened.upsert(rows)
    assert e.value.details["columns"] == ["v", "w"]
    with pytest.raises(UnsupportedError, match="unions"):
        opened.delete(rows.select(["id"]))
