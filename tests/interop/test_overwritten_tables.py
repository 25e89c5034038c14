"""A table that took another's place by mode "overwrite", whatever Apache Hudi then does to it: files of the old one are
none of its files.
"""

import pyarrow as pa
import pytest

from hudi_format.schema.input_rows import as_reader
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    WRITE + "operation": "upsert",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
UP_AND_DOWN = {"0.15.0": (None, "FIVE"), "1.0.2": ("EIGHT", "SIX"), "1.2.0": ("NINE", "SIX")}


def rows(v, *keys):
    return pa.table({"id": list(keys), "p": ["p0"] * len(keys), "ts": [v] * len(keys), "v": [v] * len(keys)})


class Overwritten:
    """The new table in the place of another, of which a file is closed late.

    It is there for as long as we look: Apache Hudi would read it, and write its rows anew.
    """

    def __init__(self, path, kind, registered):
        self.path, self.storage = path, open_storage(str(path))
        self.options = {**OPTIONS, WRITE + "table.type": kind}
        self.ours(rows(0, "a", "old"))
        registered()
        (name,) = (e.name for e in self.storage.list("p0") if e.name.endswith(".parquet"))
        self.content = self.storage.read(f"p0/{name}")
        self.ours(rows(5, "a", "b"), "overwrite")
        self.late = f"p0/{name}"
        self.known = self.table.config.overwritten
        self.expected = {"a": 5, "b": 5}

    @property
    def table(self):
        return HudiTable.open(str(self.path))

    def ours(self, data, mode="append"):
        return execute(LocalEngine(), self.storage, as_reader(data), self.options, mode=mode)

    def check(self):
        self.storage.create(self.late, self.content)
        found = self.table.read(["id", "v"]).to_arrow().to_pylist()
        assert sorted((r["id"], r["v"]) for r in found) == sorted(self.expected.items())
        assert self.table.timeline.overwritten == self.known
        assert self.known.until
        findings = [f for f in self.table.verify() if f.path == self.late]
        assert [f.code for f in findings] == ["file-of-no-instant"]
        self.storage.delete(self.late)


@pytest.mark.parametrize("version", UP_AND_DOWN)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_keeps_what_tells_the_files_of_the_old_table(tmp_path, pool, version, kind):
    engine, path = pool.get(version), tmp_path / "t"
    stays = (
        {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"} if version[0] == "1" else {}
    )
    name = f"o{version.replace('.', '')}{kind[:4]}"
    create = f"create table {name} using hudi location '{path}'"
    made = Overwritten(path, kind, lambda: engine.sql(create))
    made.check()
    for n, metadata in enumerate(("true", "false")):  # which changes hoodie.properties
        more = {**made.options, **stays, "hoodie.metadata.enable": metadata}
        engine.write(path, rows(6 + n, "a", f"n{n}"), more)
        made.expected |= {"a": 6 + n, f"n{n}": 6 + n}
        made.check()
    up, down = UP_AND_DOWN[version]
    if up:
        engine.sql(f"call upgrade_table(table => '{name}', to_version => '{up}')")
        made.check()
    engine.sql(f"call downgrade_table(table => '{name}', to_version => '{down}')")
    made.check()
    if version == "0.15.0":
        engine.sql(f"call upgrade_table(table => '{name}', to_version => 'SIX')")
        made.check()
    assert made.table.config.overwritten == made.known
    # It writes hoodie.properties anew, and keeps in it what it knows.
    engine.sql(create.replace(name, f"{name}again"))
    made.check()
    made.ours(rows(9, "a"))
    made.expected["a"] = 9
    made.check()
