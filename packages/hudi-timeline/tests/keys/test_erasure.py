"""An erasure that is proven: after the plan no byte of the key is below the table."""

import pyarrow as pa
import pytest
from duplicated_tables import QUIET, SCHEMA, TABLES, row

from hudi_format.errors import CorruptFileError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, metadata_config
from hudi_timeline.keys import erasure
from hudi_timeline.keys.key_traces import TracedKeys
from hudi_timeline.testing.workload_table import made_table

KEY = "erase-me-0815"
OPTIONS = {"hoodie.parquet.compression.codec": "uncompressed", **QUIET}


def holding(path, key=KEY):
    return sorted(
        str(f.relative_to(path)) for f in path.rglob("*") if f.is_file() and key.encode() in f.read_bytes()
    )


def make(path, kind, **options):
    virtual = {"hoodie.populate.meta.fields": "false"} if "virtual" in kind else {}
    table = HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ" if "mor" in kind else "COPY_ON_WRITE",
        options={**OPTIONS, **virtual, **options},
    )  # fmt: skip
    table = HudiTable.open(path, options=OPTIONS)
    for step in range(3):
        table.upsert(
            [row(KEY, "x", step, f"v{step}"), row("zz-other-key", "x", step, "o"), row("aa", "y", 1, "a")]
        )
    return table


def carried_out(table, keys, rounds=3, **options):
    """The report after the plan; the plan of what that shows is carried out too."""
    steps = []
    report = table.erasure_report(keys, options=options)
    while report.plan and rounds:
        for step in report.plan:
            step.run(table)
            steps.append(step.method)
        report = table.erasure_report(keys, options=options)
        rounds -= 1
    return report, steps


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("kind", TABLES)
def test_after_the_plan_no_byte_of_the_key_is_left(tmp_path, kind):
    path = tmp_path / "t"
    table = make(path, kind)
    table.savepoint(comment="before")
    table.upsert([row(KEY, "x", 7, "v7")])
    before = table.read(filter="id != 'erase-me-0815'", meta_columns=False).to_arrow().sort_by("id")
    report = table.erasure_report([KEY])
    assert sorted({t["path"] for t in report.traces.to_pylist()}) == holding(path) != []
    assert any(t["savepoints"] for t in report.traces.to_pylist())
    assert report.files == len([f for f in path.rglob("*") if f.is_file()])
    assert next(s.method for s in report.plan) == "delete"
    left, steps = carried_out(table, [KEY])
    assert (left.erased, left.plan, dict(left.by_hand)) == (True, (), {})
    assert holding(path) == []
    assert steps[-1] == "clean"
    assert "delete_savepoint" in steps
    assert table.read(meta_columns=False).to_arrow().sort_by("id") == before
    assert table.verify(deep=True) == []


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.sampled(2)
def test_indexes_of_a_metadata_table_are_looked_through_and_made_anew(tmp_path, kind, monkeypatch):
    """Of a table that was opened with the options that its indexes are made by."""
    switches = (
        "metadata",
        "metadata.index.column.stats",
        "metadata.index.bloom.filter",
        "metadata.record.index",
    )
    monkeypatch.setattr(
        f"{__name__}.OPTIONS", {**OPTIONS, **{f"hoodie.{s}.enable": "true" for s in switches}}
    )
    table = make(tmp_path / "t", kind)
    assert len(table.config.metadata_partitions) == 4
    report = table.erasure_report([KEY])
    found = {
        (t["path"].split("/")[2], t["what"])
        for t in report.traces.to_pylist()
        if t["state"] == "metadata table"
    }
    assert found == {("record_index", "index entry"), ("column_stats", "value")}  # of the bounds of keys
    left, _ = carried_out(table, [KEY])
    assert (left.erased, dict(left.by_hand)) == (True, {})
    table.upsert([row("aa", "y", 2, "a2")])
    assert len(table.config.metadata_partitions) == 4
    assert table.verify(deep=True) == []
    assert table.erasure_report([KEY]).erased


@pytest.mark.req("NEW-18")
def test_replaced_groups_pending_compactions_and_dead_writes_are_named(tmp_path):
    path = tmp_path / "t"
    table = make(path, "mor")
    table.compact(mode="schedule")
    table.upsert([row(KEY, "x", 7, "v7")], options=QUIET)
    states = {t["state"] for t in table.erasure_report([KEY]).traces.to_pylist()}
    assert "input of a pending compaction" in states
    assert "compact" in [s.method for s in table.erasure_report([KEY]).plan]
    left, _ = carried_out(table, [KEY])
    assert left.erased
    assert holding(path) == []

    table = make(tmp_path / "r", "cow")
    table.insert_overwrite([row("bb", "x", 9, "new")])
    report = table.erasure_report(KEY)
    assert {t["state"] for t in report.traces.to_pylist()} == {"replaced file group"}
    assert [s.method for s in report.plan] == ["clean"]
    left, _ = carried_out(table, KEY)
    assert left.erased
    assert holding(tmp_path / "r") == []


def test_changes_that_were_captured_are_found(tmp_path):
    table = make(tmp_path / "t", "cow", **{"hoodie.table.cdc.enabled": "true"})
    report = table.erasure_report([KEY])
    assert "captured change" in {t["what"] for t in report.traces.to_pylist()}
    assert sorted({t["path"] for t in report.traces.to_pylist()}) == holding(tmp_path / "t")
    left, _ = carried_out(table, [KEY])
    # The log of the delete itself goes with the next version of its file group, and is said to be there.
    assert set(left.by_hand) == set(holding(tmp_path / "t"))
    table.upsert([row("zz-other-key", "x", 20, "o")], options={"hoodie.bloom.index.filter.type": "SIMPLE"})
    left, _ = carried_out(table, [KEY])
    assert left.erased
    assert holding(tmp_path / "t") == []


@pytest.mark.req("NEW-18")
def test_files_that_no_service_takes_away_are_said(tmp_path):
    table = make(tmp_path / "t", "cow")
    backup = tmp_path / "t" / ".hoodie" / ".repair_backup_1" / "x"
    backup.mkdir(parents=True)
    (backup / "kept.json").write_text(f'{{"key": "{KEY}"}}')
    (tmp_path / "t" / "notes.txt").write_text(f"about {KEY}.")
    (tmp_path / "t" / "others.txt").write_text(f"{KEY}-2 and x{KEY} are other keys")
    left, _ = carried_out(table, [KEY])
    assert set(left.by_hand) == {".hoodie/.repair_backup_1/x/kept.json", "notes.txt"}
    assert not left.erased
    assert {t["state"] for t in left.traces.to_pylist()} == {"repair backup", "other file"}


def test_a_quarantine_is_looked_through(tmp_path):
    aside = {"hudi.quarantine.path": str(tmp_path / "bad")}
    table = make(tmp_path / "t", "cow")
    table.upsert([row(KEY, "x", -1, "bad")], options=aside, rules={"positive": "ts >= 0"})
    found = table.erasure_report([KEY], options=aside).traces.to_pylist()
    assert {t["path"].split("/t/")[0] for t in found if t["state"] == "quarantine"} != set()
    left, _ = carried_out(table, [KEY], **aside)
    assert {t["state"] for t in left.traces.to_pylist()} == {"quarantine"}
    assert len(left.by_hand) >= 1


@pytest.mark.parametrize("kind", TABLES)
def test_keys_of_numbers_and_of_several_columns(tmp_path, kind):
    schema = pa.schema([("id", pa.int64()), ("n", pa.string()), ("v", pa.string())])
    virtual = {"hoodie.populate.meta.fields": "false"} if "virtual" in kind else {}
    table = HudiTable.create(
        tmp_path / "t", schema, record_keys=["id", "n"], options={**OPTIONS, **virtual},
        table_type="MERGE_ON_READ" if "mor" in kind else "COPY_ON_WRITE",
    )  # fmt: skip
    for v in "ab":
        table.upsert([{"id": 1, "n": "one", "v": v}, {"id": 2, "n": "two", "v": v}])
    key = pa.table({"id": pa.array([1], pa.int64()), "n": ["one"]})
    report = table.erasure_report(key)
    assert report.keys == ("id:1,n:one",)
    assert report.traces.num_rows >= 2
    left, _ = carried_out(table, key)
    assert left.erased
    assert table.read(meta_columns=False).to_arrow().to_pylist() == [{"id": 2, "n": "two", "v": "b"}]


@pytest.mark.parametrize("form", [".hfile", ".log.", ".parquet"])
def test_files_that_are_cleaned_while_they_are_looked_at_hold_nothing(tmp_path, form, monkeypatch):
    monkeypatch.setattr(f"{__name__}.OPTIONS", {**OPTIONS, "hoodie.metadata.enable": "true"})
    table = make(tmp_path / "t", "mor")
    all_of_them = table.erasure_report([KEY]).traces.to_pylist()
    real, gone = LocalStorage.open_input, []

    def opened(self, path):
        source = real(self, path)
        if form in path:
            gone.append(path)
            self.delete(path)
        return source

    wanted = TracedKeys(pa.array([KEY]), metadata_config.key_spec(table.config))
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "open_input", opened)
        found, files = erasure._looked_at(table.storage, wanted)
    assert gone
    assert files > len(gone)
    assert {p for p, _ in found} - set(gone) == {t["path"] for t in all_of_them} - set(gone)


def test_a_savepoint_that_is_deleted_while_it_is_looked_at_keeps_nothing(monkeypatch):
    table = HudiTable.open(made_table().copy_of())
    saved, read = table.savepoints[0], erasure.read_action

    def deleted(*args):
        if table.savepoints:
            table.delete_savepoint(saved)
        return read(*args)

    monkeypatch.setattr(erasure, "read_action", deleted)
    report = table.erasure_report(["b"])
    assert len(report.traces)
    assert not any(t["savepoints"] for t in report.traces.to_pylist())
    assert table.savepoints == []


def outcome(act, *given):
    """What came of a call, and the CorruptFileError that it raised."""
    try:
        return act(*given), None
    except CorruptFileError as e:
        return None, e


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("damage", ["footer", "head", "log"])
def test_a_damaged_file_says_nothing_of_its_keys_and_is_named(tmp_path, damage):
    """Neither an error of Arrow's, nor a search for text in what is compressed."""
    path = tmp_path / "t"
    table = HudiTable.create(path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"],
                             ordering_fields=["ts"], table_type="MERGE_ON_READ", options=QUIET)  # fmt: skip
    for step in range(2):
        table.upsert([row(KEY, "x", step, "v")], options=QUIET)
    (file,) = path.glob("x/.*.log.*" if damage == "log" else "x/*.parquet")
    intact = file.read_bytes()
    begin = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    places = range(begin, begin + 60) if damage == "footer" else range(4)
    refused = 0
    for place in places:
        data = bytearray(intact)
        data[place] ^= 0xFF
        file.write_bytes(data)
        found, error = outcome(table.erasure_report, [KEY])
        if error is None:
            assert KEY in found.traces.column("key").to_pylist()
            continue
        assert error.file == str(file.relative_to(path))
        assert "nothing can be said of its keys" in str(error)
        assert error.remedy
        refused += 1
    assert refused > len(places) // 2
    file.write_bytes(bytes(len(intact)))
    assert str(file.relative_to(path)) not in table.erasure_report([KEY]).traces.column("path").to_pylist()


@pytest.mark.req("NEW-18")
@pytest.mark.parametrize("generator", ["TimestampBasedKeyGenerator", "CustomKeyGenerator"])
def test_keys_are_looked_for_without_what_makes_the_paths(tmp_path, generator):
    """hoodie.properties does not keep the type of timestamps, nor the kinds of partition fields."""
    made = {
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
        "hoodie.datasource.write.partitionpath.field": "ts:TIMESTAMP" if generator[0] == "C" else "ts",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    }
    table = HudiTable.create(tmp_path / "t", SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"],
                             options={**QUIET, **made})  # fmt: skip
    table.upsert([row(KEY, "x", 86_400_000, "v")])
    report = HudiTable.open(tmp_path / "t").erasure_report([KEY])
    assert "row" in report.traces.column("what").to_pylist()
    assert next(s.method for s in report.plan) == "delete"
