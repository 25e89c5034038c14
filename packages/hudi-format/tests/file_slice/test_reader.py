"""A slice's merged rows, filtered; and what is committed of its logs."""

import datetime as dt
import decimal
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from slices import SCHEMA as SLICE_SCHEMA
from slices import rows_of, write_slice

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, MissingColumnError
from hudi_format.file_slice.base_rows import BaseFileReader
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.writer import LogWriter
from hudi_format.merge.payloads import EVENT_TIME, PAYLOADS, payload_rule
from hudi_format.merge.user_merger import custom_rule
from hudi_format.parquet.reader import iter_batches
from hudi_format.parquet.row_group_filter import RowGroupFilter
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage

DATA = pa.schema(
    [
        ("ts", pa.int64()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us", "UTC")),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.string())])), ("text", pa.string()),
    ]
)  # fmt: skip
SCHEMA = pa.schema([f.with_nullable(True) for f in with_meta(DATA)])
MERGE = SliceMerge(payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload"), "ts")


def moment(n):
    return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n)


def values(n, ts):
    inner = None if n % 5 == 0 else {"a": None if n % 3 == 0 else n, "b": f"b{n}"}
    price = None if n % 7 == 0 else decimal.Decimal(n).scaleb(-1)
    return {
        "ts": ts,
        "price": price,
        "at": moment(n),
        "inner": inner,
        "text": None if n % 4 == 0 else f"t{n}",
    }


@pytest.fixture
def parts(tmp_path):
    """A storage, and a slice of 40 base rows of which a log changes some, deletes some and adds some."""
    storage = open_storage(str(tmp_path))
    base = rows_of([(f"k{n:02d}", values(n, 1)) for n in range(40)], "1", SCHEMA)
    logged = rows_of([(f"k{n:02d}", values(n + 100, 2)) for n in range(0, 60, 6)], "100", SCHEMA)
    late = rows_of([(f"k{n:02d}", values(n + 500, 0)) for n in range(1, 40, 9)], "101", SCHEMA)
    gone = (pa.array(["k03", "k13"]), pa.array([5, 5], pa.int64()))
    made = write_slice(storage, base, [logged, late, gone], schema=SCHEMA, row_group_rows=7)
    return storage, made


def read(parts, **more):
    schema = SCHEMA if "columns" not in more else pa.schema([SCHEMA.field(n) for n in more["columns"]])
    return pa.Table.from_batches(read_file_slice(*parts, MERGE, SCHEMA, **more), schema)


@pytest.mark.parametrize("what", ["columns", "keys"])
def test_one_text_is_no_list_of_columns_or_keys(parts, what):
    with pytest.raises(TypeError, match=f"{what} must be a list"):
        list(read_file_slice(*parts, MERGE, SCHEMA, **{what: "k07"}))


def test_arguments_of_other_types_are_told_by_name(parts):
    with pytest.raises(TypeError, match=r"keys\[1\] must be a text, not int: 7"):
        list(read_file_slice(*parts, MERGE, SCHEMA, keys=["k07", 7]))
    with pytest.raises(TypeError, match="filter must be a pyarrow"):
        list(read_file_slice(*parts, MERGE, SCHEMA, filter="price > 1"))
    with pytest.raises(ValueError, match="above 0, not 0"):
        list(read_file_slice(*parts, MERGE, SCHEMA, memory_limit=0))
    with pytest.raises(TypeError, match="integer"):
        list(read_file_slice(*parts, MERGE, SCHEMA, memory_limit="1"))
    keys = pa.array(["k07", None])
    assert read(parts, keys=keys) == read(parts, keys=["k07"])


@pytest.mark.req("QR-01", "QR-08")
@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize(
    "expression",
    [
        pc.field("price") > decimal.Decimal("2.50"), pc.field("at") >= pa.scalar(moment(20)),
        pc.field("inner", "a") > 5, pc.field("inner", "b") == "b101", pc.field("inner").is_null(),
        pc.field("text").is_null(), pc.field("price").is_null() | (pc.field("ts") == 2),
        pc.field("_hoodie_commit_time") == "100", pc.scalar(False), pc.scalar(True),
        ~pc.field("text").isin(["t1", "t2"]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(4)
def test_a_filter_looks_at_merged_rows(parts, expression, limit):
    more = {} if limit is None else {"memory_limit": limit}
    everything = read(parts)
    assert everything.num_rows == 41
    want = everything.filter(expression)
    assert read(parts, filter=expression, **more).equals(want)
    some = read(parts, filter=expression, columns=["text", "_hoodie_record_key"], **more)
    assert some.equals(want.select(["text", "_hoodie_record_key"]))


@pytest.fixture
def groups_read(monkeypatch):
    """Numbers of the row groups of base files that were read, as they are."""
    seen = []
    own = BaseFileReader.batches

    def batches(self, batch_rows):
        seen.extend(self.row_groups)
        return own(self, batch_rows)

    monkeypatch.setattr(BaseFileReader, "batches", batches)
    return seen


OVERWRITE = SliceMerge(payload_rule(None), "ts")
FILLS = SliceMerge(payload_rule("PartialUpdateAvroPayload"), "ts")
NARROW = pc.field("at") >= pa.scalar(moment(36))


@pytest.mark.req("QR-01", "QR-08")
@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize(
    ("merge", "logs", "groups"),
    [
        (MERGE, False, {5}), (FILLS, False, {5}), (OVERWRITE, False, {5}), (OVERWRITE, True, {5}),
        # A base row may be the newer one, or fill what a record lacks: all of them are needed.
        (MERGE, True, {0, 1, 2, 3, 4, 5}), (FILLS, True, {0, 1, 2, 3, 4, 5}),
    ],
)  # fmt: skip
def test_row_groups_are_left_out_where_no_record_needs_their_rows(
    parts, groups_read, merge, logs, groups, limit
):
    storage, made = parts
    made = made if logs else replace(made, log_files=())

    def rows(**more):
        found = read_file_slice(storage, made, merge, SCHEMA, **more)
        return pa.Table.from_batches(found, SCHEMA).sort_by("_hoodie_record_key")

    want = rows().filter(NARROW)
    groups_read.clear()
    more = {} if limit is None else {"memory_limit": limit}
    assert rows(filter=NARROW, **more).equals(want)
    assert set(groups_read) == groups
    # What the log's records say decides, not what is stored: k00 to k39 of the log lie beyond every base row.
    assert want.num_rows > 4 if logs else want.num_rows == 4


BY_KEY = pc.field("_hoodie_record_key") >= "k35"
SUMS = SliceMerge(custom_rule('{"price": "sum"}'), "ts")


@pytest.mark.req("QR-01", "QR-08", "PM-15")
@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize(
    ("merge", "expression", "groups"),
    [
        (MERGE, BY_KEY, {5}), (FILLS, BY_KEY, {5}), (OVERWRITE, BY_KEY, {5}),
        (MERGE, BY_KEY & NARROW, {5}), (MERGE, pc.field("_hoodie_record_key") == "k13", {1}),
        (MERGE, BY_KEY | NARROW, {0, 1, 2, 3, 4, 5}), (MERGE, ~BY_KEY, {0, 1, 2, 3, 4}),
        # Whoever writes a function may change the key.
        (SUMS, BY_KEY, {0, 1, 2, 3, 4, 5}),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(4)
def test_a_merge_that_looks_at_base_rows_needs_none_of_another_key(
    parts, groups_read, merge, expression, groups, limit
):
    storage, made = parts

    def rows(**more):
        return pa.Table.from_batches(read_file_slice(storage, made, merge, SCHEMA, **more), SCHEMA)

    want = rows().filter(expression)
    groups_read.clear()
    assert rows(filter=expression, **({} if limit is None else {"memory_limit": limit})).equals(want)
    assert set(groups_read) == groups


NAN = float("nan")
X = pc.field("x")


@pytest.mark.req("QR-01")
@pytest.mark.parametrize(
    "expression",
    [
        X != 5, ~(X <= 5), (X <= 5) == pc.scalar(False), pc.xor(X <= 5, True), pc.if_else(X <= 5, False, True),
        pc.and_not(pc.scalar(True), X <= 5), X.isin([NAN]), X.is_null(nan_is_null=True),
        pc.is_nan(X), (X <= 5) != (X >= 0),
    ],
    ids=str,
)  # fmt: skip
def test_a_row_group_with_nan_which_no_statistics_tell_is_kept(tmp_path, expression):
    values = pa.table(
        {"x": [5.0, NAN, 5.0, 5.0, None, NAN, -0.0, 0.0, NAN, NAN], "y": [*map(float, range(9)), NAN]}
    )
    pq.write_table(values, tmp_path / "f.parquet", row_group_size=2)
    storage = open_storage(str(tmp_path))
    for given in (expression, expression & (pc.field("y") != 1)):
        read = iter_batches(storage, "f.parquet", filter=RowGroupFilter(given, values.schema))
        found = pa.Table.from_batches(read, values.schema).filter(given)
        assert repr(found.to_pydict()) == repr(values.filter(given).to_pydict())
    narrow = RowGroupFilter(X < 5, values.schema)
    groups = [b.num_rows for b in iter_batches(storage, "f.parquet", filter=narrow)]
    assert sum(groups) == 6  # of zeros, and two of what has no bounds


def test_columns_that_are_not_there_are_named_before_anything_is_read(parts):
    with pytest.raises(MissingColumnError, match="nope"):
        read(parts, filter=pc.field("nope") == 1)
    with pytest.raises(MissingColumnError, match="nope"):
        next(read_file_slice(*parts, MERGE, SCHEMA, columns=["nope"]))
    with pytest.raises(MissingColumnError, match="_hoodie_record_key"):
        next(read_file_slice(*parts, MERGE, DATA))
    with pytest.raises(ValueError, match="twice"):
        next(read_file_slice(*parts, MERGE, SCHEMA, columns=["text", "ts", "text"]))


@pytest.mark.parametrize("limit", [None, 1])
def test_a_record_of_a_log_without_a_key_is_damage_and_not_passed_over(parts, limit):
    storage, _ = parts
    logged = rows_of([("k1", values(1, 2)), (None, values(2, 2))], "100", SCHEMA)
    made = write_slice(storage, None, [logged], schema=SCHEMA)
    with pytest.raises(CorruptFileError, match="no record key") as e:
        read((storage, made), memory_limit=limit)
    assert e.value.file == made.log_files[0].path
    assert e.value.instant == "100"


@pytest.mark.req("NEW-37")
def test_a_committed_block_that_was_cut_off_is_an_error_where_the_caller_says_so(parts, tmp_path):
    (file,) = parts[1].log_files
    path = tmp_path / file.path
    data = path.read_bytes()
    said = {file.path: [CommittedRange("100", 0, len(data))]}
    assert read(parts, committed=said).num_rows == 41
    path.write_bytes(data[:-20])
    with pytest.raises(CorruptFileError, match="committed data is damaged") as e:
        read(parts, committed=said)
    assert e.value.file == file.path
    # A write that was cut off and never completed is no damage.
    assert read(parts, committed={file.path: []}).num_rows == 43


@pytest.mark.req("QR-01", "NEW-37")
def test_a_rollback_of_what_is_complete_shows_no_half_of_it(parts, tmp_path):
    """A restore takes a completed instant back file by file; the timeline that a scan holds is from before it."""
    storage, made = parts
    (file,) = made.log_files
    end = (tmp_path / file.path).stat().st_size
    avro = to_avro(SCHEMA, "r")
    with LogWriter(
        storage, "", "f-0", "1", instant="200", schema=avro, write_token="0-3-3", version=2
    ) as log:
        log.append_rollback("100")
    undone = replace(made, log_files=(file, *(w.file for w in log.close())))
    with pytest.raises(ConcurrentWriterError, match="after the timeline was read") as e:
        read((storage, undone), committed={file.path: [CommittedRange("100", 0, end)]})
    assert (e.value.file, e.value.instant) == (file.path, "100")
    # Blocks of the first attempt at a commit that ended well later, or of an instant that is archived.
    for said in ({file.path: [CommittedRange("100", end, end)]}, {}, None):
        assert read((storage, undone), committed=said).num_rows == 40


WIDENED = [
    (pa.int32(), pa.int64()), (pa.int32(), pa.float32()), (pa.int32(), pa.float64()), (pa.int64(), pa.float64()),
    (pa.float32(), pa.float64()),
]  # fmt: skip


def left(storage, file_slice, rule, schema):
    found = pa.Table.from_batches(
        read_file_slice(storage, file_slice, SliceMerge(rule, "ts"), schema), schema
    )
    return dict(zip(found["_hoodie_record_key"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.mark.req("PM-08")
@pytest.mark.parametrize(("before", "now"), WIDENED, ids=str)
def test_under_event_time_they_are_compared_as_numbers(tmp_path, before, now):
    """A late delete loses, and a record that is older than a delete; Apache Hudi 1.0.2 and 1.2.0 read no such table."""
    schema = SLICE_SCHEMA.set(SLICE_SCHEMA.get_field_index("ts"), pa.field("ts", now))
    base = rows_of([(f"k{n}", {"ts": 100}) for n in range(4)], "1", schema)
    gone = (pa.array(["k0", "k1", "k2"]), pa.array([50, 150, 150], before))
    after = rows_of([("k1", {"ts": 120}), ("k2", {"ts": 160})], "101", schema)
    storage = open_storage(str(tmp_path))
    file_slice = write_slice(storage, base, [gone, after], schema=schema)
    assert left(storage, file_slice, EVENT_TIME, schema) == {"k0": 100, "k2": 160, "k3": 100}
    # Before version 8 Apache Hudi looks at the classes, and deletes where they differ.
    payload = PAYLOADS["DefaultHoodieRecordPayload"]
    assert left(storage, file_slice, payload, schema) == {"k1": 120, "k2": 160, "k3": 100}
