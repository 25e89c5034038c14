"""Which blocks count: rollbacks, instants that are not complete, log compactions, incremental bounds."""

import pytest
from golden_logs import golden_logs
from golden_tables import golden
from log_bytes import SCHEMA, avro, block, empty_delete, rollback

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_names import log_file_name, log_sort_key, parse_cdc_file, parse_log_file
from hudi_format.log.reader import LogFileReader
from hudi_format.log.scanner import BlockScope, SliceLog, order_blocks
from hudi_format.model import VisibleInstants
from hudi_format.storage.open import open_storage


def found(*pieces):
    return LogFileReader(b"".join(pieces), file="f").blocks


def instants(*pieces, **scope):
    return [b.instant for b in order_blocks(found(*pieces), BlockScope(**scope)).blocks]


def d(instant, **more):
    return avro(instant, "x", **more)


@pytest.mark.req("LF-10")
def test_a_rollback_takes_back_every_earlier_block_of_its_target():
    ordered = order_blocks(
        found(d("1"), d("2"), empty_delete("2"), d("3"), rollback("4", "2"), d("5")), BlockScope()
    )
    assert [b.instant for b in ordered.blocks] == ["1", "3", "5"]
    assert ordered.rolled_back == 2


@pytest.mark.req("LF-10")
def test_a_new_attempt_of_an_instant_stays_when_the_old_one_is_taken_back():
    assert instants(d("1"), d("2"), rollback("3", "2"), d("2")) == ["1", "2"]


@pytest.mark.req("LF-10")
def test_rollbacks_may_repeat_and_name_what_is_not_there():
    assert instants(d("1"), rollback("2", "1"), rollback("2", "1"), rollback("3", "9"), d("4")) == ["4"]


def test_many_rollbacks_of_many_blocks_take_linear_time():
    """Each one would look at 3,000 blocks otherwise, 90 million times in all."""
    pieces = [d(str(i)) for i in range(3000)] + [rollback("9", str(i)) for i in range(3000)] * 10
    assert instants(*pieces, d("7")) == ["7"]


@pytest.mark.req("LF-10")
def test_a_rollback_counts_though_its_own_instant_is_not_complete():
    visible = VisibleInstants(frozenset({"1", "2"}))
    assert instants(d("1"), d("2"), rollback("3", "2"), visible=visible) == ["1"]


def test_blocks_of_instants_that_are_not_complete_are_left_out():
    visible = VisibleInstants(frozenset({"5", "7"}), first_active="4")
    pieces = [d("1"), d("3"), d("5"), d("6"), d("7")]
    assert instants(*pieces, visible=visible) == ["1", "3", "5", "7"]
    assert instants(*pieces, visible=visible, inflight=frozenset({"3"})) == ["1", "5", "7"]
    assert instants(*pieces, visible=visible, rolled_back=frozenset({"5"})) == ["1", "3", "7"]


def test_later_blocks_are_passed_over_and_do_not_end_the_scan():
    assert instants(d("2"), d("5"), d("3"), latest="3") == ["2", "3"]


def test_an_incremental_read_takes_only_what_it_asks_for():
    pieces = [d("1"), d("2"), d("3"), d("4")]
    assert instants(*pieces, instants=frozenset({"1", "4"})) == ["1", "4"]


def test_blocks_of_an_instant_come_together_where_that_is_the_rule():
    pieces = [d("1"), d("2"), empty_delete("1"), d("3")]
    assert instants(*pieces) == ["1", "2", "1", "3"]
    assert instants(*pieces, grouped=True) == ["1", "1", "2", "3"]


@pytest.mark.parametrize(
    ("pieces", "want"),
    [
        ([d("1"), d("2"), d("3", compacted="2,1")], ["3"]),
        ([d("1"), d("2"), d("4"), d("3", compacted="2,1")], ["3", "4"]),
        ([d("1"), d("2"), d("4"), d("5"), d("3", compacted="2,1"), d("6")], ["3", "4", "5", "6"]),
        # A compaction of what a compaction made; both name blocks that are still there.
        ([d("1"), d("2"), d("3", compacted="2,1"), d("4"), d("5", compacted="4,3"), d("6")], ["5", "6"]),
        ([d("1"), d("2"), d("3", compacted="2,1"), rollback("4", "3")], ["1", "2"]),
    ],
)
def test_a_log_compaction_stands_for_the_blocks_it_replaced(pieces, want):
    assert instants(*pieces) == want
    assert instants(*pieces, grouped=True) == want


@pytest.mark.req("NEW-37")
def test_a_log_compaction_of_blocks_that_are_not_there_is_damage():
    # Apache Hudi drops its records without a word; no checksum covers the header.
    with pytest.raises(CorruptFileError, match="names 2, but the slice has no block"):
        instants(d("3", compacted="2,1"), d("4"))
    assert instants(d("3", compacted="2,1"), d("4"), instants=frozenset({"3", "4"})) == ["4"]


def test_compactions_that_are_not_complete_replace_nothing():
    visible = VisibleInstants(frozenset({"1", "2"}))
    assert instants(d("1"), d("2"), d("3", compacted="2,1"), visible=visible) == ["1", "2"]


def test_corrupt_stretches_are_counted():
    assert order_blocks(found(d("1")[:50], d("2")), BlockScope()).corrupt == 1


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (block(3, {2: SCHEMA}), CorruptFileError),
        (block(3, {0: "", 2: SCHEMA}), CorruptFileError),
        (block(3, {0: "1a", 2: SCHEMA}), CorruptFileError),
        (block(3, {0: "1"}), CorruptFileError),
        (block(3, {0: "1", 2: SCHEMA, 7: "perhaps"}), CorruptFileError),
        (block(3, {0: "1", 2: SCHEMA, 4: "1,x"}), CorruptFileError),
        (block(3, {0: "1", 2: SCHEMA, 1: "0"}), CorruptFileError),
        (block(3, {0: "1", 2: SCHEMA, 99: ""}), UnsupportedError),
        (block(0, {0: "1", 3: "0"}), CorruptFileError),
        (block(0, {0: "1", 1: "0"}), CorruptFileError),
        (block(0, {0: "1", 1: "0", 3: "1"}), CorruptFileError),
        (block(0, {0: "1", 1: "0", 3: "0"}, b"x"), CorruptFileError),
        (block(6, {0: "1", 2: SCHEMA}), CorruptFileError),
    ],
)
def test_a_header_that_its_block_cannot_have_is_an_error(data, error):
    with pytest.raises(error) as caught:
        order_blocks(found(d("0"), data), BlockScope())
    assert caught.value.file == "f"
    assert str(len(d("0"))) in str(caught.value)


@pytest.mark.req("LF-10")
@pytest.mark.parametrize("version", ["v5", "v6"])
def test_rollback_blocks_of_apache_hudi_leave_only_completed_instants(version):
    (table,) = golden(version, "mor_rollback")
    completed = frozenset(i["requested"] for i in table.meta["instants"] if i["state"] == "completed")
    by_timeline = BlockScope(visible=VisibleInstants(completed, first_active=min(completed)))
    logs = golden_logs(version, "mor_rollback")
    by_slice = {}
    for path, data in logs.items():
        file = parse_log_file(*path.rpartition("/")[::2])
        by_slice.setdefault((file.partition, file.file_id, file.instant), []).append(
            (log_sort_key(file), data)
        )
    taken_back = 0
    for files in by_slice.values():
        blocks = [b for _, data in sorted(files) for b in LogFileReader(data).blocks]
        targets = {b.target_instant for b in blocks if b.is_rollback}
        ordered = order_blocks(blocks, BlockScope())
        assert not targets & {b.instant for b in ordered.blocks}
        assert order_blocks(blocks, by_timeline).blocks == ordered.blocks
        taken_back += ordered.rolled_back
    assert taken_back > 0


@pytest.mark.req("FS-04")
def test_log_files_are_applied_by_version_and_not_by_text():
    names = [log_file_name("f-0", "1", v, "0-0-0") for v in (10, 9, 1)]
    files = [parse_log_file("p", n) for n in names]
    assert [f.version for f in sorted(files, key=log_sort_key)] == [1, 9, 10]
    later, older = parse_log_file("", ".f-0_2.log.1_0-0-0"), parse_log_file("", ".f-0_1.log.2")
    assert sorted([later, older], key=log_sort_key) == [older, later]
    assert log_sort_key(older) < log_sort_key(parse_log_file("", ".f-0_1.log.2_0-0-0"))


@pytest.mark.req("FS-04")
def test_names_of_change_logs_are_told_from_those_of_data():
    name = log_file_name("abc-0", "20261121051600825", 1, "0-499-594", cdc=True)
    assert name == ".abc-0_20261121051600825.log.1_0-499-594.cdc"
    file = parse_cdc_file("p", name, 5)
    assert (file.file_id, file.instant, file.version, file.write_token) == (
        "abc-0",
        "20261121051600825",
        1,
        "0-499-594",
    )
    assert parse_log_file("p", name) is None
    assert parse_cdc_file("p", name[:-4]) is None


@pytest.mark.req("FS-04")
@pytest.mark.parametrize("version", ["v5", "v6", "v8", "v9"])
def test_every_golden_log_name_is_understood_and_made_again(version):
    for path in golden_logs(version):
        partition, _, name = path.rpartition("/")
        cdc = name.endswith(".cdc")
        file = (parse_cdc_file if cdc else parse_log_file)(partition, name)
        assert log_file_name(file.file_id, file.instant, file.version, file.write_token, cdc=cdc) == name


def test_the_logs_of_a_slice_are_read_across_files(tmp_path):
    storage = open_storage(str(tmp_path))
    contents = {10: rollback("4", "2"), 9: d("2"), 1: d("1"), 11: d("5")}
    files = []
    for version, data in contents.items():
        name = log_file_name("f-0", "0", version, "0-0-0")
        storage.touch(f"p/{name}", data)
        files.append(parse_log_file("p", name, len(data)))
    with SliceLog(storage, files, BlockScope()) as log:
        assert [b.instant for b in log.blocks] == ["1", "5"]
        assert [b.file for b in log.blocks] == [files[2].path, files[3].path]
        assert bytes(log.content(log.blocks[1])) == d("5")[-12 - 14 : -12]
