"""Table services beside another writer that changes what they were planned from: no row changes, or a typed error.

A rival comes in once, between the plan of a compaction, log compaction or cleaning and its execution, or between its
files and its commit.  What is read afterwards is what the rival left, and the table goes on.
"""

import shutil
from contextlib import suppress

import pytest
from rival_writers import LAZY, NULLS, RIVALS, SCHEMA, rows, state

from hudi_format.errors import HudiError
from hudi_timeline import HudiTable
from hudi_timeline.services import cleaning
from hudi_timeline.services.compaction import log_compaction
from hudi_timeline.services.compaction.slice_tasks import run_on_threads

QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.archive.automatic": "false",
}
METADATA = {"hoodie.metadata.enable": "true"}
STATS = {**METADATA, "hoodie.metadata.index.column.stats.enable": "true"}
BESIDE = {**LAZY, **QUIET}
SHORT = {"hoodie.cleaner.commits.retained": "1"}


def upserts(**options):
    return lambda path: HudiTable.open(path).upsert(rows("by", ts=8, v=8), options={**BESIDE, **options})


def goes_back(path):
    table = HudiTable.open(path)
    table.restore(table.timeline.completed_writes()[-2].time)


def goes_down_and_up(path):
    HudiTable.open(path).downgrade(5)
    HudiTable.open(path).upgrade()


# Other keys, or another table type, are no change that a table service could follow: see test_rivals.py.
LEFT_OUT = {
    "removes the table",
    "makes the table anew",
    "makes the table anew with other keys",
    "sets the table type",
}
ALL = {
    **{name: act for name, act in RIVALS.items() if name not in LEFT_OUT},
    "upserts": upserts(),
    "makes a metadata table": upserts(**METADATA),
    "makes column_stats": upserts(**STATS),
    "makes record_index": upserts(**METADATA, **{"hoodie.metadata.record.index.enable": "true"}),
    "drops the metadata table": upserts(**{"hoodie.metadata.enable": "false"}),
    "drops column_stats": upserts(**METADATA, **{"hoodie.metadata.index.column.stats.enable": "false"}),
    "makes a savepoint": lambda path: HudiTable.open(path).savepoint(),
    "goes back one commit": goes_back,
    "goes down and up again": goes_down_and_up,
    "compacts": lambda path: HudiTable.open(path).compact(),
    "compacts logs": lambda path: HudiTable.open(path).log_compact(),
    "cleans": lambda path: HudiTable.open(path).clean(options=SHORT),
    "archives": lambda path: HudiTable.open(path).archive(
        options={**SHORT, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    ),
}


def plan_and_execute(service, **given):
    def act(path, once, monkeypatch):
        service(HudiTable.open(path), mode="schedule", **given)
        once()
        service(HudiTable.open(path), mode="execute", **given)

    return act


def compact_beside(*, before):
    def act(path, once, monkeypatch):
        def run(tasks):
            once(before)
            stats = run_on_threads(tasks)
            once(not before)
            return stats

        HudiTable.open(path).compact(run=run)

    return act


def compact_a_dry_plan(path, once, monkeypatch):
    plan = HudiTable.open(path).compact(dry_run=True).plan
    once()
    HudiTable.open(path).compact(plan=plan)


def log_compact_beside(path, once, monkeypatch):
    def run(*args, **kwargs):
        once()
        return run_on_threads(*args, **kwargs)

    monkeypatch.setattr(log_compaction, "run_on_threads", run)
    HudiTable.open(path).log_compact()


def clean_beside(path, once, monkeypatch):
    execute = cleaning._execute

    def after_the_plan(*args, **kwargs):
        once()
        return execute(*args, **kwargs)

    monkeypatch.setattr(cleaning, "_execute", after_the_plan)
    HudiTable.open(path).clean(options=SHORT)


def clean_a_dry_plan(path, once, monkeypatch):
    plan = HudiTable.open(path).clean(dry_run=True, options=SHORT).plan
    once()
    HudiTable.open(path).clean(plan=plan)


SERVICES = {
    "a planned compaction": plan_and_execute(HudiTable.compact),
    "a compaction before its files": compact_beside(before=True),
    "a compaction after its files": compact_beside(before=False),
    "a compaction of a dry plan": compact_a_dry_plan,
    "a planned log compaction": plan_and_execute(HudiTable.log_compact),
    "a log compaction": log_compact_beside,
    "a cleaning": clean_beside,
    "a cleaning of a dry plan": clean_a_dry_plan,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tables by whether they are merge-on-read and whether they have a metadata table."""
    root = tmp_path_factory.mktemp("made")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for name, options in (("listed", QUIET), ("metadata", {**QUIET, **STATS})):
            table = HudiTable.create(
                str(root / kind / name), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"],
                ordering_fields=["ts"], table_type=kind,
            )  # fmt: skip
            table.insert(rows("ax", "by", v=1, ts=1), options=options)
            table.insert(rows("cq", v=1, ts=1), options=options)
            for v in (2, 3):
                table.upsert(rows("ax", "by", "cq", ts=1, v=v), options=options)
    return root


CASES = [
    pytest.param(kind, listing, service, rival, id=f"{kind}-{listing}-{service}-{rival}")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for listing in ("listed", "metadata")
    for service in SERVICES
    for rival in ALL
    if kind == "MERGE_ON_READ" or (service.startswith("a cleaning") and "compact" not in rival)
]


@pytest.mark.sampled(80, values=False)
@pytest.mark.req("CC-01", "CC-22", "CC-23", "TM-24")
@pytest.mark.parametrize(("kind", "listing", "service", "rival"), CASES)
def test_rows_are_those_that_the_rival_left_and_the_table_goes_on(
    made, tmp_path, monkeypatch, kind, listing, service, rival
):
    path = str(tmp_path / "t")
    shutil.copytree(made / kind / listing, path)
    left, begun = [], []

    def once(now=True):
        if begun or not now:  # services of the rival come here too
            return
        begun.append(rival)
        with suppress(HudiError):  # it is told that it has to wait
            ALL[rival](path)
        left.append(state(path))

    refused = None
    try:
        SERVICES[service](path, once, monkeypatch)
    except HudiError as e:
        refused = e
    assert refused is None or refused.remedy
    if not left:  # there was nothing to do
        return
    monkeypatch.undo()
    there, schema = state(path)
    assert (there, schema) == left[0]
    assert HudiTable.open(path).verify(deep=True) == []
    if rival in (
        "sets partition fields",
        "sets the ordering field",
        "widens the ordering field",
        "downgrades",
    ):
        return  # what the next writer says to that is another matter
    HudiTable.open(path).upsert(rows("zx", ts=20, v=20), options=NULLS)
    assert set(state(path)[0]) == {*there, ("z", "x")}
    assert HudiTable.open(path).verify(deep=True) == []
