"""pytest fixtures: `pytest_plugins = ["hudi_timeline.testing.fixtures"]` in conftest.py.

def test_my_report_waits_for_open_commits(hudi_state):
    table = hudi_state("hollow commit").table
    assert my_report(table) == "not yet"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import fsspec
import pytest

from hudi_timeline.testing.faulty_storage import Faults
from hudi_timeline.testing.states import TableState, make_state, state_names
from hudi_timeline.testing.table_builder import TableBuilder


@pytest.fixture
def hudi_builder() -> Iterator[Callable[..., TableBuilder]]:
    """Factory of in-memory table builders; arguments as of `TableBuilder`."""
    made: list[TableBuilder] = []

    def build(**arguments: object) -> TableBuilder:
        made.append(TableBuilder(**arguments))  # type: ignore[arg-type]
        return made[-1]

    yield build
    for built in made:
        _forget(built)


@pytest.fixture
def hudi_state() -> Iterator[Callable[[str], TableState]]:
    """Factory of in-memory tables in a state of `state_names()`."""
    made: list[TableState] = []

    def build(name: str) -> TableState:
        made.append(make_state(name))
        return made[-1]

    yield build
    for state in made:
        _forget(state.built)


@pytest.fixture(params=state_names())
def any_hudi_state(request: pytest.FixtureRequest) -> Iterator[TableState]:
    """A table in each state, one after the other."""
    state = make_state(request.param)
    yield state
    _forget(state.built)


@pytest.fixture
def hudi_faults() -> Callable[..., Faults]:
    """Factory of storage faults; arguments as of `Faults`."""
    return Faults


def _forget(built: TableBuilder) -> None:
    """Release the memory of a table."""
    if built.uri.startswith("memory://"):
        memory = fsspec.filesystem("memory")
        folder = built.uri.removeprefix("memory:/")
        if memory.exists(folder):
            memory.rm(folder, recursive=True)
