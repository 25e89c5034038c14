"""Schema, options and writes of the tables on which table services are tried."""

import pyarrow as pa

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
KEEP_2 = {"hoodie.cleaner.commits.retained": "2"}
SHORT = {**KEEP_2, "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


def write(table, steps, options=OFF):
    return [table.upsert(rows(s), options=options).instant for s in steps]


def files(path):
    return sorted(str(f.relative_to(path)) for f in path.rglob("*.parquet"))


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}
