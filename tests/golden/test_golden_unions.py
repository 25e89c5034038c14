"""Columns that are Avro unions of several types.

Made by tools/golden/make_union_tables.py.  Apache Hudi 0.15.0 reads them as structs with a member for each type.  Two
numbers it calls one column of the wider type, and then fails to read base files, where they are a struct all the
same.  1.0.2 and 1.2.0 write such tables too, and read no column of them.
"""

import json
import shutil

import pyarrow as pa
import pytest
from golden_tables import READ_OPTIMIZED, SNAPSHOT, assert_same_answer, golden

from hudi_format.errors import SchemaError, UnsupportedError
from hudi_timeline import HudiTable, write_hudi

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
    found = opened(table).read(query=question.kind, meta_columns=True).to_arrow()
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


@pytest.mark.parametrize("table", golden("unions_v6", "union_mor", "union_parquet_logs"), ids=str)
def test_they_are_written_and_stay_unions(opened, tmp_path, table):
    """To logs, to new base files and by compactions; Apache Hudi reads all of that (tests/interop/test_unions.py)."""
    made = HudiTable.open(shutil.copytree(opened(table).uri, tmp_path / "t"))
    before = {r["id"]: r for r in made.read(meta_columns=False).to_arrow().to_pylist()}
    rows = made.read(meta_columns=False).to_arrow()
    batch = [r | {"ts": 9, "id": f"new{n}" if n % 2 else r["id"]} for n, r in enumerate(rows.to_pylist())]
    batch = pa.Table.from_pylist(batch, rows.schema)
    made.upsert(batch)
    want = before | {r["id"]: r for r in batch.to_pylist()}
    for compacts in (False, True):
        if compacts:
            assert made.compact().executed
        assert {r["id"]: r for r in made.read(meta_columns=False).to_arrow().to_pylist()} == want
    made.delete(rows.select(["id"]))
    assert made.count() == sum(k.startswith("new") for k in want)
    texts = [
        json.loads(c.read_text())["extraMetadata"]["schema"] for c in (tmp_path / "t/.hoodie").glob("*commit")
    ]
    assert len(texts) > 3
    for field in ("u", "v", "s", "l", "m", "r"):
        (kind,) = {json.dumps(types_without_names(t)[field]) for t in texts}
        assert '"int"' in kind or "long" in kind
    assert made.verify() == []


def types_without_names(text):
    """Types of the columns; a record's full name may be in one text or in two."""

    def plain(node):
        if isinstance(node, dict):
            return {k: plain(v) for k, v in node.items() if k not in ("namespace", "doc")}
        return [plain(n) for n in node] if isinstance(node, list) else node

    return {f["name"]: plain(f["type"]) for f in json.loads(text)["fields"]}


def test_a_row_has_one_member_of_each(opened, tmp_path):
    (table,) = golden("unions_v6", "union_mor")
    made = HudiTable.open(shutil.copytree(opened(table).uri, tmp_path / "t"))
    before = made.read().to_arrow()
    schema = before.select([n for n in before.column_names if not n.startswith("_hoodie_")]).schema
    (row,) = made.read(meta_columns=False, filter="id = 'k03'").to_arrow().to_pylist()
    for wrong in ({"member0": 1, "member1": "x"}, {"member0": None, "member1": None}):
        for key, write in (("k03", made.upsert), ("new", made.insert)):  # to a log, and to a base file
            batch = pa.Table.from_pylist([row | {"id": key, "v": wrong}], schema)
            with pytest.raises(SchemaError, match="members of a union") as e:
                write(batch)
            assert e.value.details["column"] == "v"
    assert made.read().to_arrow().equals(before)
    more = pa.struct([*schema.field("u").type, pa.field("member2", pa.float64())])
    wider = schema.set(schema.names.index("u"), pa.field("u", more))
    with pytest.raises(SchemaError, match="u has unions of several types"):
        made.upsert(pa.Table.from_pylist([row | {"u": {"member2": 2.5}}], wider))


def test_of_two_numbers_they_are_not_written(opened, tmp_path):
    """Apache Hudi cannot read the base files that it writes of them."""
    (table,) = NUMBERS
    made = HudiTable.open(shutil.copytree(opened(table).uri, tmp_path / "t"))
    rows = made.read(meta_columns=False).to_arrow()
    for write in (made.upsert, made.insert, made.delete):
        with pytest.raises(UnsupportedError, match="two number types") as e:
            write(rows)
        assert e.value.details["columns"] == ["il", "fd"]
    with pytest.raises(UnsupportedError, match="il"):
        made.compact()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_new_table_has_those_of_the_schema_in_its_options(tmp_path, kind):
    schema = {
        "type": "record", "name": "r", "fields": [
            {"name": "id", "type": "string"}, {"name": "v", "type": ["null", "int", "string"], "default": None},
        ],
    }  # fmt: skip
    member = pa.struct([("member0", pa.int32()), ("member1", pa.string())])
    rows = pa.table({"id": ["a", "b", "c"], "v": pa.array([{"member0": 1}, {"member1": "x"}, None], member)})
    options = {
        "hoodie.table.name": "t", "hoodie.datasource.write.table.type": kind, "hoodie.write.schema": json.dumps(schema),
        "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "",
    }  # fmt: skip
    write_hudi(str(tmp_path / "t"), rows, options=options)
    del options["hoodie.write.schema"]
    made = HudiTable.open(str(tmp_path / "t"))
    made.upsert(rows.slice(1), options=options)
    assert made.read(meta_columns=False).to_arrow().sort_by("id").equals(rows)
    for commit in (tmp_path / "t" / ".hoodie").glob("*commit"):
        fields = json.loads(json.loads(commit.read_text())["extraMetadata"]["schema"])["fields"]
        assert fields[1] == schema["fields"][1]
