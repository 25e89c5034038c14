"""Resizes of bucket indexes: rows stay what they are, each key in the one bucket of its hash."""

import pytest
from resized_tables import (
    ENGINE,
    FULL,
    GROWN,
    IDS,
    KINDS,
    NUMBER,
    RESIZES,
    RESIZING,
    SCHEMA,
    buckets,
    found,
    grow,
    make,
    numbers,
    rows,
)

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    InvalidOptionError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.transaction import transaction
from hudi_timeline.transaction.ring_files import NewRings


@pytest.mark.req("IX-29", "IX-32")
@pytest.mark.parametrize("kind", KINDS)
def test_each_bucket_splits_by_itself(tmp_path, kind):
    table = make(tmp_path / "t", kind)
    before, old = found(table), table.inspect.buckets().to_pylist()
    dry = table.resize_buckets(12, dry_run=True)
    assert (dry.instant, found(table)) == ("", before)
    done = table.resize_buckets(plan=dry.plan)
    assert sorted(s.file_id for s in done.write_stats) == sorted(
        f for m in dry.plan.moves for f in m.targets.values() if f in {s.file_id for s in done.write_stats}
    )
    assert {m.slices[0].file_id for m in dry.plan.moves} == {r["file_id"] for r in old}
    for move in dry.plan.moves:  # i of n: i, i + n, i + 2 n ...
        first = int(move.slices[0].file_id[:8])
        assert list(move.targets) == [first, first + 3, first + 6, first + 9]
    assert found(table) == before
    assert {of for shown in numbers(table).values() for _, of in shown} == {12}
    assert table.config.properties[NUMBER] == "12"
    table.upsert(rows([*IDS[::3], "new"], ts=3))
    table.upsert(rows(IDS[:3], "c", ts=3))
    assert len(found(table)) == len(before) + 4
    numbers(table)


@pytest.mark.req("IX-28", "IX-32")
@pytest.mark.parametrize(
    ("kind", "number"),  # of 6: fewer and more, with and without a common divisor
    [("COPY_ON_WRITE", 2), ("COPY_ON_WRITE", 7), ("MERGE_ON_READ", 4), ("MERGE_ON_READ", 1)],
)
@pytest.mark.sampled(3)
def test_an_overwrite_makes_any_number_of_buckets(tmp_path, kind, number):
    table = make(tmp_path / "t", kind, number=6)
    before, at = found(table), table.timeline.completed_writes()[-1].time
    with pytest.raises(ConflictingOptionError, match=f"cannot become {number}") as e:
        table.resize_buckets(number)
    assert "--overwrite" in e.value.remedy
    plan = table.resize_buckets(number, overwrite=True, dry_run=True).plan
    step = {1: 1, 2: 2, 4: 2, 7: 1}[number]  # buckets of one remainder are divided by themselves
    for move in plan.moves:
        numbers_of = {int(s.file_id[:8]) for s in move.slices} | set(move.targets)
        assert len({n % step for n in numbers_of}) == 1
    assert {(m.partition, min(m.targets)) for m in plan.moves} == {(p, n) for p in "ab" for n in range(step)}
    done = table.resize_buckets(plan=plan)
    assert done.instant
    assert found(table) == before
    assert found(table, as_of=at) == before
    assert {of for shown in numbers(table).values() for _, of in shown} == {number}
    assert table.config.properties[NUMBER] == str(number)
    for key in IDS[::19]:
        assert found(table, filter=f"id = '{key}'") == [r for r in before if r[0] == key]
        assert found(table, filter=f"id = '{key}'", as_of=at) == [r for r in before if r[0] == key]
    assert table.read_incremental(at, done.instant).to_arrow().num_rows == 0
    table.upsert(rows([*IDS[::3], "new"], ts=3))
    after = found(table)
    assert len(after) == len(before) + 1
    numbers(table)
    table.rollback(table.timeline.completed_writes()[-1].time)
    table.rollback(done.instant)
    assert found(table) == before
    assert table.config.properties[NUMBER] == "6"
    table.upsert(rows(IDS, ts=4))
    assert {of for shown in numbers(table).values() for _, of in shown} == {6}


@pytest.mark.req("IX-28")
def test_an_overwrite_is_of_simple_buckets_and_a_number(tmp_path):
    table = make(tmp_path / "t")
    with pytest.raises(OptionError, match="nothing says how many"):
        table.resize_buckets(overwrite=True)
    with pytest.raises(ConflictingOptionError, match="cannot become 0"):
        table.resize_buckets(0, overwrite=True)
    with pytest.raises(ConflictingOptionError, match="engine is EXTENDIBLE_HASHING"):
        table.resize_buckets(6, engine="EXTENDIBLE_HASHING", overwrite=True)
    with pytest.raises(ValueError, match="plan goes without"):
        table.resize_buckets(plan=table.resize_buckets(6, dry_run=True).plan, overwrite=True)
    ring = make(tmp_path / "u", "MERGE_ON_READ", "CONSISTENT_HASHING")
    with pytest.raises(ConflictingOptionError, match="one by one"):
        ring.resize_buckets(5, overwrite=True)
    assert table.config.properties[NUMBER] == "3"


@pytest.mark.req("NEW-14", "NEW-22")
def test_writers_with_the_old_number_are_refused_with_the_way(tmp_path):
    table = make(tmp_path / "t")
    table.resize_buckets(6)
    with pytest.raises(ConflictingOptionError, match="was written with 6") as e:
        table.upsert(rows(IDS), options={"hoodie.index.type": "BUCKET", NUMBER: "3"})
    assert "hudi buckets resize" in e.value.remedy
    assert table.resize_buckets(6).instant == ""
    for number in (3, 9, 10):
        with pytest.raises(ConflictingOptionError, match=f"6 buckets cannot become {number}"):
            table.resize_buckets(number)


@pytest.mark.req("IX-30", "IX-31")
@pytest.mark.parametrize("kind", KINDS)
def test_full_buckets_split_alone_and_empty_twins_merge(tmp_path, kind):
    table = make(tmp_path / "t", kind)
    sizes = {(r["partition"], r["bucket"]): r["bytes"] for r in table.inspect.buckets().to_pylist()}
    largest = max(sizes, key=lambda k: sizes[k])
    limit = {"hoodie.parquet.max.file.size": str((sizes[largest] - 1) // 2)}
    before = found(table)
    done = table.resize_buckets(engine="EXTENDIBLE_HASHING", options=limit)
    split = {(m.partition, int(m.slices[0].file_id[:8])) for m in done.plan.moves}
    assert split == {k for k, size in sizes.items() if size > 2 * ((sizes[largest] - 1) // 2)}
    assert done.plan.buckets == {
        p: (3, 3 + len({n for q, n in split if q == p})) for p in {p for p, _ in split}
    }
    assert found(table) == before
    assert {of for p, n in split for bucket, of in numbers(table)[p] if bucket in (n, n + 3)} == {6}
    table.upsert(rows([*IDS[::2], "new"], ts=3))
    after = found(table)
    numbers(table)
    merged = table.resize_buckets()  # all are small by the defaults
    assert {m.kind for m in merged.plan.moves} == {"merge"}
    assert {of for shown in numbers(table).values() for _, of in shown} == {3}
    assert found(table) == after
    assert table.resize_buckets().instant == ""


@pytest.mark.req("IX-11", "IX-31")
def test_rings_are_split_and_merged(tmp_path):
    table = make(tmp_path / "t", "MERGE_ON_READ", "CONSISTENT_HASHING")
    before = found(table)
    assert table.resize_buckets(options=FULL).plan.buckets == {"a": (3, 6), "b": (3, 6)}
    assert found(table) == before
    numbers(table)
    table.upsert(rows([*IDS[::2], "new"], ts=3))
    after = found(table)
    least = {"hoodie.bucket.index.min.num.buckets": "1"}
    assert table.resize_buckets(options=least).plan.buckets == {"a": (6, 1), "b": (6, 1)}
    assert found(table) == after
    table.upsert(rows(IDS[:4], ts=4))
    numbers(table)
    with pytest.raises(ConflictingOptionError, match="one by one"):
        table.resize_buckets(8)


@pytest.mark.req("NEW-22")
def test_partitions_grow_one_by_one(tmp_path):
    table = make(tmp_path / "t")
    with pytest.raises(ConflictingOptionError, match="all have the same"):
        table.resize_buckets(12, partitions=["a"])
    before = found(table)
    table.resize_buckets(12, partitions=["a"], engine="EXTENDIBLE_HASHING")
    shown = numbers(table)
    assert ({of for _, of in shown["a"]}, {of for _, of in shown["b"]}) == ({12}, {3})
    assert found(table) == before
    with pytest.raises(ConflictingOptionError, match="cannot become 9"):
        table.resize_buckets(9, partitions=["b"])
    with pytest.raises(ConflictingOptionError, match="cannot become SIMPLE"):
        table.resize_buckets(12, engine="SIMPLE")
    with pytest.raises(ConflictingOptionError, match="EXTENDIBLE_HASHING"):
        table.upsert(rows(IDS), options={"hoodie.index.type": "BUCKET", ENGINE: "SIMPLE"})
    table.upsert(rows(IDS, ts=5))
    table.insert_overwrite(rows(IDS[:30], ts=6))
    table.bulk_insert(rows(["z1", "z2"], ts=6))
    table.delete(rows(IDS[:3]))
    assert {of for _, of in numbers(table)["a"]} == {12}


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize("engine", ["SIMPLE", "EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
@pytest.mark.sampled(3)
def test_queries_of_before_and_after_find_each_key(tmp_path, engine):
    table = make(tmp_path / "t", "MERGE_ON_READ", engine)
    at = table.timeline.completed_writes()[-1].time
    options = None if engine == "SIMPLE" else FULL
    resized = table.resize_buckets(6 if engine == "SIMPLE" else None, options=options)
    table.upsert(rows(IDS[::4], ts=7))
    for key in IDS[::6]:
        keyed = f"id = '{key}'"
        old, new = found(table, filter=keyed, as_of=at), found(table, filter=keyed)
        assert (
            [r[:2] for r in old] == [r[:2] for r in new] == [(key, p) for p in "ab"[: 1 + (key in IDS[:20])]]
        )
        scan = table.read(filter=f"{keyed} and p = 'a'", meta_columns=True)
        assert (
            len(
                {
                    f["path"].rpartition("/")[2].lstrip(".")[:36]
                    for f in scan.explain().files.to_pylist()
                    if f["read"]
                }
            )
            == 1
        )
    since = table.read_incremental(at, resized.instant, meta_columns=True).to_arrow()
    assert since.num_rows == 0  # a resize changes no row


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize("engine", ["SIMPLE", "EXTENDIBLE_HASHING", "CONSISTENT_HASHING"])
@pytest.mark.sampled(3)
def test_a_rollback_and_a_restore_take_it_back(tmp_path, engine):
    table = make(tmp_path / "t", "MERGE_ON_READ", engine)
    before, shown, stored = found(table), numbers(table), dict(table.config.properties)
    saved = table.savepoint()

    def resize(number):
        return table.resize_buckets(number if engine == "SIMPLE" else None, options=FULL)

    table.rollback(resize(6).instant)
    assert (found(table), numbers(table)) == (before, shown)
    resize(6)
    table.upsert(rows(IDS, ts=9))
    resize(12)
    table.restore(saved)
    assert (found(table), numbers(table)) == (before, shown)
    now = table.config.properties
    assert {k: now.get(k) for k in (NUMBER, ENGINE, RESIZES, RESIZING)} == {
        k: stored.get(k) for k in (NUMBER, ENGINE, RESIZES, RESIZING)
    }
    table.upsert(rows(IDS[:3], ts=5))
    numbers(table)


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize(("engine", "into"), GROWN)
@pytest.mark.sampled(3)
def test_what_apache_hudi_undoes_is_taken_back_by_the_next_write(tmp_path, engine, into):
    """It leaves the properties, and the files of hashing metadata, as the resize made them."""
    table = make(tmp_path / "t", "MERGE_ON_READ", engine)
    before, shown, stored = found(table), numbers(table), dict(table.config.properties)
    instant = grow(table, engine, into).instant
    left = [".hoodie/hoodie.properties"]
    left += [
        str(f.relative_to(tmp_path / "t"))
        for f in (tmp_path / "t/.hoodie/.bucket_index").rglob("*")
        if f.is_file()
    ]
    after = {name: (tmp_path / "t" / name).read_bytes() for name in left}
    table.rollback(instant)
    for name, content in after.items():
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(content)
    assert found(table) == before
    for key in IDS:
        assert found(table, filter=f"id = '{key}'") == [r for r in before if r[0] == key]
    assert numbers(table) == shown
    # No key of a bucket that had a file group before: no file that is read would show that it is a wrong one.
    moved = [i for n, ids in buckets(6).items() if n > 2 for i in ids]
    HudiTable.open(table.uri).upsert(rows(moved, ts=9))
    assert sorted(r[:2] for r in found(table)) == sorted(r[:2] for r in before)
    numbers(table)
    now = HudiTable.open(table.uri).config.properties
    assert {k: now.get(k) for k in (NUMBER, ENGINE, RESIZES, RESIZING)} == {
        k: stored.get(k) for k in (NUMBER, ENGINE, RESIZES, RESIZING)
    }


@pytest.mark.req("NEW-22")
@pytest.mark.parametrize(("engine", "into"), [*GROWN, ("CONSISTENT_HASHING", None)])
@pytest.mark.sampled(3)
def test_a_resize_that_is_visible_keeps_its_buckets_whatever_fails_after_it(
    tmp_path, monkeypatch, engine, into
):
    table = make(tmp_path / "t", "MERGE_ON_READ", engine)
    before, flush = found(table), transaction.flush

    def fails(storage, paths, **how):
        if any(p.endswith(".replacecommit") for p in paths):
            raise StorageError("no space", table=storage.uri)
        flush(storage, paths, **how)

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "flush", fails)
        with pytest.raises(StorageError, match="no space") as e:
            grow(table, engine, into)
    assert "completed and visible" in e.value.__notes__[-1]
    assert table.timeline.completed_writes()[-1].action == "replacecommit"
    assert found(table) == before
    table.upsert(rows([*IDS, "new"], ts=9))
    assert len(found(table)) == len(before) + 1
    numbers(table)


@pytest.mark.req("NEW-22")
def test_no_directory_is_there_before_the_engine_that_stops_apache_hudi(tmp_path, monkeypatch):
    """A directory of a dead resize that Apache Hudi rolled back would count once its instant is archived."""
    table = make(tmp_path / "t")
    prepare, engines = NewRings.prepare, []

    def prepared(rings, running, metadata):
        engines.append(HudiTable.open(table.uri).config.properties[ENGINE])
        prepare(rings, running, metadata)

    monkeypatch.setattr(NewRings, "prepare", prepared)
    grow(table, "SIMPLE", "EXTENDIBLE_HASHING")
    assert engines == ["RESIZING"]


def test_an_engine_alone_is_changed_by_a_plan_without_moves(tmp_path):
    table = make(tmp_path / "t")
    before = found(table)
    plan = table.resize_buckets(engine="EXTENDIBLE_HASHING", dry_run=True).plan
    assert (plan.moves, plan.engine) == ((), "EXTENDIBLE_HASHING")
    assert table.resize_buckets(plan=plan).instant
    assert table.config.properties[ENGINE] == "EXTENDIBLE_HASHING"
    assert found(table) == before
    numbers(table)


def test_what_has_no_buckets_or_no_number_is_refused(tmp_path):
    plain = HudiTable.create(
        str(tmp_path / "u"), SCHEMA, name="u", record_keys=["id"], partition_fields=["p"]
    )
    plain.upsert(rows(IDS))
    with pytest.raises(UnsupportedError, match="index BUCKET"):
        plain.resize_buckets(6)
    with pytest.raises(UnsupportedError, match="index BUCKET"):
        plain.inspect.buckets()
    table = make(tmp_path / "t")
    with pytest.raises(OptionError, match="nothing says how many"):
        table.resize_buckets()
    with pytest.raises(ConflictingOptionError, match="cannot become CONSISTENT"):
        table.resize_buckets(engine="CONSISTENT_HASHING")


def test_keys_of_other_buckets_stop_it(tmp_path):
    table = make(tmp_path / "t")
    storage = open_storage(table.uri)
    one, other = [f["path"] for f in table.inspect.files().to_pylist() if f["partition"] == "a"][:2]
    storage.publish(one, storage.read(other))
    before = table.timeline.completed_writes()
    with pytest.raises((UnsupportedError, CorruptFileError)):
        table.resize_buckets(6)
    assert HudiTable.open(table.uri).timeline.completed_writes() == before
    assert HudiTable.open(table.uri).config.properties[NUMBER] == "3"


@pytest.mark.req("NEW-22")
def test_virtual_keys_and_hash_fields_that_are_part_of_the_key(tmp_path):
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id", "n"], partition_fields=["p"], ordering_fields=["ts"],
        options={
            "hoodie.index.type": "BUCKET", NUMBER: "3", "hoodie.bucket.index.hash.field": "id",
            "hoodie.populate.meta.fields": "false",
        },
    )  # fmt: skip
    table.upsert(rows(IDS))
    before = sorted(table.read().to_arrow().column("id").to_pylist())
    table.resize_buckets(9)
    assert sorted(table.read().to_arrow().column("id").to_pylist()) == before
    assert len(table.inspect.buckets()) == 9
    scan = table.read(filter="id = 'k07'", meta_columns=True)
    assert scan.to_arrow().num_rows == 1
    assert sum(f["read"] for f in scan.explain().files.to_pylist()) == 1
    table.upsert(rows(IDS, ts=3))
    assert HudiTable.open(table.uri).verify(deep=True) == []
    assert table.count() == len(IDS)


def test_change_data_says_nothing_of_it(tmp_path):
    table = make(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true"})
    at = table.timeline.completed_writes()[-1].time
    table.resize_buckets(6)
    assert table.read_changes(at).to_arrow().num_rows == 0
    table.upsert(rows(IDS[:2], ts=7))
    assert table.read_changes(at).to_arrow().num_rows == 2


def test_a_metadata_table_goes_along(tmp_path):
    on = {"hoodie.metadata.enable": "true"}
    table = make(tmp_path / "t", "MERGE_ON_READ", **on)
    before = found(table)
    table.resize_buckets(6, options=on)
    read = table.read(["id"], options=on).to_arrow()
    assert read.num_rows == len(before)
    assert numbers(table)


def test_what_a_stranger_wrote_into_the_properties_is_refused(tmp_path):
    table = make(tmp_path / "t")
    storage = open_storage(table.uri)
    of_others = '[{"instant": "1", "before": {"hoodie.table.name": "x"}, "after": {}}]'
    nested = "[" * 100_000
    said = ({RESIZING: "x"}, {RESIZES: "[3]"}, {RESIZES: of_others}, {RESIZING: nested}, {RESIZES: nested})
    for entry in (*said, {ENGINE: "SOMETHING"}):
        table_config.update(storage, entry)
        with pytest.raises((CorruptFileError, InvalidOptionError)):
            HudiTable.open(table.uri).resize_buckets(6)
        assert HudiTable.open(table.uri).read(filter="id = 'k01'").to_arrow().num_rows == 2
        table_config.update(storage, {}, list(entry))
    table.upsert(rows(IDS[:1], ts=8))
