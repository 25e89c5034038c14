"""Generated frames: keys, partition paths and ordering values are the same on both engines, for each type of column."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from typed_values import KINDS

from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import partition_paths, record_keys
from hudi_format.merge.key_index import precombine
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_spark.writing import key_columns
from hudi_spark.writing.engine import _keyed
from hudi_timeline.writing.engine import PrepareTask

pytestmark = pytest.mark.spark

# Written by the kernels inside Spark's tasks; the others by Spark's own expressions.
BY_KERNELS = ("decimal(38,10)", "double", "float", "timestamp_ntz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("values")


def _styles(kind):
    """Key and path specifications to try: a key of one field and of several; paths in both styles."""
    if kind in BY_KERNELS:
        return [KeySpec(("one", "v"), ("v",), "COMPLEX", True, True)]
    found = [KeySpec(("v",), (), "NON_PARTITION"), KeySpec(("v", "one"), (), "COMPLEX")]
    if kind != "binary":  # no partition column: the write refuses it
        found += [KeySpec(("one",), ("v",), "SIMPLE", hive, not hive) for hive in (False, True)]
    return found


def _refused(value):
    """Whether it may be no folder below the table, which either engine refuses before it writes."""
    return isinstance(value, str) and (value in (".", "..", ".hoodie") or "/" in value or "\0" in value)


def _wanted(table, spec):
    """What the kernels give: keys (null where the value is null or empty) or paths, in the order of rows."""
    if spec.partition_fields:
        return partition_paths(table, spec).to_pylist()
    if len(spec.key_fields) > 1:
        return record_keys(table, spec).to_pylist()
    filled = [v is not None and len(str(v)) > 0 and v != b"" for v in table["v"].to_pylist()]
    keys = iter(record_keys(table.filter(pa.array(filled)), spec).to_pylist() if any(filled) else [])
    return [next(keys) if yes else None for yes in filled]


@pytest.mark.req("KG-03", "NEW-02", "PM-06")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(4)
def test_generated_values_have_the_same_keys_paths_and_order(session, folder, to_arrow, kind):
    arrow, values = KINDS[kind]

    # One Spark job: a failure shows its rows as they are.
    @settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(st.one_of(st.none(), values), min_size=120, max_size=240))
    def check(made):
        assume(len(set(made)) > 1)  # the first that is tried is the simplest, nothing but nulls
        file = folder / f"{kind}.parquet"
        table = pa.table({"one": ["1"] * len(made), "row": range(len(made)), "v": pa.array(made, arrow)})
        pq.write_table(table, file)
        frame = session.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(file))
        if kind in BY_KERNELS:
            (spec,) = _styles(kind)
            found = to_arrow(_keyed(frame, PrepareTask(table.schema, spec, None, False))).sort_by("row")
            assert found[RECORD_KEY].to_pylist() == record_keys(table, spec).to_pylist()
            assert found[PARTITION_PATH].to_pylist() == partition_paths(table, spec).to_pylist()
        else:
            columns = {}
            for n, spec in enumerate(_styles(kind)):
                make = key_columns.partition_path if spec.partition_fields else key_columns.record_key
                columns[str(n)] = make(spec, frame.schema)
            found = to_arrow(frame.select("row", "v", *(c.alias(n) for n, c in columns.items()))).sort_by(
                "row"
            )
            for n, spec in enumerate(_styles(kind)):
                allowed = pa.array([not spec.partition_fields or not _refused(v) for v in made])
                assert found.filter(allowed)[str(n)].to_pylist() == _wanted(table.filter(allowed), spec), spec
        assert found["v"].cast(arrow) == table["v"]
        # Of rows with one key the same one survives: the values crossed as Arrow with their order.
        valued = table.filter(table["v"].is_valid())
        keys = pc.cast(pc.bit_wise_and(valued["row"], 3), pa.string())
        theirs = found.filter(found["v"].is_valid())["v"].cast(arrow)
        assert precombine(keys, theirs).tolist() == precombine(keys, valued["v"]).tolist()

    check()
