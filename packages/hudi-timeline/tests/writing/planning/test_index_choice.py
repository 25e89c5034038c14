"""Upserts and deletes with each index: within partitions, and over all of them."""

import base64
import json
import os
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_format.errors import ConflictingOptionError, CorruptFileError, UnsupportedError
from hudi_index import lookup
from hudi_timeline import HudiTable

INDEX, CLASS = "hoodie.index.type", "hoodie.index.class"
SMALL = {"hoodie.parquet.small.file.limit": "0"}
STAY = {
    "GLOBAL_SIMPLE": {"hoodie.simple.index.update.partition.path": "false"},
    "GLOBAL_BLOOM": {"hoodie.bloom.index.update.partition.path": "false"},
}
GLOBAL = ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"]
MADE = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
MOVES = "hoodie.record.index.update.partition.path"


def chosen(index, *, stay=False):
    """Options of a global index, with which a record moves, or stays where it is."""
    if index == "RECORD_INDEX":
        return {INDEX: index, **MADE, MOVES: str(not stay).lower()}
    return {INDEX: index, **(STAY[index] if stay else {})}


EVENT_TIME = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
FIRST = [("k1", "p1", 10, "old1"), ("k2", "p2", 10, "old2"), ("k3", "p3", 10, "old3")]


def rows(*values, **extra):
    columns = list(zip(*values, strict=True)) if values else [[]] * 4
    made = {f.name: pa.array(c, f.type) for f, c in zip(SCHEMA, columns, strict=True)}
    return pa.table(made | extra)


def make(path, schema=SCHEMA, *, logs=False, **options):
    return HudiTable.create(
        str(path),
        schema,
        name="t",
        table_type="MERGE_ON_READ" if logs else "COPY_ON_WRITE",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
        options=options,
    )


def content(table):
    """(key, partition path, partition column, v) of each row."""
    names = ["_hoodie_record_key", "_hoodie_partition_path", "p", "v"]
    return sorted(tuple(r[n] for n in names) for r in table.read(meta_columns=True).to_arrow().to_pylist())


def stats(result):
    """(partition, written, deleted, updated, inserted) of each file, as Apache Hudi counts them."""
    return sorted(
        (s.partition, s.num_writes, s.num_deletes, s.num_update_writes, s.num_inserts)
        for s in result.write_stats
    )


def with_footer(path, change):
    """The base file at `path` with other footer entries, and a commit that knows its size."""
    with pq.ParquetFile(path) as file:
        table = file.read()
        entries = {k: v for k, v in (file.metadata.metadata or {}).items() if k != b"ARROW:schema"}
    before = path.stat().st_size
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(change(entries))
        writer.write_table(table)
    (commit,) = path.parents[1].glob(".hoodie/*.commit")
    stats = json.loads(commit.read_text())
    for stat in (
        s for of in stats["partitionToWriteStats"].values() for s in of if s["path"].endswith(path.name)
    ):
        assert stat["fileSizeInBytes"] == before
        stat["fileSizeInBytes"] = path.stat().st_size
    commit.write_text(json.dumps(stats))


def base_files(path):
    return sorted(path.glob("*/*.parquet"))


# --- within partitions ---------------------------------------------------------------------------------------


@pytest.mark.req("IX-02", "IX-04", "IX-07", "IX-13", "IX-20", "TL-25")
@settings(
    max_examples=25 if os.environ.get("HUDI_SOAK") else 6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["plain", "sorted", "unicode"]),
    ranges=st.booleans(),
    stored=st.integers(0, 120),
    given_rows=st.integers(1, 60),
)
def test_bloom_finds_what_simple_finds(tmp_path_factory, seed, kind, ranges, stored, given_rows):
    """The same rows, updates and inserts, also where inserts have put a key into several files."""
    rng = random.Random(seed)
    letters = "aé中\U00010000\ue000\uffeez"

    def key():
        n = rng.randrange(200)
        if kind == "unicode":
            return "".join(letters[n // 7**i % 7] for i in range(3))
        return f"{n:05d}" if kind == "sorted" else f"{random.Random(n).getrandbits(64):x}"

    batches = [
        rows(*[(key(), f"p{rng.randrange(2)}", 1, f"b{b}") for _ in range(stored // 3)]) for b in range(3)
    ]
    changes = rows(*[(key(), f"p{rng.randrange(3)}", 2, "new") for _ in range(given_rows)])
    found = {}
    for index in ("SIMPLE", "BLOOM"):
        table = make(tmp_path_factory.mktemp(index) / "t")
        for batch in batches:
            table.insert(batch, options=SMALL)
        options = {INDEX: index, "hoodie.bloom.index.prune.by.ranges": ranges, **SMALL}
        result = table.upsert(changes, options=options)
        deleted = table.delete(changes.slice(0, 5), options=options)
        found[index] = content(table), stats(result), stats(deleted)
    assert found["BLOOM"] == found["SIMPLE"]


@pytest.mark.req("IX-20")
def test_files_whose_key_range_holds_no_key_are_not_opened(tmp_path):
    table = make(tmp_path / "t")
    for n in range(10):
        table.insert(rows(*[(f"{n}{i:03d}", "p", 1, "old") for i in range(20)]), options=SMALL)
    change = rows(("3005", "p", 2, "new"), ("7005", "p", 2, "new"))
    result = table.upsert(change, options={INDEX: "BLOOM", **SMALL})
    assert result.lookup == lookup.LookupCount("BLOOM", 10, by_range=8, opened=2)
    assert (result.updated, result.files_rewritten) == (2, 2)
    assert "keys of 2 of 10 files" in str(result.lookup)


@pytest.mark.req("IX-04")
def test_files_whose_bloom_filter_holds_no_key_are_not_opened(tmp_path):
    table = make(tmp_path / "t")
    for n in range(5):
        table.insert(rows(*[(f"{i:04d}{n}", "p", 1, "old") for i in range(100)]), options=SMALL)
    options = {INDEX: "BLOOM", "hoodie.bloom.index.prune.by.ranges": "false", **SMALL}
    result = table.upsert(rows(("00502", "p", 2, "new"), ("none", "p", 2, "new")), options=options)
    assert result.lookup == lookup.LookupCount("BLOOM", 5, by_filter=4, opened=1)
    assert (result.updated, result.inserted) == (1, 1)


@pytest.mark.req("IX-04")
@pytest.mark.parametrize("left_out", [b"org.apache.hudi.bloomfilter", b"hoodie_min_record_key", b"all"])
def test_a_file_that_says_nothing_of_its_keys_may_hold_any(tmp_path, left_out):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST))

    def change(entries):
        return {
            k: v for k, v in entries.items() if left_out not in (b"all", k) or k == b"parquet.avro.schema"
        }

    for path in base_files(tmp_path / "t"):
        with_footer(path, change)
    result = table.upsert(rows(("k1", "p1", 11, "new")), options={INDEX: "BLOOM"})
    assert (result.updated, result.inserted) == (1, 0)


@pytest.mark.req("IX-04")
def test_a_false_positive_is_found_out_by_reading_the_keys(tmp_path):
    tiny = {
        "hoodie.index.bloom.num_entries": "1",
        "hoodie.index.bloom.fpp": "0.5",
        "hoodie.bloom.index.filter.type": "SIMPLE",
    }
    table = make(tmp_path / "t")
    table.insert(rows(*[(f"k{i}", "p", 1, "old") for i in range(0, 100, 2)]), options=tiny)
    change = rows(*[(f"k{i}", "p", 2, "new") for i in range(100)])
    result = table.upsert(change, options={INDEX: "BLOOM", **tiny})
    assert (result.updated, result.inserted) == (50, 50)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({b"org.apache.hudi.bloomfilter": b"not base64 !"}, "bloom filter"),
        ({b"org.apache.hudi.bloomfilter": b"/////wAAAAcBAAAAYIEIAIFg"}, "cut off"),
        ({b"hoodie_bloom_filter_type_code": b"UNHEARD_OF"}, "unknown bloom filter type"),
        ({b"hoodie_min_record_key": b"z", b"hoodie_max_record_key": b"a"}, "smallest record key"),
    ],
)
def test_a_damaged_footer_is_an_error_that_names_the_file(tmp_path, damage, says):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST))
    path = next(p for p in base_files(tmp_path / "t") if p.parent.name == "p1")
    with_footer(path, lambda entries: entries | damage)
    before = content(table)
    with pytest.raises(CorruptFileError, match=says) as e:
        table.upsert(rows(("k1", "p1", 11, "new")), options={INDEX: "BLOOM"})
    assert path.name in str(e.value)
    assert content(HudiTable.open(str(tmp_path / "t"))) == before


@pytest.mark.req("IX-14")
def test_bloom_and_simple_take_turns(tmp_path):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST))
    for n, index in enumerate(["BLOOM", "SIMPLE", "BLOOM"]):
        result = table.upsert(rows(("k1", "p1", 20 + n, f"new{n}")), options={INDEX: index})
        assert (result.updated, result.inserted, result.warnings) == (1, 0, ())
    assert content(table)[0] == ("k1", "p1", "p1", "new2")


@pytest.mark.req("IX-34")
def test_filters_are_written_for_the_index_that_reads_them_even_if_switched_off(tmp_path):
    off = {"hoodie.parquet.bloom.filter.enabled": "false"}
    for index, there in (("SIMPLE", False), ("BLOOM", True)):
        table = make(tmp_path / index)
        table.insert(rows(*FIRST), options={INDEX: index, **off})
        for path in base_files(tmp_path / index):
            text = pq.read_metadata(path).metadata.get(b"org.apache.hudi.bloomfilter")
            assert (text is not None) == there
            assert not there or base64.b64decode(text)


def test_a_first_write_looks_nowhere(tmp_path):
    result = make(tmp_path / "t").upsert(rows(*FIRST), options={INDEX: "BLOOM"})
    assert result.lookup == lookup.LookupCount("BLOOM")
    assert result.inserted == 3


def test_only_upserts_and_deletes_look_keys_up(tmp_path):
    assert make(tmp_path / "t").insert(rows(*FIRST)).lookup is None


# --- over all partitions: what Apache Hudi 0.15.0 did with the same rows, see tests/interop/test_index.py ----


@pytest.mark.req("IX-06", "IX-08")
@pytest.mark.parametrize("index", GLOBAL)
def test_a_record_moves_to_its_new_partition(tmp_path, index):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options=chosen(index))
    result = table.upsert(rows(("k1", "p2", 11, "new"), ("n", "p4", 1, "n")), options=chosen(index))
    assert content(table) == [
        ("k1", "p2", "p2", "new"), ("k2", "p2", "p2", "old2"), ("k3", "p3", "p3", "old3"), ("n", "p4", "p4", "n"),
    ]  # fmt: skip
    assert stats(result) == [("p1", 0, 1, 0, 0), ("p2", 2, 0, 0, 1), ("p4", 1, 0, 0, 1)]


@pytest.mark.req("IX-06", "IX-08")
@pytest.mark.parametrize("index", GLOBAL)
def test_a_record_is_updated_where_it_is(tmp_path, index):
    """The partition column then says where it would belong; the partition path where it is."""
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options=chosen(index))
    result = table.upsert(
        rows(("k1", "p2", 11, "new"), ("n", "p2", 1, "n")), options=chosen(index, stay=True)
    )
    stored = pa.concat_tables(
        pq.ParquetFile(p).read(columns=["_hoodie_record_key", "_hoodie_partition_path", "p", "v"])
        for p in (tmp_path / "t").glob(f"p1/*{result.instant}.parquet")
    )
    assert stored.to_pylist() == [
        {"_hoodie_record_key": "k1", "_hoodie_partition_path": "p1", "p": "p2", "v": "new"}
    ]
    assert stats(result) == [("p1", 1, 0, 1, 0), ("p2", 2, 0, 0, 1)]


@pytest.mark.req("IX-08")
@pytest.mark.parametrize(("ts", "where"), [(9, "p1"), (10, "p2"), (11, "p2")])
def test_a_late_record_does_not_move_what_is_newer(tmp_path, ts, where):
    options = {INDEX: "GLOBAL_SIMPLE", **EVENT_TIME}
    table = make(tmp_path / "t", **EVENT_TIME)
    table.insert(rows(*FIRST), options=options)
    table.upsert(rows(("k1", "p2", ts, "new")), options=options)
    assert [(r[1], r[3]) for r in content(table) if r[0] == "k1"] == [
        (where, "old1" if where == "p1" else "new")
    ]


@pytest.mark.req("IX-08")
def test_an_older_record_moves_where_the_latest_write_wins(tmp_path):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options={INDEX: "GLOBAL_SIMPLE"})
    table.upsert(rows(("k1", "p2", 9, "late")), options={INDEX: "GLOBAL_SIMPLE"})
    assert content(table)[0] == ("k1", "p2", "p2", "late")


@pytest.mark.req("IX-06", "IX-08")
@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.sampled(3)
def test_a_delete_finds_its_record_in_another_partition(tmp_path, index, stay):
    options = chosen(index, stay=stay)
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options=options)
    result = table.delete(rows(("k1", "p2", 1, ""), ("unknown", "p2", 1, "")), options=options)
    assert [r[0] for r in content(table)] == ["k2", "k3"]
    assert stats(result) == [("p1", 0, 1, 0, 0)]


@pytest.mark.req("IX-08")
def test_a_flagged_delete_finds_its_record_in_another_partition(tmp_path):
    flag = pa.field("_hoodie_is_deleted", pa.bool_())
    table = make(tmp_path / "t", SCHEMA.append(flag))
    no = {"_hoodie_is_deleted": pa.array([False] * 3)}
    table.insert(rows(*FIRST, **no), options={INDEX: "GLOBAL_SIMPLE"})
    gone = {"_hoodie_is_deleted": pa.array([True, True])}
    result = table.upsert(
        rows(("k1", "p2", 11, ""), ("none", "p2", 11, ""), **gone), options={INDEX: "GLOBAL_SIMPLE"}
    )
    assert [r[0] for r in content(table)] == ["k2", "k3"]
    assert ("p1", 0, 1, 0, 0) in stats(result)


@pytest.mark.req("IX-06", "IX-08")
@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize("operation", ["upsert", "insert", "insert_overwrite"])
@pytest.mark.sampled(3)
def test_of_rows_with_one_key_in_several_partitions_one_is_written(tmp_path, index, operation):
    options = {**chosen(index), "hoodie.combine.before.insert": "true"}
    table = make(tmp_path / "t")
    given_rows = rows(("n", "p2", 2, "a"), ("n", "p1", 3, "b"), ("k1", "p1", 5, "c"), ("k1", "p3", 4, "d"))
    getattr(table, operation)(given_rows, options=options)
    assert content(table) == [("k1", "p1", "p1", "c"), ("n", "p1", "p1", "b")]


@pytest.mark.req("IX-13")
@pytest.mark.parametrize(("to", "left"), [("p3", ["p3"]), ("p2", ["p2"])])
def test_a_key_that_stands_in_two_partitions_stands_in_one_after_its_move(tmp_path, to, left):
    table = make(tmp_path / "t")
    table.insert(rows(("k1", "p1", 10, "a"), ("k1", "p2", 10, "b"), ("k3", "p3", 10, "c")))
    result = table.upsert(rows(("k1", to, 11, "new")), options={INDEX: "GLOBAL_BLOOM"})
    assert [r[1] for r in content(table) if r[0] == "k1"] == left
    assert any("several partitions" in w for w in result.warnings)


@pytest.mark.req("IX-13")
def test_a_key_that_stands_in_two_partitions_is_updated_in_both(tmp_path):
    table = make(tmp_path / "t")
    table.insert(rows(("k1", "p1", 10, "a"), ("k1", "p2", 10, "b")))
    table.upsert(rows(("k1", "p3", 11, "new")), options={INDEX: "GLOBAL_BLOOM", **STAY["GLOBAL_BLOOM"]})
    assert [(r[1], r[3]) for r in content(table)] == [("p1", "new"), ("p2", "new")]


@pytest.mark.req("IX-13")
def test_a_move_takes_a_key_out_of_every_file_and_puts_it_into_one(tmp_path):
    table = make(tmp_path / "t")
    for _ in range(2):
        table.insert(rows(("k1", "p1", 10, "old"), ("k2", "p1", 10, "old")), options=SMALL)
    table.upsert(rows(("k1", "p3", 11, "new")), options={INDEX: "GLOBAL_SIMPLE"})
    assert [r for r in content(table) if r[0] == "k1"] == [("k1", "p3", "p3", "new")]


@pytest.mark.req("IX-06", "IX-08", "TL-25")
@settings(
    max_examples=15 if os.environ.get("HUDI_SOAK") else 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), stay=st.booleans(), event_time=st.booleans(), logs=st.booleans())
def test_global_indexes_keep_a_key_once_over_the_whole_table(tmp_path_factory, seed, stay, event_time, logs):
    rng = random.Random(seed)
    event_time |= logs  # else of the records of a log the newest wins, and over the stored row the last one
    payload = EVENT_TIME if event_time else {}
    steps = [
        [(f"k{rng.randrange(20)}", f"p{rng.randrange(4)}", rng.randrange(50), f"s{s}-{i}") for i in range(15)]
        for s in range(3)
    ]
    model: dict[str, tuple[str, int, str]] = {}
    for step in steps:
        newest: dict[str, tuple[str, int, str]] = {}
        for key, p, ts, v in step:
            if key not in newest or ts >= newest[key][1]:
                newest[key] = (p, ts, v)
        for key, (p, ts, v) in newest.items():
            old = model.get(key)
            if old is not None and event_time and old[1] > ts:
                continue
            model[key] = (old[0] if old is not None and stay else p, ts, v)
    for index in GLOBAL:
        options = {**chosen(index, stay=stay), **payload, **(SMALL if logs else {})}
        table = make(tmp_path_factory.mktemp(index) / "t", logs=logs, **payload)
        for step in steps:
            table.upsert(rows(*step), options=options)
        found = {r[0]: (r[1], r[3]) for r in content(table)}
        assert found == {k: (p, v) for k, (p, _, v) in model.items()}
        assert len(content(table)) == len(model)


@pytest.mark.req("IX-06", "IX-08", "PM-02")
@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize(
    ("payload", "renewed"),
    [("DefaultHoodieRecordPayload", ["k1"]), ("EventTimeAvroPayload", ["k1"]), ("FirstValueAvroPayload", [])],
)
@pytest.mark.sampled(6)
def test_a_stored_record_that_wins_over_one_of_another_partition_is_written_again(
    tmp_path, index, payload, renewed
):
    """As Apache Hudi 0.15 (tests/interop/test_index.py), so that incremental answers agree."""
    given = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    given |= chosen(index)
    table = make(tmp_path / "t", pa.schema([*SCHEMA, ("l", pa.list_(pa.int64()))]))
    stored = rows(*FIRST, ("k4", "p1", 10, None), l=[[1], None, [3, None], []])
    first = table.insert(stored)
    late = rows(("k1", "p2", 9, "late"), ("k2", "p2", 9, "late"), ("new", "p2", 1, "new"), l=[[9], [9], [9]])
    result = table.upsert(late, options=given)
    assert [r for r in content(table) if r[0] == "k1"] == [("k1", "p1", "p1", "old1")]
    since = table.read_incremental(first.instant, meta_columns=True).to_arrow().to_pylist()
    assert sorted(r["id"] for r in since) == [*renewed, "new"]
    assert [r["l"] for r in since if r["id"] == "k1"] == [[1]] * len(renewed)
    assert (result.updated, result.inserted) == (len(renewed), 1)
    stayed = table.upsert(
        rows(("k1", "p3", 9, "late"), l=[[9]]), options={**given, **chosen(index, stay=True)}
    )
    assert stayed.updated == 0


def test_a_table_without_partitions_needs_no_move(tmp_path):
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"]
    )
    table.insert(rows(*FIRST))
    result = table.upsert(rows(("k1", "elsewhere", 11, "new")), options={INDEX: "GLOBAL_BLOOM"})
    assert (result.updated, result.inserted) == (1, 0)


# --- what the table remembers: see scenarios/test_index_memory.py ----------------------------------------------


@pytest.mark.req("NEW-14", "IX-15")
def test_a_table_remembers_its_global_index(tmp_path):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options={INDEX: "GLOBAL_BLOOM"})
    table.insert(rows(("k4", "p4", 1, "x")))
    table.upsert(rows(("k1", "p2", 11, "new")))
    assert [r[1] for r in content(table) if r[0] == "k1"] == ["p2"]
    assert table.upsert(rows(("k1", "p3", 12, "new"))).lookup.index == "GLOBAL_BLOOM"


@pytest.mark.req("NEW-14", "IX-15")
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_an_index_within_partitions_is_refused_on_a_table_of_a_global_one(tmp_path, operation):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options={INDEX: "GLOBAL_SIMPLE"})
    with pytest.raises(ConflictingOptionError, match=r"hudi\.index\.allow\.switch=true") as e:
        getattr(table, operation)(rows(("k1", "p2", 11, "new")), options={INDEX: "BLOOM"})
    assert "hoodie.index.type=GLOBAL_SIMPLE" in str(e.value)
    switched = {INDEX: "BLOOM", "hudi.index.allow.switch": "true"}
    result = table.upsert(rows(("k1", "p2", 11, "new")), options=switched)
    assert any("no longer" in w for w in result.warnings)
    assert table.upsert(rows(("k1", "p2", 12, "new"))).lookup.index == "SIMPLE"


@pytest.mark.req("CC-21")
@pytest.mark.parametrize("index", ["FLINK_STATE", "RECORD_LEVEL_INDEX", "HBASE"])
def test_other_indexes_are_refused(tmp_path, index):
    with pytest.raises(UnsupportedError, match="GLOBAL_BLOOM"):
        make(tmp_path / "t").upsert(rows(*FIRST), options=chosen(index))


@pytest.mark.parametrize(
    "named", [{INDEX: "INMEMORY"}, {CLASS: "org.apache.hudi.index.inmemory.HoodieInMemoryHashIndex"}]
)
@pytest.mark.sampled(2)
def test_keys_of_files_are_read_once_by_a_process(tmp_path, named):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST, ("k4", "p1", 1, "a")), options=named)
    first = table.upsert(rows(("k1", "p1", 11, "b"), ("n", "p2", 1, "b")), options=named)
    assert (first.lookup.index, first.lookup.opened, first.lookup.held) == ("INMEMORY", 2, 0)
    # Rewritten files are others; what another writer commits has files of its own.
    make_again = HudiTable.open(str(tmp_path / "t"))
    make_again.upsert(rows(("k3", "p3", 11, "c"), ("m", "p3", 1, "c")))
    second = table.upsert(rows(("k1", "p1", 12, "d"), ("m", "p3", 2, "d")), options=named)
    assert (second.updated, second.inserted, second.lookup.opened) == (2, 0, 2)
    third = table.upsert(
        rows(("k2", "p2", 12, "e"), ("x", "p2", 2, "e")), options={**named, **SMALL}, dry_run=True
    )
    assert third.updated == 1
    fourth = table.upsert(rows(("k2", "p2", 12, "e")), options=named)
    assert (fourth.updated, fourth.lookup.opened, fourth.lookup.held) == (1, 0, 1)
    assert [(r[0], r[1], r[3]) for r in content(table)] == [
        ("k1", "p1", "d"), ("k2", "p2", "e"), ("k3", "p3", "c"), ("k4", "p1", "a"), ("m", "p3", "d"), ("n", "p2", "b"),
    ]  # fmt: skip


def test_a_table_made_anew_with_files_of_the_same_names_has_its_own_keys(tmp_path):
    """A seed and an instant give new file groups the names that they had."""
    named = {INDEX: "INMEMORY", "hoodie.parquet.small.file.limit": "0"}
    same = {**named, "hudi.write.seed": "s", "hudi.write.instant": "20240101000000000"}
    for keys in (("a", "b"), ("c", "d")):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        table = make(tmp_path / "t")
        table.insert(rows(*((k, "p1", 1, "old") for k in keys)), options=same)
        table.upsert(rows((keys[0], "p1", 2, "new")), options=named)
    table.delete(rows(("d", "p1", 2, "")), options=named)
    assert [(r[0], r[3]) for r in content(table)] == [("c", "new")]


@pytest.mark.req("NEW-14", "IX-15")
def test_keys_kept_in_the_process_are_within_partitions(tmp_path):
    table = make(tmp_path / "t")
    table.insert(rows(*FIRST), options={INDEX: "GLOBAL_SIMPLE"})
    with pytest.raises(ConflictingOptionError, match="unique over all partitions"):
        table.upsert(rows(("k1", "p2", 11, "new")), options={INDEX: "INMEMORY"})
