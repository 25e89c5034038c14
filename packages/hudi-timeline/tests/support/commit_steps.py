"""Steps of a transaction, for the tests of commits."""

import re
from pathlib import Path

from hudi_format.model import WriteStat
from hudi_timeline import table_config
from hudi_timeline.concurrency import markers
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.transaction.transaction import begin_transaction

SCHEMA = '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[]}'
LAZY = TransactionConfig(failed_writes="LAZY")


def group(number):
    return f"aa{number:06x}-1111-1111-1111-1111111111aa-0"


def write_file(tx, partition, number, *, prev="null", attempt=0, kind="CREATE"):
    """What a worker does: the marker, then the file, then a statistic."""
    name = f"{group(number)}_0-1-{attempt}_{tx.instant}.parquet"
    markers.create(tx.storage, tx.instant, partition, name, kind)
    path = f"{partition}/{name}" if partition else name
    tx.storage.touch(path, b"rows")
    return WriteStat(
        group(number), path, partition, prev_commit=prev, num_writes=1, num_inserts=1, total_write_bytes=4
    )


def start(storage, *, options=None, action="commit", operation="UPSERT"):
    return begin_transaction(
        storage, table_config.load(storage), action=action, operation=operation, options=options
    )


def write(storage, *numbers, partition="p", options=None, prev="null", **kwargs):
    with start(storage, options=options) as tx:
        tx.inflight({})
        stats = [write_file(tx, partition, n, prev=prev) for n in numbers]
        tx.commit(stats, schema_text=SCHEMA, **kwargs)
    return tx


def timeline(storage):
    return load_timeline(storage, table_config.load(storage))


def names(storage):
    """Names below .hoodie, with instants as T."""
    return sorted(re.sub(r"^\d+", "T", e.name) for e in storage.list(".hoodie") if not e.is_dir)


def data_files(storage):
    return sorted(p.name for p in Path(storage.uri).rglob("*.parquet"))


def die(tx):
    """What the table looks like to others once this writer's process has gone."""
    tx._heartbeat.halt()
    tx._heartbeat._forget()
    tx._open = False
