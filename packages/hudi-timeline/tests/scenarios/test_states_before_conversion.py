"""Earlier states of a table that was merge on read: their rows in log files are told, and do not come back hidden."""

import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import HudiTable

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
NEVER = {"hoodie.compact.inline": "false"}
TYPE = "hoodie.table.type"


def rows_of(data):
    return sorted((r["k"], r["v"]) for r in data.to_arrow().to_pylist())


def convert(table, kind):
    table.overwrite_properties({**table.config.properties, TYPE: kind})


@pytest.fixture(params=[{}, {"hoodie.table.cdc.enabled": "true"}], ids=["plain", "cdc"])
def converted(tmp_path, request):
    """A table that is copy on write since its compaction, its states by instant, and that of its compaction."""
    options = {**NEVER, **request.param}
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_keys="k", partition_fields="p", ordering_fields="ts",
        table_type="MERGE_ON_READ", options=options,
    )  # fmt: skip
    state, states = {}, {}

    def upsert(step, *keys):
        state.update({k: f"{k}{step}" for k in keys})
        rows = [{"k": k, "p": "xy"[k > "b"], "ts": step, "v": state[k]} for k in keys]
        result = table.upsert(pa.Table.from_pylist(rows, SCHEMA), options=options)
        states[result.instant] = sorted(state.items())

    upsert(1, "a", "b", "c", "d")
    upsert(2, "a", "c")
    del state["b"]
    deleted = table.delete(pa.Table.from_pylist([{"k": "b", "p": "x"}]), options=options).instant
    states[deleted] = sorted(state.items())
    upsert(3, "c", "d")
    table.savepoint(deleted)
    compacted = table.compact(options=options).executed[0]
    table.overwrite_properties({**table.config.properties, TYPE: "COPY_ON_WRITE"}, force=True)
    table = HudiTable.open(table.uri)
    assert table.table_type == "COPY_ON_WRITE"
    upsert(4, "a", "e")
    return table, states, compacted


def test_time_travel_ranges_and_changes_tell_what_was_in_log_files(converted):
    table, states, _ = converted
    instants = sorted(states)
    names = table.read().schema.names
    for instant in instants:
        assert rows_of(table.read(as_of=instant)) == states[instant]
        assert table.read(as_of=instant).schema.names == names
        assert table.read(as_of=instant).count() == len(states[instant])
        assert sorted(table.get(["a", "b"], as_of=instant)["v"].to_pylist()) == [
            v for k, v in states[instant] if k in "ab"
        ]
    assert rows_of(table.read_incremental(instants[0], instants[1])) == [("a", "a2"), ("c", "c2")]
    assert rows_of(table.read_incremental(instants[2])) == [
        ("a", "a4"),
        ("c", "c3"),
        ("d", "d3"),
        ("e", "e4"),
    ]
    found = {}
    for change in table.read_changes(instants[0], images="struct").to_arrow().to_pylist():
        before, after = (change[n] and change[n]["v"] for n in ("before", "after"))
        found.setdefault((change["before"] or change["after"])["k"], []).append((before, after))
    assert found == {
        "a": [("a1", "a2"), ("a2", "a4")],
        "b": [("b1", None)],
        "c": [("c1", "c2"), ("c2", "c3")],
        "d": [("d1", "d3")],
        "e": [(None, "e4")],
    }
    history = table.key_history(["c"]).changes.to_pylist()
    assert len(history) == 3


def test_a_restore_or_rollback_to_rows_in_log_files_is_refused_until_the_table_is_merge_on_read(converted):
    table, states, _ = converted
    newest, saved = sorted(states)[-1], table.savepoints[0]
    with pytest.raises(UnsupportedError, match="log files of that state hold rows") as e:
        table.restore(saved)
    assert "MERGE_ON_READ" in e.value.remedy
    with pytest.raises(UnsupportedError, match="log files of that state hold rows"):
        table.restore(saved, dry_run=True)
    assert rows_of(table.read()) == states[newest]
    convert(table, "MERGE_ON_READ")
    table = HudiTable.open(table.uri)
    assert rows_of(table.read()) == states[newest]
    table.restore(saved)
    assert rows_of(table.read()) == states[saved]


def test_a_rollback_of_the_compaction_is_refused_where_its_log_files_would_be_hidden(converted):
    table, states, compacted = converted
    newest = sorted(states)[-1]
    table.rollback(newest)
    before = rows_of(table.read())
    assert before == states[sorted(states)[-2]]
    with pytest.raises(UnsupportedError, match="log files of that state hold rows"):
        table.rollback(compacted)
    assert rows_of(table.read()) == before


@pytest.mark.parametrize("operation", ["upsert", "insert", "delete"])
def test_a_type_that_was_edited_by_hand_hides_no_rows(tmp_path, operation):
    path = tmp_path / "t"
    table = HudiTable.create(
        str(path), SCHEMA, record_keys="k", partition_fields="p", ordering_fields="ts",
        table_type="MERGE_ON_READ", options=NEVER,
    )  # fmt: skip
    rows = [{"k": k, "p": "x", "ts": 1, "v": k} for k in "ab"]
    for step in (1, 2):
        table.upsert(pa.Table.from_pylist([{**r, "ts": step, "v": f"{r['k']}{step}"} for r in rows], SCHEMA))
    file = path / ".hoodie" / "hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    file.write_text("\n".join(lines).replace("MERGE_ON_READ", "COPY_ON_WRITE") + "\n")
    table = HudiTable.open(table.uri)
    assert rows_of(table.read()) == [("a", "a2"), ("b", "b2")]
    (found,) = table.verify()
    assert (found.code, found.severity, found.details["partition"]) == ("log-of-copy-on-write", "error", "x")
    change = pa.Table.from_pylist([{"k": "b", "p": "x", "ts": 3, "v": "b3"}], SCHEMA)
    with pytest.raises(UnsupportedError, match="log files of that state hold rows"):
        getattr(table, operation)(change)
    assert rows_of(HudiTable.open(table.uri).read()) == [("a", "a2"), ("b", "b2")]
    # As the finding's remedy says.
    file.write_text(file.read_text().replace("COPY_ON_WRITE", "MERGE_ON_READ"))
    table = HudiTable.open(table.uri)
    table.compact()
    table.overwrite_properties({**table.config.properties, TYPE: "COPY_ON_WRITE"}, force=True)
    table = HudiTable.open(table.uri)
    assert table.verify() == []
    getattr(table, operation)(change)
