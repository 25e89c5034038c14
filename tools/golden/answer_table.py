"""Make a golden table of a table that is there, with Apache Hudi's answers.

    python tools/golden/answer_table.py 0.15.0|1.0.2|1.2.0 TABLE OUT NAME

Asks for the snapshot, the read-optimized rows, the table as of each completed write, archived ones too, and what each
range of writes up to the newest changed.  Gives `NAME.zip` and `NAME.expected/` as tests/golden/README.md says.
Runs in an environment with PySpark 3.5.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow.parquet as pq

from hudi_timeline import HudiTable
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import WRITE_ACTIONS
from interop.apache_hudi import ApacheHudi
from interop.spark_process import SparkProcessError

QUERY, AS_OF = "hoodie.datasource.query.type", "as.of.instant"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"


def questions(table: HudiTable) -> dict[str, dict[str, str]]:
    """The read options of each question, by the name of its answer."""
    past = [i for i in archived_instants(table.storage, table.config) if i.action in WRITE_ACTIONS]
    writes = [*past, *table.timeline.completed_writes()]
    by_completion = table.config.version.has_completion_times
    times = [i.completion if by_completion else i.time for i in writes]
    asked: dict[str, dict[str, str]] = {"snapshot": {}, "read_optimized": {QUERY: "read_optimized"}}
    asked |= {f"asof_{i.time}": {AS_OF: i.time} for i in writes}
    for begin in ("000", *times[:-1]):
        asked[f"incremental_{begin}_open"] = {QUERY: "incremental", BEGIN: begin}
        asked[f"incremental_{begin}_{times[-1]}"] = {QUERY: "incremental", BEGIN: begin, END: times[-1]}
    return asked


def main() -> None:
    version, source, out, name = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    expected = out / f"{name}.expected"
    expected.mkdir(parents=True)
    refused: dict[str, str] = {}
    with ApacheHudi(version) as apache, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        shutil.copytree(source, path, ignore=shutil.ignore_patterns("*.crc"))
        table = HudiTable.open(str(path))
        with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path.rglob("*")):
                archive.write(file, f"{name}/{file.relative_to(path)}")
        for question, options in questions(table).items():
            try:
                answer = apache.read(path, **options)
            except SparkProcessError as e:
                lines = [line for line in str(e).splitlines() if line.startswith("Caused by:")]
                refused[question] = (lines[-1:] or str(e).splitlines()[:1] or [type(e).__name__])[0]
                continue
            pq.write_table(answer, expected / f"{question}.parquet")
        meta = {
            "scenario": name,
            "hudi_version": version,
            "table_version": table.table_version,
            "table_type": table.table_type,
            "hudi_could_not_answer": refused,
        }
    (expected / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


if __name__ == "__main__":
    main()
