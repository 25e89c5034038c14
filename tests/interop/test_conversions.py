"""Table versions 5 and 6, copy on write and merge on read: Apache Hudi 0.15.0 carries on what we converted."""

import shutil

import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from interop.rows import assert_same_rows

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "false",
}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
TYPE = "hoodie.datasource.write.table.type"


def rows(step, numbers):
    return pa.Table.from_pylist(
        [{"k": f"{p}{i}", "p": p, "ts": step, "v": str(step)} for p in "ab" for i in numbers], schema=SCHEMA
    )


def write(apache, path, table_type, step, numbers, **more):
    apache.write(path, rows(step, numbers), {**OPTIONS, TYPE: table_type, **more})


def named(apache, path):
    name = f"converted_{abs(hash(str(path)))}"
    apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    return name


@pytest.fixture(scope="module")
def tables(pool, tmp_path_factory):
    """A table of each type; that of merge on read waits for a compaction."""
    apache, folder = pool.get("0.15.0"), tmp_path_factory.mktemp("tables")
    for table_type in (MOR, COW):
        for step, numbers in enumerate((range(4), range(2))):
            write(apache, folder / table_type, table_type, step, numbers)
    options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
    name = named(apache, folder / MOR)
    apache.sql(f"CALL run_compaction(op => 'schedule', table => '{name}', {options})")
    return folder


# Apache Hudi's CREATE TABLE over a table that is there, without which its procedures do not find it, adds these.
BY_CATALOG = (
    "hoodie.table.create.schema",
    "hoodie.database.name",
    "hoodie.table.checksum",
    "hoodie.table.timeline.timezone",
)


def properties(path):
    found = table_config.load(LocalStorage(str(path))).properties
    return {k: v for k, v in found.items() if k not in BY_CATALOG}


def tree(path):
    files = (f.relative_to(path) for f in path.rglob("*") if f.is_file() and not f.name.endswith(".crc"))
    return sorted(str(f) for f in files)


@pytest.mark.req("OP-11", "OP-12")
def test_a_table_is_upgraded_as_apache_hudi_upgrades_it(apache, tables, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(tables / COW, old)
    apache.sql(f"CALL downgrade_table(table => '{named(apache, old)}', to_version => 'FIVE')")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    shutil.copytree(old, ours), shutil.copytree(old, theirs)
    before = HudiTable.open(str(ours)).read(meta_columns=True).to_arrow()
    result = HudiTable.open(str(ours)).upgrade()
    assert (result.before, result.after) == (5, 6)
    apache.sql(f"CALL upgrade_table(table => '{named(apache, theirs)}', to_version => 'SIX')")
    assert properties(ours) == properties(theirs)
    assert tree(ours) == tree(theirs)
    assert_same_rows(apache.read(ours), before, ["k"])
    write(apache, ours, COW, 7, range(1, 6))
    assert_same_rows(HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), apache.read(ours), ["k"])
    HudiTable.open(str(ours)).upsert(rows(8, range(3)))
    assert_same_rows(HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), apache.read(ours), ["k"])


@pytest.mark.req("OP-11")
@pytest.mark.slow
def test_a_table_is_downgraded_as_apache_hudi_downgrades_it(apache, tables, tmp_path):
    with pytest.raises(UnsupportedError, match="log files"):
        HudiTable.open(str(tables / MOR)).downgrade()
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    shutil.copytree(tables / COW, ours), shutil.copytree(tables / COW, theirs)
    HudiTable.open(str(ours)).downgrade()
    apache.sql(f"CALL downgrade_table(table => '{named(apache, theirs)}', to_version => 'FIVE')")
    assert properties(ours) == properties(theirs)
    assert tree(ours) == tree(theirs)
    assert_same_rows(apache.read(ours), apache.read(theirs), ["k"])
    write(apache, ours, COW, 7, range(6))  # takes it up again
    assert properties(ours)["hoodie.table.version"] == "6"
    assert_same_rows(HudiTable.open(str(ours)).read(meta_columns=True).to_arrow(), apache.read(ours), ["k"])


@pytest.mark.req("OP-03")
def test_apache_hudi_does_not_see_delta_commits_of_a_copy_on_write_table(apache, tables, tmp_path):
    """Why a table whose base files a delta commit wrote does not become copy on write."""
    path = tmp_path / "t"
    write(apache, path, MOR, 0, range(4))
    table = HudiTable.open(str(path))
    as_cow = {**table.config.properties, table_config.TYPE: COW}
    with pytest.raises(UnsupportedError, match="a delta commit wrote"):
        table.overwrite_properties(as_cow)
    table_config.update(table.storage, {table_config.TYPE: COW})
    assert apache.read(path).num_rows == 0


@pytest.mark.req("OP-02", "OP-03", "TL-03")
def test_a_table_becomes_merge_on_read_and_copy_on_write_again(apache, tables, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(tables / COW, path)
    table = HudiTable.open(str(path))
    as_mor = {**table.config.properties, table_config.TYPE: MOR}
    assert table_config.TYPE in table.overwrite_properties(as_mor).changes
    write(apache, path, MOR, 7, range(3))
    assert any(".log." in name for name in tree(path))
    assert_same_rows(HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), apache.read(path), ["k"])
    table = HudiTable.open(str(path))
    as_cow = {**table.config.properties, table_config.TYPE: COW}
    with pytest.raises(UnsupportedError, match="rows that are in no base file"):
        table.overwrite_properties(as_cow)
    options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
    apache.sql(
        f"CALL run_compaction(op => 'scheduleandexecute', table => '{named(apache, path)}', {options})"
    )
    table = HudiTable.open(str(path))
    table.overwrite_properties({**table.config.properties, table_config.TYPE: COW})
    found = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    assert_same_rows(found, apache.read(path), ["k"])
    assert found.column("v").to_pylist().count("7") == 6
    write(apache, path, COW, 8, range(2))
    assert_same_rows(HudiTable.open(str(path)).read(meta_columns=True).to_arrow(), apache.read(path), ["k"])
