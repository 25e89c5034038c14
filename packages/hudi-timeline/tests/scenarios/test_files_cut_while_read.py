"""A file that becomes shorter while it is read is an error that names it, not the end of the process."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, sys
import numpy as np, pyarrow as pa
from hudi_format.errors import HudiError
from hudi_timeline import HudiTable

path, how = sys.argv[1:]
schema = pa.schema([("id", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
table = HudiTable.create(path, schema, name="t", record_keys=["id"], ordering_fields=["ts"])
draw = np.random.default_rng(0)
rows = 60_000
table.bulk_insert(pa.table({
    "id": [str(n) for n in range(rows)], "v": [draw.bytes(40).hex() for _ in range(rows)],
    "ts": np.zeros(rows, np.int64),
}), options={"hoodie.parquet.block.size": "1000000"})
(file,) = (e.path for e in os.scandir(path) if e.name.endswith(".parquet"))
scan = HudiTable.open(path).read()
try:
    if how == "stream":
        batches = iter(scan.to_batches())
        next(batches)
        os.truncate(file, 4096)
        print(sum(b.num_rows for b in batches))
    elif how == "planned":
        scan.explain()
        os.truncate(file, 4096)
        print(scan.to_arrow().num_rows)
    else:
        opened = scan.plan_files()[0].open()
        os.truncate(file, 4096)
        print(opened.read().num_rows)
except HudiError as e:
    print(type(e).__name__, os.path.basename(e.file) == os.path.basename(file))
"""


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("how", ["stream", "planned", "opened"])
@pytest.mark.sampled(3)
def test_a_base_file_that_is_cut_while_it_is_read(how, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "t"), how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, (ended.returncode, ended.stderr[-2000:])
    assert ended.stdout.split() == ["CorruptFileError", "True"]
