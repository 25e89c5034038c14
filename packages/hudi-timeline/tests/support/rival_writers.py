"""Another writer that comes in between two steps of a write, and what it may do to the table."""

import json
import shutil
import threading
from typing import ClassVar

import pyarrow as pa

from hudi_format.errors import HudiError
from hudi_format.schema.avro import from_avro, to_avro
from hudi_timeline import HudiTable, table_config
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.transaction.retries import Tries
from hudi_timeline.transaction.transaction import Transaction, begin_transaction
from hudi_timeline.writing import operation

DURING = "while it writes"
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline": "false",
}
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
DROP = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}

INNER = pa.struct([("a", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("s", INNER),
        ("extra", pa.string()),
    ]
)  # fmt: skip


def rows(*keys, ts=2, v=7, **more):
    """Rows of the table's schema, without columns that are None; a key is its id and its partition: "ax" is a in x."""
    n = len(keys)
    columns = {
        "id": pa.array([k[0] for k in keys]),
        "p": pa.array([k[1] for k in keys]),
        "ts": pa.array([ts] * n, pa.int64()),
        "v": pa.array([v] * n, pa.int32()),
        "s": pa.array([{"a": v}] * n, INNER),
        "extra": pa.array([f"e{v}"] * n, pa.string()),
    }
    columns.update({k: pa.array([c] * n) if isinstance(c, str) else c for k, c in more.items()})
    return pa.table({k: c for k, c in columns.items() if c is not None})


def make(path, kind="COPY_ON_WRITE", **options):
    """A table of three partitions with a row each, written by two commits."""
    table = HudiTable.create(
        path,
        SCHEMA,
        name="t",
        table_type=kind,
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    table.insert(rows("ax", "by", v=1, ts=1), options=options)
    table.insert(rows("cq", v=1, ts=1), options=options)
    return table


def with_schema(path, change):
    """An empty commit whose schema is a changed one, as a writer with other rules may make it."""
    table = HudiTable.open(path)
    timeline = table.timeline
    text = read_commit(table.storage, timeline.completed_writes()[-1]).schema_text
    options = TransactionConfig(failed_writes="LAZY")
    with begin_transaction(table.storage, table.config, operation="UPSERT", options=options) as transaction:
        transaction.inflight({})
        transaction.commit([], schema_text=to_avro(change(from_avro(text)), "t"))


def widened(name, kind):
    def change(schema):
        return schema.set(schema.get_field_index(name), pa.field(name, kind))

    return change


def adds_column(path):
    HudiTable.open(path).upsert(rows("by", "ry", v=5, note="kept"), options=LAZY)


def adds_column_to_our_rows(path):
    HudiTable.open(path).upsert(rows("ax", v=5, note="kept"), options=LAZY)


def adds_member(path):
    inner = pa.array([{"a": 5, "b": "in"}], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    HudiTable.open(path).upsert(rows("by", v=5, s=inner), options=LAZY)


def widens(path):
    with_schema(path, widened("v", pa.int64()))


def widens_to_text(path):
    with_schema(path, widened("v", pa.string()))


def widens_order(path):
    with_schema(path, widened("ts", pa.float64()))


def drops_column(path):
    HudiTable.open(path).upsert(rows("by", v=5, extra=None), options={**LAZY, **DROP})


def records_index(path):
    HudiTable.open(path).upsert(rows("by", v=5), options={**LAZY, **GLOBAL})


def deletes_partition(path):
    HudiTable.open(path).delete_partitions(["x"], options=LAZY)


def replaces_partition(path):
    HudiTable.open(path).insert_overwrite(rows("zx", v=5, note="kept"), options=LAZY)


def restores(path):
    table = HudiTable.open(path)
    table.restore(table.timeline.completed_writes()[0].time)


def rolls_back(path):
    table = HudiTable.open(path)
    table.rollback(table.timeline.completed_writes()[-1].time)


def downgrades(path):
    HudiTable.open(path).downgrade(5)


def sets(**entries):
    def act(path):
        table_config.update(
            HudiTable.open(path).storage, {k.replace("__", "."): v for k, v in entries.items()}
        )

    return act


def removes(path):
    shutil.rmtree(path)


def remakes(path):
    shutil.rmtree(path)
    make(path).upsert(rows("by", v=5, note="kept"))


def remakes_with_other_keys(path):
    shutil.rmtree(path)
    table = HudiTable.create(path, SCHEMA, name="t", record_keys=["id", "extra"], partition_fields=["p"])
    table.insert(rows("by", v=5))


RIVALS = {
    "adds a column": adds_column,
    "adds a column to our rows": adds_column_to_our_rows,
    "adds a member": adds_member,
    "widens": widens,
    "widens to text": widens_to_text,
    "widens the ordering field": widens_order,
    "drops a column": drops_column,
    "records a global index": records_index,
    "deletes our partition": deletes_partition,
    "replaces our partition": replaces_partition,
    "restores": restores,
    "rolls back": rolls_back,
    "downgrades": downgrades,
    "sets the ordering field": sets(hoodie__table__precombine__field="v"),
    "sets the payload": sets(
        hoodie__compaction__payload__class="org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    ),
    "sets partition fields": sets(hoodie__table__partition__fields="extra"),
    "sets the table type": sets(hoodie__table__type="MERGE_ON_READ"),
    "removes the table": removes,
    "makes the table anew": remakes,
    "makes the table anew with other keys": remakes_with_other_keys,
}


class Input:
    """Rows as a stream that says how often its batches were made."""

    def __init__(self, table):
        self.table = table
        self.made = 0

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            self.made += 1
            yield from self.table.to_batches()

        return pa.RecordBatchReader.from_batches(self.table.schema, batches()).__arrow_c_stream__()


class OnePartition:
    """A conflict strategy: any two writers of one partition are in conflict."""

    seen: ClassVar[list[tuple[str, str, bool]]] = []

    def shared(self, ours, theirs):
        self.seen.append((ours.operation, theirs.operation, theirs.completed))
        partitions = {partition for partition, _ in theirs.file_groups}
        return [g for g in ours.file_groups if g[0] in partitions]


class NoStrategy:
    pass


class NeedsMore:
    def __init__(self, more):
        pass

    def shared(self, ours, theirs):
        return ()


class Failing:
    def shared(self, ours, theirs):
        raise ValueError("a fault of its own")


class GivesNone:
    def shared(self, ours, theirs):
        return None


class GivesFileIds:
    def shared(self, ours, theirs):
        return [file_id for _, file_id in ours.file_groups]


class Between:
    """Runs another writer once, at one moment of the next write.

    Attributes:
        state: rows and schema that it left; None where it was refused, or left no table.
        refused: why it could not do what it wanted.
    """

    def __init__(self, monkeypatch, path, act, moment):
        self.path, self.act, self.ran = path, act, False
        self.refused = self.state = None
        if moment == "before the instant":
            begin = operation.begin_transaction

            def beginning(*args, **kwargs):
                self.once()
                return begin(*args, **kwargs)

            monkeypatch.setattr(operation, "begin_transaction", beginning)
        else:
            inflight = Transaction.inflight

            def announced(transaction, profile):
                inflight(transaction, profile)
                self.once()

            monkeypatch.setattr(Transaction, "inflight", announced)

    def once(self):
        if self.ran:
            return
        self.ran = True
        try:
            self.act(self.path)
        except HudiError as e:
            self.refused = e
        try:
            self.state = state(self.path)
        except HudiError:
            self.state = None


def adds(*keys, options=OCC, operation="insert"):
    """What another writer of the table does."""
    return lambda path: getattr(HudiTable.open(path), operation)(rows(*keys, ts=5, v=5), options=options)


class Losing:
    """Others that come in while each try of the next write runs, and between its tries.

    Attributes:
        came: how many there were.
    """

    def __init__(self, monkeypatch, path, during, between):
        self._path, self._alone, self.came = path, True, 0
        during, between = iter(during), iter(between)
        inflight, again = Transaction.inflight, Tries.again

        def announced(transaction, profile):
            inflight(transaction, profile)
            self._next(during)

        def lost(tries, error):
            goes_on = again(tries, error)
            if goes_on:
                self._next(between)
            return goes_on

        monkeypatch.setattr(Transaction, "inflight", announced)
        monkeypatch.setattr(Tries, "again", lost)

    def _next(self, acts):
        act = next(acts, None) if self._alone else None
        if act is not None:
            self._alone = False
            act(self._path)
            self._alone, self.came = True, self.came + 1


def beside(path, monkeypatch, *keys, act="insert"):
    """Another writer between begin and commit of the next write, whose instant is the later one."""

    def rival(table):
        getattr(HudiTable.open(table), act)(rows(*keys, ts=5, v=5), options={**OCC, **NULLS})

    return Between(monkeypatch, path, rival, DURING)


def adds_twice_and_cleans(path):
    """Insert a key, update it, and leave only the newer file."""
    HudiTable.open(path).insert(rows("nx", ts=5, v=5), options=OCC)
    HudiTable.open(path).upsert(rows("nx", ts=6, v=6), options=OCC)
    versions = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    }
    assert HudiTable.open(path).clean(options={**OCC, **versions}).deleted


class Older:
    """Another writer whose instant is the earlier one, and that commits when it is let."""

    def __init__(self, path, *keys):
        self._path, self._keys = path, keys
        self._begun, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._begun.wait(60)

    def _run(self):
        options = {**OCC, **NULLS}
        HudiTable.open(self._path).insert(rows(*self._keys, v=5), options=options, validators=[self._wait])

    def _wait(self, change):
        self._begun.set()
        assert self._go.wait(60)

    def commits(self, change=None):
        """Commit; as a validator of the write beside it."""
        self._go.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


def state(path):
    """Rows by key, and the schema."""
    table = HudiTable.open(path)
    found = table.read(meta_columns=False).to_arrow().to_pylist()
    return {(r["id"], r["p"]): r for r in found}, table.schema


def values(path):
    found = HudiTable.open(path).read(["id", "p", "v"]).to_arrow().to_pylist()
    return sorted((r["id"] + r["p"], r["v"]) for r in found)


def newest_commit(path):
    table = HudiTable.open(path)
    newest = load_timeline(table.storage, table.config).completed_writes()[-1]
    return json.loads(table.storage.read(newest.path))
