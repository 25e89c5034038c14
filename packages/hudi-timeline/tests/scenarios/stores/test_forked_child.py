"""A child of fork() goes on with a store whose connections, and whose lock, are its parent's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "support" / "forks.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_forked_child_writes_to_s3(store):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(PROGRAM), "on_s3", store.uri()]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=500, check=False,
        env={**os.environ, "HUDI_STORE": json.dumps(dict(store.options))},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
