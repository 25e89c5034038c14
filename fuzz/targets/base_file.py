"""Base files: footers and rows of Parquet, and `python -m hudi_format inspect` over any file."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from hudi_format.__main__ import main
from hudi_format.avro.encoder import Encoder
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.hfile.writer import hfile_bytes
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import BaseFile, FileSlice
from hudi_format.parquet import _entries
from hudi_format.parquet.footer import footer_bytes, read_footer
from hudi_format.parquet.reader import iter_batches, read_keys
from hudi_format.parquet.row_groups import row_groups
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from targets import golden
from targets.target import Target

NAMES = ("f.parquet", "f.orc", "f.hfile", ".f_1.log.1_0-0-0", ".f_1.log.1_0-0-0.cdc", "f")


@cache
def folder() -> Path:
    shared = Path("/dev/shm")
    if "TMPDIR" in os.environ:  # whoever names a place for files removes them
        shared = Path(os.environ["TMPDIR"])
    return Path(tempfile.mkdtemp(prefix="hudi-fuzz-", dir=shared if os.access(shared, os.W_OK) else None))


@cache
def storage() -> Storage:
    return open_storage(str(folder()))


def run_parquet(data: bytes) -> None:
    (folder() / "f.parquet").write_bytes(data)
    footer = read_footer(storage(), "f.parquet")
    rows = sum(b.num_rows for b in iter_batches(storage(), "f.parquet"))
    assert rows == footer.num_rows
    if RECORD_KEY in footer.schema.names:
        keys = read_keys(storage(), "f.parquet")
        keys.validate(full=True)
        assert len(keys) == rows


def run_other(data: bytes) -> None:
    """Rows of a base file that is ORC or an HFile, as the first byte says, and of single keys."""
    name = "f_0-1-2_1.hfile" if data[:1] == b"\1" else "f_0-1-2_1.orc"
    (folder() / name).write_bytes(data[1:])
    file_slice = FileSlice("", "f", "1", BaseFile("", name, "f", "1", "0-1-2"))
    for keys in (None, ["k1", ""]):
        for batch in read_file_slice(
            storage(), file_slice, SliceMerge(payload_rule(None)), _OTHER, keys=keys
        ):
            batch.validate()


_OTHER = pa.schema([("_hoodie_record_key", pa.string()), ("key", pa.string()), ("a", pa.int64()), ("s", pa.string()),
                    ("l", pa.list_(pa.int64())), ("t", pa.timestamp("us", "UTC"))])  # fmt: skip


def run_footer(data: bytes) -> None:
    """A footer alone, without the file around it: row groups, bounds and entries."""
    kinds = (
        pa.int32(),
        pa.int64(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.decimal128(20, 3),
        pa.bool_(),
    )
    for group in row_groups(memoryview(data)):
        for chunk in group.columns.values():
            for kind in kinds:
                bounds = chunk.bounds(kind)
                assert bounds is None or bounds[0].type == kind
    with contextlib.suppress(ValueError):
        _entries.key_value_spans(data)


def run_inspect(data: bytes) -> None:
    """The first byte chooses the file's name; text and JSON come out, or one line of error."""
    if not data:
        return
    path = folder() / NAMES[data[0] % len(NAMES)]
    path.write_bytes(data[1:])
    for form in ([], ["--json"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["inspect", str(path), *form])
        assert code in (0, 1, 2)
        out.getvalue().encode()
        if code == 2:
            assert err.getvalue().startswith("[HUDI-E"), err.getvalue()
            assert err.getvalue().count("\n") == 1, err.getvalue()
            assert not out.getvalue()
        elif form:
            found = json.loads(out.getvalue())
            assert bool(found["problems"]) == (code == 1)


def _parquet_seeds() -> Iterator[bytes]:
    table = pa.table({"_hoodie_record_key": ["k1", "k2", "k2"], "a": [1, None, 3], "b": [[1], [], None]})
    for codec, version in (("none", "1.0"), ("gzip", "2.6"), ("snappy", "2.4"), ("zstd", "2.6")):
        sink = pa.BufferOutputStream()
        extra = {"hoodie_min_record_key": "k1", "hoodie_max_record_key": "k2", "parquet.avro.schema": "{}"}
        pq.write_table(table.replace_schema_metadata(extra), sink, compression=codec, version=version)
        yield sink.getvalue().to_pybytes()
    yield from (data for _, data in golden.named(".parquet", most=12_000))


def _footer_seeds() -> Iterator[bytes]:
    for data in _parquet_seeds():
        yield bytes(footer_bytes(pa.BufferReader(data)))


def _inspect_seeds() -> Iterator[bytes]:
    yield from (b"\0" + d for d in _parquet_seeds())
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"a": [1, 2], "s": ["x", None]}), sink)
    yield b"\1" + sink.getvalue().to_pybytes()
    yield from (b"\2" + d for d in golden.hfiles(12_000))
    yield from (b"\3" + d for _, d in golden.logs(4000))


def _other_seeds() -> Iterator[bytes]:
    rows = pa.table(
        [["k1", "k2"], ["k1", ""], [1, None], ["x", None], [[1], None], [0, None]], names=_OTHER.names
    ).cast(_OTHER)
    for codec in ("uncompressed", "zlib", "zstd"):
        sink = pa.BufferOutputStream()
        orc.write_table(rows, sink, compression=codec)
        yield b"\0" + sink.getvalue().to_pybytes()
    avro = to_avro(_OTHER, "r")
    data, offsets = Encoder(avro, _OTHER).encode(rows.to_batches()[0])
    values = [data[a:b].to_pybytes() for a, b in itertools.pairwise(offsets)]
    yield b"\1" + hfile_bytes(
        pa.array(["k1", "k2"]), pa.array(values, pa.binary()), schema=avro, codec="none"
    )


TARGETS = (
    Target("base_file_other", run_other, _other_seeds, most=8192),
    Target("parquet", run_parquet, _parquet_seeds),
    Target("footer", run_footer, _footer_seeds),
    Target("inspect", run_inspect, _inspect_seeds),
)
