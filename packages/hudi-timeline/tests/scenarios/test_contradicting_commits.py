"""Commits that contradict themselves, or what no table can have: an error, and never other rows."""

import json
from dataclasses import replace

import pytest

from hudi_format.errors import CorruptFileError
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.commit_metadata import parse_commit


@pytest.fixture
def made():
    builder = TableBuilder(table_type="MERGE_ON_READ")
    builder.commit("first", builder.base("first", {"a": 1}))
    return builder


@pytest.mark.parametrize("partition", ["/p0", "p1", "", ".", "p0/.", "file:///p0"])
def test_a_file_in_another_partition_than_its_commit_says(made, partition):
    made.commit("second", replace(made.log("second", {"a": 2}), partition=partition))
    with pytest.raises(CorruptFileError, match="in the partition") as e:
        made.table.read_incremental("0").to_arrow()
    assert e.value.instant == made.at("second")


def test_sums_that_are_more_than_a_number_can_have(made):
    stat = made.log("second", {"a": 2})
    other = replace(made.base("second", {"b": 1}, group=2), num_writes=2**62, total_write_bytes=2**62)
    made.commit("second", replace(stat, num_writes=2**62, total_write_bytes=2**62), other)
    # As the sum of Java's longs.
    assert made.table.inspect.commits().column("rows_written").to_pylist() == [1, -(2**63)]


def _renamed(made, label, action, old, new):
    path = f".hoodie/{made.at(label)}.{action}"
    data = made.storage.read(path)
    assert old in data
    made.storage.delete(path)
    made.storage.create(path, data.replace(old, new, 1))


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("name", [b'"partitionToWriteStats"', b'"path"', b'"fileId"'])
def test_a_commit_without_what_it_wrote_is_not_one_that_wrote_nothing(made, name):
    made.commit("second", made.log("second", {"a": 2}))
    _renamed(made, "second", "deltacommit", name, name[:2] + b"_" + name[3:])
    for read in (made.table.read, lambda: made.table.read_incremental("0")):
        with pytest.raises(CorruptFileError, match="no commit metadata") as e:
            read().to_arrow()
        assert e.value.instant == made.at("second")


@pytest.mark.req("NEW-37")
def test_a_replacement_without_what_it_replaced_brings_nothing_back(made):
    made.commit("second", made.base("second", {"b": 1}, group=2), replaced={"p0": [made.group(1)]})
    _renamed(made, "second", "replacecommit", b'"partitionToReplaceFileIds"', b'"partitionToReplaceFileIdz"')
    with pytest.raises(CorruptFileError, match="a replacement without partitionToReplaceFileIds"):
        made.table.read().to_arrow()


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("given", ["null", "twice", "a partition twice", "a path twice"])
def test_a_commit_whose_files_a_null_or_a_second_value_hides_is_damaged(made, given):
    """Apache Hudi fails at the nulls, and takes the last of several values."""
    made.commit("second", made.log("second", {"a": 2}))
    path = f".hoodie/{made.at('second')}.deltacommit"
    data = made.storage.read(path).decode()
    start = data.index('"partitionToWriteStats"')
    whole, rest = data[start : data.index('"compacted"')], data[data.index('"compacted"') :]
    changed = {
        "null": '"partitionToWriteStats" : null, ',
        "twice": f'{whole}"partitionToWriteStats" : {{ }}, ',
        "a partition twice": whole.rstrip().rstrip(",").rstrip()[:-1] + ', "p0" : [ ] }, ',
        "a path twice": whole.replace('"path"', '"path" : null, "path"', 1),
    }[given]
    made.storage.delete(path)
    made.storage.create(path, f"{{ {changed}{rest}".encode())
    said = "no partitionToWriteStats" if given == "null" else "is given twice"
    for read in (made.table.read, lambda: made.table.read_incremental("0")):
        with pytest.raises(CorruptFileError, match=said) as e:
            read().to_arrow()
        assert e.value.instant == made.at("second")
    assert [f.code for f in made.table.verify() if f.severity == "error"][:1] == ["timeline-unreadable"]


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("ids", ["null", '{ "p0" : [ ] }, "partitionToReplaceFileIds" : { }', None])
def test_a_replacement_whose_groups_are_hidden_brings_nothing_back(made, ids):
    group = made.group(1)
    made.commit("second", made.base("second", {"b": 1}, group=2), replaced={"p0": [group]})
    path = f".hoodie/{made.at('second')}.replacecommit"
    data = made.storage.read(path).decode()
    start = data.index('"partitionToReplaceFileIds" : ') + len('"partitionToReplaceFileIds" : ')
    ids = ids or f'{{ "p0" : [ "{group}" ], "p0" : [ ] }}'
    made.storage.delete(path)
    made.storage.create(path, f"{data[:start]}{ids} }}".encode())
    with pytest.raises(CorruptFileError, match=r"partitionToReplaceFileIds are null|is given twice"):
        made.table.read().to_arrow()


def test_texts_that_look_like_keys_are_none(made):
    made.commit("second", made.log("second", {"a": 2}))
    data = made.storage.read(f".hoodie/{made.at('second')}.deltacommit")
    odd = {'"path" : ': '"fileId":', "ends in a backslash\\": "\\", "path": "fileId", "a\nb": '\\":'}
    content = replace(parse_commit(data), extra=odd).to_json()
    assert parse_commit(content).extra == odd
    assert parse_commit(content).stats == parse_commit(data).stats


@pytest.mark.parametrize("order", ["stable", "completion"])
@pytest.mark.parametrize(
    ("table_type", "own", "other"),
    [
        ("COPY_ON_WRITE", "commit", "deltacommit"),
        ("COPY_ON_WRITE", "commit", "replacecommit"),
        ("MERGE_ON_READ", "deltacommit", "commit"),
        ("MERGE_ON_READ", "deltacommit", "replacecommit"),
    ],
)
def test_an_instant_of_two_actions_is_refused_in_ranges_and_found_by_verify(table_type, own, other, order):
    """A range of changes had each of them twice."""
    made = TableBuilder(table_type=table_type)
    made.commit("first", made.base("first", {"a": 1}))
    made.commit("second", made.base("second", {"a": 2, "b": 2}))
    made.commit("third", made.base("third", {"a": 3, "b": 2}))
    content = json.loads(made.storage.read(f".hoodie/{made.at('second')}.{own}"))
    if other == "replacecommit":
        content["partitionToReplaceFileIds"] = {}
    for state, text in (("requested", ""), ("inflight", ""), ("", json.dumps(content))):
        name = (
            "inflight" if (other, state) == ("commit", "inflight") else ".".join(filter(None, (other, state)))
        )
        made.storage.create(f".hoodie/{made.at('second')}.{name}", text.encode())
    for read in (made.table.read_incremental, made.table.read_changes):
        with pytest.raises(CorruptFileError, match="one instant is a") as e:
            read("000", order=order)
        assert e.value.instant == made.at("second")
        if order == "stable":
            assert read(made.at("second")).to_arrow().num_rows
    assert "timeline-contradiction" in [f.code for f in made.table.verify()]
    assert made.table.read(["id", "v"]).to_arrow().num_rows == 2
