"""Files of instants: JSON and Avro, read and written byte for byte as Apache Hudi does."""

import json
import zlib
from contextlib import suppress

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.model import WriteStat
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.commit_metadata import CommitMetadata, parse_commit

AVRO_KINDS = {
    "clean.requested": "HoodieCleanerPlan",
    "clean.inflight": "HoodieCleanerPlan",
    "clean": "HoodieCleanMetadata",
    "rollback.requested": "HoodieRollbackPlan",
    "rollback": "HoodieRollbackMetadata",
    "restore.requested": "HoodieRestorePlan",
    "restore": "HoodieRestoreMetadata",
    "savepoint": "HoodieSavepointMetadata",
    "replacecommit.requested": "HoodieRequestedReplaceMetadata",
}
JSON_KINDS = (
    "commit",
    "inflight",
    "deltacommit",
    "deltacommit.inflight",
    "replacecommit",
    "replacecommit.inflight",
)
EMPTY_KINDS = {
    "commit.requested", "deltacommit.requested", "inflight", "replacecommit.inflight", "compaction.inflight",
    "rollback.inflight", "restore.inflight", "savepoint.inflight",
}  # fmt: skip


def instant_files(folder):
    for path in sorted(folder.glob("v?/*/.hoodie/[0-9]*")):
        yield path, path.name.partition(".")[2], path.read_bytes()


@pytest.mark.req("TM-18", "TM-17")
def test_every_golden_instant_file_decodes_and_is_written_back_byte_for_byte(golden_timelines):
    counts = {}
    for path, kind, data in instant_files(golden_timelines):
        if not data:
            assert kind in EMPTY_KINDS, path
        elif kind in AVRO_KINDS:
            name = AVRO_KINDS[kind]
            record = avro_files.parse(name, data)
            assert avro_files.render(name, record, sync=data[-16:]) == data, path
        elif kind != "compaction.requested":  # merge-on-read tables, which the gate refuses
            assert kind in JSON_KINDS, path
            assert parse_commit(data).to_json() == data, path
        counts[kind] = counts.get(kind, 0) + 1
    assert set(counts) >= set(AVRO_KINDS) | set(JSON_KINDS)
    assert sum(counts.values()) > 900


@pytest.mark.req("TM-18")
def test_fields_of_a_golden_commit(golden_timelines):
    folder = golden_timelines / "v6/cow_rollback/.hoodie"
    metadata = parse_commit((folder / "20261121053558908.commit").read_bytes())
    assert metadata.operation == "UPSERT"
    assert not metadata.is_replace
    assert json.loads(metadata.schema_text)["name"] == "cow_rollback_record"
    stat = metadata.partition_to_stats["sao_paulo"][0]
    assert stat == WriteStat(
        file_id="f24262da-fe95-414b-ab85-1073a4484b63-0",
        path="sao_paulo/f24262da-fe95-414b-ab85-1073a4484b63-0_0-2000-2445_20261121053558908.parquet",
        partition="sao_paulo",
        prev_commit="20261121053557332",
        num_writes=25,
        num_update_writes=3,
        num_inserts=2,
        total_write_bytes=12812,
        file_size_in_bytes=12812,
        upsert_time_ms=stat.upsert_time_ms,
    )
    assert ("sao_paulo", stat.file_id) in metadata.file_groups()


@pytest.mark.req("TM-15")
def test_replaced_groups_of_a_golden_overwrite(golden_timelines):
    folder = golden_timelines / "v6/cow_insert_overwrite/.hoodie"
    metadata = parse_commit((folder / "20261121053649653.replacecommit").read_bytes())
    assert metadata.is_replace
    assert metadata.stats == ()
    assert metadata.replaced == {"oslo": ("ddd09f14-ba1a-4864-b6fc-4e2b47d5835d-0",)}
    assert metadata.file_groups() == {("oslo", "ddd09f14-ba1a-4864-b6fc-4e2b47d5835d-0")}


def test_a_commit_of_nothing_has_the_form_of_apache_hudi():
    assert CommitMetadata(operation="INSERT").to_json() == (
        b'{\n  "partitionToWriteStats" : { },\n  "compacted" : false,\n  "extraMetadata" : { },\n'
        b'  "operationType" : "INSERT"\n}'
    )
    assert b'"partitionToReplaceFileIds" : { }' in CommitMetadata(is_replace=True).to_json()


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults():
    metadata = parse_commit(
        b'{"new": {"a": [1]}, "partitionToWriteStats": {"p": [{"fileId": "f", "path": null, "x": 1.50}]}}'
    )
    (stat,) = metadata.stats
    assert (stat.file_id, stat.prev_commit, stat.num_writes) == ("f", "null", 0)
    assert b'"x" : 1.50' in metadata.to_json()


text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
place = text.filter(lambda t: "\0" not in t and ".." not in t)
counts = st.integers(0, 2**62)
stats = st.builds(
    WriteStat,
    file_id=place.filter(bool), path=place.filter(bool), partition=place, prev_commit=text,
    num_writes=counts, num_deletes=counts, num_update_writes=counts, num_inserts=counts,
    total_write_bytes=counts, total_write_errors=counts, file_size_in_bytes=counts,
    min_event_time=st.none() | counts, max_event_time=st.none() | counts,
    create_time_ms=counts, upsert_time_ms=counts, scan_time_ms=counts,
)  # fmt: skip


@given(st.lists(stats, max_size=4), st.dictionaries(place, st.lists(place, max_size=3).map(tuple), max_size=3),
       st.dictionaries(text, text, max_size=3), st.booleans())  # fmt: skip
def test_what_is_written_is_read_back(written, replaced, extra, compacted):
    by_partition = {}
    for stat in written:
        by_partition.setdefault(stat.partition, []).append(stat)
    metadata = CommitMetadata(
        {p: tuple(s) for p, s in by_partition.items()}, replaced, extra, "UPSERT", compacted, bool(replaced)
    )
    data = metadata.to_json()
    assert parse_commit(data) == metadata
    assert json.loads(data)["extraMetadata"] == extra


def test_texts_are_escaped_as_jackson_does():
    data = CommitMetadata(extra={"k": '"\\/\b\t\n\f\r\x01\x1f\x7fé😀'}).to_json().decode()
    assert '"k" : "\\"\\\\/\\b\\t\\n\\f\\r\\u0001\\u001F\x7fé😀"' in data


@given(st.data())
def test_every_truncation_of_a_commit_is_an_error(data):
    whole = CommitMetadata({"p": (WriteStat("f", "p/f", "p"),)}, extra={"schema": "é{}"}).to_json()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptFileError):
        parse_commit(whole[:cut])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_an_error_or_a_commit(junk):
    with suppress(CorruptFileError):
        assert isinstance(parse_commit(junk), CommitMetadata)


@pytest.mark.parametrize(
    "content",
    [
        b'{"partitionToWriteStats": []}',
        b'{"partitionToWriteStats": {"p": {}}}',
        b'{"partitionToWriteStats": {"p": [3]}}',
        b'{"partitionToWriteStats": {"p": [{"fileId": 3}]}}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": "3"}]}}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": true}]}}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": 9223372036854775808}]}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": [null]}}',
        b'{"partitionToWriteStats": {}, "extraMetadata": "x"}',
        b'{"partitionToWriteStats": {}, "operationType": 3}',
        # Without these the commit would have fewer files.
        b"{}",
        b'{"partitionToWriteStatz": {}, "operationType": "UPSERT"}',
        b'{"partitionToWriteStats": {"p": [{"fileId": "f", "pbth": "p/f"}]}}',
        b'{"partitionToWriteStats": {"p": [{"fileId": null, "path": "p/f"}]}}',
        b'{"partitionToWriteStats": {"p": [{"fileIe": "f", "path": "p/f"}]}}',
        b"[" * 100_000,
        # Places that are not below the table, or that no system has a name for.
        b'{"partitionToWriteStats": {"../p": []}}',
        b'{"partitionToWriteStats": {"\\ud800": []}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/../../f"}]}}',
        b'{"partitionToWriteStats": {"p": [{"fileId": "\\udfff"}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/f\\u0000"}]}}',
        b'{"partitionToWriteStats": {"p": [{"partitionPath": ".."}]}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"..": []}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": ["\\ud800"]}}',
    ],
)
def test_other_shapes_are_errors_that_name_the_place(content):
    with pytest.raises(CorruptFileError, match="no commit metadata"):
        parse_commit(content)


def test_half_of_a_pair_of_a_character_is_written_back_as_it_was_named():
    commit = parse_commit(b'{"partitionToWriteStats": {}, "extraMetadata": {"a": "x \\udefa y \\\\udefa"}}')
    assert commit.extra == {"a": "x \udefa y \\udefa"}
    assert parse_commit(commit.to_json()) == commit


@pytest.mark.req("TM-17")
def test_a_rendered_container_is_what_fastavro_and_apache_hudi_write():
    data = avro_files.empty_replace_request()
    assert not avro_files.plans_clustering(avro_files.parse("HoodieRequestedReplaceMetadata", data))
    record = avro_files.parse("HoodieRequestedReplaceMetadata", data)
    assert record == {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": 1}


def test_a_container_with_appended_fields_is_read(tmp_path):
    schema = json.loads(avro_files.schema_text("HoodieRollbackPlan"))
    schema["fields"].append({"name": "later", "type": "int", "default": 0})
    path = tmp_path / "plan"
    with open(path, "wb") as out:
        target = {"commitTime": "1", "action": "commit"}
        fastavro.writer(out, schema, [{"instantToRollback": target, "later": 7}], codec="deflate")
    record = avro_files.parse("HoodieRollbackPlan", path.read_bytes())
    assert record["later"] == 7
    assert record["instantToRollback"]["commitTime"] == "1"


def test_another_record_type_is_an_error():
    with pytest.raises(CorruptFileError, match="HoodieRequestedReplaceMetadata"):
        avro_files.parse("HoodieRollbackPlan", avro_files.empty_replace_request())


PLAN = {
    "instantToRollback": {"commitTime": "1", "action": "commit"},
    "RollbackRequests": [
        {"partitionPath": "p", "filesToBeDeleted": ["a", "b"], "logBlocksToBeDeleted": {"x": 2}}
    ],
}


@given(st.data())
def test_every_truncation_of_a_container_is_an_error(data):
    whole = avro_files.render("HoodieRollbackPlan", PLAN)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptFileError):
        avro_files.parse("HoodieRollbackPlan", whole[:cut])


@given(st.data())
def test_damaged_containers_are_errors_or_records(data):
    damaged = bytearray(avro_files.render("HoodieRollbackPlan", PLAN, sync=bytes(16)))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptFileError):
        assert isinstance(avro_files.parse("HoodieRollbackPlan", bytes(damaged)), dict)


@pytest.mark.parametrize("items", ["null", {"type": "record", "name": "E", "fields": []},
                                   {"type": "fixed", "name": "F", "size": 0}])  # fmt: skip
def test_a_list_of_elements_without_bytes_is_refused_before_it_is_counted(items):
    schema = {"type": "record", "name": "HoodieRollbackPlan",
              "fields": [{"name": "a", "type": ["null", {"type": "array", "items": items}]}]}  # fmt: skip
    header = json.dumps(schema).encode()
    long = varint
    body = long(1) + long(2**60) + long(0)
    data = b"Obj\x01" + long(1) + long(11) + b"avro.schema" + long(len(header)) + header + long(0)
    data += bytes(16) + long(1) + long(len(body)) + body + bytes(16)
    with pytest.raises(CorruptFileError, match=r"without bytes|of size 0"):
        avro_files.parse("HoodieRollbackPlan", data)


def _container(schema, body, codec=""):
    header = json.dumps(schema).encode() if not isinstance(schema, bytes) else schema
    long = varint
    meta = long(11) + b"avro.schema" + long(len(header)) + header
    if codec:
        meta += long(10) + b"avro.codec" + long(len(codec)) + codec.encode()
    meta = long(2 if codec else 1) + meta + long(0)
    return b"Obj\x01" + meta + bytes(16) + long(1) + long(len(body)) + body + bytes(16)


def _plan_of(kind):
    return {"type": "record", "name": "HoodieRollbackPlan", "fields": [{"name": "a", "type": kind}]}


_NESTED = json.dumps(_plan_of("int")).replace('"int"', '{"type":"array","items":' * 900 + '"int"' + "}" * 900)


# fastavro goes down the C stack for each level, past its end.
@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (_plan_of("HoodieRollbackPlan"), b""),
        (_plan_of(["null", "HoodieRollbackPlan"]), b"\2" * 300_000 + b"\0"),
        (_plan_of({"type": "map", "values": "HoodieRollbackPlan"}), b"\2\0" * 300_000),
        (_NESTED.encode(), b""),
        (b'{"type":' * 200_000, b""),
    ],
)  # fmt: skip
def test_types_that_would_end_the_process_are_refused(schema, body):
    with pytest.raises(CorruptFileError):
        avro_files.parse("HoodieRollbackPlan", _container(schema, body))


def test_a_compressed_container_gives_no_more_than_a_hundred_times_its_bytes():
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = bomb.compress(varint(400_000_000) + bytes(400_000_000)) + bomb.flush()
    with pytest.raises(CorruptFileError, match="decompressed"):
        avro_files.parse("HoodieRollbackPlan", _container(_plan_of("bytes"), packed, "deflate"))
    with pytest.raises(UnsupportedError, match="zstandard"):
        avro_files.parse("HoodieRollbackPlan", _container(_plan_of("bytes"), b"", "zstandard"))
