"""Byte columns of a Parquet file that become decimals by a changed footer, and nothing else of it."""

import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.parquet.decimal_annotation import with_decimals


def unscaled(text, scale, width):
    return int(Decimal(text).scaleb(scale)).to_bytes(width, "big", signed=True)


def parquet(table):
    out = io.BytesIO()
    pq.write_table(table, out, write_statistics=False, store_schema=False, use_dictionary=False)
    return out.getvalue()


TEXTS = ["1.50", "-0.01", None, "99999.99"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary(12)], ids=["bytes", "fixed"])
def test_annotated_bytes_are_the_decimals_that_they_stand_for(kind):
    raw = pa.array([None if t is None else unscaled(t, 2, 12) for t in TEXTS], kind)
    nested = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4]), raw], ["n", "d"])
    table = pa.table({"id": ["a", "b", "c", "d"], "top": raw, "s": nested, "plain": raw})
    found = pq.read_table(io.BytesIO(with_decimals(parquet(table), {1: (7, 2), 3: (20, 2)})))
    want = [None if t is None else Decimal(t) for t in TEXTS]
    assert found["top"].to_pylist() == want
    assert found["top"].type == pa.decimal128(7, 2)
    assert [s["d"] for s in found["s"].to_pylist()] == want
    assert found.schema.field("s").type.field("d").type == pa.decimal128(20, 2)
    assert found.select(["id", "plain"]).to_pydict() == table.select(["id", "plain"]).to_pydict()


def test_without_decimals_only_the_footer_is_written_again():
    data = parquet(pa.table({"id": ["a"], "n": [[1, 2]], "b": [True]}))
    again = with_decimals(data, {})
    assert pq.read_table(io.BytesIO(again)).equals(pq.read_table(io.BytesIO(data)))
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert again[:begin] == data[:begin]
    assert again[-4:] == b"PAR1"
