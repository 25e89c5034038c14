"""Copies of a sound table into which faults are planted, and the list of these faults."""

import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OPTIONS = {
    "hoodie.cleaner.commits.retained": "2", "hoodie.keep.min.commits": "8", "hoodie.keep.max.commits": "9",
    "hoodie.clean.max.commits": "1",
}  # fmt: skip
AFTER = "20990101000000000"  # later than every instant of the table
UUID = "11111111-2222-3333-4444-555555555555-0"


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": 1000 + step} for p in partitions for i in range(3)]


class Planted:
    """A copy of the sound table, with what faults need to know of it."""

    def __init__(self, path):
        self.path = path
        self.hoodie = path / ".hoodie"
        table = HudiTable.open(str(path))
        self.timeline = table.timeline
        self.commits = [i.time for i in self.timeline.completed_writes() if i.action == "commit"]
        self.last, self.before = self.commits[-1], self.commits[-2]

    def time_of(self, suffix):
        """The newest instant that has a file of this suffix."""
        return max(f.name.split(".")[0] for f in self.hoodie.glob(f"*{suffix}"))

    def file(self, instant, partition="a"):
        (found,) = (self.path / partition).glob(f"*_{instant}.parquet")
        return found

    def below(self, file):
        return str(file.relative_to(self.path))

    def edit(self, name, change):
        """Change the JSON of a commit."""
        file = self.hoodie / name
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))

    def rewrite(self, file, change_rows=None, change_footer=None):
        """Write a base file again, changed, and its size and rows into its commit."""
        table = pq.read_table(file, partitioning=None)
        table = change_rows(table) if change_rows else table
        entries = {k.decode(): v.decode() for k, v in pq.read_metadata(file).metadata.items()}
        entries.update(change_footer or {})
        with pq.ParquetWriter(file, table.schema.remove_metadata(), store_schema=False) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(entries)
        name = self.below(file)
        instant = file.stem.rpartition("_")[2]

        def change(content):
            for stat in content["partitionToWriteStats"][file.parent.name]:
                if stat["path"] == name:
                    stat.update(fileSizeInBytes=file.stat().st_size, numWrites=table.num_rows)

        self.edit(f"{instant}.commit", change)

    def properties(self, **changed):
        """Change entries of hoodie.properties, with its checksum of all entries."""
        storage = LocalStorage(str(self.path))
        found = table_config.read_file(storage, table_config.PROPERTIES_FILE)
        found.update({k.replace("__", "."): v for k, v in changed.items()})
        (self.hoodie / "hoodie.properties").write_bytes(table_config.render(found))


@dataclass
class Fault:
    """`plant` gives what is to be found: (code, path) pairs."""

    plant: object
    repaired: bool = False

    @property
    def name(self):
        return self.plant.__name__


FAULTS = []


def fault(**given):
    def register(plant):
        FAULTS.append(Fault(plant, **given))
        return plant

    return register


def column(table, name, values):
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
