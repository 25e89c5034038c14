"""An installed package works: `check_wheels.py PACKAGE` imports every module of it, compiled ones too, and uses it.

To be run with `python -I` in an environment that holds the package and those below it, and nothing of this checkout.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Modules that are imported by those who have what they need, which a package itself does not.
NEEDS = {"hudi_timeline.testing.fixtures": "pytest", "hudi_spark.datasource": "pyspark.sql.datasource"}


def hudi_format() -> str:
    """Rows to Avro and back."""
    import pyarrow as pa

    from hudi_format import Decoder, Encoder, to_avro

    rows = pa.table({"id": ["a", "é", None], "n": [1, None, 3]})
    schema = to_avro(rows.schema, "smoke")
    data, offsets = Encoder(schema, rows.schema).encode(rows.to_batches()[0])
    again = Decoder(schema).decode(data, offsets[:-1], offsets[1:] - offsets[:-1])
    assert again.to_pydict() == rows.to_pydict(), again
    return f"{rows.num_rows} rows to Avro and back"


def hudi_index() -> str:
    """A bloom filter that knows its keys."""
    import pyarrow as pa

    from hudi_index import BloomFilter

    keys = pa.array([f"key-{n}" for n in range(1000)])
    bloom = BloomFilter.create("SIMPLE", entries=len(keys), fpp=1e-6)
    bloom.add(keys)
    assert all(bloom.might_contain(keys).to_pylist())
    return f"a bloom filter of {len(keys)} keys"


def hudi_timeline() -> str:
    """A merge-on-read table: written, changed, compacted, read and counted by the command."""
    from hudi_timeline import HudiTable

    with tempfile.TemporaryDirectory() as scratch:
        uri = str(Path(scratch) / "t")
        rows = [{"id": n, "city": "oslo" if n % 2 else "bergen", "n": n} for n in range(100)]
        fields = {"record_keys": "id", "partition_fields": "city", "ordering_fields": "n"}
        table = HudiTable.create(uri, rows, table_type="mor", **fields)
        table.insert(rows)
        table.upsert([{"id": 7, "city": "oslo", "n": 700}])
        table.compact()
        table.delete([{"id": 8, "city": "bergen"}])
        found = {r["id"]: r["n"] for r in table.read().to_arrow().to_pylist()}
        assert found == {n: 700 if n == 7 else n for n in range(100) if n != 8}, found
        asked = [sys.executable, "-I", "-m", "hudi_timeline", "count", uri]
        counted = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert counted.strip() == "99", counted
    manual = Path(sys.prefix, "share", "man", "man1", "hudi.1")  # where man looks beside the command
    assert ".SS hudi count " in manual.read_text(encoding="utf-8"), manual
    return "a merge-on-read table of 99 rows"


def hudi_spark() -> str:
    """Its settings for a session, which itself needs Java."""
    import hudi_spark as package

    assert callable(package.configure)
    return "its settings"


USES: dict[str, Callable[[], str]] = {
    use.__name__: use for use in (hudi_format, hudi_index, hudi_timeline, hudi_spark)
}


def main(package: str) -> None:
    top = importlib.import_module(package)
    names = [module.name for module in pkgutil.walk_packages(top.__path__, f"{package}.")]
    names = [n for n in names if n not in NEEDS or importlib.util.find_spec(NEEDS[n])]
    for name in names:
        importlib.import_module(name)
    print(f"{package} {top.__version__}: {len(names)} modules imported; used: {USES[package]()}")


if __name__ == "__main__":
    main(sys.argv[1])
