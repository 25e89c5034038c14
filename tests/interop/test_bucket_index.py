"""The simple bucket index in the hands of two writers: Apache Hudi 0.15.0 and this project, on one table.

Each goes on in the file groups of the other, and both read the same rows.
"""

import shutil

import pytest

from hudi_format.errors import ConflictingOptionError, OptionError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.transaction.transaction import Transaction
from interop import ours
from interop.bucket_tables import BUCKET, FIELDS, IDS, INDEX, NUMBER, SCHEMA, WRITE, Shared, rows
from interop.spark_process import SparkProcessError


@pytest.mark.req("IX-10", "IX-22", "IX-23", "IX-26")
@pytest.mark.parametrize(
    ("kind", "first", "operation", "keys", "fields", "turns"),
    [
        ("COPY_ON_WRITE", "ours", "bulk_insert", ("id",), "", 2),
        ("MERGE_ON_READ", "ours", "upsert", ("id", "n"), "n", 4),
        ("COPY_ON_WRITE", "apache", "bulk_insert", ("id", "n"), "n", 4),
        ("MERGE_ON_READ", "apache", "bulk_insert", ("id",), "", 4),
        ("COPY_ON_WRITE", "apache", "upsert", ("id", "n"), "", 4),
        ("MERGE_ON_READ", "apache", "upsert", ("id", "n"), "id", 4),
    ],
)
def test_two_writers_go_on_in_the_same_file_groups(
    tmp_path, pool, kind, first, operation, keys, fields, turns
):
    apache = pool.get("0.15.0")
    index = {**BUCKET, WRITE + "table.type": kind} | ({FIELDS: fields} if fields else {})
    table = Shared(tmp_path / "t", apache, keys, index)
    if first == "ours":
        HudiTable.create(
            str(table.path), SCHEMA, name="t", record_keys=list(keys), partition_fields=["p"],
            ordering_fields=["ts"], table_type=kind, options=index,
        )  # fmt: skip
    table.write(first, operation, rows(IDS))
    groups = table.groups()
    for turn, writer in enumerate(("apache", "ours", "apache", "ours")[:turns]):
        table.write(writer, "upsert", rows(IDS[turn::2], ts=10 + turn, v=f"{writer}{turn}"))
        table.check(apache)
        # No key went anywhere else, and no bucket has two groups.
        assert {k: f for k, f in table.groups().items() if k[0] == "a"} == groups
        table.write(writer, "delete", rows(IDS)[turn * 3 : turn * 3 + 2])
        table.write(writer, "upsert", rows(["new", f"new{turn}"], p=f"p{turn}"))
    table.write("ours", "insert_overwrite", rows(IDS[:12], p="a", ts=30))
    table.write("apache", "upsert", rows(IDS[:20], p="a", ts=31))
    table.write("apache", "insert_overwrite", rows(IDS[:12], p="p1", ts=32))
    table.write("ours", "upsert", rows(IDS[:20], p="p1", ts=33))
    table.groups()
    table.check(apache, pool.get("1.0.2"))


@pytest.mark.req("NEW-14")
@pytest.mark.slow
def test_apache_hudi_keeps_to_the_settings_of_our_table(tmp_path, pool):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), {})
    HudiTable.create(
        str(table.path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        options=BUCKET,
    )  # fmt: skip
    table.write("ours", "upsert", rows(IDS))
    groups = table.groups()
    table.write("apache", "upsert", rows(IDS[::2], ts=2))  # without a word about the index
    table.index = {INDEX: "BUCKET"}
    table.write("apache", "upsert", rows(IDS[::3], ts=3))
    for other in ({**BUCKET, NUMBER: "8"}, {INDEX: "SIMPLE"}):
        table.index = other
        with pytest.raises(SparkProcessError, match="Config conflict"):
            table.write("apache", "upsert", rows(IDS, ts=4))
    table.index = {}
    table.write("ours", "upsert", rows(IDS[1::2], ts=5))
    assert table.groups() == groups
    table.check(apache)


@pytest.mark.req("NEW-14")
def test_what_apache_hudi_has_spoilt_is_refused(tmp_path, pool):
    apache = pool.get("0.15.0")
    table = Shared(tmp_path / "t", apache, ("id",), BUCKET)
    table.write("apache", "upsert", rows(IDS))
    with pytest.raises(OptionError, match="says nowhere how many buckets"):
        ours.write(table.path, "upsert", rows(IDS))
    copy = tmp_path / "u"
    shutil.copytree(table.path, copy)
    apache.write(
        table.path, rows(IDS, ts=2), {**table.base, **BUCKET, NUMBER: "8", WRITE + "operation": "upsert"}
    )
    for number in ("4", "8"):  # some keys now lie in a file group of each
        with pytest.raises(ConflictingOptionError):
            ours.write(table.path, "upsert", rows(IDS), options={**BUCKET, NUMBER: number})
    apache.write(copy, rows(["k00", "x"], ts=2), {**table.base, **BUCKET, WRITE + "operation": "bulk_insert"})
    with pytest.raises(UnsupportedError, match="two file groups of bucket"):
        ours.write(copy, "upsert", rows(IDS), options=BUCKET)
    with pytest.raises(SparkProcessError, match="Find multiple files"):  # nor can Apache Hudi go on
        apache.write(copy, rows(IDS, ts=3), {**table.base, **BUCKET, WRITE + "operation": "upsert"})


@pytest.mark.req("CC-31")
@pytest.mark.slow
def test_apache_hudi_reads_what_writers_append_side_by_side_and_compacts_it(tmp_path, pool, monkeypatch):
    """Two log files of one slice by writers that overlapped, in both orders of their ordering values."""
    apache = pool.get("0.15.0")
    index = {**BUCKET, WRITE + "table.type": "MERGE_ON_READ"}
    index[WRITE + "payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    free = {**index, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    path = tmp_path / "t"
    HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ", options=index,
    )  # fmt: skip
    table = Shared(path, apache, ("id",), index)
    table.write("apache", "upsert", rows(IDS))
    inflight = Transaction.inflight

    def beside(ours_ts, theirs_ts):
        """One writer's whole upsert while the other one's is inflight."""

        def first(transaction, profile):
            inflight(transaction, profile)
            monkeypatch.setattr(Transaction, "inflight", inflight)
            HudiTable.open(str(path)).upsert(rows(IDS[::2], ts=theirs_ts, v=f"v{theirs_ts}"), options=free)

        monkeypatch.setattr(Transaction, "inflight", first)
        given = rows(IDS[::3], ts=ours_ts, v=f"v{ours_ts}")
        assert HudiTable.open(str(path)).upsert(given, options=free).retries == 0
        for late in sorted((ours_ts, theirs_ts)):
            for row in rows(IDS[:: 3 if late == ours_ts else 2], ts=late, v=f"v{late}").to_pylist():
                table.want[table.key(row)] = row
        table.check(apache)

    beside(11, 12)
    beside(14, 13)
    table.write("apache", "upsert", rows(IDS[1::2], ts=20, v="apache"))
    table.check(apache)
    more = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    given = rows(IDS[:1], ts=30, v="last")
    apache.write(path, given, {**table.base, **index, **more, WRITE + "operation": "upsert"})
    table.want[table.key(given.to_pylist()[0])] = given.to_pylist()[0]
    table.check(apache, pool.get("1.0.2"))
    beside(32, 31)
