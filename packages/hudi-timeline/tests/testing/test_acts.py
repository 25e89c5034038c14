"""What each act of simulations does where nothing is beside it."""

import inspect

import pytest

from hudi_timeline import HudiTable
from hudi_timeline.testing import acts
from hudi_timeline.testing.acts import ACTS, acts_on
from hudi_timeline.testing.workload import OPTIONS, Case
from hudi_timeline.testing.workload_table import TABLES

# Public methods of a table that change it and are no acts, each with the reason.
NO_ACTS = {
    "create": "a simulation begins with a table",
    "compact_in_background": "a thread of its own, whose steps no seed chooses: its compactions are those of `compact`",
    "rebuild_index": "needs an index of the user's; tests/custom_index has its writers",
    "break_lock": "the lock of a simulation is held by no process; tests/services/test_lock_doctor.py",
    "vacuum": "another name of `clean`",
    "optimize": "another name of `compact`",
}
READS = {
    "count", "head", "history", "to_pandas", "to_polars", "open", "read_incremental", "read_changes", "latest_offset",
    "convert_checkpoint", "duplicates", "key_history", "erasure_report", "check_merge", "schema_changes", "verify",
    "validate_compaction", "compaction_status", "lock_report",
}  # fmt: skip


@pytest.mark.req("NEW-12")
def test_every_operation_and_service_of_a_table_is_an_act():
    methods = {n for n, found in inspect.getmembers(HudiTable, callable) if not n.startswith("_")}
    source = inspect.getsource(acts) + inspect.getsource(acts.rows_of)
    acted = {n for n in methods if f"t.{n}(" in source or f"table.{n}(" in source}
    assert methods - acted - READS == NO_ACTS.keys()
    assert not acted & NO_ACTS.keys()


@pytest.mark.parametrize("name", ACTS)
def test_an_act_alone_has_the_effect_that_it_says(name):
    """Else an act that is always refused would stand for nothing."""
    kinds = [(kind, index) for kind, index in TABLES if name in acts_on(kind, index)]
    ends = (Case({"one": [name]}, kind, OPTIONS, index=index).run(0).done[0] for kind, index in kinds)
    assert any(done.error is None for done in ends)
