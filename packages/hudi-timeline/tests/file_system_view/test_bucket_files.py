"""Filters that need the files of some buckets only: which are read, and that no row is missing."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.storage.open import open_storage
from hudi_index.bucket import BucketIndex
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view import snapshot
from hudi_timeline.file_system_view.bucket_files import bucket_choice
from hudi_timeline.file_system_view.snapshot import open_snapshot

NUMBER = "hoodie.bucket.index.num.buckets"
SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
)
IDS = [*(f"k{n:03d}" for n in range(150)), "a:b", "é𝄞", "__null__x", "it's"]
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows(ids, p="a", ts=1):
    n = len(ids)
    return pa.table([ids, list(range(n)), [p] * n, [ts] * n, ["x"] * n], schema=SCHEMA)


def make(path, keys=("id",), kind="COPY_ON_WRITE", **options):
    table = HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=list(keys), partition_fields=["p"], ordering_fields=["ts"],
        table_type=kind, options={"hoodie.index.type": "BUCKET", NUMBER: "16", **options},
    )  # fmt: skip
    table.upsert(rows(IDS))
    table.upsert(rows(IDS[::2], p="b"))
    table.upsert(rows(IDS[::3], ts=2))
    return table


def plain(table):
    """The same rows without a filter."""
    return table.read(meta_columns=True).to_arrow()


def check(table, filter, most=None):
    """Rows of a filtered read are those of the filter over all rows; returns how many file groups it reads."""
    scan = table.read(filter=filter, meta_columns=True)
    expression = filter if isinstance(filter, pc.Expression) else scan._source.predicate.expression
    want = plain(table).filter(expression).sort_by([("_hoodie_record_key", "ascending"), ("p", "ascending")])
    got = scan.to_arrow().sort_by([("_hoodie_record_key", "ascending"), ("p", "ascending")])
    assert got.equals(want)
    told = scan.explain(prove=True)
    assert not any(told.files.column("missed").drop_null().to_pylist())
    read = {(t.partition, t.file_id) for t in scan.plan_files()}
    if most is not None:
        assert len(read) <= most
    skipped = [r for r in told.files.to_pylist() if "in its bucket" in r["reason"]]
    assert bool(skipped) == (len(read) < len({(t.partition, t.file_id) for t in table.read().plan_files()}))
    return len(read)


@pytest.mark.req("IX-10")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(2)
def test_equality_and_lists_read_the_files_of_their_buckets(tmp_path, kind):
    table = make(tmp_path / "t", kind=kind)
    every = len({(t.partition, t.file_id) for t in table.read().plan_files()})
    assert every == 32
    field = pc.field("id")
    for filter, most in (
        ("id = 'k001'", 2),
        ("id = 'it''s'", 2),
        ("id = 'nowhere'", 2),
        ("id IN ('k001', 'k002', 'é𝄞')", 6),
        ("id = 'k001' OR id = 'k004'", 4),
        ("id = 'k001' AND ts > 0", 2),
        ("(id = 'k001' OR id = 'k004') AND (v = 'x' OR ts < 5)", 4),
        (field == "a:b", 2),
        (field.isin(["k001", None]), 2),
        (field.isin(pa.array(["k001", "k003"])) & (pc.field("n") >= 0), 4),
        (pc.field("_hoodie_record_key") == "k007", 2),
        (pc.field("_hoodie_record_key").isin(IDS[:3]), 6),
    ):
        assert 0 < check(table, filter, most) < every, filter


@pytest.mark.parametrize(
    "filter",
    [
        "id <> 'k001'",
        "NOT id = 'k001'",
        "id = 'k001' OR ts = 2",
        "id >= 'k140'",
        "id LIKE 'k00%'",
        "id = 'k001' OR id > 'k149'",
        "n = 1",
        pc.utf8_upper(pc.field("id")).isin(["K001"]),
        ~pc.field("id").isin(["k001"]),
        pc.field("id").isin(["k001"]) | pc.field("v").isin(["x"]),
        pc.field("v").isin(["x"]) | pc.field("id").isin(["k001"]),
        pc.utf8_length(pc.field("id")) == 4,
        pc.field("id") == pc.field("v"),
    ],
)
@pytest.mark.sampled(6)
def test_filters_that_other_keys_may_pass_read_all_files(tmp_path, filter):
    table = make(tmp_path / "t")
    assert check(table, filter) == 32


@pytest.mark.req("IX-10")
@pytest.mark.parametrize("kind", KINDS)
def test_a_look_up_of_keys_reads_the_files_of_their_buckets(tmp_path, kind, monkeypatch):
    table = make(tmp_path / "t", kind=kind)
    got = table.get(["k001", "k006", "nowhere"], meta_columns=True)
    assert sorted(got.column("id").to_pylist()) == ["k001", "k006", "k006"]
    plan = table.read(filter=pc.field("_hoodie_record_key").isin(["k001", "k006", "nowhere"])).plan_files()
    assert len(list(plan)) <= 6
    assert table.get([f"k{n:03d}" for n in range(150)], meta_columns=True).num_rows == 225


@pytest.mark.req("IX-24")
@pytest.mark.parametrize("fields", ["", "id", "n"])
@pytest.mark.sampled(3)
def test_keys_of_several_columns(tmp_path, fields):
    more = {"hoodie.bucket.index.hash.field": fields} if fields else {}
    table = make(tmp_path / "t", keys=("id", "n"), **more)
    table.upsert(
        pa.table([["a,b", "a,n:7", None, ""], [1, 2, 3, 4], ["a"] * 4, [1] * 4, ["x"] * 4], schema=SCHEMA)
    )
    assert check(table, "id = 'k001' AND n = 1", 2)
    assert check(table, "id IN ('k001', 'k002') AND n IN (1, 2)", 8)
    for text in ("a,b", "a,n:7", ""):
        assert check(table, pc.field("id") == text)
    assert check(table, pc.field("id").is_null() & (pc.field("n") == 3))
    by_id, by_n = check(table, "id = 'k001'"), check(table, "n = 1")
    # By one of two hashed columns nothing is known; nor by `n` alone, beside which an id may hold a comma.
    assert (by_id <= 2) == (fields == "id")
    assert by_n > 2


def test_a_table_that_does_not_say_its_settings_or_says_nonsense_is_read_whole(tmp_path):
    table = make(tmp_path / "t")
    storage = open_storage(table.uri)
    for wrong in (
        {NUMBER: "many"},
        {NUMBER: "16", table_config.INDEX: "SIMPLE"},
        {table_config.INDEX: "BUCKET"},
    ):
        table_config.update(storage, wrong, [NUMBER] if NUMBER not in wrong else [])
        assert check(HudiTable.open(table.uri), "id = 'k001'") == 32


@pytest.mark.parametrize("number", ["5", "16"])
def test_a_partition_whose_file_ids_contradict_the_index_is_read_whole(tmp_path, number):
    table = make(tmp_path / "t")
    table_config.update(open_storage(table.uri), {NUMBER: number})
    table = HudiTable.open(table.uri)
    assert (check(table, "id = 'k001'") == 32) == (number == "5")


def test_two_file_groups_of_one_bucket_are_both_read(tmp_path):
    table = make(tmp_path / "t")
    snapshot = open_snapshot(open_storage(table.uri))
    filters = [(pc.field("id") == "k001", ("id",))]
    choice = bucket_choice(snapshot.config, snapshot.schema, filters)
    number = int(choice.index.of(choice.keys)[0])
    groups = [("a", f"{n:08d}-x") for n in range(16)]
    assert choice.dropped(groups, snapshot) == {g for n, g in enumerate(groups) if n != number}
    twice = [*groups, ("a", f"{number:08d}-y")]
    assert choice.dropped(twice, snapshot) == frozenset()
    assert choice.dropped([*twice, ("b", f"{(number + 1) % 16:08d}-z")], snapshot) == {
        ("b", f"{(number + 1) % 16:08d}-z")
    }


@pytest.mark.req("IX-28")
@pytest.mark.parametrize("after", [4, 1])
def test_a_read_finds_its_key_where_buckets_got_another_number_between_its_looks(
    tmp_path, monkeypatch, after
):
    options = {"hoodie.index.type": "BUCKET", NUMBER: "6"}
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_keys=["id"], name="t", options=options)
    table.upsert(rows(IDS))
    of = BucketIndex(6, ("id",)).of(pa.array(IDS)).tolist()
    key = next(i for i, n in zip(IDS, of, strict=True) if n == 5)  # no bucket of this number is left
    other, load, done = HudiTable.open(table.uri), snapshot.load, []

    def loading(storage):
        config = load(storage)
        if not done:
            done.append(True)
            assert other.resize_buckets(after, overwrite=True).instant
        return config

    monkeypatch.setattr(snapshot, "load", loading)
    found = table.read(["id"], f"id = '{key}'").to_arrow().column("id").to_pylist()
    assert done
    assert found == [key]
