"""A child of fork() reads and writes, whatever its parent was doing, and ends nothing of its parent's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "support" / "forks.py"


def run(case: str, where: str) -> None:
    # A child that hangs is ended by its own alarm; this bounds what no alarm reaches.
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-W",
        "ignore::DeprecationWarning",
        str(PROGRAM),
        case,
        where,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert f"done {case}" in ended.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
@pytest.mark.parametrize(
    "case",
    ["while_locked", "while_reading", "in_mid_stream", "in_mid_write", "that_unwinds", "locks_of_others"],
)
@pytest.mark.sampled(3)
def test_a_forked_child(case, tmp_path):
    run(case, str(tmp_path))
