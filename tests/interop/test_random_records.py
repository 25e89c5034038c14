"""Random schemas and rows in every type of data block that we write, as Apache Hudi's own log reader finds them.

Its records come back in Avro's binary encoding and are compared value by value, each with its type, to what was
written; the plain encoding of `interop.random_records` is the judge between the two.
"""

import base64
import json

import pyarrow as pa
import pytest

from hudi_format.avro.encoder import Encoder
from hudi_format.log.block import BlockType, HeaderKey
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.encoder import block_type
from hudi_format.log.reader import LogFileReader
from hudi_format.log.writer import LogWriter
from hudi_format.storage.open import open_storage
from interop.java_source import run
from interop.random_records import (
    LEAVES,
    TIMES,
    Maker,
    arrow_table,
    comparable,
    decode,
    encode,
)

FIXED = ("fixed", "fixed-decimal", "enum")
FEW, MANY = range(4), range(100, 130)
BATCHES = [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]
# CI has no JVM of 1.2.0.
BY_VERSION = [
    pytest.param(version, seeds, marks=[pytest.mark.in_ci] if seeds is FEW and version == "0.15.0" else [])
    for version in ("0.15.0", "1.0.2", "1.2.0")
    for seeds in (FEW, MANY)
]


def makers(seed):
    """Option of the block's type, and what makes schemas that Apache Hudi can have in such blocks.

    Its readers of Parquet turn the columns' types into an Avro schema, in which a column that has a name of its own
    (fixed, enumeration) is named by its last word, so that two of them within lists are one; unions of several types
    are not read by 1.0.2 (StackOverflowError) and 1.2.0 ("Union is malformed").
    """
    depth = seed % 5
    yield "avro", Maker(seed, unions=True, depth=depth)
    yield "hfile", Maker(seed + 1000, unions=seed % 2 == 0, depth=depth)
    flat = seed % 2 == 0
    leaves = tuple(n for n in LEAVES + TIMES if flat or n not in FIXED)
    yield "parquet", Maker(seed + 2000, leaves, unions=False, depth=0 if flat else depth)


class Written:
    """Rows in log files of one random schema, and deletes."""

    def __init__(self, folder, option, maker):
        self.option, draw = option, maker.draw
        self.schema = maker.schema(draw.choice((1, 4, 12, 12, 210)))
        rows = maker.rows(self.schema, draw.choice((1, 3, 30)))
        self.rows = [((1, f"k{n:05d}"), *row[1:]) for n, row in enumerate(rows)]
        self.keys = [maker.value("string") + str(n) for n in range(draw.randint(1, 5))]
        self.ordering = [None if draw.random() < 0.3 else maker.value("long") for _ in self.keys]
        folder.mkdir()
        self.folder = folder
        with LogWriter(
            open_storage(str(folder)), "p", "f-0", "5",
            instant="7", schema=json.dumps(self.schema), write_token="0-0-0",
            max_file_size=draw.choice((1 << 30, 5000)), max_block_size=draw.choice((1 << 28, 3000)),
        ) as log:  # fmt: skip
            log.append_rows(
                arrow_table(self.schema, self.rows), block_type(option),
                codec=draw.choice(("gzip", "snappy", "zstd", "none")), header={HeaderKey.COMPACTED_BLOCK_TIMES: "5,6"},
            )  # fmt: skip
            log.append_deletes(pa.array(self.keys), None, pa.array(self.ordering, pa.int64()))
            log.append_rollback("6")
            self.files = [str(folder / w.file.path) for w in log.close()]

    def ours(self):
        """The rows as our reader finds them, encoded again."""
        out = []
        for path in self.files:
            with LogFileReader.open(open_storage(str(self.folder)), path.split(f"{self.folder}/")[1]) as log:
                for b in log.blocks:
                    if b.type.has_records:
                        for batch in BlockDecoder().batches(b, log.content(b)):
                            data, ends = Encoder(json.dumps(self.schema), batch.schema).encode(batch)
                            out += [
                                bytes(data[a:b])
                                for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
                            ]
        return out


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    made = {}

    def get(seeds):
        if seeds not in made:
            folder = tmp_path_factory.mktemp("random")
            made[seeds] = [
                Written(folder / f"{seed}-{option}", option, maker)
                for seed in seeds
                for option, maker in makers(seed)
            ]
        return made[seeds]

    return get


def compare(one, records):
    name = f"{one.folder.name}, {json.dumps(one.schema)[:2000]}"
    assert len(records) == len(one.rows), name
    for row, record in zip(one.rows, records, strict=True):
        for field, want, got in zip(one.schema["fields"], row, decode(one.schema, record), strict=True):
            assert comparable(got) == comparable(want), f"{field}, {name}"


@pytest.mark.req("LF-15", "LF-16", "LF-17")
@pytest.mark.parametrize("seeds", BATCHES)
def test_we_read_random_records_that_we_wrote(written, seeds):
    for one in written(seeds):
        compare(one, one.ours())


@pytest.mark.req("LF-10", "LF-11", "LF-15", "LF-16", "LF-17", "LF-18")
@pytest.mark.parametrize(("version", "seeds"), BY_VERSION)
def test_apache_hudi_reads_random_records_that_we_wrote(written, tmp_path, version, seeds):
    all_of_them = written(seeds)
    paths = tmp_path / "paths"
    paths.write_text("".join(f"{p}\n" for one in all_of_them for p in one.files))
    found: dict[str, list[list[str]]] = {}
    for line in run("ReadRecords", version, [str(paths)], prefix="log\t"):
        kind, *rest = line.split("\t")
        if kind == "file":
            lines = found[rest[0]] = []
        else:
            lines.append([kind, *rest])
    for one in all_of_them:
        lines = [line for p in one.files for line in found[p]]
        failed = [base64.b64decode(line[1]).decode() for line in lines if line[0] == "error"]
        assert not failed, f"{one.folder.name}: {failed[0]}"
        compare(one, [base64.b64decode(line[1]) for line in lines if line[0] == "record"])
        kinds = [line[1].removesuffix("_BLOCK") for line in lines if line[0] == "block"]
        data = BlockType[f"{one.option.upper()}_DATA"].name
        assert set(kinds[:-2]) == {data}
        assert kinds[-2:] == ["DELETE", "COMMAND"]
        assert all("COMPACTED_BLOCK_TIMES=5,6" in line[2] for line in lines if line[1] == f"{data}_BLOCK")
        deletes = [line[1:] for line in lines if line[0] == "delete"]
        want = [
            [key, "", *(("Long", str(value)) if value is not None else ("Integer", "0"))]
            for key, value in zip(one.keys, one.ordering, strict=True)
        ]
        assert [[base64.b64decode(a).decode(), base64.b64decode(b).decode(), c, base64.b64decode(d).decode()]
                for a, b, c, d in deletes] == want  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_the_plain_encoding_gives_back_what_it_took(seed):
    maker = Maker(seed)
    schema = maker.schema(10)
    for row in maker.rows(schema, 5):
        assert comparable(decode(schema, encode(schema, row))) == comparable(row)
