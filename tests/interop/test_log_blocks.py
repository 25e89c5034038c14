"""Each type of log block that we write, as Apache Hudi's own log reader finds it; no table around it."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.avro.encoder import Encoder
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.log.block import BlockType
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.encoder import block_type
from hudi_format.log.reader import LogFileReader
from hudi_format.log.writer import LogWriter
from hudi_format.storage.open import open_storage
from interop import kryo_deletes
from interop.java_source import run

DATA = Path(__file__).parents[2] / "packages" / "hudi-format" / "tests" / "data" / "kryo_deletes.txt"
KEY = "_hoodie_record_key"
FIELDS = [
    {"name": KEY, "type": ["null", "string"], "default": None},
    {"name": "a", "type": ["null", "long"], "default": None},
    {"name": "b", "type": ["null", {"type": "array", "items": "string"}], "default": None},
]
SCHEMA = json.dumps({"type": "record", "name": "r", "fields": FIELDS})
CDC = json.dumps(
    {
        "type": "record",
        "name": "Record",
        "fields": [
            {"name": "op", "type": ["string", "null"]},
            {"name": "record_key", "type": ["string", "null"]},
        ],
    }
)
ROWS = [{KEY: f"k{i}", "a": None if i == 2 else i - 2**40, "b": ["ü"] * i} for i in range(5)]
BATCH = pa.RecordBatch.from_pylist(
    ROWS,
    pa.schema(
        [(KEY, pa.string()), ("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.string(), False)))]
    ),
)
DECIMALS = pa.array(["-1.5", None], pa.string()).cast(pa.decimal128(30, 15))
# Java's class and text of the first ordering value; the second one is null, which Apache Hudi reads as the int 0.
ORDERING = [
    (pa.array([7, None], pa.int64()), "Long", "7"),
    (pa.array([7, None], pa.int32()), "Integer", "7"),
    (pa.array([True, None]), "Boolean", "true"),
    (pa.array([1.5, None], pa.float32()), "Float", "1.5"),
    (pa.array([1.1, None], pa.float64()), "Double", "1.1"),
    (pa.array(["ü", None]), "String", "ü"),
    (DECIMALS, "BigDecimal", "-1.500000000000000"),
]


def open_writer(storage, **more):
    return LogWriter(
        storage, "p", "f-0", "5", **{"instant": "7", "schema": SCHEMA, "write_token": "0-0-0", **more}
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Paths of a log file with every type of block, and of one of changes."""
    folder = tmp_path_factory.mktemp("blocks")
    storage = open_storage(str(folder))
    with open_writer(storage) as log:
        rows = pa.Table.from_batches([BATCH])
        log.append_rows(rows, block_type("avro"))
        for ordering, _, _ in ORDERING:
            log.append_deletes(pa.array(["k1", "k2"]), pa.array(["p", None]), ordering)
        log.append_rows(rows, block_type("parquet"))
        log.append_rows(rows, block_type("hfile"))
        log.append_rollback("6")
        (data,) = log.close()
    changes = pa.RecordBatch.from_pydict({"op": ["i", "d"], "record_key": ["k1", "k2"]})
    with open_writer(storage, schema=CDC, cdc=True) as log:
        log.append_avro(*Encoder(CDC, changes.schema).encode(changes))
        (cdc,) = log.close()
    path = folder / data.file.path
    torn = path.with_name(path.name.replace("log.1", "log.2"))
    whole = path.read_bytes()
    torn.write_bytes(whole[: data.size // 3])
    return [str(path), str(folder / cdc.file.path), str(torn)]


def told(version, paths):
    """{path: [(block type, header, [line, ...])]} as Apache Hudi tells."""
    out, blocks = {}, []
    for line in run("ReadLog", version, [CDC, *paths], prefix="log\t"):
        kind, *rest = line.split("\t")
        if kind == "file":
            blocks = out.setdefault(rest[0], [])
        elif kind == "block":
            blocks.append((rest[0].removesuffix("_BLOCK"), rest[1], []))
        else:
            blocks[-1][2].append(rest)
    return out


@pytest.mark.req("LF-10", "LF-11", "LF-14", "LF-15", "LF-16", "LF-17", "LF-18")
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2"])
def test_apache_hudi_reads_each_block_that_we_write(written, version):
    found = told(version, written)
    data, cdc, torn = (found[p] for p in written)
    assert [b[0] for b in data] == [
        "AVRO_DATA",
        *["DELETE"] * len(ORDERING),
        "PARQUET_DATA",
        "HFILE_DATA",
        "COMMAND",
    ]
    assert all("INSTANT_TIME=7" in b[1] for b in data)
    for kind, _, lines in data:
        if kind.endswith("_DATA"):
            assert [json.loads(line[0]) for line in lines] == ROWS, kind
    for (_, name, text), (_, _, lines) in zip(ORDERING, data[1 : 1 + len(ORDERING)], strict=True):
        (first, second) = lines
        assert first == ["k1", "p", name, text]
        assert second == ["k2", "null", "Integer", "0"]
    assert "COMMAND_BLOCK_TYPE=0" in data[-1][1]
    assert "TARGET_INSTANT_TIME=6" in data[-1][1]
    ((kind, _, lines),) = cdc
    assert kind == "CDC_DATA"
    assert [json.loads(line[0]) for line in lines] == [
        {"op": "i", "record_key": "k1"},
        {"op": "d", "record_key": "k2"},
    ]
    whole = [b.type.name for b in LogFileReader(Path(written[2]).read_bytes()).blocks]
    assert [b[0] for b in torn] == whole
    assert whole[-1] == "CORRUPT"


KEYED = json.dumps(
    {
        "type": "record",
        "name": "HoodieMetadataRecord",
        "fields": [{"name": "key", "type": "string"}, {"name": "type", "type": "int"}],
    }
)


@pytest.mark.req("LF-16", "LF-18", "MT-02")
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2"])
@pytest.mark.slow
def test_apache_hudi_fills_in_the_keys_of_our_hfile_blocks(tmp_path, version):
    """As metadata tables have them: the record's own `key` is empty, the HFile's stands for it."""
    rows = [{"key": f"k{i:03d}", "type": i} for i in range(300)]
    batch = pa.RecordBatch.from_pylist(
        [{**r, "key": ""} for r in rows], pa.schema([("key", pa.string()), ("type", pa.int32())])
    )
    data, ends = Encoder(KEYED, batch.schema).encode(batch)
    values = [bytes(data[a:b]) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    keys = pa.array([r["key"].encode() for r in rows])
    storage = open_storage(str(tmp_path))
    with open_writer(storage, schema=KEYED) as log:
        for codec in ("gz", "none"):
            log.append_hfile(
                hfile_bytes(keys, pa.array(values, pa.binary()), schema=KEYED, unique=False, codec=codec)
            )
        (written,) = log.close()
    path = str(tmp_path / written.file.path)
    blocks = told(version, [path])[path]
    assert [b[0] for b in blocks] == ["HFILE_DATA", "HFILE_DATA"]
    for _, _, lines in blocks:
        assert [json.loads(line[0]) for line in lines] == rows


@pytest.mark.req("LF-13")
def test_apache_hudi_reads_kryo_lists_as_we_do(tmp_path):
    lists = [line.split() for line in DATA.read_text().splitlines()]
    wanted = [
        (n, bytes.fromhex(d))
        for n, d in lists
        if "by_fields" not in n and not n.endswith(("unknown", "none"))
    ]
    storage = open_storage(str(tmp_path))
    with open_writer(storage, schema="") as log:
        for name, content in wanted:
            version = int(name[1]).to_bytes(4, "big")
            log.append(BlockType.DELETE, version + len(content).to_bytes(4, "big") + content)
        (written,) = log.close()
    path = str(tmp_path / written.file.path)
    blocks = told("0.15.0", [path])[path]
    with LogFileReader.open(storage, written.file.path) as log:
        for (name, _), b, (_, _, lines) in zip(wanted, log.blocks, blocks, strict=True):
            ours = read_deletes(b, log.content(b))
            pairs = zip(ours.keys.to_pylist(), ours.partitions.to_pylist(), strict=True)
            assert [tuple(x[:2]) for x in lines] == [
                (k, p or ("" if p == "" else "null")) for k, p in pairs
            ], name


@pytest.mark.req("LF-13")
@pytest.mark.slow
def test_the_kryo_lists_that_the_tests_keep_are_what_apache_hudi_makes():
    assert kryo_deletes.lines() == DATA.read_text().splitlines()
