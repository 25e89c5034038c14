"""`HudiTable` itself: how one comes about, and what its methods promise in their signatures."""

import inspect

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.testing import CRASH, Fault, Faults

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


def test_the_constructor_names_the_doors():
    with pytest.raises(TypeError, match=r"HudiTable\.open.*HudiTable\.create"):
        HudiTable("/some/path")


def test_a_storage_that_is_open_already_is_a_table_s_place(tmp_path):
    made = HudiTable.create(str(tmp_path / "t"), ROWS.schema, name="t", record_keys=["id"])
    made.insert(ROWS)
    faults = Faults(Fault(CRASH, operation="create", nth=1))
    opened = HudiTable.open(faults.wrap(made.storage))
    assert opened.uri == made.uri
    assert opened.read().to_arrow().num_rows == 2
    with faults.process():
        opened.upsert(ROWS)
    assert faults.dead
    assert HudiTable.open(made.storage).read().to_arrow().num_rows == 2


def test_every_public_method_says_what_it_takes():
    """One class, without mixins: no method is inherited, none takes arguments that it does not name."""
    assert HudiTable.__mro__ == (HudiTable, object)
    for name, method in inspect.getmembers(HudiTable, inspect.isroutine):
        if name.startswith("_"):
            continue
        assert method.__doc__, name
        kinds = {p.kind for p in inspect.signature(method).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}, name
