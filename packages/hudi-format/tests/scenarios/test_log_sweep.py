"""Cut and changed golden log files: an error, equal rows, or what no checksum covers (NEW-37).

A sample of the files; `HUDI_SWEEP=1` takes them all, 8 every eighth; `HUDI_SWEEP_CHANGES` so many changes of each.
"""

import os
from collections import Counter

import pytest
from golden_logs import VERSIONS, golden_logs
from log_sweep import sweep

from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader

EVERY = int(os.environ.get("HUDI_SWEEP", 0))
CHANGES = int(os.environ.get("HUDI_SWEEP_CHANGES", 200 if EVERY else 60))


def sample(version):
    """Some files of each kind: the smallest and the largest with each combination of block types."""
    logs = golden_logs(version)
    if EVERY:
        return {n: logs[n] for n in sorted(logs)[::EVERY]}
    kinds = {}
    for name, data in sorted(logs.items(), key=lambda x: len(x[1])):
        types = tuple(b.type for b in LogFileReader(data).blocks)
        kinds.setdefault(types, []).append(name)
    names = {n for found in kinds.values() for n in (found[0], found[-1])}
    return {n: logs[n] for n in sorted(names) if len(logs[n]) < 12_000}


@pytest.mark.req("NEW-37", "LF-14")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.sampled(3)
def test_cut_and_changed_files_are_accounted_for(version):
    cut, changed, types = Counter(), Counter(), Counter()
    files = sample(version)
    for number, (name, data) in enumerate(files.items()):
        cdc = name.endswith(".cdc")
        random_cuts = 500 if EVERY else 20
        a, b = sweep(data, cdc=cdc, random_cuts=random_cuts, changes=CHANGES, seed=number)
        assert not a["other"] + a["one record"] + a["schema"], (name, a)
        assert not b["other"], (name, b)
        cut += a
        changed += b
        types.update(x.type.name for x in LogFileReader(data).blocks)
    print(f"\n{version}: {len(files)} files, cut {dict(cut)}, changed {dict(changed)}")
    assert set(cut) == {"error"}
    assert changed["error"] > 0
    assert BlockType.AVRO_DATA.name in types
