"""Test support for code on Hudi tables: fault injection, and tables in any state."""

from hudi_timeline.testing.faulty_storage import (
    CHANGES,
    CRASH,
    DELAY,
    DOUBLE,
    FAIL,
    LOOKS,
    LOSE,
    STALE,
    TEAR,
    WRITES,
    Call,
    Crash,
    Fault,
    Faults,
    FaultyStorage,
    Kind,
)
from hudi_timeline.testing.states import TableState, make_state, state_names
from hudi_timeline.testing.table_builder import TableBuilder

__all__ = [
    "CHANGES",
    "CRASH",
    "DELAY",
    "DOUBLE",
    "FAIL",
    "LOOKS",
    "LOSE",
    "STALE",
    "TEAR",
    "WRITES",
    "Call",
    "Crash",
    "Fault",
    "Faults",
    "FaultyStorage",
    "Kind",
    "TableBuilder",
    "TableState",
    "make_state",
    "state_names",
]
