"""The metadata table under two writers: each keeps the other's, and both list the same files through it."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.reading.metadata_listing import differences
from interop import ours
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES, Model, Rows

TYPE = "hoodie.datasource.write.table.type"
OPERATION = "hoodie.datasource.write.operation"
ROW_WRITER = "hoodie.datasource.write.row.writer.enable"
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
MAINTAINED = {"hoodie.metadata.enable": "true"}

INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.bloom.index.use.metadata": "true",
}

TURNS = ("ours upsert", "apache upsert", "ours delete", "ours upsert", "apache delete", "apache upsert")
if not os.environ.get("HUDI_SOAK"):  # each turn takes some seconds: CI takes one of each
    TURNS = ("ours upsert", "apache delete", "ours delete", "apache upsert")
# Enough of both for compactions of the metadata table and cleanings of the table by either.
MANY = (
    "ours upsert", "apache upsert", "ours upsert", "ours insert_overwrite", "apache upsert", "ours delete",
    "apache delete", "ours upsert", "ours upsert", "apache insert", "ours insert", "apache upsert", "ours upsert",
    "apache insert_overwrite", "ours upsert", "apache upsert", "ours delete", "apache upsert", "ours upsert",
    "apache upsert",
)  # fmt: skip


def listing_differences(path):
    """What the metadata table says of files, and storage otherwise; Hadoop's checksums are no files of a table."""
    return [d for d in differences(open_storage(str(path))) if not d.name.endswith(".crc")]


class Table:
    """A table with a metadata table, and the model of it."""

    def __init__(self, path, shape, table_type, apache, indexes=None):
        self.path, self.shape, self.apache = path, shape, apache
        self.indexes = indexes or {}
        self.options = {**MAINTAINED, TYPE: table_type, **self.indexes}
        self.rows, self.model = Rows(shape), Model(shape)

    def take(self, step):
        who, operation = step.split()
        current = list(self.model.rows.values())
        match operation:
            case "upsert":
                given = self.rows.changed(current, min(8, len(current))) + self.rows.new(4)
            case "delete":
                given = self.rows.some(current, 3)
            case "insert_overwrite":
                given = [r | {"city": current[0]["city"]} for r in self.rows.new(5)]
            case _:
                given = self.rows.new(20)
        table = pa.Table.from_pylist(given, schema=self.shape.schema)
        if who == "ours":
            result = ours.write(self.path, operation, table, options=MAINTAINED | self.indexes)
            assert not any("metadata table" in w for w in result.warnings), result.warnings
        else:
            options = {
                **self.shape.write_options(),
                **self.options,
                OPERATION: operation,
                ROW_WRITER: "false",
            }
            self.apache.write(self.path, table, options)
        self.model.apply(operation, given, [])

    def check(self, step):
        want = self.model.table()
        try:
            assert HudiTable.open(str(self.path)).config.metadata_partitions == self.partitions
            assert listing_differences(self.path) == []
            if self.indexes:
                assert [
                    f for f in HudiTable.open(str(self.path)).verify(deep=True) if ".crc" not in f.path
                ] == []
            through = self.apache.read(self.path, **SKIPPING, **self.indexes)
            assert_same_rows(without_meta(through), want, ["uuid"], ordered_columns=False)
            mine = HudiTable.open(str(self.path)).read(options=MAINTAINED, meta_columns=True).to_arrow()
            assert_same_rows(mine, through, ["uuid"])
        except AssertionError as e:
            e.add_note(f"after {step}")
            raise

    @property
    def partitions(self):
        """The metadata partitions that the table has."""
        return ("bloom_filters", "column_stats", "files", "record_index") if self.indexes else ("files",)

    @property
    def identity(self):
        """The first line of its properties, which says when it was made."""
        return (self.path / FOLDER / ".hoodie/hoodie.properties").read_text().splitlines()[0]


def _run(table, steps):
    made = table.identity
    for step in steps:
        table.take(step)
        table.check(step)
    assert table.identity == made, "it was made anew"


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("maker", ["ours", "apache"])
@pytest.mark.slow
def test_both_write_on_through_one_metadata_table(tmp_path, apache, table_type, maker):
    table = Table(tmp_path / "t", SHAPES["simple"], table_type, apache)
    if maker == "ours":
        shape = SHAPES["simple"]
        HudiTable.create(
            str(table.path),
            shape.schema,
            name=shape.name,
            record_keys=list(shape.keys),
            partition_fields=list(shape.partitions),
            ordering_fields=["ts"],
            table_type=table_type,
        )
    table.take(f"{maker} insert")
    table.check(f"insert by {maker}")
    _run(table, TURNS)


@pytest.mark.sampled(8, values=False)
@pytest.mark.req("MT-04", "MT-05", "MT-08", "MT-10", "MT-01")
@pytest.mark.parametrize("index", ["RECORD_INDEX", "BLOOM"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("maker", ["ours", "apache"])
def test_both_keep_all_indexes_of_one_metadata_table(tmp_path, apache, table_type, maker, index):
    shape = SHAPES["simple"]
    table = Table(tmp_path / "t", shape, table_type, apache, INDEXES)
    if maker == "ours":
        HudiTable.create(
            str(table.path), shape.schema, name=shape.name, record_keys=list(shape.keys),
            partition_fields=list(shape.partitions), ordering_fields=["ts"], table_type=table_type,
        )  # fmt: skip
    table.take(f"{maker} insert")
    table.check(f"insert by {maker}")
    table.options["hoodie.index.type"] = index
    _run(table, TURNS)
    wanted = next(iter(table.model.rows.values()))["uuid"]
    skipping = {**SKIPPING, **table.indexes}
    for where in (f"uuid = '{wanted}'", f"_hoodie_record_key = '{wanted}'", "ts > 3", "city < 'm' OR ts < 2"):
        on, off = (
            filtered(apache, table.path, where, o) for o in (skipping, {"hoodie.metadata.enable": "false"})
        )
        assert_same_rows(without_meta(on), without_meta(off), ["uuid"], ordered_columns=False)


def filtered(apache, path, where, options):
    """Rows of a table under a condition, as Apache Hudi gives them with options of the read."""
    given = ", ".join(f"'{key}' '{value}'" for key, value in {"path": str(path), **options}.items())
    apache.sql(f"CREATE OR REPLACE TEMPORARY VIEW filtered USING hudi OPTIONS ({given})")
    return apache.sql(f"SELECT * FROM filtered WHERE {where}")


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_metadata_table_of_apache_hudi_is_kept_through_20_mixed_commits(tmp_path, apache, table_type):
    table = Table(tmp_path / "t", SHAPES["simple"], table_type, apache)
    table.take("apache insert")
    _run(table, MANY)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_1_0_lists_through_our_metadata_table(tmp_path, pool, table_type):
    shape = SHAPES["simple"]
    table = Table(tmp_path / "t", shape, table_type, None)
    HudiTable.create(
        str(table.path), shape.schema, name=shape.name, record_keys=list(shape.keys),
        partition_fields=list(shape.partitions), ordering_fields=["ts"], table_type=table_type,
    )  # fmt: skip
    for step in ("ours insert", *["ours upsert"] * 11, "ours delete"):
        table.take(step)
    assert listing_differences(table.path) == []
    read = pool.get("1.0.2").read(table.path, **SKIPPING)
    assert_same_rows(without_meta(read), table.model.table(), ["uuid"], ordered_columns=False)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_finds_in_our_metadata_table_what_it_finds_in_storage(tmp_path, apache, table_type):
    """The comparisons of its HoodieMetadataTableValidator: listing, slices, statistics, filters, places of keys."""
    shape = SHAPES["simple"]
    table = Table(tmp_path / "t", shape, table_type, apache, INDEXES)
    HudiTable.create(
        str(table.path), shape.schema, name=shape.name, record_keys=list(shape.keys),
        partition_fields=list(shape.partitions), ordering_fields=["ts"], table_type=table_type,
    )  # fmt: skip
    for step in ("ours insert", "ours upsert", "ours delete", "ours insert_overwrite", *["ours upsert"] * 8):
        table.take(step)
    ours_ = HudiTable.open(str(table.path))
    rows = ours_.read(meta_columns=True).to_arrow()
    keys = rows["_hoodie_record_key"].to_pylist()
    said = apache.look_up(table.path, [*keys, "absent"], ["uuid", "ts", "city"])
    assert said["table"] == said["storage"]
    assert len(said["table"]["files"]) == len(ours_.inspect.partitions())
    assert said["locations"].keys() == set(keys)
    file_ids = dict(zip(keys, rows["_hoodie_file_name"].to_pylist(), strict=True))
    for key, (partition, file_id) in said["locations"].items():
        assert file_ids[key].startswith(file_id), key
        assert partition == rows["_hoodie_partition_path"][keys.index(key)].as_py()
    bases = [n for files in said["table"]["files"].values() for n in files if n.endswith(".parquet")]
    assert sorted(said["filters"]) == sorted(bases)
    for partition, files in said["table"]["files"].items():
        for name in files:
            if not name.endswith(".parquet"):
                continue
            stored = pq.read_table(
                table.path / partition / name, columns=["_hoodie_record_key", "uuid", "ts", "city"]
            )
            there = set(stored["_hoodie_record_key"].to_pylist())
            assert there & set(keys) <= set(said["filters"][name])
            for column in ("uuid", "ts", "city"):
                values = [v for v in stored[column].to_pylist() if v is not None]
                low, high, nulls, count = said["statistics"][column][name]
                assert (low, high) == (str(min(values)), str(max(values)))
                assert (nulls, count) == (stored[column].null_count, stored.num_rows)
