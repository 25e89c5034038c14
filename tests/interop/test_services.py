"""Cleaning and archival: what we plan is what Apache Hudi 0.15.0 plans, and each finishes what the other began."""

import shutil

import pyarrow as pa
import pytest

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.archived_timeline import archived_instants
from interop.rows import assert_same_rows

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPERATION = "hoodie.datasource.write.operation"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.row.writer.enable": "false",
}
NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(step, partitions="abc"):
    """Every third partition is left out, so that file groups have versions of different instants."""
    return pa.Table.from_pylist(
        [
            {"k": f"{p}{i}", "p": p, "ts": step, "v": f"{step}"}
            for n, p in enumerate(partitions)
            if (n + step) % 3
            for i in range(4)
        ],
        schema=SCHEMA,
    )


def apache_writes(apache, path, steps, options=NO_SERVICES):
    for step in steps:
        operation = {4: "insert_overwrite", 7: "delete_partition"}.get(step, "upsert")
        given = {**OPTIONS, **options, OPERATION: operation}
        data = rows(step)
        if operation == "delete_partition":
            given["hoodie.datasource.write.partitions.to.delete"] = "b"
            data = rows(step)[:0]
        apache.write(path, data, given)


@pytest.fixture(scope="module")
def busy(pool, tmp_path_factory):
    """Nine commits of Apache Hudi without any service."""
    path = tmp_path_factory.mktemp("busy") / "t"
    apache_writes(pool.get("0.15.0"), path, range(9))
    return path


POLICIES = [
    ("KEEP_LATEST_COMMITS", "2"),
    ("KEEP_LATEST_COMMITS", "5"),
    ("KEEP_LATEST_FILE_VERSIONS", "1"),
    ("KEEP_LATEST_FILE_VERSIONS", "2"),
]
RETAINED = {
    "KEEP_LATEST_COMMITS": "hoodie.cleaner.commits.retained",
    "KEEP_LATEST_FILE_VERSIONS": "hoodie.cleaner.fileversions.retained",
}


@pytest.mark.req("TS-17", "TS-18", "TS-19", "TS-21", "TM-13")
@pytest.mark.parametrize(("policy", "retained"), POLICIES)
def test_we_clean_what_apache_hudi_cleans(apache, busy, tmp_path, policy, retained):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    shutil.copytree(busy, ours)
    shutil.copytree(busy, theirs)
    options = {"hoodie.cleaner.policy": policy, RETAINED[policy]: retained}
    result = HudiTable.open(str(ours)).clean(options=options)
    apache.sql(
        f"CALL run_clean(table => '{apache_table(apache, theirs)}', clean_policy => '{policy}', "
        + ("retain_commits" if "COMMITS" in policy else "file_versions_retained")
        + f" => {retained})"
    )
    assert result.deleted > 0
    assert data_files(ours) == data_files(theirs)
    mine, other = (clean_metadata(p) for p in (ours, theirs))
    for varying in ("startCleanTime", "timeTakenInMillis"):
        mine.pop(varying), other.pop(varying)
    assert in_order(mine) == in_order(other)


def in_order(record):
    for partition in record["partitionMetadata"].values():
        for name in ("deletePathPatterns", "successDeleteFiles"):
            partition[name].sort()
    return record


def apache_table(apache, path):
    name = f"t_{abs(hash(str(path)))}"
    apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    return name


def data_files(path):
    return sorted(str(f.relative_to(path)) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts)


def clean_metadata(path):
    done = sorted((path / ".hoodie").glob("*.clean"))
    return avro_files.parse("HoodieCleanMetadata", done[-1].read_bytes())


@pytest.mark.req("TS-20", "TS-31")
def test_apache_hudi_goes_on_after_our_cleaning_and_archival(apache, tmp_path):
    path = tmp_path / "t"
    kept = {
        "hoodie.cleaner.commits.retained": "2",
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
    }
    table = HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"], ordering_fields=["ts"]
    )
    for step in range(12):
        assert table.upsert(rows(step), options=kept).warnings == ()
    archived = archived_instants(LocalStorage(str(path)), table.config)
    assert len(archived) > 6
    assert len(list((path / ".hoodie").glob("*.commit"))) <= 7
    first = apache.sql(
        f"CALL show_archived_commits(table => '{apache_table(apache, path)}', limit => 100, "
        "start_ts => '20200101000000000', end_ts => '20990101000000000')"
    )
    assert first.num_rows > 0
    for step in range(12, 17):
        apache.write(path, rows(step), {**OPTIONS, **kept, OPERATION: "upsert"})
    mine, theirs = table.read(meta_columns=True).to_arrow(), apache.read(path)
    assert_same_rows(mine, theirs, ["k"])
    assert table.upsert(rows(17), options=kept).warnings == ()
    assert_same_rows(table.read(meta_columns=True).to_arrow(), apache.read(path), ["k"])
    times = [i.time for i in archived_instants(LocalStorage(str(path)), table.config)]
    assert times == sorted(times)
    assert set(times) > {i.time for i in archived}


@pytest.mark.req("TS-02")
@pytest.mark.parametrize("planner", ["ours", "apache"])
def test_one_finishes_the_cleaning_that_the_other_planned(apache, busy, tmp_path, planner):
    path = tmp_path / "t"
    shutil.copytree(busy, path)
    table = HudiTable.open(str(path))
    options = {"hoodie.cleaner.commits.retained": "2"}
    want = sorted(set(data_files(path)) - planned(table, options))
    if planner == "ours":
        table.clean(options=options)
    else:
        apache.sql(f"CALL run_clean(table => '{apache_table(apache, path)}', retain_commits => 2)")
    assert data_files(path) == want
    # As if it had died before it deleted anything: the files are back, the completed file is gone.
    for name in planned_from(busy, path, want):
        shutil.copy(busy / name, path / name)
    done = max((path / ".hoodie").glob("*.clean"))
    done.unlink()
    if planner == "ours":
        apache.sql(f"CALL run_clean(table => '{apache_table(apache, path)}', retain_commits => 2)")
    else:
        # Apache Hudi may be at it yet: only its name finishes it.
        left = table.clean(options=options)
        assert left.finished == ()
        (instant,) = (i.time for i in table.timeline.pending("clean"))
        assert any(instant in w for w in left.warnings)
        assert table.clean(instant=instant).finished == (instant,)
    assert done.exists()
    assert data_files(path) == want


def planned(table, options):
    plan = table.clean(dry_run=True, options=options).plan
    return {f"{p}/{n}" for p, names in plan.files.items() for n in names}


def planned_from(busy, path, want):
    return sorted(set(data_files(busy)) - set(want))


@pytest.mark.req("RC-06")
def test_apache_hudi_spares_what_our_savepoint_keeps(apache, tmp_path):
    path = tmp_path / "t"
    table = HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"], ordering_fields=["ts"]
    )
    for step in range(3):
        table.upsert(rows(step), options=NO_SERVICES)
    saved = table.savepoint(user="me", comment="before the change")
    kept = set(data_files(path)) & set(table.inspect.files().column("path").to_pylist())
    for step in range(3, 7):
        apache.write(
            path, rows(step), {**OPTIONS, "hoodie.cleaner.commits.retained": "1", OPERATION: "upsert"}
        )
    assert clean_metadata(path)["totalFilesDeleted"] > 0
    assert kept <= set(data_files(path))
    table.delete_savepoint(saved)
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert not kept & set(data_files(path))


@pytest.mark.req("RC-06")
def test_apache_hudi_goes_on_after_our_restore_of_its_table(apache, busy, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(busy, path)
    table = HudiTable.open(str(path))
    to = table.inspect.commits().column("instant").to_pylist()[3]
    before = table.read(as_of=to, meta_columns=True).to_arrow()
    assert len(table.restore(to).undone) == 5
    assert_same_rows(apache.read(path), before, ["k"])
    apache.write(path, rows(30), {**OPTIONS, OPERATION: "upsert"})
    mine = table.read(meta_columns=True).to_arrow()
    assert_same_rows(mine, apache.read(path), ["k"])
    assert "30" in mine.column("v").to_pylist()
    assert apache.timeline(path)[-1][2] == "COMPLETED"
