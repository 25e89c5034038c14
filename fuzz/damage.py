"""Cut and changed golden files, accounted for file by file: an error, equal rows, or what no checksum covers.

    python fuzz/damage.py --changes 200 --jobs 2                      some minutes
    python fuzz/damage.py --changes 10000 --jobs 2                    the nightly form
    python fuzz/damage.py --only hfile --every 1

Writes fuzz/results/damage.md, and damage.csv with a line for each file.  Exit code 1 where an outcome is none of those.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
for _path in (HERE, ROOT / "tests" / "golden", ROOT / "packages" / "hudi-format" / "tests" / "support"):
    sys.path.insert(0, str(_path))

KINDS = {"log": "log files", "hfile": "HFiles", "footer": "footers of base files"}
RESULTS = HERE / "results"
OUTCOMES = ("error", "equal", "one record", "schema", "parquet", "entry", "column", "other")
MOST_FOOTER_CHANGES = 1000  # the same writers make them; a footer has a few hundred bytes that matter


def inputs(kind: str, every: int) -> Iterator[tuple[str, bytes]]:
    """Golden files of a kind: in tables of all versions, and the HFiles beside them."""
    from golden_tables import ROOT as GOLDEN
    from targets.golden import files

    if kind == "hfile":
        yield from ((f"hfile/{p.name}", p.read_bytes()) for p in sorted((GOLDEN / "hfile").glob("*.hfile")))
    found = []
    for name, data in files():
        last = name.rpartition("/")[2]
        is_log = last.startswith(".") and ".log." in last
        if data and (
            (kind == "log" and is_log)
            or (kind == "hfile" and last.endswith(".hfile"))
            or (kind == "footer" and last.endswith(".parquet") and not last.startswith("."))
        ):
            found.append((name, data))
    yield from found[::every]


def sweep_one(job: tuple[str, str, bytes, int, int]) -> tuple[str, str, int, Counter[str], Counter[str]]:
    kind, name, data, changes, seed = job
    if kind == "log":
        from log_sweep import sweep

        cut, after = sweep(data, cdc=name.endswith(".cdc"), random_cuts=500, changes=changes, seed=seed)
    else:
        from sweeps import sweep_footer, sweep_hfile

        how = sweep_hfile if kind == "hfile" else sweep_footer
        cut, after = how(data, random_cuts=500, changes=changes, seed=seed)
    return kind, name, len(data), cut, after


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=200, help="one-byte changes of each file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take every n-th file")
    parser.add_argument("--footers", type=int, default=10, help="and of base files every n-th of these")
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    chosen = parser.parse_args()
    begun = time.monotonic()
    jobs = [
        (
            kind,
            name,
            data,
            min(chosen.changes, MOST_FOOTER_CHANGES) if kind == "footer" else chosen.changes,
            number,
        )
        for kind in chosen.only
        for number, (name, data) in enumerate(
            inputs(kind, chosen.every * (chosen.footers if kind == "footer" else 1))
        )
    ]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        found = list(pool.map(sweep_one, jobs, chunksize=4))
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "damage.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            ["file", "bytes", *(f"cut: {o}" for o in OUTCOMES), *(f"changed: {o}" for o in OUTCOMES)]
        )
        for _, name, size, cut, after in found:
            writer.writerow([name, size, *(cut[o] for o in OUTCOMES), *(after[o] for o in OUTCOMES)])
    lines = _table(found, chosen.changes)
    (RESULTS / "damage.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    bad = [name for _, name, _, cut, after in found if cut["other"] + after["other"] or set(cut) - {"error"}]
    print(
        f"{len(found)} files, {time.monotonic() - begun:.0f} s"
        + "".join(f"\nunaccounted for: {b}" for b in bad)
    )
    return 1 if bad else 0


def _table(found: list[tuple[str, str, int, Counter[str], Counter[str]]], changes: int) -> list[str]:
    groups: dict[tuple[str, str], list[Counter[str]]] = {}
    for kind, name, _, cut, after in found:
        group = groups.setdefault((kind, name.split("/")[0]), [Counter(), Counter(), Counter()])
        group[0]["files"] += 1
        group[1].update(cut)
        group[2].update(after)
    used = [o for o in OUTCOMES if o == "other" or any(g[2][o] for g in groups.values())]
    lines = [
        "# Damage table",
        "",
        "Every golden file cut and changed by `fuzz/damage.py`: all lengths of files up to 4 KB, else 16 bytes around",
        f"each structural boundary and 500 random cuts; {changes} random one-byte changes of each file (of footers at",
        f"most {MOST_FOOTER_CHANGES}, most of them outside the bloom filter). A line for each file: damage.csv.",
        "",
        "- error: `CorruptFileError` or `UnsupportedError` that names the file.",
        "- equal: all rows as they were: the byte means nothing, such as an offset that no reader uses.",
        "- one record: no checksum covers it, and one record has another key or value.",
        "- schema, parquet: a name or type in the text of a log block's schema; several values of a Parquet log block,",
        "  whose pages Apache Hudi writes without checksums.",
        "- entry, column: a text in a Parquet footer; one column's values, name or type, by what the footer says.",
        "- other: anything else, such as a record that is missing.",
        "",
        "| golden files | files | cuts | of them errors | changes | " + " | ".join(used) + " |",
        "|---|---|---|---|---|" + "---|" * len(used),
    ]
    for (kind, version), (count, cut, after) in sorted(groups.items()):
        cells = [f"{KINDS[kind]}, {version}", count["files"], cut.total(), cut["error"], after.total()]
        lines.append("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in cells) + " | "
                     + " | ".join(f"{after[o]:,}" for o in used) + " |")  # fmt: skip
    return lines


if __name__ == "__main__":
    sys.exit(main())
