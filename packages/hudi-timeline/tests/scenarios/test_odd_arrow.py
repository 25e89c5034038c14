"""No Arrow data ends the process: writes of arrays that no writer of ours makes, in a process of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "odd_arrow.py"
# How many tables of random columns are written; HUDI_ODD_ARROW=3000 is the long form.
COUNT = int(os.environ.get("HUDI_ODD_ARROW", "80"))


@pytest.mark.req("WR-01")
def test_arrays_of_any_make_are_written_or_refused():
    command = [sys.executable, str(PROGRAM), "0", str(COUNT)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60 + 5 * COUNT, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]  # the last number in it is the seed
    # The inputs are what they are meant to be: most are written, some refused.
    counts = {name: int(n) for name, n in re.findall(r"'([\w ]+)': (\d+)", ended.stdout)}
    assert counts["refused SchemaError"] >= COUNT // 10
    for operation in ("upsert", "insert", "bulk_insert", "deleted"):
        assert counts[operation] >= COUNT // 20, counts
