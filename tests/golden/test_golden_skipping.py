"""Reads of the golden tables by their indexes give the rows that reads of all files give."""

import datetime
import random
import re
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import AS_OF, ROOT, golden

from hudi_index.metadata_table.records import schema_of
from hudi_index.record_index import OpenedRecordIndex
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.reading import point_lookup
from hudi_timeline.table import HudiTable

BY_INDEXES = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
INDEXES = (
    "column_stats",
    "partition_stats",
    "bloom_filters",
    "record_index",
)  # secondary indexes go with the last


def has_indexes(table):
    with zipfile.ZipFile(ROOT / table.version / f"{table.name}.zip") as archive:
        folder = f"{table.name}/.hoodie/metadata/"
        return any(n.startswith(tuple(f"{folder}{i}/" for i in INDEXES)) for n in archive.namelist())


EVERY = [t for v in ("v5", "v6", "v8", "v9") for t in golden(v)]
TABLES = [t for t in EVERY if has_indexes(t)]
MANY = 10_000  # filters over every table, in the long form
COMPARE = (
    lambda c, v: c == v, lambda c, v: c != v, lambda c, v: c < v, lambda c, v: c <= v, lambda c, v: c > v,
    lambda c, v: c >= v, lambda c, v: ~(c > v), lambda c, v: c.isin(pa.array([v.as_py()], v.type)),
    lambda c, v: c.is_null(), lambda c, v: c.is_valid(),
)  # fmt: skip


def values(rows, name):
    """Values of a column, and some beside them."""
    column = rows.column(name)
    kind = column.type
    found = [v for v in pc.unique(column.combine_chunks()) if v.is_valid]
    if pa.types.is_boolean(kind) or not found:
        return found
    if pa.types.is_integer(kind):
        most = (1 << (kind.bit_width - 1)) - 1
        sides = [v.as_py() + d for v in found for d in (-1, 1)]
        return found + [pa.scalar(max(-most, min(most, s)), kind) for s in sides]
    if pa.types.is_floating(kind):
        return found + [pa.scalar(x, kind) for x in (0.0, -0.0, float("nan"), float("inf"), -1e300)][:4]
    if pa.types.is_string(kind):
        return found + [pa.scalar(t) for t in ("", "~", *(f"{v.as_py()}~" for v in found[:5]))]
    if pa.types.is_date(kind):
        return found + [
            pa.scalar(v.as_py() + datetime.timedelta(days=1), kind) for v in found if v.as_py().year < 9000
        ]
    return found


def predicates(rows, seed, count):
    """Random filters on the columns of a table."""
    chosen = random.Random(seed)
    choices = {
        n: of
        for n in rows.column_names
        if not pa.types.is_nested(rows.schema.field(n).type) and (of := values(rows, n))
    }
    names = sorted(choices)

    def leaf():
        # The record key is asked for most: blooms and the record index are for it alone.
        name = (
            "_hoodie_record_key"
            if "_hoodie_record_key" in choices and chosen.random() < 0.3
            else chosen.choice(names)
        )
        return chosen.choice(COMPARE)(pc.field(name), chosen.choice(choices[name]))

    for _ in range(count):
        shape = chosen.random()
        if shape < 0.5:
            yield leaf()
        elif shape < 0.75:
            yield leaf() & leaf()
        else:
            yield (leaf() | leaf()) & leaf()


def in_order(rows):
    return sorted(map(repr, rows.to_pylist()))


def check(read, seed, count, *, counted=True, **more):
    """Compare the rows of random filters; gives how many files the indexes left out, where that is counted."""
    every = read.read(**more, meta_columns=True).to_arrow()
    if not every.num_rows:
        return 0
    skipped = 0
    for predicate in predicates(every, seed, count):
        by_indexes = read.read(filter=predicate, options=BY_INDEXES, **more, meta_columns=True)
        wanted = every.filter(predicate)
        assert in_order(by_indexes.to_arrow()) == in_order(wanted), str(predicate)
        if not counted:
            continue
        plain = read.read(filter=predicate, **more, meta_columns=True)
        before = plain.plan.files.num_rows + len(plain.plan.logs)
        skipped += before - by_indexes.plan.files.num_rows - len(by_indexes.plan.logs)
    return skipped


@pytest.mark.req("QR-10", "QR-12")
@pytest.mark.sampled(24)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_any_filter_gives_the_same_rows(opened, table):
    check(opened(table), str(table), 12)
    if table.merged:
        check(opened(table), str(table), 5, query="read_optimized")


@pytest.mark.req("QR-10")
@pytest.mark.slow
@pytest.mark.parametrize("table", EVERY, ids=str)
def test_any_of_many_filters_gives_the_same_rows(opened, table):
    check(opened(table), f"{table} many", -(-MANY // len(EVERY)), counted=False)
    for question in table.questions(AS_OF):
        # Of a state whose files were partly cleaned, what is left is filtered.
        more = {"as_of": question.instant, "on_missing": "skip"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            check(opened(table), f"{table} {question.name}", 10, counted=False, **more)


@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
@pytest.mark.sampled(3)
def test_files_are_left_out(opened, version):
    (table,) = golden(version, "mdt_all_indexes")
    assert check(opened(table), version, 12) > 3


@pytest.mark.parametrize(("version", "left_out"), [("v8", 2), ("v9", 2)])
@pytest.mark.sampled(2)
def test_a_secondary_index_leaves_out_files_without_the_values(opened, version, left_out):
    (table,) = golden(version, "mdt_secondary_and_expression")
    read = opened(table)
    every = read.read(meta_columns=True).to_arrow()
    riders = sorted(set(every.column("rider").to_pylist()) - {None})
    asked = [[r] for r in riders] + [
        riders[:2],
        [riders[-1], "nobody"],
        ["nobody"],
        ["$", "\\", "a$b"],
        [None],
    ]
    by_index = 0
    for values in asked:
        predicate = pc.field("rider").isin(pa.array(values, pa.string()))
        scan = read.read(filter=predicate, options=BY_INDEXES, meta_columns=True)
        assert in_order(scan.to_arrow()) == in_order(every.filter(predicate)), values
        explained = scan.explain(prove=True).files
        assert not any(explained.column("missed").drop_null().to_pylist())
        by_index += explained.column("index").to_pylist().count("secondary_index_idx_second")
    assert by_index >= left_out


@pytest.mark.parametrize("version", ["v8", "v9"])
@pytest.mark.sampled(2)
def test_an_expression_index_leaves_out_files_by_its_column(version, tmp_path):
    """Of `from_unixtime(ts, 'yyyy-MM-dd')`, which is 1970-01-01 in every row."""
    path = of(version, tmp_path, "mdt_secondary_and_expression")
    properties = path / ".hoodie/hoodie.properties"
    text = properties.read_text().replace("column_stats,", "").replace("partition_stats,", "")
    properties.write_text(re.sub("hoodie.table.checksum=.*", "", text))
    read = HudiTable.open(str(path))
    every = read.read(meta_columns=True).to_arrow()
    least, most = pc.min_max(every.column("ts")).as_py().values()
    ts = pc.field("ts")
    for predicate, nothing in (
        (ts == 10_000_000, True),
        ((ts > 10_000_000) & (ts < 20_000_000) & (pc.field("rider") != "x"), True),
        (ts < -10_000_000_000, False),
        (ts > 10_000_000, False),  # may be one of those that follow
        (ts <= most, False),
        ((ts == least) | (ts > 10_000_000), False),
        (ts.is_null(), True),
        (ts > 10_000_000_000_000, False),  # Spark's text of that many seconds is any
    ):
        scan = read.read(filter=predicate, options=BY_INDEXES, query="read_optimized", meta_columns=True)
        explained = scan.explain(prove=True).files
        assert not any(explained.column("missed").drop_null().to_pylist())
        by_index = explained.column("index").to_pylist().count("expr_index_idx_expr")
        assert (by_index > 0) == nothing, predicate
        by_rows = read.read(filter=predicate, options=BY_INDEXES, meta_columns=True).to_arrow()
        assert in_order(by_rows) == in_order(every.filter(predicate))


def test_a_secondary_index_is_not_asked_for_null(opened, monkeypatch):
    """The first releases of 1.0 have no entries of null."""
    asked, right = [], MetadataTable.by_prefix
    monkeypatch.setattr(MetadataTable, "by_prefix", lambda *a: asked.append(a[1:]) or right(*a))
    (table,) = golden("v8", "mdt_secondary_and_expression")
    for values in (["nobody", None], [None], ["nobody"]):
        predicate = pc.field("rider").isin(pa.array(values, pa.string()))
        opened(table).read(filter=predicate, options=BY_INDEXES).to_arrow()
    prefixes = [p for index, of in asked if index == "secondary_index_idx_second" for p in of]
    assert prefixes == ["nobody$"]


@pytest.mark.req("QR-12")
@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
@pytest.mark.sampled(3)
def test_explanations_name_the_index_and_prove_it(opened, version):
    (table,) = golden(version, "mdt_all_indexes")
    read = opened(table)
    keys = read.read(["_hoodie_record_key"]).to_arrow().column(0)
    files = read.read(filter="_hoodie_record_key = ''").explain().files.num_rows
    seen = set()
    for key in keys[:8]:
        scan = read.read(filter=pc.field("_hoodie_record_key") == key, options=BY_INDEXES, meta_columns=True)
        explained = scan.explain(prove=True)
        by = explained.files.column("index").to_pylist()
        seen |= set(by)
        assert all(f"{index}: {by.count(index)}" in str(explained) for index in set(by) - {None})
        assert not any(explained.files.column("missed").drop_null().to_pylist())
        assert scan.count() == 1
        paths = explained.files.column("path").to_pylist()
        assert len(set(paths)) == len(paths) == files  # each file has one fate
        if "record_index" in seen:
            break
    assert seen >= {"record_index"}


def test_they_are_not_asked_where_no_option_says_so(opened):
    for version, options in (
        ("v6", {}),
        ("v6", {"hoodie.metadata.enable": "true"}),
        ("v6", {"hoodie.enable.data.skipping": "true"}),
        ("v9", {"hoodie.enable.data.skipping": "true"}),
        ("v9", {**BY_INDEXES, "hoodie.enable.data.skipping": "false"}),
    ):
        (table,) = golden(version, "mdt_all_indexes")
        explained = opened(table).read(filter="_hoodie_record_key = 'none'", options=options).explain()
        assert not explained.files.column("index").drop_null().to_pylist()
    scan = opened(table).read(
        filter="_hoodie_record_key = 'none'", options={"hoodie.metadata.enable": "true"}, meta_columns=True
    )
    assert scan.plan.files.num_rows == 0  # by default of version 8 and later


def of(version, tmp_path, name="mdt_all_indexes"):
    (table,) = golden(version, name)
    return table.unpack(tmp_path)


def damaged(path, partition):
    for file in (path / ".hoodie/metadata" / partition).glob("*.hfile"):
        data = file.read_bytes()
        file.write_bytes(data[:60] + bytes([data[60] ^ 0xFF]) + data[61:])


def without_partition(path, partition):
    for file in (path / ".hoodie/metadata" / partition).iterdir():
        file.unlink()


def without_its_timeline(path, _):
    for file in (path / ".hoodie/metadata/.hoodie").glob("*.deltacommit"):
        file.unlink()


def without_its_properties(path, _):
    (path / ".hoodie/metadata/.hoodie/hoodie.properties").unlink()


@pytest.mark.parametrize(
    ("damage", "filter", "partition"),
    [
        (damaged, "ts > 4500", "column_stats"),
        (without_partition, "ts > 4500", "column_stats"),
        (damaged, "_hoodie_record_key = 'id-00004'", "record_index"),
        (without_partition, "_hoodie_record_key = 'id-00004'", "bloom_filters"),
        (without_its_properties, "ts > 4500", ""),
    ],
)
def test_indexes_that_cannot_be_read_leave_out_nothing(tmp_path, damage, filter, partition):
    path = of("v6", tmp_path)
    # Without a listing through it: one that is asked for and cannot be read is an error.
    read = HudiTable.open(str(path))
    wanted = read.read(filter=filter, meta_columns=True).to_arrow()
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("files,", ""))
    damage(path, partition)
    scan = read.read(filter=filter, options=BY_INDEXES, meta_columns=True)
    with pytest.warns(UserWarning, match="no file is left out by the indexes"):
        rows = scan.to_arrow()
    assert in_order(rows) == in_order(wanted)
    assert read.read(filter=filter).plan.files.num_rows == scan.plan.files.num_rows


def test_records_that_are_missing_leave_out_nothing(tmp_path):
    """A metadata table that lags: it lost its newest commits."""
    path = of("v6", tmp_path)
    read = HudiTable.open(str(path))
    done = sorted((path / ".hoodie/metadata/.hoodie").glob("*.deltacommit"))
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("files,", "").replace(",record_index", ""))
    done[-1].unlink()
    assert check(read, "lags", 20) >= 0


def test_of_a_write_that_is_not_completed_nothing_counts(tmp_path):
    """A metadata table that leads: the table's newest writes are not completed."""
    path = of("v6", tmp_path)
    read = HudiTable.open(str(path))
    for instant in read.timeline.completed_writes()[-2:]:
        (path / instant.path).unlink()
    check(read, "leads", 20)


def test_statistics_of_other_files_leave_out_none_of_the_tables(tmp_path):
    path, other = of("v6", tmp_path / "a"), of("v6", tmp_path / "b", "all_types_cow")
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("files,", "").replace(",record_index", ""))
    read = HudiTable.open(str(path))
    for file in (path / ".hoodie/metadata/column_stats").glob("*.hfile"):
        stranger = sorted((other / ".hoodie/metadata/files").glob("*.hfile"))[-1]
        file.write_bytes(stranger.read_bytes())  # an HFile, with none of the keys
    with pytest.warns(UserWarning, match="no file is left out"):
        assert check(read, "others", 6) == 0


# --- look-ups of keys -----------------------------------------------------------------------------------

RECORD_INDEX = [
    t for v in ("v6", "v8", "v9") for t in golden(v, "record_index", "mdt_all_indexes") if has_indexes(t)
]
THROUGH = {"hoodie.metadata.enable": "true"}


@pytest.mark.req("NEW-26", "QR-12", "MT-08")
@pytest.mark.parametrize("table", RECORD_INDEX, ids=str)
@pytest.mark.sampled(3)
def test_look_ups_of_keys_agree_with_scans(opened, table, monkeypatch):
    read = opened(table)
    assert "record_index" in read.config.metadata_partitions
    every = read.read(meta_columns=True).to_arrow()
    keys = every.column("_hoodie_record_key").to_pylist()
    absent = [f"{key}~" for key in keys] + ["", "none"]
    assert in_order(read.get(keys + absent, options=THROUGH, meta_columns=True)) == in_order(every)
    assert in_order(read.get(absent, options=THROUGH, meta_columns=True)) == []
    opens = []
    monkeypatch.setattr(point_lookup, "may_hold", lambda *_: opens.append(_) or False)
    for key in keys[:6]:
        (row,) = read.get([key], options=THROUGH, meta_columns=True).to_pylist()
        assert repr(row) in in_order(every.filter(pc.field("_hoodie_record_key") == key))
        if table.meta["partition_fields"]:
            (again,) = read.get(
                [key], partitions=[row["_hoodie_partition_path"]], options=THROUGH, meta_columns=True
            ).to_pylist()
            assert again == row
    assert not opens  # no footer was asked: the index named the file
    read.get(keys[:1], options={**THROUGH, "hoodie.enable.data.skipping": "false"}, meta_columns=True)
    assert opens


@pytest.mark.req("NEW-26")
@pytest.mark.parametrize("table", RECORD_INDEX, ids=str)
@pytest.mark.sampled(3)
def test_an_index_that_disagrees_is_found_out_and_the_rows_are_right(opened, table, monkeypatch):
    read = opened(table)
    every = read.read(meta_columns=True).to_arrow()
    keys = every.column("_hoodie_record_key").to_pylist()
    right = OpenedRecordIndex.locate

    def wrong(self, wanted):
        """The location of each key is that of the next one."""
        found = right(self, wanted)
        return replace(found, group=np.roll(found.group, -1))

    with monkeypatch.context() as patched:
        patched.setattr(OpenedRecordIndex, "locate", wrong)
        for start in range(0, len(keys), 7):
            some = keys[start : start + 7]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = read.get(some, options=THROUGH, meta_columns=True)
            assert in_order(found) == in_order(every.filter(pc.field("_hoodie_record_key").isin(some)))
        one, other = (
            group.column("_hoodie_record_key")[0].as_py()
            for group in (
                every.filter(pc.field("_hoodie_partition_path") == p) for p in _two_partitions(every)
            )
        )
        with pytest.warns(UserWarning, match="the record index names files for 2 keys that are not in them"):
            assert read.get([one, other], options=THROUGH, meta_columns=True).num_rows == 2
        patched.setattr(OpenedRecordIndex, "locate", lambda self, _: right(self, pa.array([], pa.string())))
        assert in_order(read.get(keys, options=THROUGH, meta_columns=True)) == in_order(every)


def _two_partitions(rows):
    found = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    assert len(found) > 1
    return found[:2]


def test_look_ups_go_on_without_an_index_that_cannot_be_read(tmp_path):
    path = of("v6", tmp_path)
    read = HudiTable.open(str(path))
    every = read.read(meta_columns=True).to_arrow()
    damaged(path, "record_index")
    keys = every.column("_hoodie_record_key").to_pylist()
    with pytest.warns(UserWarning, match="the record index cannot be used"):
        assert in_order(read.get(keys, options=THROUGH, meta_columns=True)) == in_order(every)


def test_an_earlier_state_is_not_asked_of_the_index(opened):
    (table,) = golden("v6", "record_index")
    read = opened(table)
    for question in table.questions(AS_OF):
        every = read.read(as_of=question.instant, meta_columns=True).to_arrow()
        keys = every.column("_hoodie_record_key").to_pylist()
        assert in_order(
            read.get(keys, as_of=question.instant, options=THROUGH, meta_columns=True)
        ) == in_order(every)


def test_of_a_table_that_has_changed_the_index_is_not_believed(tmp_path, monkeypatch):
    """A writer completes something between the snapshot and the look at the index."""
    path = of("v6", tmp_path, "record_index")
    read = HudiTable.open(str(path))
    every = read.read(meta_columns=True).to_arrow()
    keys = every.column("_hoodie_record_key").to_pylist()
    monkeypatch.setattr(MetadataTable, "is_current", lambda self: False)
    monkeypatch.setattr(
        MetadataTable, "lookup", lambda self, partition, _: schema_of(partition).empty_table()
    )
    asked, may_hold = [], point_lookup.may_hold
    monkeypatch.setattr(point_lookup, "may_hold", lambda *a: asked.append(a) or may_hold(*a))
    with monkeypatch.context() as patched:
        patched.setattr(point_lookup.KeptIndex, "_state_is", lambda self, now: False)
        assert in_order(read.get(keys, options=THROUGH, meta_columns=True)) == in_order(every)
    assert asked  # footers say where the keys are
    by_key = pc.field("_hoodie_record_key") == keys[0]
    assert read.read(filter=by_key, options=BY_INDEXES).count() == 1
